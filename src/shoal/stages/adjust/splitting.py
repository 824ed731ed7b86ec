"""Splitting: a few products with small fixed matrices bring all rows near the solution.

The problems of this stage minimize a sum of simple functions of single coordinates over
distributions x. Splitting methods (Douglas-Rachford, also known as ADMM) alternate
between the coordinates, each solved alone, and a quadratic problem whose matrix is the
same for all rows. They are written here for one *signed* variable per coordinate: the
solution where it is positive, the scaled multiplier of x >= 0 where it is negative. The
reflected coordinate is then just the absolute value of the signed one.

References
----------
Eckstein and Bertsekas, "On the Douglas-Rachford splitting method and the proximal point
algorithm", Mathematical Programming 55 (1992), https://doi.org/10.1007/BF01581204
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["constrained_inverse", "geometric_curvature", "to_simplex"]

Array = NDArray[Any]


def constrained_inverse(matrix: Array) -> tuple[Array, Array]:
    """Find A, a: x = A b + a minimizes x'Mx/2 - b'x over all x that sum to 1.

    Where M is flat (twin classes) x stays as uniform as it can.
    """
    curvature, directions = _sum_free_spectrum(matrix)
    steep = curvature > 1e-13 * np.trace(matrix)
    directions = directions[:, steep]
    inverse = directions / curvature[steep] @ directions.T
    uniform = np.full(len(matrix), 1 / len(matrix))
    return inverse, uniform - inverse @ (matrix @ uniform)


def geometric_curvature(matrix: Array) -> float:
    """Geometric mean of the extreme curvatures among x that sum to 1.

    The best penalty of x >= 0 is about this.
    """
    curvature, _ = _sum_free_spectrum(matrix)
    largest = max(curvature[-1], 1e-8 * np.trace(matrix))
    # Twin classes have no curvature: the floor keeps the other classes moving.
    return float(np.sqrt(largest * max(curvature[0], 1e-4 * largest)))


def to_simplex(signed: Array) -> Array:
    """Take the positive parts of columns, scaled to sum to 1, in float64."""
    x = np.maximum(signed, 0, dtype=np.float64)
    total = x.sum(axis=0)
    lost = total <= 0
    if lost.any():
        x[:, lost], total[lost] = 1, len(x)
    x /= total
    return x


def _sum_free_spectrum(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a symmetric matrix among vectors that sum to 0."""
    along_ones = np.full_like(matrix, 1 / len(matrix))
    center = np.eye(len(matrix)) - along_ones
    # A large eigenvalue along (1, ..., 1) sorts that direction last, to be dropped.
    shifted = center @ matrix @ center + 10 * np.trace(matrix) * along_ones
    values, vectors = np.linalg.eigh(shifted)
    return values[:-1], vectors[:, :-1]
