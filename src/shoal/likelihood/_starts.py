"""Where the likelihood is optimized from: recipes for a first q(d|y), and its climb."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.probability import normalize_rows
from shoal.stages.factorize._anchors import (
    candidate_rows,
    successive_nonnegative_projection,
    successive_projection,
)
from shoal.stages.factorize._iterative import em_step
from shoal.validation._rows import stratified_sample

# ---- starts --------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

LEAST = 1e-12  # mass that a ratio is still taken of


class Recipe(Protocol):
    """How training rows come to a first guess of q(d|y)."""

    @property
    def name(self) -> str:
        """As in ``start_``."""

    def guess(
        self,
        problem: MixtureProblem,
        rows: Any = slice(None),
        fold: int | None = None,
    ) -> Array:
        """From a problem of ``rows``, those without a fold (None: all), to q(d|y)."""


@dataclass(frozen=True)
class Start:
    """A recipe for a first guess of q(d|y), which rows read with their own domains.

    Attributes
    ----------
    name : str
    clusters : ndarray of shape (n,)
        A partition of the rows that is blind to domains.
    n_clusters : int
    read : callable
        From the table of clusters by domains to q(d|y).
    """

    name: str
    clusters: Array
    n_clusters: int
    read: Callable[[Array], Array]

    def guess(
        self,
        problem: MixtureProblem,
        rows: Array | slice = slice(None),
        fold: int | None = None,
    ) -> Array:
        """The guess from a problem of ``rows``; no others' domains are seen."""
        return self.read(joint_table(problem, self.clusters[rows], self.n_clusters))


@dataclass(frozen=True)
class Reanchored:
    """Anchors among clusters of the q(d|x) that a first climb has found.

    Clusters of the columns mix classes that overlap there; in the space of the domains'
    probabilities, which the climb has learned, they lie apart. Every set of training
    rows makes its own first climb.
    """

    base: Start
    penalties: Penalties
    n_classes: int
    seed: int

    @property
    def name(self) -> str:
        """That of the first start, again."""
        return f"{self.base.name}-again"

    def guess(
        self,
        problem: MixtureProblem,
        rows: Array | slice = slice(None),
        fold: int | None = None,
    ) -> Array:
        """The guess from a problem of ``rows``; no others' domains are seen."""
        fit = optimize_from(problem, self.base.guess(problem, rows), self.penalties)
        likelihood = problem.class_given_x(fit.weights) @ fit.domain_given_class
        points = np.log(np.maximum(likelihood, SETTINGS.floor))
        points -= points.mean(axis=1, keepdims=True)
        n_clusters = cluster_counts(problem, self.n_classes)[0]
        rng = np.random.default_rng(self.seed)
        clusters = cluster_rows(points, n_clusters, problem.row_weight, rng)
        table = joint_table(problem, clusters, n_clusters)
        return em_guess(table, self.n_classes)


def anchor_starts(
    problem: MixtureProblem, n_classes: int, rng: np.random.Generator
) -> list[Start]:
    """Anchors among clusters of two finenesses, found in three ways."""
    starts = []
    for n_clusters in cluster_counts(problem, n_classes):
        clusters = cluster_rows(problem.design, n_clusters, problem.row_weight, rng)
        for name, method in ANCHORS.items():
            read = partial(method, n_classes=n_classes)
            starts.append(Start(f"{name}-{n_clusters}", clusters, n_clusters, read))
    return starts


def random_starts(
    problem: MixtureProblem, n_classes: int, n_random: int, rng: np.random.Generator
) -> list[Start]:
    """Guesses that do not look at the rows at all."""
    nowhere = np.zeros(problem.n_rows, dtype=np.intp)
    starts = []
    for index in range(n_random):
        draw = partial(_draw_guess, n_classes=n_classes, seed=int(rng.integers(2**31)))
        starts.append(Start(f"random-{index}", nowhere, 1, draw))
    return starts


def cluster_counts(problem: MixtureProblem, n_classes: int) -> list[int]:
    """A few clusters a class, if rows can fill them; three a class in any case."""
    few, many = SETTINGS.clusters_per_class
    least_few, least_many = SETTINGS.least_clusters
    most = max(
        problem.n_rows // (SETTINGS.rows_per_cell * problem.n_domains),
        min(few * n_classes, problem.n_rows // SETTINGS.rows_per_cluster),
        n_classes + 1,
    )
    wanted = max(few * n_classes, least_few), max(many * n_classes, least_many)
    return sorted({min(count, most) for count in wanted})


def cluster_rows(
    points: Any,
    n_clusters: int,
    row_weight: Array,
    rng: np.random.Generator,
    init: Any = "k-means++",
) -> Array:
    """Domain-blind k-means; centres from a sample when there are many rows."""
    kmeans = KMeans(
        min(n_clusters, points.shape[0]),
        init=init,
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


def _draw_guess(table: Array, n_classes: int, seed: int) -> Array:
    even = np.ones(table.shape[1])
    return np.random.default_rng(seed).dirichlet(even, n_classes)


def rank_starts(
    problem: MixtureProblem,
    starts: list[Start],
    penalties: Penalties,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> list[Start]:
    """Starts in the order of the objective that a short climb on a sample reaches."""
    rows = stratified_sample(problem.codes, SETTINGS.screening_rows, rng)
    small = problem.take(rows)
    fits = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(optimize_from)(
            small, start.guess(small, rows), penalties, n_frozen=20, n_joint=30
        )
        for start in starts
    )
    order = np.argsort([fit.objective for fit in fits], kind="stable")
    return [starts[index] for index in order]


def spa_guess(table: Array, n_classes: int) -> Array:
    """Rows of q(d|c) that are farthest apart: successive projection."""
    raw = _solid_rows(table, n_classes, denoise=False)
    return np.asarray(raw[successive_projection(raw, n_classes)])


def snpa_guess(table: Array, n_classes: int) -> Array:
    """The same without negative coefficients, on a table freed of noise."""
    smooth = _solid_rows(table, n_classes, denoise=True)
    return np.asarray(smooth[successive_nonnegative_projection(smooth, n_classes)])


def em_guess(table: Array, n_classes: int) -> Array:
    """EM on the table from successive projection: the best single one."""
    return refine_by_em(table, spa_guess(table, n_classes))


ANCHORS = {"spa": spa_guess, "snpa": snpa_guess, "em": em_guess}


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


# ---- classes that are nearly one ---------------------------------------------------


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


def class_share(problem: MixtureProblem, fit: Fit) -> Array:
    """q(y): weighted mean of g."""
    return np.asarray(problem.row_weight @ problem.class_given_x(fit.weights))


def _kl(p: Array, q: Array) -> float:
    positive = p > 0
    return float(
        np.sum(p[positive] * np.log(p[positive] / np.maximum(q[positive], LEAST)))
    )
