"""Adjust: from q(d|x) and q(d|y) to q(y|x), the last stage (Algorithm 2).

Each row of q(d|x) is a mixture of the rows of ``domain_given_class``, and its weights
are the distribution over classes that we want::

    domain_given_x (n, r)  =  class_given_x (n, k)  @  domain_given_class (k, r)

With estimated tables no weights fit exactly. The three solvers differ in what they do
then: :func:`pseudo_inverse` is as published and may leave the simplex,
:func:`simplex_least_squares` takes the nearest mixture, :func:`maximum_likelihood` the
one under which the domains are most probable (the most accurate in our measurements,
above all when there are many classes).

A ``domain_weight`` other than equal needs no argument here: it is already inside
``domain_given_class`` (see :func:`shoal.probability.domain_given_class`) and must be
the one that ``domain_given_x`` was corrected to.
"""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shoal.probability import check_stochastic, class_posterior, normalize_rows
from shoal.stages._simplex import solve_rows
from shoal.stages._splitting import (
    Divergence,
    LikelihoodSplitting,
    SquaredDistance,
    SquaresSplitting,
)
from shoal.validation import check_choice

Array = NDArray[Any]

# ---- the published adjustment: one matrix product with the pseudo-inverse ------------

SMALLEST_TOL = 1e-13


def check_tables(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, tol: float = np.inf
) -> tuple[Array, Array]:
    """Validate both tables; the classes come back as float64.

    A duality gap ``tol`` that double precision cannot certify is refused.
    """
    if not tol >= SMALLEST_TOL:
        raise ValueError(f"tol must be at least {SMALLEST_TOL}, got {tol!r}")
    points = check_stochastic(domain_given_x, "domain_given_x")
    corners = check_stochastic(domain_given_class, "domain_given_class")
    if points.shape[1] != corners.shape[1]:
        raise ValueError(
            f"domain_given_x has {points.shape[1]} columns, domain_given_class has "
            f"{corners.shape[1]}; both need one column per domain, in the same order"
        )
    return points, corners.astype(np.float64)


