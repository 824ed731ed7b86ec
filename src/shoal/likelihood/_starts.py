"""Fits from first guesses: of all rows, out of fold, and out of a poor optimum."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.probability import HeldOut, normalize_rows
from shoal.stages.factorize._anchors import (
    candidate_rows,
    successive_nonnegative_projection,
    successive_projection,
)
from shoal.stages.factorize._iterative import em_step
from shoal.validation._rows import fold_of_rows, stratified_sample

# ---- starts --------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

LEAST = 1e-12  # mass that a ratio is still taken of


@dataclass(frozen=True)
class Start:
    """A named first guess of domain_given_class."""

    name: str
    domain_given_class: Array


def find_starts(
    problem: MixtureProblem,
    n_classes: int,
    *,
    kinds: tuple[str, ...],
    n_random: int = 0,
    rng: np.random.Generator,
) -> list[Start]:
    """First guesses from tables of two finenesses for each of ``kinds``, then random.

    ``'features'`` clusters z(x), ``'discriminator'`` clusters the out-of-fold q(d|x);
    a kind that is named twice is clustered twice, from other seeds.
    """
    starts = []
    for kind in kinds:
        if kind == "discriminator":
            points = logit_discriminator(problem, rng)
        else:
            points = problem.design
        for n_clusters in cluster_counts(problem, n_classes):
            clusters = cluster_rows(points, n_clusters, problem.row_weight, rng)
            table = joint_table(problem, clusters, n_clusters)
            for method, guess in anchor_guesses(table, n_classes):
                starts.append(Start(f"{kind}-{n_clusters}-{method}", guess))
    for index in range(n_random):
        guess = rng.dirichlet(np.ones(problem.n_domains), n_classes)
        starts.append(Start(f"random-{index}", guess))
    return starts


def cluster_counts(problem: MixtureProblem, n_classes: int) -> list[int]:
    """4 k and 8 k clusters, if the rows can fill them in every domain."""
    most = problem.n_rows // (4 * problem.n_domains)
    wanted = (max(4 * n_classes, 20), max(8 * n_classes, 40))
    return sorted({int(max(min(count, most), n_classes + 1)) for count in wanted})


def cluster_rows(
    points: Any, n_clusters: int, row_weight: Array, rng: np.random.Generator
) -> Array:
    """Domain-blind k-means; centres from a sample when there are many rows."""
    kmeans = KMeans(
        min(n_clusters, points.shape[0]),
        n_init=1,
        max_iter=30,
        random_state=int(rng.integers(2**31)),
    )
    rows = np.arange(points.shape[0])
    if len(rows) > SETTINGS.clustering_rows:
        rows = np.sort(rng.choice(len(rows), SETTINGS.clustering_rows, replace=False))
    with warnings.catch_warnings():
        # repeated rows make fewer clusters than asked for; empty ones do no harm
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(points[rows], sample_weight=row_weight[rows])
    if len(rows) == points.shape[0]:
        return kmeans.labels_
    return kmeans.predict(points)


def joint_table(problem: MixtureProblem, clusters: Array, n_clusters: int) -> Array:
    """Weighted joint of cluster and domain, shape (n_clusters, n_domains)."""
    flat = clusters.astype(np.int64) * problem.n_domains + problem.codes
    size = n_clusters * problem.n_domains
    counts = np.bincount(flat, weights=problem.row_weight, minlength=size)
    return counts.reshape(n_clusters, problem.n_domains)


def logit_discriminator(problem: MixtureProblem, rng: np.random.Generator) -> Array:
    """Out-of-fold q(d|x) of a logit: the mixture with one class for each domain."""
    folds = fold_of_rows(problem.codes, SETTINGS.logit_folds, rng)
    identity, penalties = np.eye(problem.n_domains), Penalties(SETTINGS.logit_ridge)
    result = np.empty((problem.n_rows, problem.n_domains), dtype=problem.design.dtype)
    for fold in range(SETTINGS.logit_folds):
        held_out = folds == fold
        train = problem.take(np.flatnonzero(~held_out))
        weights = np.zeros((problem.n_domains, problem.n_features + 1))
        fit = optimize(
            train,
            weights,
            identity,
            penalties,
            max_iter=SETTINGS.logit_iterations,
            frozen=True,
        )
        rows = problem.take(np.flatnonzero(held_out))
        result[held_out] = rows.class_given_x(fit.weights)
    return result


def optimize_from(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Penalties,
    *,
    weights: Array | None = None,
    n_frozen: int = 30,
    n_joint: int = 100,
) -> Fit:
    """Fit W with T frozen first, then both: from a guess of T to a local optimum."""
    n_classes = len(domain_given_class)
    if weights is None:
        weights = np.zeros((n_classes, problem.n_features + 1))
    T = _off_zero(domain_given_class)
    first = optimize(problem, weights, T, penalties, max_iter=n_frozen, frozen=True)
    fit = optimize(problem, first.weights, T, penalties, max_iter=n_joint)
    fit.n_iter += first.n_iter
    fit.history = first.history + fit.history
    return fit


def held_out(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Iterable[Penalties],
    folds: Array,
    *,
    n_jobs: int | None = None,
    n_joint: int = 60,
) -> list[HeldOut]:
    """Out-of-fold likelihood under each of ``penalties``, from the same T.

    Folds start from the T of all rows with W = 0: that keeps the basin under test
    without leaking the weights.
    """
    grid = list(penalties)
    splits = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]

    def run(train: Array, test: Array, penalty: Penalties) -> Array:
        fit = optimize_from(
            problem.take(train), domain_given_class, penalty, n_joint=n_joint
        )
        rest = problem.take(test)
        return rest.log_likelihood(fit.weights, fit.domain_given_class)

    jobs = [(train, test, penalty) for penalty in grid for train, test in splits]
    values = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(run)(*j) for j in jobs)
    results = []
    for index in range(len(grid)):
        each = np.empty(problem.n_rows)
        for (_, test), got in zip(splits, values[index * len(splits) :], strict=False):
            each[test] = got
        results.append(HeldOut(each, problem.row_weight.astype(float)))
    return results


def best_starts(
    problem: MixtureProblem,
    starts: list[Start],
    penalties: Penalties,
    *,
    n_keep: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[tuple[Start, Fit]]:
    """Climb from the most promising starts; best objective first.

    All starts are ranked by a short climb on a sample; ``n_keep`` of them go on.
    """
    if len(starts) > n_keep:
        small = problem.take(
            stratified_sample(problem.codes, SETTINGS.screening_rows, rng)
        )
        short = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(optimize_from)(
                small, start.domain_given_class, penalties, n_frozen=20, n_joint=30
            )
            for start in starts
        )
        order = np.argsort([fit.objective for fit in short], kind="stable")
        starts = [starts[index] for index in order[:n_keep]]
    fits = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(optimize_from)(problem, start.domain_given_class, penalties)
        for start in starts
    )
    return sorted(zip(starts, fits, strict=True), key=lambda pair: pair[1].objective)


def anchor_guesses(table: Array, n_classes: int) -> list[tuple[str, Array]]:
    """Extreme rows of q(d|c) by two methods, and EM on the table from the first."""
    smooth = _solid_rows(table, n_classes, denoise=True)
    anchors = _spa_guess(table, n_classes)
    return [
        ("spa", anchors),
        ("snpa", smooth[successive_nonnegative_projection(smooth, n_classes)]),
        ("em", refine_by_em(table, anchors)),
    ]


def em_guess(table: Array, n_classes: int) -> Array:
    """The last of :func:`anchor_guesses` alone: the best single one."""
    return refine_by_em(table, _spa_guess(table, n_classes))


def _spa_guess(table: Array, n_classes: int) -> Array:
    raw = _solid_rows(table, n_classes, denoise=False)
    return np.asarray(raw[successive_projection(raw, n_classes)])


def _solid_rows(table: Array, n_classes: int, denoise: bool) -> Array:
    """q(d|c) of the clusters that anchors may be found among."""
    weight, shares = table.sum(axis=0), normalize_rows(table.T)
    return candidate_rows(shares, n_classes, weight, denoise, SETTINGS.solid)


def refine_by_em(table: Array, domain_given_class: Array) -> Array:
    """T after EM on the joint table, held still for the first iterations."""
    joint = table[table.sum(axis=1) > 0].T / table.sum()
    T = _off_zero(domain_given_class)
    class_and_cluster = np.tile(joint.sum(axis=0) / len(T), (len(T), 1))
    for iteration in range(SETTINGS.table_iterations):
        pull_domain, pull_cluster, _ = em_step(joint, T, class_and_cluster)
        class_and_cluster = class_and_cluster * pull_cluster
        if iteration >= SETTINGS.table_frozen:
            T = normalize_rows(T * pull_domain)
    return T


def _off_zero(domain_given_class: Array) -> Array:
    """A guess from which every entry can still rise."""
    least = SETTINGS.start_floor / domain_given_class.shape[1]
    return normalize_rows(np.maximum(domain_given_class, least))


# ---- moves ---------------------------------------------------------------------------


def improve_by_moves(
    problem: MixtureProblem,
    fit: Fit,
    penalties: Penalties,
    clusters: Array,
    *,
    n_jobs: int | None = None,
) -> tuple[Fit, list[float]]:
    """Try moves until none lowers J enough; the gains are returned too."""
    gains: list[float] = []
    if len(fit.weights) < 3:
        # with two classes a merge leaves one: any re-seed is a new start
        return fit, gains
    for _ in range(SETTINGS.most_moves):
        pairs = merge_costs(problem, fit)[: SETTINGS.pairs_tried]
        seeds = worst_clusters(problem, fit, clusters)[: SETTINGS.seeds_tried]
        trials = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_try_move)(problem, fit, penalties, pair, row)
            for pair, row in product(pairs, seeds)
        )
        best = min(trials, key=lambda trial: trial.objective)
        gain = fit.objective - best.objective
        if gain < SETTINGS.least_drop:
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
            merged = (share[a] * T[a] + share[b] * T[b]) / max(total, LEAST)
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
    return optimize_from(
        problem, T, penalties, weights=weights, n_frozen=20, n_joint=60
    )


def _kl(p: Array, q: Array) -> float:
    positive = p > 0
    return float(
        np.sum(p[positive] * np.log(p[positive] / np.maximum(q[positive], LEAST)))
    )
