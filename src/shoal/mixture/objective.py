"""The likelihood of the domains through k classes, and its gradient.

The model is q(d|x) = sum_y g_y(x) T[y, d], g = softmax(W z(x)), T row-stochastic.
With row weights w_i (summing to q(d) within each domain) the objective is::

    J(W, T) = - sum_i w_i log sum_y g_y(x_i) T[y, d_i]      domain cross-entropy
              + ridge / 2 |W without its intercepts|^2
              + confidence * sum_i w_i H(g(x_i))             entropy of g
              + terms on T alone (see Penalties)

With posterior R_iy = g_iy T[y, d_i] / sum the gradient in the logits of row i is
w_i (g_iy - R_iy), and the best T given R is closed-form: T[y, d] proportional to the
posterior mass of class y in domain d. Everything is computed class-major, (k, rows),
in blocks that stay in cache and never mix domains: sums over classes are then
contiguous, and T enters as one column per block.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shoal.validation import is_sparse

__all__ = ["Block", "MixtureProblem", "Penalties", "make_blocks", "softmax_classes"]

Array = np.ndarray[Any, Any]

BLOCK_ROWS = 2048
# Domains with fewer rows share a block; T is then gathered row by row.
SMALL_DOMAIN = 256
VARIANCE_COLUMNS = 16
# T is kept inside the open simplex: a zero could never come back.
FLOOR = 1e-10
TINY = 1e-300


@dataclass(frozen=True)
class Penalties:
    """Weights of the terms added to the domain cross-entropy."""

    ridge: float = 3e-4
    confidence: float = 0.0
    dirichlet: float = 0.0  # - dirichlet * mean log T: imaginary rows in every cell
    volume: float = 0.0  # volume / 2 * log det(T T'): the smallest simplex that fits

    def of_domains(self, T: Array) -> tuple[float, Array]:
        """Value and gradient (in T) of the terms on T alone."""
        value, gradient = 0.0, np.zeros_like(T)
        if self.dirichlet:
            inside = np.maximum(T, TINY)  # a far step of a line search may underflow
            value -= self.dirichlet * float(np.log(inside).mean())
            gradient -= self.dirichlet / (inside * T.size)
        if self.volume:
            gram = T @ T.T + 1e-8 * np.eye(len(T))
            value += self.volume / 2 * float(np.linalg.slogdet(gram)[1])
            gradient += self.volume * np.linalg.solve(gram, T)
        return value, gradient


class MixtureProblem:
    """Rows sorted by domain, ready for fast evaluation of J and its gradient.

    Parameters
    ----------
    design : ndarray or CSR matrix of shape (n, p)
        Features z(x), without an intercept column.
    codes : ndarray of shape (n,)
        Domain of each row, non-decreasing.
    row_weight : ndarray of shape (n,)
        w_i, summing to 1.
    n_domains : int
    """

    def __init__(
        self, design: Any, codes: Array, row_weight: Array, n_domains: int
    ) -> None:
        self.design = design
        self.codes = codes
        self.row_weight = row_weight.astype(design.dtype, copy=False)
        self.n_domains = n_domains
        self.n_rows, self.n_features = design.shape
        self.blocks = make_blocks(codes, n_domains)

    @cached_property
    def total_variance(self) -> float:
        """Sum of the variances of the columns."""
        weight = self.row_weight / self.row_weight.sum()
        total = 0.0
        for start in range(0, self.n_features, VARIANCE_COLUMNS):
            part = self.design[:, start : start + VARIANCE_COLUMNS]
            square = part.multiply(part) if is_sparse(part) else part * part
            total += float((weight @ square).sum() - ((weight @ part) ** 2).sum())
        return total

    def take(self, rows: Array) -> "MixtureProblem":
        """Problem of some rows (sorted numbers), weights rescaled within domains."""
        codes = self.codes[rows]
        weight = self.row_weight[rows].astype(float)
        whole = np.bincount(self.codes, self.row_weight, minlength=self.n_domains)
        part = np.bincount(codes, weight, minlength=self.n_domains)
        scale = np.divide(whole, part, out=np.zeros_like(whole), where=part > 0)
        weight *= scale[codes]
        return MixtureProblem(
            self.design[rows], codes, weight / weight.sum(), self.n_domains
        )

    def logits(self, weights: Array, rows: slice) -> Array:
        """W z(x) of some rows, shape (k, rows)."""
        weights = weights.astype(self.design.dtype, copy=False)
        design = self.design[rows]
        if is_sparse(design):
            values = np.ascontiguousarray((design @ weights[:, :-1].T).T)
        else:
            values = weights[:, :-1] @ design.T
        values += weights[:, -1:]
        return values

    def value_and_gradient(
        self, weights: Array, domain_given_class: Array, penalties: Penalties
    ) -> tuple[float, Array, Array]:
        """J, its gradient in W, and the posterior mass N[y, d] (which gives that in T).

        Returns
        -------
        value : float
        gradient : ndarray of shape (k, p + 1)
        mass : ndarray of shape (k, r)
            Sum over the rows of domain d of w_i R_iy.
        """
        value = 0.0
        gradient = np.zeros(weights.shape)
        mass = np.zeros((len(weights), self.n_domains))
        likelihood = domain_given_class.astype(self.design.dtype)
        for block in self.blocks:
            rows = block.rows
            logits = self.logits(weights, rows)
            g, log_g = softmax_classes(logits, with_log=penalties.confidence > 0)
            joint = g * block.columns(likelihood)
            density = joint.sum(axis=0)
            np.maximum(density, FLOOR, out=density)
            weight = self.row_weight[rows]
            value -= float(weight @ np.log(density))
            joint *= weight / density
            block.add_mass(mass, joint)
            if log_g is not None:
                value += _add_entropy(g, log_g, joint, weight, penalties.confidence)
            g *= weight
            g -= joint
            gradient[:, :-1] += g @ self.design[rows]
            gradient[:, -1] += g.sum(axis=1)
        if penalties.ridge:
            value += penalties.ridge / 2 * float((weights[:, :-1] ** 2).sum())
            gradient[:, :-1] += penalties.ridge * weights[:, :-1]
        return value, gradient, mass

    def class_given_x(self, weights: Array) -> Array:
        """g(x) of all rows, shape (n, k), in the order of the rows."""
        result = np.empty((self.n_rows, len(weights)), dtype=self.design.dtype)
        for block in self.blocks:
            result[block.rows] = softmax_classes(self.logits(weights, block.rows))[0].T
        return result

    def log_likelihood(self, weights: Array, domain_given_class: Array) -> Array:
        """Log q(d_i|x_i) of every row."""
        each = np.empty(self.n_rows)
        for block in self.blocks:
            g = softmax_classes(self.logits(weights, block.rows))[0]
            density = (g * block.columns(domain_given_class)).sum(axis=0)
            each[block.rows] = np.log(np.maximum(density, FLOOR))
        return each


@dataclass(frozen=True)
class Block:
    """Consecutive rows of one large domain, or of several small ones."""

    rows: slice
    domains: Array  # the domains in this block, in order
    offsets: Array  # where each of them starts inside the block
    codes: Array | None  # of each row, None when there is one domain

    def columns(self, domain_given_class: Array) -> Array:
        """T[:, d_i] of the block's rows, or one column that broadcasts."""
        if self.codes is None:
            return domain_given_class[:, self.domains]
        return np.take(domain_given_class, self.codes, axis=1)

    def add_mass(self, mass: Array, joint: Array) -> None:
        """Add the sums of ``joint`` within each domain to the columns of ``mass``."""
        if self.codes is None:
            mass[:, self.domains[0]] += joint.sum(axis=1)
        else:
            mass[:, self.domains] += np.add.reduceat(joint, self.offsets, axis=1)


