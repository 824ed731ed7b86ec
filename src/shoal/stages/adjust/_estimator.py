"""The public door: one function that picks the solver, one small estimator."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from shoal.probability import check_stochastic, class_posterior
from shoal.stages.adjust._methods import (
    maximum_likelihood,
    pseudo_inverse,
    simplex_least_squares,
)
from shoal.validation import check_choice

Array = NDArray[Any]

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
