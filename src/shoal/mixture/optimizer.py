"""Climbing the likelihood: L-BFGS on W and log T together, or EM.

EM alternates the closed-form T with a few L-BFGS iterations on W. Both reach the same
optima; L-BFGS is the faster one from a good start.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from shoal.mixture.objective import FLOOR, MixtureProblem, Penalties
from shoal.probability import normalize_rows

__all__ = ["Fit", "optimize", "optimize_by_em", "softmax_rows"]

Array = np.ndarray[Any, Any]

# L-BFGS iterations on W within one round of EM.
INNER = 5


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
    start_T = normalize_rows(np.maximum(domain_given_class, FLOOR))
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
    T = normalize_rows(np.maximum(domain_given_class, FLOOR))
    history: list[float] = []
    converged = False
    for _ in range(max(1, max_iter // INNER)):
        mass = problem.value_and_gradient(weights, T, penalties)[2]
        imaginary = max(penalties.dirichlet / mass.size, FLOOR)
        T = normalize_rows(mass + imaginary)
        step = optimize(
            problem, weights, T, penalties, max_iter=INNER, frozen=True, tol=tol
        )
        weights = step.weights
        history.append(step.objective)
        if len(history) > 1 and history[-2] - history[-1] <= tol * abs(history[-1]):
            converged = True
            break
    return Fit(weights, T, history[-1], INNER * len(history), converged, history)


def softmax_rows(values: Array) -> Array:
    """Softmax of each row."""
    shifted = np.exp(values - values.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))
