"""Projected Newton steps on the simplex, for many small problems at once.

Every problem is a column: ``x`` has shape (n_classes, n). A step moves, in each column,
the classes that are present or should be; the Newton systems of all columns are solved
together by conjugate gradients, which need products with the Hessians and no Hessian.
Fast where the classes present are nearly right; a column that does not descend is left
as it is, for :mod:`shoal.stages.adjust.interior`.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Objective", "Product", "duality_gap", "newton_steps"]

Array = NDArray[Any]
Product = Callable[[Array], Array]


class Objective(Protocol):
    """A convex function of each column of x."""

    def slope(self, x: Array) -> tuple[Array, Array]:
        """Return minus the gradient, (n_classes, n), and weights for the Hessian."""

    def product(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        """Return the product of columns with their Hessians, and the diagonals."""

    def hessian(self, weights: Array) -> Array:
        """Return the Hessians, (n, n_classes, n_classes) or one for all columns."""

    def select(self, columns: Array) -> Self:
        """Return the same function for some of the columns."""


def duality_gap(x: Array, slope: Array) -> Array:
    """Bound from above how far each column is from its minimum (Frank-Wolfe gap)."""
    return np.asarray(slope.max(axis=0) - (x * slope).sum(axis=0))


def newton_steps(
    objective: Objective, x: Array, *, tol: float, n_steps: int, inner: int, dtype: Any
) -> Array:
    """Take projected Newton steps in each column until its gap is at most ``tol``.

    Parameters
    ----------
    objective : Objective
    x : ndarray of shape (n_classes, n)
        Where to start; improved in place.
    tol : float
        Duality gap at which a column is done.
    n_steps : int
    inner : int
        Iterations of conjugate gradients in each step.
    dtype : numpy dtype
        Of the conjugate gradients; slopes and gaps are float64 in any case.

    Returns
    -------
    ndarray of shape (n,)
        True where the gap is still above ``tol``.
    """
    result, columns = x, np.arange(x.shape[1])
    is_open = np.ones(len(columns), dtype=bool)
    slope, weights = objective.slope(x)
    going = is_open.copy()
    for step in range(n_steps + 1):
        excess = slope - (x * slope).sum(axis=0)
        arrived = excess.max(axis=0) <= tol
        result[:, columns[going | arrived]] = x[:, going | arrived]
        is_open[columns[arrived]] = False
        going &= ~arrived
        if step == n_steps or not going.any():
            break
        if not going.all():
            columns, objective = columns[going], objective.select(going)
            x, slope, excess = x[:, going], slope[:, going], excess[:, going]
            weights = weights[:, going]
        movable = (x > 0) | (excess > 0)
        hessian = objective.product(weights, dtype)
        new = np.maximum(x + _newton_move(hessian, excess, movable, inner), 0)
        new /= np.maximum(new.sum(axis=0), np.finfo(new.dtype).tiny)
        new_slope, weights = objective.slope(new)
        # Did the function fall? The trapezoid rule on its slopes is exact for a
        # quadratic and keeps the digits that a difference of values would lose.
        going = ((slope + new_slope) * (new - x)).sum(axis=0) >= -1e-3 * tol
        x, slope = new, new_slope
    return is_open


def _newton_move(
    hessian: tuple[Product, Array], pull: Array, movable: Array, n_iter: int
) -> Array:
    """Solve H move = pull among movable classes, with a move that sums to 0.

    Conjugate gradients, scaled by the diagonal of H and projected onto moves that keep
    the sum; a column that has arrived stands still.
    """
    product, diagonal = hessian
    inverse = movable / diagonal
    total = inverse.sum(axis=0)
    residual = pull.astype(inverse.dtype)
    scaled, work = np.empty_like(residual), np.empty_like(residual)
    ones = np.ones(len(pull), dtype=residual.dtype)  # ones @ a: the fastest column sum

    def scale() -> Array:
        """Set ``scaled`` to the scaled residual, sum 0; return its squared length."""
        # The multiplier of the sum leaves the residual itself: taken from the scaled
        # residual only, it would stay behind as rounding error, and grow.
        residual[:] -= (ones @ np.multiply(residual, inverse, out=work)) / total
        np.multiply(residual, inverse, out=scaled)
        return np.asarray(ones @ np.multiply(residual, scaled, out=work))

    size = scale()
    direction, move = scaled.copy(), np.zeros_like(residual)
    precision = np.finfo(residual.dtype)
    arrived = size * (1e3 * precision.eps) ** 2 + precision.tiny
    for _ in range(n_iter):
        image = product(direction)
        bend = ones @ np.multiply(direction, image, out=work)
        going = (size > arrived) & (bend > 0)
        if not going.any():
            break
        length = np.divide(size, bend, out=np.zeros_like(size), where=going)
        move += np.multiply(direction, length, out=work)
        residual -= np.multiply(image, length, out=work)
        new_size = scale()
        direction *= np.divide(new_size, size, out=length, where=going)
        direction += scaled
        size = new_size
    return move
