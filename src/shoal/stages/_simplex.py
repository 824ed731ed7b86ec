"""Many small problems on the simplex: the fastest solver first, a surer one next."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import current_thread, main_thread
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from shoal._work import one_thread

# ---- newton --------------------------------------------------------------------------

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


# ---- An interior-point method on the simplex: slow, and never stuck ------------------


def interior_point(
    objective: Objective, x: Array, *, tol: float, max_iter: int = 100
) -> Array:
    """Minimize a convex function of each column over distributions.

    Primal-dual: Newton's method on slope(x) + z = a constant and x z = mu, with mu a
    tenth of the present mean of x z in every iteration. About ten are enough.

    Parameters
    ----------
    objective : Objective
    x : ndarray of shape (n_classes, n)
        Overwritten with the solution; the start is always the uniform distribution.
    tol : float
        Duality gap at which a column is done.
    max_iter : int, default=100

    Returns
    -------
    ndarray of shape (n,)
        True where the gap is still above ``tol``.
    """
    result, columns = x, np.arange(x.shape[1])
    x = np.full_like(x, 1 / len(x))
    slope, weights = objective.slope(x)
    top = slope.max(axis=0)
    z = np.maximum(top - slope, 0.1 * (top - slope.min(axis=0)) + tol)
    is_open = np.ones(len(columns), dtype=bool)
    for step in range(max_iter + 1):
        going = duality_gap(x, slope) > tol
        result[:, columns], is_open[columns] = x, going
        if step == max_iter or not going.any():
            break
        columns, objective = columns[going], objective.select(going)
        x, z, slope, weights = (a[:, going] for a in (x, z, slope, weights))
        mu = 0.1 * (x * z).mean(axis=0)
        move = _solve_keeping_sum(objective.hessian(weights), z / x, slope + mu / x)
        z_move = (mu - z * move) / x - z
        length = np.minimum(_within(x, move), _within(z, z_move))
        x, z = x + length * move, z + length * z_move
        x /= x.sum(axis=0)
        slope, weights = objective.slope(x)
    return is_open


def _solve_keeping_sum(hessian: Array, diagonal: Array, pull: Array) -> Array:
    """Solve (H + diagonal) move = pull - constant, with a move that sums to 0."""
    k, n = diagonal.shape
    system = np.empty((n, k, k))
    system[:] = hessian
    system[:, np.arange(k), np.arange(k)] += diagonal.T
    right = np.stack([pull.T, np.ones((n, k))], axis=-1)
    free, ones = np.moveaxis(np.linalg.solve(system, right), 0, -1).swapaxes(0, 1)
    return np.asarray(free - ones * (free.sum(axis=0) / ones.sum(axis=0)))


def _within(positive: Array, move: Array) -> Array:
    """Find the longest step, at most 1, that keeps the entries of columns positive."""
    return np.asarray(0.99 / np.maximum((-move / positive).max(axis=0), 0.99))


# ---- rows ----------------------------------------------------------------------------

Attempt = Callable[[Objective, Array], Array]

# Rows solved together. Ten arrays of this many columns fit in a core's own cache. Not a
# power of two: columns 4096 bytes apart would compete for the same cache lines.
BLOCK = 976
MATRIX_ENTRIES = 2_000_000  # in the Hessians of a block, where a method needs them
# With so many classes a Hessian costs more than many splitting iterations: rows that
# are left open get this many times as many, and Newton steps from there.
MANY_CLASSES, PATIENCE = 32, 20


def solve_rows(
    points: Array,
    n_classes: int,
    objective_of: Callable[[Array], Objective],
    split: Callable[..., Array],
    *,
    tol: float,
    inner: int,
) -> Array:
    """Minimize one convex function per row over distributions.

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_domains)
    n_classes : int
    objective_of : callable
        Makes the functions of some rows, given as float64 columns.
    split : callable
        Approximate solution, (n_classes, n), of an objective; ``patience`` says how
        many times as long as usual to look for it.
    tol : float
        Duality gap at which a row is done.
    inner : int
        Iterations of conjugate gradients in the first Newton steps.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), of the dtype of ``points``
    """

    def split_rows(objective: Objective, x: Array, patience: int = 1) -> Array:
        x[:] = split(objective, patience)
        return duality_gap(x, objective.slope(x)[0]) > tol

    newton = partial(newton_steps, tol=tol)
    finish = partial(newton, n_steps=6, inner=4 * inner, dtype=np.float64)
    attempts: list[tuple[Attempt, int]] = [
        (split_rows, BLOCK),
        (partial(newton, n_steps=3, inner=inner, dtype=np.float32), BLOCK),
        (finish, BLOCK),
    ]
    if n_classes >= MANY_CLASSES:
        attempts += [(partial(split_rows, patience=PATIENCE), BLOCK), (finish, BLOCK)]
    attempts.append(
        (
            partial(interior_point, tol=tol),
            min(BLOCK, 1 + MATRIX_ENTRIES // n_classes**2),
        )
    )
    result = np.zeros((len(points), n_classes), dtype=points.dtype)

    def solve_block(attempt: Attempt, rows: Array) -> Array:
        """Solve some rows into ``result``; return those left open."""
        where = _as_slice(rows)
        columns = points[where].T.astype(np.float64, order="C")
        x = result[where].T.astype(np.float64, order="C")
        # BLAS may raise the flags of lanes it pads with; the duality gap is the judge.
        with np.errstate(all="ignore"):
            is_open = attempt(objective_of(columns), x)
        lost = ~np.isfinite(x).all(axis=0)
        x[:, lost] = 1 / n_classes
        is_open = is_open | lost
        result[where] = x.T
        return rows[is_open]

    rows = np.arange(len(points))
    for attempt, size in attempts:
        blocks = [rows[start : start + size] for start in range(0, len(rows), size)]
        left = _map_in_threads(partial(solve_block, attempt), blocks)
        rows = np.concatenate([rows[:0], *left])
        if len(rows) == 0:
            break
    return result


def _as_slice(rows: Array) -> Array | slice:
    """Row numbers without a gap as a slice, which numpy reads without a copy."""
    start, stop = int(rows[0]), int(rows[-1]) + 1
    return slice(start, stop) if stop - start == len(rows) else rows


def _map_in_threads(
    function: Callable[[Array], Array], blocks: list[Array]
) -> list[Array]:
    """Use the threads that BLAS may use, each on a block of its own.

    The products inside a block are far too small to be shared: threads of BLAS would
    spend their time waiting for each other (20 times slower on two busy cores).
    """
    if len(blocks) < 2 or current_thread() is not main_thread():
        # elsewhere, others are at work beside this thread already
        with one_thread():
            return [function(block) for block in blocks]
    with one_thread() as n_threads:
        if n_threads == 1:
            return [function(block) for block in blocks]
        with ThreadPoolExecutor(n_threads) as executor:
            return list(executor.map(function, blocks))