def pseudo_inverse(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, clip: bool = True
) -> Array:
    """q(y|x) = f(x) T^+, as published in Algorithm 2.

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1.
    domain_given_class : array-like of shape (n_classes, n_domains)
        q(d|y); rows sum to 1.
    clip : bool, default=True
        Set negative entries to 0 and scale rows to sum to 1; a row without any
        positive entry becomes uniform. The paper is silent on negative entries, and
        dividing by a negative sum turns the arg max around. False returns the raw
        published numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> pseudo_inverse([[0.6, 0.4]], [[0.8, 0.2], [0.3, 0.7]]).round(3)
    array([[0.6, 0.4]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class)
    raw = points @ np.linalg.pinv(corners).astype(points.dtype)
    if not clip:
        return np.asarray(raw)
    return normalize_rows(np.maximum(raw, 0, out=raw))


# ---- the nearest mixture of the classes' rows, and the likeliest ---------------------

# Probabilities of a domain below this are the rounding error of some softmax.
NOISE = 1e-12


def simplex_least_squares(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-11
) -> Array:
    """Solve min ||f(x) - g T||^2 / 2 over distributions g, for every row f(x).

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1. float32 stays float32.
    domain_given_class : array-like of shape (n_classes, n_domains)
        T = q(d|y); rows sum to 1.
    tol : float, default=1e-11
        Largest duality gap, an upper bound of what each row's objective is above its
        minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        q(y|x); rows sum to 1. Where twin classes leave a choice, a solution.

    Notes
    -----
    Splitting iterations for all rows, projected Newton steps for the rows that they
    leave open, an interior-point method for what is left. Rows are worked in blocks:
    memory beyond the result does not grow with the number of rows.

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> simplex_least_squares([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class, tol)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    gram = corners @ corners.T

    def objective_of(columns: Array) -> SquaredDistance:
        return SquaredDistance(gram, corners @ columns)

    split = SquaresSplitting(gram, tol)
    return solve_rows(points, len(corners), objective_of, split, tol=tol, inner=10)


def maximum_likelihood(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-6
) -> Array:
    """Solve min KL(f(x) || g T) over distributions g, for every row f(x).

    The same as maximizing sum_d f_d(x) log (g T)_d. A domain that no class can produce
    tells nothing about the class and is left out; a row that has only such domains
    is taken for an average one. Probabilities below 1e-12 count as 0.

    Parameters
    ----------
    domain_given_x, domain_given_class
        As in :func:`simplex_least_squares`.
    tol : float, default=1e-6
        Largest duality gap, max_y sum_d f_d T_yd / (g T)_d - 1 in nats, an upper bound
        of what each row's divergence is above its minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        As from :func:`simplex_least_squares`.

    Notes
    -----
    The classical algorithm is EM, whose steps g_y <- g_y sum_d f_d T_yd / (g T)_d creep
    near the boundary. Here splitting iterations find the classes present, projected
    Newton steps finish, and an interior-point method takes the rows that they leave
    open, in blocks of rows.

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> maximum_likelihood([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class, tol)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    possible = corners.max(axis=0) > 0
    if not possible.all():
        points, corners = points[:, possible], corners[:, possible]
        points = normalize_rows(np.maximum(points, 0), empty=corners.mean(axis=0))

    def objective_of(columns: Array) -> Divergence:
        if columns.min() < NOISE:
            columns[columns < NOISE] = 0
        return Divergence(corners, columns)

    split = LikelihoodSplitting(corners)
    return solve_rows(points, len(corners), objective_of, split, tol=tol, inner=7)


# ---- one function that picks the solver, one small estimator -------------------------

SOLVERS: dict[str, Callable[..., Array]] = {
    "likelihood": maximum_likelihood,
    "simplex": simplex_least_squares,
    "pinv": pseudo_inverse,
}


def adjust(
    domain_given_x: ArrayLike,
    domain_given_class: ArrayLike,
    *,
    method: str = "likelihood",
) -> Array:
    """q(y|x) from q(d|x) and q(d|y), under the mix of domains they were made with.

    Parameters
    ----------
    domain_given_x, domain_given_class
        As in :func:`pseudo_inverse`; a custom domain weight is already inside q(d|y).
    method : {"likelihood", "simplex", "pinv"}, default="likelihood"
        :func:`maximum_likelihood`, :func:`simplex_least_squares` or
        :func:`pseudo_inverse`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Rows sum to 1.

    Examples
    --------
    >>> adjust([[0.6, 0.4]], [[0.8, 0.2], [0.3, 0.7]], method="simplex").round(3)
    array([[0.6, 0.4]])
    """
    check_choice(SOLVERS, method=method)
    return SOLVERS[method](domain_given_x, domain_given_class)


class Adjuster(BaseEstimator):
    """Turn probabilities of domains into probabilities of classes.

    Parameters
    ----------
    method : {"likelihood", "simplex", "pinv"}, default="likelihood"
        How to solve for q(y|x), see :func:`adjust`.

    Attributes
    ----------
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
        q(d|y), as given to ``fit``.

    Notes
    -----
    q(d) enters only through ``domain_given_class``: computed with a custom domain
    weight, it gives q(y|x) under that mix of domains, provided that ``domain_given_x``
    was corrected to the same weight. p_d(y|x) does not depend on q(d).

    Examples
    --------
    >>> adjuster = Adjuster(method="simplex").fit([[0.8, 0.2], [0.3, 0.7]])
    >>> adjuster.predict_proba([[0.6, 0.4]]).round(3)
    array([[0.6, 0.4]])
    >>> adjuster.predict_proba([[0.6, 0.4]], codes=0).round(3)
    array([[0.8, 0.2]])
    """

    def __init__(self, method: str = "likelihood") -> None:
        self.method = method

    def fit(self, domain_given_class: ArrayLike, y: Any = None) -> Self:
        """Keep q(d|y).

        Parameters
        ----------
        domain_given_class : array-like of shape (n_classes, n_domains)
            Rows sum to 1.
        y : None
            Ignored; present by convention.

        Returns
        -------
        self : Adjuster
        """
        check_choice(SOLVERS, method=self.method)
        table = check_stochastic(domain_given_class, "domain_given_class")
        self.domain_given_class_ = table.copy()
        return self

    def predict_proba(
        self, domain_given_x: ArrayLike, codes: ArrayLike | int | None = None
    ) -> Array:
        """Probability of each class for each row.

        Parameters
        ----------
        domain_given_x : array-like of shape (n_samples, n_domains)
            q(d|x); rows sum to 1.
        codes : int, array-like of int of shape (n_samples,) or None, default=None
            Domain of all rows or of each row, as column of ``domain_given_x``. None:
            the rows may come from any domain, in the mix that q(d|x) stands for.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            p_d(y|x), or q(y|x) when ``codes`` is None; rows sum to 1.
        """
        check_is_fitted(self)
        table = self.domain_given_class_
        class_given_x = adjust(domain_given_x, table, method=self.method)
        if codes is None:
            return class_given_x
        codes = _check_codes(codes, len(class_given_x), table.shape[1])
        return class_posterior(class_given_x, table.astype(class_given_x.dtype), codes)

    def predict(
        self, domain_given_x: ArrayLike, codes: ArrayLike | int | None = None
    ) -> Array:
        """Most probable class of each row; arguments as in ``predict_proba``."""
        return np.asarray(self.predict_proba(domain_given_x, codes).argmax(axis=1))


def _check_codes(codes: ArrayLike | int, n_samples: int, n_domains: int) -> Array:
    array = np.asarray(codes)
    if array.dtype.kind not in "iu":
        raise TypeError(
            f"codes must be integers, columns of domain_given_x, got {array.dtype}"
        )
    if array.ndim > 1 or (array.ndim == 1 and len(array) != n_samples):
        raise ValueError(
            f"domain_given_x has {n_samples} rows, codes has shape {array.shape}; pass "
            "one code per row, one for all rows, or None"
        )
    if array.size and (array.min() < 0 or array.max() >= n_domains):
        wrong = array.min() if array.min() < 0 else array.max()
        raise ValueError(f"codes must be in 0..{n_domains - 1}, got {wrong}")
    return np.broadcast_to(array, n_samples)
