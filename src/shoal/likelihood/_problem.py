"""The likelihood of the domains through k classes, its gradient and optimizers."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize

from shoal.likelihood._known import Constraints
from shoal.likelihood._settings import SETTINGS
from shoal.probability import TINY, normalize_rows
from shoal.validation._known import Knowledge
from shoal.validation._rows import is_sparse

# ---- The likelihood of the domains through k classes, and its gradient ---------------

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Penalties:
    """Weights of the terms added to the domain cross-entropy."""

    ridge: float
    confidence: float = 0.0
    dirichlet: float = 0.0  # - dirichlet * mean log T: pseudo-counts in every cell
    volume: float = 0.0  # volume / 2 * log det(T T'): the smallest simplex that fits

    def __str__(self) -> str:
        return (
            f"ridge {self.ridge:.3g} confidence {self.confidence:g} "
            f"dirichlet {self.dirichlet:.3g}"
        )

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
    known : Knowledge, default=None
        What is known of classes.
    """

    def __init__(
        self,
        design: Any,
        codes: Array,
        row_weight: Array,
        n_domains: int,
        known: Knowledge | None = None,
    ) -> None:
        self.design = design
        self.codes = codes
        self.row_weight = row_weight.astype(design.dtype, copy=False)
        self.n_domains = n_domains
        self.constraints = None
        if known is not None:
            self.constraints = Constraints(known, codes, n_domains)
        self.n_rows, self.n_features = design.shape
        self.blocks = make_blocks(codes, n_domains)

    @cached_property
    def total_variance(self) -> float:
        """Sum of the variances of the columns."""
        weight = self.row_weight / self.row_weight.sum()
        total = 0.0
        for start in range(0, self.n_features, SETTINGS.variance_columns):
            part = self.design[:, start : start + SETTINGS.variance_columns]
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
        told = self.constraints
        return MixtureProblem(
            self.design[rows],
            codes,
            weight / weight.sum(),
            self.n_domains,
            None if told is None else told.known.take(rows),
        )

    def in_single_precision(self) -> "MixtureProblem":
        """The same, faster: enough for what is only compared."""
        told = self.constraints
        return MixtureProblem(
            self.design.astype(np.float32),
            self.codes,
            self.row_weight,
            self.n_domains,
            None if told is None else told.known,
        )

    def logits(self, weights: Array, rows: Any) -> Array:
        """W z(x) of some rows (a slice, or numbers), shape (k, rows)."""
        weights = weights.astype(self.design.dtype, copy=False)
        design = self.design[rows]
        if is_sparse(design):
            values = np.ascontiguousarray((design @ weights[:, :-1].T).T)
        else:
            values = weights[:, :-1] @ design.T
        values += weights[:, -1:]
        return values

    def g(self, weights: Array, rows: Any) -> Array:
        """q(y|x) of some rows (a slice, or numbers), shape (k, rows)."""
        return softmax_classes(self.logits(weights, rows))[0]

    def blind(self) -> "MixtureProblem":
        """The problem of those who know nothing of classes."""
        return MixtureProblem(self.design, self.codes, self.row_weight, self.n_domains)

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
        told = self.constraints
        if told is not None:
            likelihood, value = told.tilt(self, weights, likelihood)
        for block in self.blocks:
            rows = block.rows
            logits = self.logits(weights, rows)
            g, log_g = softmax_classes(logits, with_log=penalties.confidence > 0)
            joint = g * block.columns(likelihood)
            if told is not None:
                told.restrict(joint, rows)
            density = joint.sum(axis=0)
            np.maximum(density, SETTINGS.floor, out=density)
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
            result[block.rows] = self.g(weights, block.rows).T
        return result

    def log_likelihood(self, weights: Array, domain_given_class: Array) -> Array:
        """Log q(d_i|x_i) of every row, log q(d_i, y_i|x_i) where a class is known."""
        each = np.empty(self.n_rows)
        for block in self.blocks:
            joint = self.g(weights, block.rows) * block.columns(domain_given_class)
            if self.constraints is not None:
                self.constraints.restrict(joint, block.rows)
            density = joint.sum(axis=0)
            each[block.rows] = np.log(np.maximum(density, SETTINGS.floor))
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
        if stop - start < SETTINGS.small_domain:
            if small and stop - edges[small[0]] > SETTINGS.block_rows:
                flush()
            small.append(domain)
            continue
        flush()
        one = np.array([domain])
        for first in range(start, stop, SETTINGS.block_rows):
            rows = slice(first, min(first + SETTINGS.block_rows, stop))
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


