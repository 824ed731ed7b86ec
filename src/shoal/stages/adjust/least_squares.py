"""Simplex least squares: the nearest mixture of the classes' rows."""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.stages.adjust.linear import check_tables, check_tol
from shoal.stages.adjust.newton import Product
from shoal.stages.adjust.rows import solve_rows
from shoal.stages.adjust.splitting import (
    constrained_inverse,
    geometric_curvature,
    to_simplex,
)

__all__ = ["simplex_least_squares"]

Array = NDArray[Any]

# Iterations of splitting per digit of the gap asked for. Fewer leave more rows to
# Newton steps, which take longer.
ITERATIONS_PER_DIGIT = 3.3
# Over-relaxation, between 1 (plain) and 2 (pure reflections), and penalty of g >= 0 in
# units of the curvature: these needed the fewest iterations in our trials.
RELAXATION, PENALTY = 1.9, 2.0


class _SquaredDistance:
    """Half the squared distance of f and g T; an ``Objective`` of g."""

    def __init__(self, gram: Array, target: Array) -> None:
        self.gram = gram  # T T', shape (k, k)
        self.target = target  # T f, shape (k, n)

    def slope(self, x: Array) -> tuple[Array, Array]:
        return self.target - self.gram @ x, self.target[:0]

    def product(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        gram = self.gram.astype(dtype)
        return partial(np.matmul, gram), np.diag(gram)[:, None]

    def hessian(self, weights: Array) -> Array:
        return self.gram

    def select(self, columns: Array) -> Self:
        return type(self)(self.gram, self.target[:, columns])


class _Splitting:
    """Splitting of the squared distance and the constraint g >= 0."""

    def __init__(self, gram: Array, tol: float) -> None:
        self.n_iter = max(10, int(-ITERATIONS_PER_DIGIT * np.log10(tol)))
        identity = np.eye(len(gram))
        self.free, self.free_offset = constrained_inverse(gram)
        penalty = PENALTY * geometric_curvature(gram)
        response, offset = constrained_inverse(gram + penalty * identity)
        self.matrix = RELAXATION * (penalty * response - 0.5 * identity)
        self.response = RELAXATION * response
        self.offset = RELAXATION * offset[:, None]

    def __call__(self, objective: _SquaredDistance, patience: int = 1) -> Array:
        # Start without the constraint: exact already where no class is negative.
        signed = self.free @ objective.target + self.free_offset[:, None]
        push = self.response @ objective.target + self.offset
        size, image = np.empty_like(signed), np.empty_like(signed)
        for _ in range(patience * self.n_iter):
            np.abs(signed, out=size)
            np.matmul(self.matrix, size, out=image)
            image += push
            signed *= 1 - RELAXATION / 2
            signed += image
        return to_simplex(signed)


def simplex_least_squares(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-11
) -> Array:
    """Solve min ||f(x) - g T||^2 / 2 over distributions g, for every row f(x).

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1. float32 stays float32.
    domain_given_class : array-like of shape (n_classes, n_domains)
        T = q(d|y); rows sum to 1.
    tol : float, default=1e-11
        Largest duality gap, an upper bound of what each row's objective is above its
        minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        q(y|x); rows sum to 1. Where twin classes leave a choice, a solution.

    Notes
    -----
    Splitting iterations for all rows, projected Newton steps for the rows that they
    leave open, an interior-point method for what is left. Rows are worked in blocks:
    memory beyond the result does not grow with the number of rows.

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> simplex_least_squares([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class)
    check_tol(tol)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    gram = corners @ corners.T

    def objective_of(columns: Array) -> _SquaredDistance:
        return _SquaredDistance(gram, corners @ columns)

    split = _Splitting(gram, tol)
    return solve_rows(points, len(corners), objective_of, split, tol=tol, inner=10)
