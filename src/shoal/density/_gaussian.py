"""Densities of components, Gaussian or with heavier tails, exact where values miss.

A component has a mean and a covariance (for heavy tails: a scale matrix). ``kind`` says
how covariances are kept: ``"tied"``, one matrix for all, (p, p); ``"diag"``, variances
of each component, (c, p); ``"full"``, a matrix for each component, (c, p, p).

A row in which some columns miss has the density of its other columns: rows are grouped
by pattern, and each pattern sees the means and covariances of its own columns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

Array = np.ndarray[Any, Any]

KINDS = ("tied", "diag", "full")
LOG_2_PI = float(np.log(2 * np.pi))


class Pattern(NamedTuple):
    """Rows in which the same columns are seen."""

    rows: Array  # numbers of the rows
    seen: Array  # (n_columns,), bool


@dataclass(frozen=True, eq=False)
class Gaps:
    """Where values of some rows miss.

    Attributes
    ----------
    seen : ndarray of shape (n_rows, n_columns), bool

    Examples
    --------
    >>> gaps = Gaps(np.array([[True, True], [False, True], [True, True]]))
    >>> [pattern.rows.tolist() for pattern in gaps.patterns]
    [[1], [0, 2]]
    """

    seen: Array

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Rows grouped by the columns that are seen in them."""
        different, which = np.unique(self.seen, axis=0, return_inverse=True)
        order = np.argsort(which.ravel(), kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(which.ravel()))[:-1])
        return tuple(map(Pattern, groups, different))


class Conditional(NamedTuple):
    """What the seen columns of some rows say of all columns, for each component.

    Attributes
    ----------
    mean : ndarray of shape (n_components, n_rows, n_columns)
        Seen values as they are, missing ones as expected.
    covariance : ndarray of shape (n_components, n_columns, n_columns)
        Of the missing values; zero where a column is seen. With ``kind="diag"`` the
        variances only, of shape (n_components, n_columns).
    """

    mean: Array
    covariance: Array


def find_gaps(seen: Array) -> Gaps | None:
    """Where values miss; None if none does."""
    return None if seen.all() else Gaps(seen)


def squared_distances(
    X: Array, means: Array, covariance: Array, kind: str
) -> tuple[Array, Array]:
    """Squared Mahalanobis distances and log determinants of complete rows.

    Returns
    -------
    distances : ndarray of shape (n_rows, n_components)
    log_determinants : ndarray of shape (n_components,)
    """
    if kind == "diag":
        precision = 1 / covariance
        squares = X**2 @ precision.T - 2 * X @ (means * precision).T
        squares += (means**2 * precision).sum(axis=1)
        return np.maximum(squares, 0), np.log(covariance).sum(axis=1)
    roots = np.linalg.inv(np.linalg.cholesky(covariance)).mT  # S^-1 = root root^T
    log_determinant = -2 * np.log(np.diagonal(roots, axis1=-2, axis2=-1)).sum(axis=-1)
    if kind == "tied":
        rows, centres = X @ roots, means @ roots
        squares = -2 * rows @ centres.T
        squares += np.einsum("ij,ij->i", rows, rows)[:, None]
        squares += np.einsum("ij,ij->i", centres, centres)
        return np.maximum(squares, 0), np.full(len(means), log_determinant)
    squares = np.empty((len(X), len(means)))
    for component, root in enumerate(roots):
        apart = X @ root - means[component] @ root
        squares[:, component] = np.einsum("ij,ij->i", apart, apart)
    return squares, log_determinant


def seen_distances(
    X: Array, gaps: Gaps, means: Array, covariance: Array, kind: str
) -> tuple[Array, Array]:
    """The same of rows with gaps, in the columns that are seen.

    Returns
    -------
    distances, log_determinants : ndarray of shape (n_rows, n_components)
    """
    if kind == "diag":
        precision = 1 / covariance
        X, seen = np.where(gaps.seen, X, 0), gaps.seen.astype(float)
        squares = X**2 @ precision.T - 2 * X @ (means * precision).T
        squares += seen @ (means**2 * precision).T
        return np.maximum(squares, 0), seen @ np.log(covariance).T
    squares = np.empty((len(X), len(means)))
    log_determinants = np.empty_like(squares)
    for rows, seen in gaps.patterns:
        squares[rows], log_determinants[rows] = squared_distances(
            X[rows][:, seen],
            means[:, seen],
            covariance[..., seen, :][..., seen],
            kind,
        )
    return squares, log_determinants


def log_density(
    squares: Array, log_determinants: Array, n_columns: Any, tail: float
) -> Array:
    """Log density from squared distances: Student's t, Gaussian if ``tail`` is inf.

    ``n_columns`` is the number of (seen) columns, of all rows or of each.
    """
    if np.isinf(tail):
        return np.asarray(-0.5 * (squares + (log_determinants + n_columns * LOG_2_PI)))
    half = (tail + n_columns) / 2
    constant = gammaln(half) - gammaln(tail / 2) - n_columns / 2 * np.log(tail * np.pi)
    return np.asarray(
        constant - 0.5 * log_determinants - half * np.log1p(squares / tail)
    )


def tail_weights(squares: Array, n_columns: Any, tail: float) -> Array:
    """How much rows count for a component's mean and covariance: far ones less."""
    if np.isinf(tail):
        return np.ones_like(squares)
    return np.asarray((tail + n_columns) / (tail + squares))


def fill_in(
    X: Array, means: Array, covariance: Array, kind: str, seen: Array
) -> Conditional:
    """What rows of one pattern are expected to be in full, for each component.

    ``X`` has all columns; what stands in missing ones does not matter.
    """
    n_components, n_columns = means.shape
    mean = np.repeat(means[:, None, :], len(X), axis=1)
    mean[:, :, seen] = X[:, seen]
    if kind == "diag":
        return Conditional(mean, np.where(seen, 0, covariance))
    # one matrix of a tied covariance serves all components
    stack = covariance[None] if kind == "tied" else covariance
    unseen = ~seen
    across = stack[:, seen][:, :, unseen]  # (c, seen, unseen)
    slope = np.linalg.solve(stack[:, seen][:, :, seen], across)
    mean[:, :, unseen] += (X[:, seen] - means[:, None, seen]) @ slope
    left = np.zeros((n_components, n_columns, n_columns))
    rest = stack[:, unseen][:, :, unseen] - slope.mT @ across
    left[np.ix_(np.arange(n_components), unseen, unseen)] = rest
    return Conditional(mean, left)
