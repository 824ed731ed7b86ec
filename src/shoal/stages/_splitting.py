"""Splitting iterations: many rows at once come near their best mixture of classes.

What they leave open, ``_simplex`` finishes.
"""

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shoal.stages._simplex import Product

Array = NDArray[Any]

# ---- least squares -------------------------------------------------------------------

# Iterations of splitting per digit of the gap asked for. Fewer leave more rows to
# Newton steps, which take longer.
ITERATIONS_PER_DIGIT = 3.3
# Over-relaxation, between 1 (plain) and 2 (pure reflections), and penalty of g >= 0 in
# units of the curvature: these needed the fewest iterations in our trials.
RELAXATION, PENALTY = 1.9, 2.0


class SquaredDistance:
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


class SquaresSplitting:
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

    def __call__(self, objective: SquaredDistance, patience: int = 1) -> Array:
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


# ---- likelihood ----------------------------------------------------------------------

N_ITER = 24  # of splitting; fewer leave more to Newton steps, and take longer
# Over-relaxation, and penalties of domains and classes in units of the curvature:
# these needed the fewest iterations in our trials.
OVER_RELAXATION, DOMAIN_PENALTY, CLASS_PENALTY = 1.8, 1.2, 1.5
EXACT = 1e-12  # what rounding errors may do to an exact mixture
IMPOSSIBLE = 1e-30  # keeps ratios to mixtures that rule out a domain finite


class Divergence:
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


class LikelihoodSplitting:
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

    def __call__(self, objective: Divergence, patience: int = 1) -> Array:
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


def _narrow(array: Array) -> Array:
    return np.ascontiguousarray(array, dtype=np.float32)


# ---- splitting -----------------------------------------------------------------------


def constrained_inverse(matrix: Array) -> tuple[Array, Array]:
    """Find A, a: x = A b + a minimizes x'Mx/2 - b'x over all x that sum to 1.

    Where M is flat (twin classes) x stays as uniform as it can.
    """
    curvature, directions = _sum_free_spectrum(matrix)
    steep = curvature > 1e-13 * np.trace(matrix)
    directions = directions[:, steep]
    inverse = directions / curvature[steep] @ directions.T
    uniform = np.full(len(matrix), 1 / len(matrix))
    return inverse, uniform - inverse @ (matrix @ uniform)


def geometric_curvature(matrix: Array) -> float:
    """Geometric mean of the extreme curvatures among x that sum to 1.

    The best penalty of x >= 0 is about this.
    """
    curvature, _ = _sum_free_spectrum(matrix)
    largest = max(curvature[-1], 1e-8 * np.trace(matrix))
    # Twin classes have no curvature: the floor keeps the other classes moving.
    return float(np.sqrt(largest * max(curvature[0], 1e-4 * largest)))


def to_simplex(signed: Array) -> Array:
    """Take the positive parts of columns, scaled to sum to 1, in float64."""
    x = np.maximum(signed, 0, dtype=np.float64)
    total = x.sum(axis=0)
    lost = total <= 0
    if lost.any():
        x[:, lost], total[lost] = 1, len(x)
    x /= total
    return x


def _sum_free_spectrum(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues and vectors of a symmetric matrix among vectors that sum to 0."""
    along_ones = np.full_like(matrix, 1 / len(matrix))
    center = np.eye(len(matrix)) - along_ones
    # A large eigenvalue along (1, ..., 1) sorts that direction last, to be dropped.
    shifted = center @ matrix @ center + 10 * np.trace(matrix) * along_ones
    values, vectors = np.linalg.eigh(shifted)
    return values[:-1], vectors[:, :-1]
