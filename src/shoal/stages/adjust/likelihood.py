"""Maximum likelihood: the mixture under which the domains are most probable."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.probability import normalize_rows
from shoal.stages.adjust.linear import check_tables
from shoal.stages.adjust.newton import Product, duality_gap, polish
from shoal.stages.adjust.splitting import (
    RELAXATION,
    as_columns,
    blocks,
    constrained_inverse,
    penalty_for,
    to_simplex,
)

__all__ = ["maximum_likelihood"]

Array = NDArray[Any]

N_ITER = 18
# Below this a mixture's probability of a domain counts as impossible.
IMPOSSIBLE = 1e-150


class _Divergence:
    """KL(f || g T) up to a constant; an ``Objective`` of g."""

    def __init__(self, corners: Array, points: Array) -> None:
        self.corners = corners  # T, shape (k, r)
        self.points = points  # f, shape (r, n)

    def slope(self, x: Array) -> tuple[Array, Array]:
        mixed = np.maximum(self.corners.T @ x, IMPOSSIBLE)
        ratio = self.points / mixed
        return self.corners @ ratio, ratio / mixed

    def hessian(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        corners, weights = self.corners.astype(dtype), weights.astype(dtype)
        across, mixed = np.ascontiguousarray(corners.T), np.empty_like(weights)

        def product(direction: Array) -> Array:
            np.matmul(across, direction, out=mixed)
            np.multiply(mixed, weights, out=mixed)
            return np.asarray(corners @ mixed)

        return product, corners**2 @ weights

    def select(self, columns: Array) -> Self:
        return type(self)(self.corners, self.points[:, columns])


class _Splitting:
    """Splitting of KL(f || p), g >= 0 and p = g T, in float32.

    The coordinates are the r probabilities of the domains, then the k of the classes.
    A domain's penalty is the curvature of -f log p at a typical f, so that rare and
    frequent domains converge alike.
    """

    def __init__(self, corners: Array) -> None:
        k, self.n_domains = corners.shape
        typical = np.maximum(corners.mean(axis=0), 1e-3 / self.n_domains)
        penalty = 0.8 / typical
        weighted = (corners * penalty) @ corners.T
        class_penalty = penalty_for(weighted)
        response, offset = constrained_inverse(weighted + class_penalty * np.eye(k))
        to_classes = np.hstack([corners * penalty, class_penalty * np.eye(k)])
        free, free_offset = constrained_inverse(corners @ corners.T)
        start = np.vstack([corners.T, np.eye(k)])

        def narrow(array: Array) -> Array:
            return np.ascontiguousarray(array, dtype=np.float32)

        self.to_classes = narrow(RELAXATION * response @ to_classes)
        self.offset = narrow(RELAXATION * offset[:, None])
        self.to_domains = narrow(corners.T)
        self.start = narrow(start @ free @ corners)
        multipliers = np.append(1 / penalty, np.zeros(k))
        self.start_offset = narrow((start @ free_offset - multipliers)[:, None])
        self.bend = narrow(4 / penalty[:, None])

    def run(self, points: Array, n_iter: int) -> Array:
        r = self.n_domains
        points = points.astype(np.float32)
        signed = self.start @ points + self.start_offset
        bend = self.bend * points
        size = np.empty_like(signed)
        for _ in range(n_iter):
            # The reflection through -f log p; through g >= 0 it is the absolute value.
            np.multiply(signed[:r], signed[:r], out=size[:r])
            size[:r] += bend
            np.sqrt(size[:r], out=size[:r])
            np.abs(signed[r:], out=size[r:])
            x = self.to_classes @ size
            x += self.offset
            size *= RELAXATION / 2
            signed *= 1 - RELAXATION / 2
            signed -= size
            signed[:r] += self.to_domains @ x
            signed[r:] += x
        return to_simplex(signed[r:])


def maximum_likelihood(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-6
) -> Array:
    """Solve min KL(f(x) || g T) over distributions g, for every row f(x).

    The same as maximizing sum_d f_d(x) log (g T)_d. A domain that no class can produce
    tells nothing about the class and is left out; a row that has only such domains
    gets the uniform distribution.

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1. float32 stays float32.
    domain_given_class : array-like of shape (n_classes, n_domains)
        T = q(d|y); rows sum to 1.
    tol : float, default=1e-6
        Largest duality gap, max_y sum_d f_d T_yd / (g T)_d - 1 in nats, an upper bound
        of what each row's divergence is above its minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        q(y|x); rows sum to 1.

    Notes
    -----
    The classical algorithm is EM, whose steps g_y <- g_y sum_d f_d T_yd / (g T)_d creep
    near the boundary. Here splitting iterations find the classes present and Newton
    steps finish. Rows are worked in blocks: memory beyond the result does not grow with
    the number of rows.

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> maximum_likelihood([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class)
    possible = corners.max(axis=0) > 0
    if not possible.all():
        points, corners = points[:, possible], corners[:, possible]
        points = normalize_rows(np.maximum(points, 0), empty=corners.mean(axis=0))
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    splitting = _Splitting(corners)
    result = np.empty((len(points), len(corners)), dtype=points.dtype)
    left = [np.arange(0)]

    def objective_of(rows: Array) -> _Divergence:
        return _Divergence(corners, _distributions(as_columns(points, rows)))

    for block in blocks(np.arange(len(points))):
        objective = objective_of(block)
        x = splitting.run(objective.points, N_ITER)
        _revive(x, objective)
        result[block] = x.T
        left.append(block[duality_gap(x, objective.slope(x)[0]) > tol])
    polish(result, np.concatenate(left), objective_of, tol)
    return result


def _distributions(points: Array) -> Array:
    """Exact distributions from columns that passed the check with a tolerance."""
    np.maximum(points, 0, out=points)
    points /= points.sum(axis=0)
    return points


def _revive(x: Array, objective: _Divergence) -> None:
    """Bring back classes without which a domain that occurs would be impossible.

    Newton's method is slow from there (it can only double such a probability), EM is
    fast.
    """
    mixed = objective.corners.T @ x
    columns = np.flatnonzero((mixed < 1e-3 * objective.points).any(axis=0))
    if len(columns):
        part = objective.select(columns)
        revived = 0.9 * x[:, columns] + 0.1 / len(x)
        for _ in range(5):
            revived *= part.slope(revived)[0]
        x[:, columns] = revived
