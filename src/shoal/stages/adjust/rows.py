"""Solve millions of rows: the fastest method first, a surer one for what it leaves.

Rows of the tables become columns, in blocks that stay in a core's own cache. Memory
beyond the result does not grow with the number of rows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.stages.adjust.interior import interior_point
from shoal.stages.adjust.newton import Objective, duality_gap, newton_steps

__all__ = ["solve_rows"]

Array = NDArray[Any]

# Rows solved together. Ten arrays of this many columns fit in a core's own cache.
BLOCK = 1024


def solve_rows(
    points: Array,
    n_classes: int,
    objective_of: Callable[[Array], Objective],
    split: Callable[[Any], Array],
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
        Approximate solution, (n_classes, n), of an objective.
    tol : float
        Duality gap at which a row is done.
    inner : int
        Iterations of conjugate gradients in the first Newton steps.

    Returns
    -------
    ndarray of shape (n_samples, n_classes), of the dtype of ``points``
    """

    def split_first(objective: Objective, x: Array) -> Array:
        x[:] = split(objective)
        return duality_gap(x, objective.slope(x)[0]) > tol

    attempts: list[Callable[[Objective, Array], Array]] = [
        split_first,
        partial(newton_steps, tol=tol, n_steps=3, inner=inner, dtype=np.float32),
        partial(newton_steps, tol=tol, n_steps=6, inner=4 * inner, dtype=np.float64),
        partial(interior_point, tol=tol),
    ]
    result = np.zeros((len(points), n_classes), dtype=points.dtype)
    rows = np.arange(len(points))
    for attempt in attempts:
        left = [rows[:0]]
        for block in _blocks(rows):
            columns = np.ascontiguousarray(points[block].T, dtype=np.float64)
            x = np.ascontiguousarray(result[block].T, dtype=np.float64)
            is_open = attempt(objective_of(columns), x)
            result[block] = x.T
            left.append(block[is_open])
        rows = np.concatenate(left)
    return result


def _blocks(rows: Array) -> Iterator[Array]:
    return (rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK))
