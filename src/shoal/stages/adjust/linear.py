"""The published adjustment: one matrix product with the pseudo-inverse."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.probability import check_stochastic, normalize_rows

__all__ = ["check_tables", "check_tol", "pseudo_inverse"]

Array = NDArray[Any]

SMALLEST_TOL = 1e-13


def check_tables(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike
) -> tuple[Array, Array]:
    """Validate both tables; the classes come back as float64."""
    points = check_stochastic(domain_given_x, "domain_given_x")
    corners = check_stochastic(domain_given_class, "domain_given_class")
    if points.shape[1] != corners.shape[1]:
        raise ValueError(
            f"domain_given_x has {points.shape[1]} columns, domain_given_class has "
            f"{corners.shape[1]}; both need one column per domain, in the same order"
        )
    return points, corners.astype(np.float64)


def check_tol(tol: float) -> None:
    """Refuse a duality gap that double precision cannot certify."""
    if not tol >= SMALLEST_TOL:
        raise ValueError(f"tol must be at least {SMALLEST_TOL}, got {tol!r}")


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
