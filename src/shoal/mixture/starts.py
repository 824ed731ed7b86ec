"""Where the likelihood is climbed from: T0 found by the stages, before any gradient.

The start decides more than anything else. Rows are cut into many clusters, once by
their features and once by an out-of-fold discriminator; extreme rows of q(d|cluster)
are candidate anchors (SPA), refined or not by EM on the cluster-by-domain table.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans

from shoal.mixture.objective import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    softmax_rows,
)
from shoal.mixture.rows import fold_of_rows
from shoal.probability import normalize_rows

__all__ = [
    "Start",
    "best_start",
    "climb",
    "cluster_rows",
    "find_starts",
    "joint_table",
    "logit_discriminator",
]

Array = np.ndarray[Any, Any]

# Entries of a start below this could hardly recover under L-BFGS in log T.
START_FLOOR = 0.01
CLUSTERING_ROWS = 10_000


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
    n_random: int,
    rng: np.random.Generator,
) -> list[Start]:
    """First guesses from the tables named in ``kinds``, then random ones.

    ``'features'`` clusters z(x), ``'discriminator'`` clusters the out-of-fold q(d|x).
    """
    n_clusters = number_of_clusters(problem, n_classes)
    starts = []
    for kind in kinds:
        if kind == "discriminator":
            points = logit_discriminator(problem, rng)
        else:
            points = problem.design
        clusters = cluster_rows(points, n_clusters, problem.row_weight, rng)
        table = joint_table(problem, clusters, n_clusters)
        for name, guess in anchor_guesses(table, n_classes, problem):
            starts.append(Start(f"{kind}-{name}", guess))
    for index in range(n_random):
        guess = rng.dirichlet(np.ones(problem.n_domains), n_classes)
        starts.append(Start(f"random-{index}", guess))
    return starts


def number_of_clusters(problem: MixtureProblem, n_classes: int) -> int:
    """8 k clusters, if the rows can fill them in every domain."""
    most = problem.n_rows // (4 * problem.n_domains)
    return int(max(min(max(8 * n_classes, 40), most), n_classes + 1))


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
    if points.shape[0] <= CLUSTERING_ROWS:
        return kmeans.fit(points, sample_weight=row_weight).labels_
    rows = np.sort(rng.choice(points.shape[0], CLUSTERING_ROWS, replace=False))
    return kmeans.fit(points[rows], sample_weight=row_weight[rows]).predict(points)


def joint_table(problem: MixtureProblem, clusters: Array, n_clusters: int) -> Array:
    """Weighted joint of cluster and domain, shape (n_clusters, n_domains)."""
    flat = clusters.astype(np.int64) * problem.n_domains + problem.codes
    size = n_clusters * problem.n_domains
    counts = np.bincount(flat, weights=problem.row_weight, minlength=size)
    return counts.reshape(n_clusters, problem.n_domains)


def logit_discriminator(
    problem: MixtureProblem, rng: np.random.Generator, n_folds: int = 3
) -> Array:
    """Out-of-fold q(d|x) of a multinomial logit: the mixture with one class a domain."""
    folds = fold_of_rows(problem.codes, n_folds, rng)
    identity = np.eye(problem.n_domains)
    result = np.empty((problem.n_rows, problem.n_domains), dtype=problem.design.dtype)
    for fold in range(n_folds):
        held_out = folds == fold
        train = problem.take(np.flatnonzero(~held_out))
        weights = np.zeros((problem.n_domains, problem.n_features + 1))
        fit = optimize(
            train, weights, identity, Penalties(ridge=1e-4), max_iter=60, frozen=True
        )
        rows = problem.take(np.flatnonzero(held_out))
        result[held_out] = rows.class_given_x(fit.weights)
    return result


def climb(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Penalties,
    *,
    weights: Array | None = None,
    n_frozen: int = 30,
    n_joint: int = 100,
    floor: float = START_FLOOR,
) -> Fit:
    """Fit W with T frozen first, then both: from a guess of T to a local optimum."""
    n_classes = len(domain_given_class)
    if weights is None:
        weights = np.zeros((n_classes, problem.n_features + 1))
    T = normalize_rows(np.maximum(domain_given_class, floor / problem.n_domains))
    first = optimize(problem, weights, T, penalties, max_iter=n_frozen, frozen=True)
    fit = optimize(problem, first.weights, T, penalties, max_iter=n_joint)
    fit.n_iter += first.n_iter
    fit.history = first.history + fit.history
    return fit


def best_start(
    problem: MixtureProblem,
    starts: list[Start],
    penalties: Penalties,
    *,
    n_jobs: int | None = None,
    n_joint: int = 100,
) -> list[tuple[Start, Fit]]:
    """Climb from every start; best objective first."""
    fits = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(climb)(problem, start.domain_given_class, penalties, n_joint=n_joint)
        for start in starts
    )
    ranked = sorted(zip(starts, fits, strict=True), key=lambda pair: pair[1].objective)
    return ranked


def anchor_guesses(
    table: Array, n_classes: int, problem: MixtureProblem
) -> list[tuple[str, Array]]:
    """SPA on the clusters' rows of q(d|c), and EM on the table from there."""
    mass = table.sum(axis=1)
    solid = mass > 0.3 / len(table)
    if solid.sum() < n_classes:
        solid = mass > 0
    rows = normalize_rows(table[solid])
    anchors = rows[_spa(rows, n_classes)]
    return [("spa", anchors), ("spa-em", _em(table[solid], anchors))]


def _spa(rows: Array, n_classes: int) -> list[int]:
    """TEMPORARY."""
    residual = rows - 0.0
    picked: list[int] = []
    for _ in range(n_classes):
        norm = (residual**2).sum(axis=1)
        if picked:
            norm[picked] = -1
        best = int(norm.argmax())
        picked.append(best)
        direction = residual[best] / max(np.linalg.norm(residual[best]), 1e-300)
        residual = residual - np.outer(residual @ direction, direction)
    return picked


def _em(table: Array, T: Array, n_iter: int = 200) -> Array:
    T = normalize_rows(np.maximum(T, 1e-3))
    mass = table.sum(axis=1)
    R = np.full((len(table), len(T)), 1 / len(T))
    for it in range(n_iter):
        ratio = table / np.maximum(R @ T, 1e-300)
        newR = R * (ratio @ T.T) / mass[:, None]
        if it >= 20:
            T = normalize_rows(T * (R.T @ ratio))
        R = newR
    return T