# ---- Optimizing it: L-BFGS on W and log T together, or EM ----------------------------


@dataclass
class Fit:
    """One solution: parameters, objective and how it was reached."""

    weights: Array  # (k, p + 1), the last column is the intercept
    domain_given_class: Array  # (k, r)
    objective: float
    n_iter: int = 0
    converged: bool = True
    history: list[float] = field(default_factory=list)


def optimize(
    problem: MixtureProblem,
    weights: Array,
    domain_given_class: Array,
    penalties: Penalties,
    *,
    max_iter: int,
    frozen: bool = False,
    tol: float = 1e-9,
) -> Fit:
    """Minimise J by L-BFGS over W alone (``frozen``) or over W and log T jointly."""
    n_classes, n_columns = weights.shape
    start_T = normalize_rows(np.maximum(domain_given_class, SETTINGS.floor))
    log_T = np.log(start_T)
    size = weights.size
    history: list[float] = []

    def function(parameters: Array) -> tuple[float, Array]:
        current = parameters[:size].reshape(n_classes, n_columns)
        T = start_T if frozen else softmax_rows(parameters[size:].reshape(log_T.shape))
        value, gradient, mass = problem.value_and_gradient(current, T, penalties)
        value_T, gradient_T = penalties.of_domains(T)
        value += value_T
        if frozen:
            return value, gradient.ravel()
        # chain rule through the softmax; the likelihood's own slope in T is -mass / T
        pull = T * gradient_T - mass
        slope = pull - T * pull.sum(axis=1, keepdims=True)
        return value, np.concatenate([gradient.ravel(), slope.ravel()])

    start = weights.ravel() if frozen else np.r_[weights.ravel(), log_T.ravel()]
    found = minimize(
        function,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: history.append(intermediate_result.fun),
        options={"maxiter": max_iter, "ftol": tol, "gtol": 1e-7, "maxcor": 20},
    )
    T = start_T if frozen else softmax_rows(found.x[size:].reshape(log_T.shape))
    return Fit(
        weights=found.x[:size].reshape(n_classes, n_columns),
        domain_given_class=T,
        objective=float(found.fun),
        n_iter=int(found.nit),
        converged=bool(found.status == 0),
        history=history,
    )


def optimize_by_em(
    problem: MixtureProblem,
    weights: Array,
    domain_given_class: Array,
    penalties: Penalties,
    *,
    max_iter: int,
    tol: float = 1e-9,
) -> Fit:
    """Minimise J by EM: T[y, d] proportional to posterior mass, then W.

    Every round lowers J. The volume penalty has no closed form, so it must be zero.
    """
    if penalties.volume:
        raise ValueError(
            "solver='em' cannot take the volume penalty; use solver='lbfgs'"
        )
    T = normalize_rows(np.maximum(domain_given_class, SETTINGS.floor))
    inner = SETTINGS.em_inner
    history: list[float] = []
    converged = False
    for _ in range(max(1, max_iter // inner)):
        mass = problem.value_and_gradient(weights, T, penalties)[2]
        pseudo_counts = max(penalties.dirichlet / mass.size, SETTINGS.floor)
        T = normalize_rows(mass + pseudo_counts)
        step = optimize(
            problem, weights, T, penalties, max_iter=inner, frozen=True, tol=tol
        )
        weights = step.weights
        history.append(step.objective)
        if len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-1]):
            converged = True
            break
    return Fit(weights, T, history[-1], inner * len(history), converged, history)


def softmax_rows(values: Array) -> Array:
    """Softmax of each row."""
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
