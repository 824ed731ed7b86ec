"""Gaussian bumps around centres: the features that let a linear model bend."""

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

__all__ = ["bump_width", "gaussian_bumps"]

Array = np.ndarray[Any, Any]


def bump_width(centers: Array) -> float:
    """Half the median distance between centres; 1 for a single one.

    Examples
    --------
    >>> bump_width(np.array([[0.0, 0.0], [3.0, 4.0]]))
    2.5
    """
    apart = pdist(centers)
    return max(float(np.median(apart)) / 2, 1e-12) if len(apart) else 1.0


def gaussian_bumps(points: Array, centers: Array, width: float) -> Array:
    """Height of the bump at each centre: exp(-distance^2 / (2 width^2)).

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_columns)
    centers : ndarray of shape (n_centers, n_columns)
    width : float

    Returns
    -------
    ndarray of shape (n_samples, n_centers)

    Examples
    --------
    >>> gaussian_bumps(np.array([[0.0], [1.0]]), np.array([[0.0]]), 1.0).round(3)
    array([[1.   ],
           [0.607]])
    """
    distance = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    distance -= 2 * (points @ centers.T.astype(points.dtype))
    distance *= -1 / (2 * width**2)
    return np.exp(np.minimum(distance, 0, out=distance), out=distance)
