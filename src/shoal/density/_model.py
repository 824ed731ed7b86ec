"""Rows and the mixture that describes them: p_d(x) = sum_y p_d(y) p(x|y)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from shoal.density._gaussian import (
    Pattern,
    log_density,
    of_columns,
    squared_distances,
    tail_weights,
)

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
    patterns : tuple of Pattern
        Empty where no value misses.
    """

    X: Array
    codes: Array
    weight: Array
    n_domains: int
    patterns: tuple[Pattern, ...] = ()


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


def component_densities(
    X: Array, patterns: tuple[Pattern, ...], density: Density
) -> tuple[Array, Array]:
    """Log p(x|component) and the pull of rows that are free of drift."""
    shape = density.means, density.covariance, density.kind
    if not patterns:
        squares, log_determinants = squared_distances(X, *shape)
        of_tail = X.shape[1], density.tail
        logs = log_density(squares, log_determinants, *of_tail)
        return logs, tail_weights(squares, *of_tail)
    logs = np.empty((len(X), len(density.means)))
    pull = np.empty_like(logs)
    for rows, seen in patterns:
        of_seen = _seen_distances(X[np.ix_(rows, seen)], seen, density)
        squares, log_determinants = of_seen
        of_tail = int(seen.sum()), density.tail
        logs[rows] = log_density(squares, log_determinants, *of_tail)
        pull[rows] = tail_weights(squares, *of_tail)
    return logs, pull


def nearest_squares(X: Array, patterns: tuple[Pattern, ...], density: Density) -> Array:
    """Squared distance to the nearest component, as a mean over the seen columns."""
    shape = density.means, density.covariance, density.kind
    if not patterns:
        return squared_distances(X, *shape)[0].min(axis=1) / X.shape[1]
    nearest = np.empty(len(X))
    for rows, seen in patterns:
        squares = _seen_distances(X[np.ix_(rows, seen)], seen, density)[0]
        nearest[rows] = squares.min(axis=1) / max(int(seen.sum()), 1)
    return nearest


def _seen_distances(X: Array, seen: Array, density: Density) -> tuple[Array, Array]:
    covariance = of_columns(density.covariance, density.kind, seen)
    return squared_distances(X, density.means[:, seen], covariance, density.kind)


def without_drift(rows: Rows, drift: Array | None) -> Array:
    """Rows as they would look in a domain without drift."""
    return rows.X if drift is None else rows.X - drift[rows.codes]


def class_log_densities(
    X: Array, patterns: tuple[Pattern, ...], density: Density
) -> Array:
    """Log p(x|y) of rows without drift, of shape (n_rows, n_classes)."""
    logs = component_densities(X, patterns, density)[0] + np.log(density.share)
    if len(density.owner) == density.mix.shape[1]:
        return logs
    result = np.empty((len(X), density.mix.shape[1]))
    for y in range(result.shape[1]):
        result[:, y] = logsumexp(logs[:, density.owner == y], axis=1)
    return result
