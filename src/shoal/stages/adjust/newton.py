"""Newton's method on the probability simplex, for many small problems at once.

Every problem is a column: ``x`` has shape (n_classes, n). A step moves, in each column,
the classes that are present or should be; the Newton systems of all columns are solved
together by conjugate gradients, which need products with the Hessians and no Hessian.
"""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shoal.stages.adjust.splitting import blocks

__all__ = ["Objective", "duality_gap", "minimize_on_simplex", "polish"]

Array = NDArray[Any]
Product = Callable[[Array], Array]


class Objective(Protocol):
    """A convex function of each column of x, with what Newton's method needs."""

    def slope(self, x: Array) -> tuple[Array, Array]:
        """Return minus the gradient, (n_classes, n), and weights for the Hessian."""

    def hessian(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        """Return the product of columns with their Hessians, and the diagonals."""

    def select(self, columns: Array) -> Self:
        """Return the same function for some of the columns."""


def duality_gap(x: Array, slope: Array) -> Array:
    """Upper bound of how far each column is from its minimum (Frank-Wolfe gap)."""
    return slope.max(axis=0) - (x * slope).sum(axis=0)


def polish(
    result: Array,
    rows: Array,
    objective_of: Callable[[Array], Objective],
    tol: float,
) -> Array:
    """Improve rows of ``result`` in place until their duality gaps are below ``tol``.

    The few that resist are collected and tried again with ever more care, so that
    they do not hold up the others. Returns the rows still above ``tol``.
    """
    n_classes = result.shape[1]
    for max_steps, inner, cautious, dtype in (
        (3, 10, False, np.float32),
        (6, 2 * n_classes, True, np.float64),
        (20, 2 * n_classes, True, np.float64),
        (200, 4 * n_classes, True, np.float64),
    ):
        left = [rows[:0]]
        for block in blocks(rows):
            x, is_open = minimize_on_simplex(
                objective_of(block),
                result[block].T.astype(np.float64),
                tol=tol,
                max_steps=max_steps,
                inner=inner,
                cautious=cautious,
                dtype=dtype,
            )
            result[block] = x.T
            left.append(block[is_open])
        rows = np.concatenate(left)
    return rows


def minimize_on_simplex(
    objective: Objective,
    x: Array,
    *,
    tol: float,
    max_steps: int,
    inner: int,
    cautious: bool = False,
    dtype: Any = np.float64,
) -> tuple[Array, Array]:
    """Minimize a convex function of each column over distributions.

    Parameters
    ----------
    objective : Objective
    x : ndarray of shape (n_classes, n)
        Where to start; overwritten.
    tol : float
        A column is done once its duality gap is at most this.
    max_steps : int
    inner : int
        Iterations of conjugate gradients in each step.
    cautious : bool, default=False
        Admit classes one at a time, as the classical active-set method does. Columns
        that fail to descend change to it on their own.
    dtype : numpy dtype, default=float64
        Of the conjugate gradients; float32 is twice as fast, and slopes and gaps are
        float64 in any case.

    Returns
    -------
    x : ndarray of shape (n_classes, n)
    is_open : ndarray of shape (n,)
        True where the gap is still above ``tol``.
    """
    result, columns = x, np.arange(x.shape[1])
    careful = np.full(x.shape[1], cautious)
    slope, weights = objective.slope(x)
    for _ in range(max_steps):
        keep = np.flatnonzero(duality_gap(x, slope) > tol)
        if len(keep) < len(columns):
            columns, careful = columns[keep], careful[keep]
            objective = objective.select(keep)
            x, slope, weights = x[:, keep], slope[:, keep], weights[:, keep]
        if len(columns) == 0:
            break
        excess = slope - (x * slope).sum(axis=0)
        movable = _movable(x, excess, careful)
        move = _newton_move(objective.hessian(weights, dtype), excess, movable, inner)
        new = np.maximum(x + move, 0)
        new /= new.sum(axis=0)
        new_slope, weights = objective.slope(new)
        uphill = np.flatnonzero(~_descends(x, slope, new, new_slope, tol))
        if len(uphill):
            part = objective.select(uphill)
            start, down, along = x[:, uphill], slope[:, uphill], move[:, uphill]
            new[:, uphill] = _shorten(part, start, down, along, tol)
            new_slope[:, uphill], weights[:, uphill] = part.slope(new[:, uphill])
            careful[uphill] = True
        x, slope = new, new_slope
        result[:, columns] = x
    is_open = np.zeros(result.shape[1], dtype=bool)
    is_open[columns] = duality_gap(x, slope) > tol
    return result, is_open


def _movable(x: Array, excess: Array, careful: Array) -> Array:
    """Classes that a step may change: those present, and those that would help."""
    movable = (x > 0) | (excess > 0)
    chosen = np.flatnonzero(careful)
    if len(chosen):
        present, excess = x[:, chosen] > 0, excess[:, chosen]
        # One newcomer, the best, and only once the classes present are in balance:
        # from there its share can only grow, so that the step is never blocked.
        unrest = np.where(present, np.abs(excess), 0).max(axis=0)
        balanced = np.flatnonzero(unrest <= 0.1 * excess.max(axis=0))
        present[excess[:, balanced].argmax(axis=0), balanced] = True
        movable[:, chosen] = present
    return movable


def _descends(
    x: Array, slope: Array, new: Array, new_slope: Array, tol: float
) -> Array:
    """Whether a move lowers the function, by the trapezoid rule on its slopes.

    Exact for a quadratic. Function values would lose the last digits.
    """
    gain = ((slope + new_slope) * (new - x)).sum(axis=0)
    return np.asarray(gain >= -1e-3 * tol)


def _shorten(
    objective: Objective, x: Array, slope: Array, move: Array, tol: float
) -> Array:
    """Go along ``move`` only until a first class vanishes, or less far; descend."""
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(move < 0, x / -move, np.inf)
    length = np.minimum(reach.min(axis=0), 1)
    vanishing = reach <= length
    best = x
    for _ in range(8):
        trial = np.where(vanishing, 0, np.maximum(x + length * move, 0))
        trial /= trial.sum(axis=0)
        good = _descends(x, slope, trial, objective.slope(trial)[0], tol)
        best = np.where(good, trial, best)
        if good.all():
            break
        vanishing &= good
        length = np.where(good, length, length / 8)
    return best


def _newton_move(
    hessian: tuple[Product, Array], pull: Array, movable: Array, n_iter: int
) -> Array:
    """Solve H move = pull among movable classes, with a move that sums to 0.

    Conjugate gradients, scaled by the diagonal of H and projected onto moves that keep
    the sum; a column that has arrived stands still.
    """
    product, diagonal = hessian
    inverse = movable / diagonal
    share = inverse / inverse.sum(axis=0)
    residual = pull.astype(inverse.dtype)
    scaled, work = np.empty_like(residual), np.empty_like(residual)
    ones = np.ones(len(pull), dtype=residual.dtype)  # ones @ a: the fastest column sum

    def scale() -> Array:
        """Set ``scaled`` to the projected residual; return its squared length."""
        np.multiply(residual, inverse, out=scaled)
        np.multiply(share, ones @ scaled, out=work)
        np.subtract(scaled, work, out=scaled)
        return np.asarray(ones @ np.multiply(residual, scaled, out=work))

    size = scale()
    direction, move = scaled.copy(), np.zeros_like(residual)
    precision = np.finfo(residual.dtype)
    arrived = size * (10 * precision.eps) ** 2 + precision.tiny
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
