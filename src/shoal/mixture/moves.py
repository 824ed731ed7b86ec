"""Merge/re-seed moves: ways out of a local optimum that no gradient sees.

Two classes that shift alike are merged, and the freed one is re-seeded at the cluster
of rows whose domains the fit explains worst. A move is kept only when the refitted
objective is lower.
"""

from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.mixture.objective import MixtureProblem, Penalties
from shoal.mixture.optimizer import Fit
from shoal.mixture.starts import climb, joint_table
from shoal.probability import normalize_rows

__all__ = ["improve_by_moves", "merge_costs", "worst_clusters"]

Array = np.ndarray[Any, Any]

TINY = 1e-12


def improve_by_moves(
    problem: MixtureProblem,
    fit: Fit,
    penalties: Penalties,
    clusters: Array,
    *,
    max_rounds: int = 6,
    min_gain: float = 2e-4,
    n_jobs: int | None = None,
) -> tuple[Fit, list[float]]:
    """Try moves until none lowers J by ``min_gain``; the gains are returned too."""
    gains: list[float] = []
    if len(fit.weights) < 3:
        # with two classes a merge leaves one: any re-seed is a new start
        return fit, gains
    for _ in range(max_rounds):
        pairs = merge_costs(problem, fit)[:2]
        seeds = worst_clusters(problem, fit, clusters)[:2]
        trials = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_try_move)(problem, fit, penalties, pair, row)
            for pair, row in product(pairs, seeds)
        )
        best = min(trials, key=lambda trial: trial.objective)
        gain = fit.objective - best.objective
        if gain < min_gain:
            break
        gains.append(gain)
        fit = best
    return fit, gains


def merge_costs(problem: MixtureProblem, fit: Fit) -> list[tuple[int, int, Array]]:
    """Pairs of classes, cheapest to merge first, with the merged row of T.

    The cost is the weighted Jensen-Shannon divergence of their rows of T: the
    likelihood lost if both classes had to share one row.
    """
    T = fit.domain_given_class
    share = class_share(problem, fit)
    costs = []
    for a in range(len(T)):
        for b in range(a + 1, len(T)):
            total = share[a] + share[b]
            merged = (share[a] * T[a] + share[b] * T[b]) / max(total, TINY)
            cost = share[a] * _kl(T[a], merged) + share[b] * _kl(T[b], merged)
            costs.append((cost, a, b, merged))
    costs.sort(key=lambda item: item[:3])
    return [(a, b, merged) for _, a, b, merged in costs]


def worst_clusters(problem: MixtureProblem, fit: Fit, clusters: Array) -> list[Array]:
    """Observed q(d|cluster) of the clusters explained worst, worst first.

    Badness is the cluster's mass times KL(observed || fitted).
    """
    n_clusters = int(clusters.max()) + 1
    observed = joint_table(problem, clusters, n_clusters)
    g = problem.class_given_x(fit.weights) * problem.row_weight[:, None]
    mass_of_class = np.zeros((n_clusters, g.shape[1]))
    np.add.at(mass_of_class, clusters, g)
    fitted = normalize_rows(mass_of_class @ fit.domain_given_class)
    mass = observed.sum(axis=1)
    rows = normalize_rows(observed)
    badness = mass * np.array(
        [_kl(seen, model) for seen, model in zip(rows, fitted, strict=True)]
    )
    return list(rows[np.argsort(-badness, kind="stable")])


def class_share(problem: MixtureProblem, fit: Fit) -> Array:
    """q(y): weighted mean of g."""
    return np.asarray(problem.row_weight @ problem.class_given_x(fit.weights))


def _try_move(
    problem: MixtureProblem,
    fit: Fit,
    penalties: Penalties,
    pair: tuple[int, int, Array],
    seed_row: Array,
) -> Fit:
    kept, freed, merged = pair
    T = fit.domain_given_class.copy()
    T[kept], T[freed] = merged, seed_row
    weights = fit.weights / 2
    weights[freed] = weights.mean(axis=0)
    return climb(problem, T, penalties, weights=weights, n_frozen=20, n_joint=60)


def _kl(p: Array, q: Array) -> float:
    positive = p > 0
    return float(
        np.sum(p[positive] * np.log(p[positive] / np.maximum(q[positive], TINY)))
    )