def make_blocks(codes: Array, n_domains: int) -> list[Block]:
    """Cut rows sorted by domain into blocks that stay in cache."""
    edges = np.searchsorted(codes, np.arange(n_domains + 1))
    blocks: list[Block] = []
    small: list[int] = []

    def flush() -> None:
        if small:
            rows = slice(int(edges[small[0]]), int(edges[small[-1] + 1]))
            present = np.array([d for d in small if edges[d] < edges[d + 1]], dtype=int)
            if len(present):
                offsets = edges[present] - rows.start
                blocks.append(Block(rows, present, offsets, codes[rows]))
            small.clear()

    for domain in range(n_domains):
        start, stop = int(edges[domain]), int(edges[domain + 1])
        if stop - start < SMALL_DOMAIN:
            if small and stop - edges[small[0]] > BLOCK_ROWS:
                flush()
            small.append(domain)
            continue
        flush()
        one = np.array([domain])
        for first in range(start, stop, BLOCK_ROWS):
            rows = slice(first, min(first + BLOCK_ROWS, stop))
            blocks.append(Block(rows, one, np.array([0]), None))
    flush()
    return blocks


def softmax_classes(
    logits: Array, *, with_log: bool = False
) -> tuple[Array, Array | None]:
    """Softmax over classes (axis 0), in place; its logarithm too when asked."""
    logits -= logits.max(axis=0)
    log_g = logits.copy() if with_log else None
    np.exp(logits, out=logits)
    total = logits.sum(axis=0)
    logits /= total
    if log_g is not None:
        log_g -= np.log(total)
    return logits, log_g


def _add_entropy(
    g: Array, log_g: Array, joint: Array, weight: Array, confidence: float
) -> float:
    """Entropy term; its gradient in the logits is subtracted from ``joint``."""
    plogp = g * log_g
    entropy = -plogp.sum(axis=0)
    # d H / d logit_y = -(g_y log g_y + g_y H)
    plogp += g * entropy
    joint += confidence * weight * plogp
    return confidence * float(weight @ entropy)
