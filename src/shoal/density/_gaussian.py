"""Densities of components, Gaussian or with heavier tails, exact where values miss.

A component has a mean and a covariance (for heavy tails: a scale matrix). ``kind`` says
how covariances are kept: ``"tied"``, one matrix for all, (p, p); ``"diag"``, variances
of each component, (c, p); ``"full"``, a matrix for each component, (c, p, p).

A row in which some columns miss has the density of its other columns: rows are grouped
by pattern, and each pattern sees the means and covariances of its own columns.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, softmax

from shoal.probability import TINY
from shoal.validation._known import Knowledge

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
    squares, ones = np.empty((len(X), len(means))), np.ones(X.shape[1])
    for component, root in enumerate(roots):
        apart = X @ root - means[component] @ root
        squares[:, component] = np.square(apart, out=apart) @ ones
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


# ---- the mixture -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit, in standardized columns.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Zero where a value misses.
    codes : ndarray of shape (n_rows,)
        Domain of each row.
    weight : ndarray of shape (n_rows,)
    n_domains : int
    gaps : Gaps or None
        Where values miss.
    known : Knowledge or None
        What is known of their classes.
    """

    X: Array
    codes: Array
    weight: Array
    n_domains: int
    gaps: Gaps | None = None
    known: Knowledge | None = None


@dataclass(frozen=True, eq=False)
class Density:
    """A mixture: what classes look like and how domains mix them.

    Attributes
    ----------
    means : ndarray of shape (n_components, n_columns)
    covariance : ndarray
        As ``kind`` says, see :mod:`shoal.density._gaussian`.
    kind : {"tied", "diag", "full"}
    tail : float
        Degrees of freedom; inf for Gaussians.
    owner : ndarray of shape (n_components,)
        Class of each component.
    share : ndarray of shape (n_components,)
        Weight of each component in its class.
    mix : ndarray of shape (n_domains, n_classes)
        p_d(y).
    drift : ndarray of shape (n_domains, n_columns) or None
    """

    means: Array
    covariance: Array
    kind: str
    tail: float
    owner: Array
    share: Array
    mix: Array
    drift: Array | None = None


class Distances(NamedTuple):
    """Of rows from components; what a density of any tail is made of.

    Attributes
    ----------
    squares : ndarray of shape (n_rows, n_components)
        In the columns that are seen.
    log_determinants : ndarray
        Of the covariances of these; of shape (n_components,) without gaps.
    n_columns : int or ndarray of shape (n_rows, 1)
        How many are seen.
    """

    squares: Array
    log_determinants: Array
    n_columns: Any

    def log_density(self, tail: float) -> Array:
        """Log p(x|component)."""
        return log_density(*self, tail)

    def pull(self, tail: float) -> Array:
        """How much rows count for means and covariances."""
        return tail_weights(self.squares, self.n_columns, tail)


def distances(X: Array, gaps: Gaps | None, density: Density) -> Distances:
    """Distances of rows, free of drift, from the components."""
    shape = density.means, density.covariance, density.kind
    if gaps is None:
        return Distances(*squared_distances(X, *shape), X.shape[1])
    n_seen = gaps.seen.sum(axis=1, keepdims=True)
    return Distances(*seen_distances(X, gaps, *shape), n_seen)


def nearest_squares(X: Array, gaps: Gaps | None, density: Density) -> Array:
    """Squared distance to the nearest component, as a mean over the seen columns."""
    return mean_squares(X, gaps, density).min(axis=1)


def nearest_without(X: Array, gaps: Gaps | None, density: Density) -> Array:
    """The same had a class not been there, for each; shape (n_rows, n_classes)."""
    squares, classes = mean_squares(X, gaps, density), range(density.mix.shape[1])
    others = [squares[:, density.owner != y] for y in classes]
    return np.stack([one.min(axis=1, initial=np.inf) for one in others], axis=1)


def mean_squares(X: Array, gaps: Gaps | None, density: Density) -> Array:
    """Squared distance to each component, as a mean over the seen columns."""
    found = distances(X, gaps, density)
    return np.asarray(found.squares / np.maximum(found.n_columns, 1))


def without_drift(rows: Rows, drift: Array | None) -> Array:
    """Rows as they would look in a domain without drift."""
    return rows.X if drift is None else rows.X - drift[rows.codes]


def class_log_densities(X: Array, gaps: Gaps | None, density: Density) -> Array:
    """Log p(x|y) of rows without drift, of shape (n_rows, n_classes)."""
    logs = distances(X, gaps, density).log_density(density.tail)
    logs += np.log(density.share)
    if len(density.owner) == density.mix.shape[1]:
        return logs
    result = np.empty((len(X), density.mix.shape[1]))
    for y in range(result.shape[1]):
        result[:, y] = logsumexp(logs[:, density.owner == y], axis=1)
    return result


def expected_rows(
    X: Array, gaps: Gaps | None, density: Density, class_weight: Array
) -> Array:
    """Rows with what is expected in their gaps, under some mix of classes."""
    if gaps is None:
        return X
    logs = distances(X, gaps, density).log_density(density.tail)
    logs += np.log(density.share * np.maximum(class_weight, TINY)[density.owner])
    given = softmax(logs, axis=1)
    result = X.copy()
    shape = density.means, density.covariance, density.kind
    for rows, seen in gaps.patterns:
        means = fill_in(X[rows], *shape, seen).mean
        result[rows] = np.einsum("nc,cnp->np", given[rows], means)
    return result


def class_means(density: Density) -> Array:
    """Mean of each class over its components, of shape (n_classes, n_columns)."""
    means = np.zeros((density.mix.shape[1], density.means.shape[1]))
    np.add.at(means, density.owner, density.share[:, None] * density.means)
    return means


def reorder(density: Density, order: Array) -> Density:
    """The same mixture with its classes, and their components, in another order."""
    owner = np.argsort(order)[density.owner]
    components = np.argsort(owner, kind="stable")
    covariance = density.covariance
    return replace(
        density,
        means=density.means[components],
        covariance=covariance if density.kind == "tied" else covariance[components],
        owner=owner[components],
        share=density.share[components],
        mix=density.mix[:, order],
    )
