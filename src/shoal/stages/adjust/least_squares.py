"""Simplex least squares: the nearest mixture of the classes' rows."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

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

__all__ = ["simplex_least_squares"]

Array = NDArray[Any]

# Iterations of splitting: for all rows, then for those whose gap is still open.
ROUNDS = (24, 48)


class _SquaredDistance:
    """Half the squared distance of f and g T; an ``Objective`` of g."""

    def __init__(self, gram: Array, target: Array) -> None:
        self.gram = gram  # T T', shape (k, k)
        self.target = target  # T f, shape (k, n)

    def slope(self, x: Array) -> tuple[Array, Array]:
        return self.target - self.gram @ x, self.target[:0]

    def hessian(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        gram = self.gram.astype(dtype)
        return gram.__matmul__, np.diag(gram)[:, None]

    def select(self, columns: Array) -> Self:
        return type(self)(self.gram, self.target[:, columns])


class _Splitting:
    """Douglas-Rachford splitting of the squared distance and the constraint g >= 0."""

    def __init__(self, gram: Array) -> None:
        identity = np.eye(len(gram))
        self.free, self.free_offset = constrained_inverse(gram)
        self.penalty = penalty_for(gram)
        response, offset = constrained_inverse(gram + self.penalty * identity)
        self.matrix = RELAXATION * (self.penalty * response - 0.5 * identity)
        self.response = RELAXATION * response
        self.offset = RELAXATION * offset[:, None]

    def first(self, target: Array) -> Array:
        """Start: the solution without the constraint, exact where it is positive."""
        return np.asarray(self.free @ target + self.free_offset[:, None])

    def again(self, x: Array, slope: Array) -> Array:
        """Start from an approximate solution."""
        excess = slope - (x * slope).sum(axis=0)
        return np.where(x > 0, x, np.minimum(excess, 0) / self.penalty)

    def run(self, signed: Array, target: Array, n_iter: int) -> Array:
        push = self.response @ target + self.offset
        size, image = np.empty_like(signed), np.empty_like(signed)
        for _ in range(n_iter):
            np.abs(signed, out=size)
            np.matmul(self.matrix, size, out=image)
            image += push
            signed *= 1 - RELAXATION / 2
            signed += image
        return to_simplex(signed)


def simplex_least_squares(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-9
) -> Array:
    """Solve min ||f(x) - g T||^2 / 2 over distributions g, for every row f(x).

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1. float32 stays float32.
    domain_given_class : array-like of shape (n_classes, n_domains)
        T = q(d|y); rows sum to 1.
    tol : float, default=1e-9
        Largest duality gap, an upper bound of what each row's objective is above its
        minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        q(y|x); rows sum to 1.

    Notes
    -----
    Splitting iterations for all rows at once [1]_, then projected Newton steps for the
    rows that they leave open. Rows are worked in blocks: memory beyond the result does
    not grow with the number of rows.

    References
    ----------
    .. [1] Eckstein and Bertsekas, "On the Douglas-Rachford splitting method and the
       proximal point algorithm", Mathematical Programming 55 (1992),
       https://doi.org/10.1007/BF01581204

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> simplex_least_squares([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    gram = corners @ corners.T
    splitting = _Splitting(gram)
    result = np.empty((len(points), len(corners)), dtype=points.dtype)
    rows = np.arange(len(points))
    for n_iter in ROUNDS:
        left = [rows[:0]]
        for block in blocks(rows):
            target = corners @ as_columns(points, block)
            if n_iter == ROUNDS[0]:
                signed = splitting.first(target)
            else:
                x = result[block].T.astype(np.float64)
                signed = splitting.again(x, target - gram @ x)
            x = splitting.run(signed, target, n_iter)
            result[block] = x.T
            left.append(block[duality_gap(x, target - gram @ x) > tol])
        rows = np.concatenate(left)
    polish(
        result,
        rows,
        lambda block: _SquaredDistance(gram, corners @ as_columns(points, block)),
        tol,
    )
    return result
