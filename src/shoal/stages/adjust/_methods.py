"""The three adjustments: pseudo-inverse, least squares, maximum likelihood."""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shoal.probability import check_stochastic, normalize_rows
from shoal.stages.adjust._simplex import (
    Product,
    constrained_inverse,
    geometric_curvature,
    solve_rows,
    to_simplex,
)

# ---- The published adjustment: one matrix product with the pseudo-inverse ------------

Array = NDArray[Any]

SMALLEST_TOL = 1e-13


def check_tables(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, tol: float = np.inf
) -> tuple[Array, Array]:
    """Validate both tables; the classes come back as float64.

    A duality gap ``tol`` that double precision cannot certify is refused.
    """
    if not tol >= SMALLEST_TOL:
        raise ValueError(f"tol must be at least {SMALLEST_TOL}, got {tol!r}")
    points = check_stochastic(domain_given_x, "domain_given_x")
    corners = check_stochastic(domain_given_class, "domain_given_class")
    if points.shape[1] != corners.shape[1]:
        raise ValueError(
            f"domain_given_x has {points.shape[1]} columns, domain_given_class has "
            f"{corners.shape[1]}; both need one column per domain, in the same order"
        )
    return points, corners.astype(np.float64)


def pseudo_inverse(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, clip: bool = True
) -> Array:
    """q(y|x) = f(x) T^+, as published in Algorithm 2.

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        q(d|x); rows sum to 1.
    domain_given_class : array-like of shape (n_classes, n_domains)
        q(d|y); rows sum to 1.
    clip : bool, default=True
        Set negative entries to 0 and scale rows to sum to 1; a row without any
        positive entry becomes uniform. The paper is silent on negative entries, and
        dividing by a negative sum turns the arg max around. False returns the raw
        published numbers.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)

    Examples
    --------
    >>> pseudo_inverse([[0.6, 0.4]], [[0.8, 0.2], [0.3, 0.7]]).round(3)
    array([[0.6, 0.4]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class)
    raw = points @ np.linalg.pinv(corners).astype(points.dtype)
    if not clip:
        return np.asarray(raw)
    return normalize_rows(np.maximum(raw, 0, out=raw))


# ---- Simplex least squares: the nearest mixture of the classes' rows -----------------

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


class _SquaresSplitting:
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
    points, corners = check_tables(domain_given_x, domain_given_class, tol)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    gram = corners @ corners.T

    def objective_of(columns: Array) -> _SquaredDistance:
        return _SquaredDistance(gram, corners @ columns)

    split = _SquaresSplitting(gram, tol)
    return solve_rows(points, len(corners), objective_of, split, tol=tol, inner=10)


# ---- likelihood ----------------------------------------------------------------------

N_ITER = 24  # of splitting; fewer leave more to Newton steps, and take longer
# Over-relaxation, and penalties of domains and classes in units of the curvature:
# these needed the fewest iterations in our trials.
OVER_RELAXATION, DOMAIN_PENALTY, CLASS_PENALTY = 1.8, 1.2, 1.5
# Probabilities of a domain below this are the rounding error of some softmax.
NOISE = 1e-12
EXACT = 1e-12  # what rounding errors may do to an exact mixture
IMPOSSIBLE = 1e-30  # keeps ratios to mixtures that rule out a domain finite


class _Divergence:
    """KL(f || g T) up to a constant; an ``Objective`` of g."""

    def __init__(self, corners: Array, points: Array) -> None:
        self.corners = corners  # T, shape (k, r)
        self.points = points  # f, shape (r, n)

    def slope(self, x: Array) -> tuple[Array, Array]:
        mixed = np.maximum(self.corners.T @ x, IMPOSSIBLE)
        ratio = self.points / mixed
        return self.corners @ ratio, ratio / mixed

    def product(self, weights: Array, dtype: Any) -> tuple[Product, Array]:
        corners = self.corners.astype(dtype)
        # Domains that a row rules out have no curvature; a trace of it bounds the step.
        weights = np.clip(weights, 1e-6, 1e30).astype(dtype)
        across, mixed = np.ascontiguousarray(corners.T), np.empty_like(weights)

        def multiply(direction: Array) -> Array:
            np.matmul(across, direction, out=mixed)
            np.multiply(mixed, weights, out=mixed)
            return np.asarray(corners @ mixed)

        return multiply, corners**2 @ weights

    def hessian(self, weights: Array) -> Array:
        return np.asarray((self.corners * weights.T[:, None]) @ self.corners.T)

    def select(self, columns: Array) -> Self:
        return type(self)(self.corners, self.points[:, columns])


class _LikelihoodSplitting:
    """Splitting of KL(f || p), g >= 0 and p = g T, in float32.

    The coordinates are the r probabilities of the domains, then the k of the classes.
    A domain's penalty is the curvature of -f log p at a typical f, so that rare and
    frequent domains converge alike.
    """

    def __init__(self, corners: Array) -> None:
        k, r = corners.shape
        penalty = DOMAIN_PENALTY / np.maximum(corners.mean(axis=0), 1e-3 / r)
        weighted = (corners * penalty) @ corners.T
        class_penalty = CLASS_PENALTY * geometric_curvature(weighted)
        response, offset = constrained_inverse(weighted + class_penalty * np.eye(k))
        to_classes = np.hstack([corners * penalty, class_penalty * np.eye(k)])
        # Start from least squares without g >= 0, and from f = p for the multipliers.
        center = corners.mean(axis=0)
        self.free = np.linalg.pinv(corners - center, rcond=1e-12).T
        self.free_offset = 1 / k - (self.free @ center)[:, None]
        both = np.vstack([corners.T, np.eye(k)])
        multipliers = np.append(1 / penalty, np.zeros(k))

        self.to_classes = _narrow(OVER_RELAXATION * response @ to_classes)
        self.offset = _narrow(OVER_RELAXATION * offset[:, None])
        self.to_domains = _narrow(corners.T)
        self.start = _narrow(both @ self.free)
        self.start_offset = _narrow(both @ self.free_offset - multipliers[:, None])
        self.bend = _narrow(4 / penalty[:, None])

    def __call__(self, objective: _Divergence, patience: int = 1) -> Array:
        x = self._approach(_narrow(objective.points), patience * N_ITER)
        # A row that is a mixture of the classes has that mixture as its exact answer.
        free = self.free @ objective.points + self.free_offset
        error = np.abs(objective.corners.T @ free - objective.points).max(axis=0)
        exact = (error < EXACT) & (free.min(axis=0) > -EXACT)
        x[:, exact] = to_simplex(free[:, exact])
        return x

    def _approach(self, points: Array, n_iter: int) -> Array:
        signed = self.start @ points + self.start_offset
        size, bend = np.empty_like(signed), self.bend * points
        x, mixed = np.empty_like(signed[len(points) :]), np.empty_like(points)
        domains, classes = signed[: len(points)], signed[len(points) :]
        domain_size, class_size = size[: len(points)], size[len(points) :]
        for _ in range(n_iter):
            # Reflections: through -f log p a square root, through g >= 0 |g|.
            np.multiply(domains, domains, out=domain_size)
            domain_size += bend
            np.sqrt(domain_size, out=domain_size)
            np.abs(classes, out=class_size)
            np.matmul(self.to_classes, size, out=x)
            x += self.offset
            size *= OVER_RELAXATION / 2
            signed *= 1 - OVER_RELAXATION / 2
            signed -= size
            domains += np.matmul(self.to_domains, x, out=mixed)
            classes += x
        return to_simplex(classes)


def maximum_likelihood(
    domain_given_x: ArrayLike, domain_given_class: ArrayLike, *, tol: float = 1e-6
) -> Array:
    """Solve min KL(f(x) || g T) over distributions g, for every row f(x).

    The same as maximizing sum_d f_d(x) log (g T)_d. A domain that no class can produce
    tells nothing about the class and is left out; a row that has only such domains
    is taken for an average one. Probabilities below 1e-12 count as 0.

    Parameters
    ----------
    domain_given_x, domain_given_class
        As in :func:`simplex_least_squares`.
    tol : float, default=1e-6
        Largest duality gap, max_y sum_d f_d T_yd / (g T)_d - 1 in nats, an upper bound
        of what each row's divergence is above its minimum.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        As from :func:`simplex_least_squares`.

    Notes
    -----
    The classical algorithm is EM, whose steps g_y <- g_y sum_d f_d T_yd / (g T)_d creep
    near the boundary. Here splitting iterations find the classes present, projected
    Newton steps finish, and an interior-point method takes the rows that they leave
    open, in blocks of rows.

    Examples
    --------
    >>> domain_given_class = [[0.8, 0.2], [0.3, 0.7]]
    >>> maximum_likelihood([[0.6, 0.4], [0.9, 0.1]], domain_given_class).round(3)
    array([[0.6, 0.4],
           [1. , 0. ]])
    """
    points, corners = check_tables(domain_given_x, domain_given_class, tol)
    if len(corners) == 1:
        return np.ones((len(points), 1), dtype=points.dtype)
    possible = corners.max(axis=0) > 0
    if not possible.all():
        points, corners = points[:, possible], corners[:, possible]
        points = normalize_rows(np.maximum(points, 0), empty=corners.mean(axis=0))

    def objective_of(columns: Array) -> _Divergence:
        if columns.min() < NOISE:
            columns[columns < NOISE] = 0
        return _Divergence(corners, columns)

    split = _LikelihoodSplitting(corners)
    return solve_rows(points, len(corners), objective_of, split, tol=tol, inner=7)


def _narrow(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=np.float32)
