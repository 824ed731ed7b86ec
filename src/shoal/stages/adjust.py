"""Adjust: from q(d|x) and q(d|y) to q(y|x), the last stage (Algorithm 2).

Each row solves ``domain_given_x = class_given_x @ domain_given_class`` for a
distribution over classes.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from shoal.probability import check_stochastic, normalize_rows

__all__ = ["pseudo_inverse", "simplex_least_squares"]

Array = NDArray[Any]


def pseudo_inverse(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, clip: bool = True
) -> Array:
    """q(y|x) = f(x) T^+, as published in Algorithm 2.

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
    domain_given_class : array-like of shape (n_classes, n_domains)
    clip : bool, default=True
        Set negative entries to 0 and scale rows to sum to 1. False returns the raw
        published numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
    """
    points, corners = _check_tables(domain_given_x, domain_given_class)
    raw = points @ np.linalg.pinv(corners).astype(points.dtype)
    if not clip:
        return np.asarray(raw)
    return normalize_rows(np.maximum(raw, 0, out=raw))


def simplex_least_squares(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike
) -> Array:
    """Solve min ||f(x) - g T||^2 over distributions g, for each row f(x).

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
    domain_given_class : array-like of shape (n_classes, n_domains)

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Rows sum to 1.
    """
    points, corners = _check_tables(domain_given_x, domain_given_class)
    result = np.empty((len(points), len(corners)), dtype=points.dtype)
    for row, point in enumerate(points):
        # The nearest point of the hull of the corners is the smallest vector of the
        # hull of (corners - point). Its weights are, up to scale, the non-negative
        # least-squares solution with one more equation that asks them to sum to 1.
        system = np.vstack([(corners - point).T, np.ones(len(corners))])
        weights, _ = nnls(system, np.append(np.zeros(len(point)), 1.0))
        result[row] = weights / weights.sum()
    return result


def _check_tables(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike
) -> tuple[Array, Array]:
    points = check_stochastic(domain_given_x, "domain_given_x")
    corners = check_stochastic(domain_given_class, "domain_given_class")
    if points.shape[1] != corners.shape[1]:
        raise ValueError(
            f"domain_given_x has {points.shape[1]} columns, domain_given_class "
            f"{corners.shape[1]}; both need one column per domain, in the same order"
        )
    return points, corners
