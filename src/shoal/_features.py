"""What columns become before a linear model: RBF features, principal components."""

from typing import Any

import numpy as np
from scipy.sparse.linalg import svds
from scipy.spatial.distance import pdist

from shoal.validation import is_sparse

# ---- RBF features --------------------------------------------------------------------

Array = np.ndarray[Any, Any]


def rbf_width(centers: Array) -> float:
    """Half the median distance between centres; 1 for a single one.

    Examples
    --------
    >>> rbf_width(np.array([[0.0, 0.0], [3.0, 4.0]]))
    2.5
    """
    apart = pdist(centers)
    return max(float(np.median(apart)) / 2, 1e-12) if len(apart) else 1.0


def rbf_features(points: Array, centers: Array, width: float) -> Array:
    """Gaussian RBF at each centre: exp(-distance^2 / (2 width^2)).

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
    >>> rbf_features(np.array([[0.0], [1.0]]), np.array([[0.0]]), 1.0).round(3)
    array([[1.   ],
           [0.607]])
    """
    distance = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    distance -= 2 * (points @ centers.T.astype(points.dtype))
    distance *= -1 / (2 * width**2)
    return np.exp(np.minimum(distance, 0, out=distance), out=distance)


# ---- principal components of wide tables ---------------------------------------------

# A column needs so many rows to be learned from.
ROWS_PER_COLUMN = 20
# Fewer columns than these are few in any case.
WIDE_COLUMNS = 10
ROWS_PER_COMPONENT = 40
MOST_COMPONENTS = 50
# Up to this many rows or columns all directions are found at once.
EXACT = 100


def few_components(n_rows: int) -> int:
    """Principal components that so many rows can carry; two at least.

    Examples
    --------
    >>> few_components(240), few_components(100_000)
    (6, 50)
    """
    return max(2, min(int(n_rows) // ROWS_PER_COMPONENT, MOST_COMPONENTS))


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Whether there are too few rows for the columns, and far fewer components.

    Examples
    --------
    >>> is_wide(240, 50), is_wide(24_000, 50), is_wide(240, 8)
    (True, False, False)
    """
    if n_columns < WIDE_COLUMNS or n_rows >= ROWS_PER_COLUMN * n_columns:
        return False
    return few_components(n_rows) <= n_columns // 2


def unit_components(rows: Any, count: int) -> Array:
    """Directions of the largest variance, scaled to a mean variance of one.

    Parameters
    ----------
    rows : {ndarray, sparse array} of shape (n_rows, n_columns)
        Centred, and divided by the root of their number (or times that of weights
        that sum to one).
    count : int
        How many, at most as many as there are rows or columns.

    Returns
    -------
    ndarray of shape (n_columns, count)
    """
    values, directions = _leading_directions(rows, min(count, *rows.shape))
    scale = np.sqrt(np.mean(values**2))
    return np.asarray(directions.T / (scale if scale > 0 else 1)).astype(rows.dtype)


def _leading_directions(rows: Any, count: int) -> tuple[Array, Array]:
    """Largest singular values of a matrix, and their directions as rows."""
    if min(rows.shape) <= max(EXACT, 2 * count):
        dense = rows.toarray() if is_sparse(rows) else rows
        _, values, directions = np.linalg.svd(dense, full_matrices=False)
        return values[:count], directions[:count]
    # the search begins where the order of rows and columns has no say
    squares = rows.multiply(rows) if is_sparse(rows) else rows**2
    first = np.asarray(squares.sum(axis=int(rows.shape[0] < rows.shape[1]))).ravel()
    if not first.any():
        return np.zeros(count), np.eye(count, rows.shape[1])
    _, values, directions = svds(rows, count, v0=first)
    return values[::-1], directions[::-1]
