"""An interior-point method on the simplex: slow, and never stuck.

For the few problems that faster methods leave open: nearly singular tables, zeros,
probabilities of very different size.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.stages.adjust.newton import Objective, duality_gap

__all__ = ["interior_point"]

Array = NDArray[Any]


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
