"""Rows and the mixture that describes them: p_d(x) = sum_y p_d(y) p(x|y)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp, softmax

from shoal.density._gaussian import (
    Gaps,
    fill_in,
    log_density,
    seen_distances,
    squared_distances,
    tail_weights,
)
from shoal.probability import TINY

Array = np.ndarray[Any, Any]


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
    """

    X: Array
    codes: Array
    weight: Array
    n_domains: int
    gaps: Gaps | None = None


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
    found = distances(X, gaps, density)
    return (found.squares / np.maximum(found.n_columns, 1)).min(axis=1)


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
