"""Solve millions of rows: the fastest method first, a surer one for what it leaves.

Rows of the tables become columns, in blocks that stay in a core's own cache. Memory
beyond the result does not grow with the number of rows.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import current_thread, main_thread
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from shoal.stages.adjust.interior import interior_point
from shoal.stages.adjust.newton import Objective, duality_gap, newton_steps

__all__ = ["solve_rows"]

Array = NDArray[Any]
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
        # the limit below holds for the whole process, so only its main thread sets it
        return [function(block) for block in blocks]
    blas = _threadpools().select(user_api="blas")
    n_threads = max((pool["num_threads"] for pool in blas.info()), default=1)
    with blas.limit(limits=1):
        if n_threads == 1:
            return [function(block) for block in blocks]
        with ThreadPoolExecutor(n_threads) as executor:
            return list(executor.map(function, blocks))


@cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()
