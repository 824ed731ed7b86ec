"""Where the likelihood is optimized from: recipes for a first q(d|y), climbs, moves."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from shoal.likelihood._known import sample_rows
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.probability import HeldOut, class_posterior, normalize_rows
from shoal.stages.factorize._anchors import (
    candidate_rows,
    successive_nonnegative_projection,
    successive_projection,
)
from shoal.stages.factorize._iterative import em_step

Array = np.ndarray[Any, Any]

# ---- starts --------------------------------------------------------------------------


LEAST = 1e-12  # mass that a ratio is still taken of


class Guess(NamedTuple):
    """Where a climb begins; without weights, q(d|y) is held still for a while."""

    domain_given_class: Array
    weights: Array | None = None


class Recipe(Protocol):
    """How training rows come to a first guess; no other rows' domains are seen."""

    @property
    def name(self) -> str:
        """As in ``start_``."""

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """From a problem of ``rows`` of the table that the recipe was made for."""


@dataclass(frozen=True)
class Start:
    """A partition blind to domains, and how to read q(d|y) off its table of domains.

    Attributes
    ----------
    name : str
    clusters : ndarray of shape (n,)
    n_clusters : int
    read : callable
        From a table of clusters by domains to q(d|y).
    """

    name: str
    clusters: Array
    n_clusters: int
    read: Callable[[Array], Array]

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """The table of these rows' domains, read."""
        table = joint_table(problem, self.clusters[rows], self.n_clusters)
        return Guess(self.read(table))


def anchor_starts(
    problem: MixtureProblem,
    n_classes: int,
    rng: np.random.Generator,
    counts: Iterable[int] | None = None,
) -> list[Start]:
    """Anchors among clusters of z(x) of several finenesses, found in three ways."""
    starts = []
    for n_clusters in counts or cluster_counts(problem, n_classes):
        clusters = cluster_rows(problem.design, n_clusters, problem.row_weight, rng)
        for name, find in ANCHORS.items():
            read = partial(find, n_classes=n_classes)
            starts.append(Start(f"{name}-{n_clusters}", clusters, n_clusters, read))
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


def optimize_from(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Penalties,
    *,
    weights: Array | None = None,
    n_frozen: int = 30,
    n_joint: int = 100,
    named: bool = False,
) -> Fit:
    """Fit W with T frozen first, then both: from a guess of T to a local optimum.

    Where classes have names, a guess that is not ``named`` first learns which is which.
    """
    n_classes = len(domain_given_class)
    T = _off_zero(domain_given_class)
    if problem.constraints is not None and not named:
        if weights is None:
            zero = np.zeros((n_classes, problem.n_features + 1))
            weights = optimize(
                problem.blind(), zero, T, penalties, max_iter=n_frozen, frozen=True
            ).weights
        order = problem.constraints.match(problem, weights, T)
        weights, T = weights[order], T[order]
    if weights is None:
        weights = np.zeros((n_classes, problem.n_features + 1))
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


def best_start(
    problem: MixtureProblem,
    starts: Sequence[Start],
    penalties: Penalties,
    rng: np.random.Generator,
    n_jobs: int | None = None,
) -> tuple[Start, Fit]:
    """Climb from the most promising start, by a short climb of all on a sample."""
    guesses = [start.guess(problem) for start in starts]
    told = problem.constraints
    known = None if told is None else told.known
    small = problem.take(
        sample_rows(problem.codes, known, SETTINGS.screening_rows, rng)
    )
    short = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(optimize_from)(
            small, T, penalties, weights=weights, n_frozen=20, n_joint=30
        )
        for T, weights in guesses
    )
    best = int(np.argmin([fit.objective for fit in short]))
    T, weights = guesses[best]
    return starts[best], optimize_from(problem, T, penalties, weights=weights)


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


def softmax_of_partition(
    problem: MixtureProblem, labels: Array, n_classes: int, ridge: float
) -> Array:
    """Weights of a softmax that tells the parts of a partition, after a few steps.

    A partition is a problem whose domains are its parts, one class each.
    """
    order = np.argsort(labels, kind="stable")
    parts = MixtureProblem(
        problem.design[order], labels[order], problem.row_weight[order], n_classes
    )
    zero = np.zeros((n_classes, problem.n_features + 1))
    fit = optimize(
        parts,
        zero,
        np.eye(n_classes),
        Penalties(ridge),
        max_iter=SETTINGS.partition_iterations,
        frozen=True,
    )
    return fit.weights


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
            cost = share[a] * relative_entropy(T[a], merged) + share[
                b
            ] * relative_entropy(T[b], merged)
            costs.append((cost, a, b, merged))
    costs.sort(key=lambda item: item[:3])
    return [(a, b, merged) for _, a, b, merged in costs]


def class_share(problem: MixtureProblem, fit: Fit) -> Array:
    """q(y): weighted mean of g."""
    return np.asarray(problem.row_weight @ problem.class_given_x(fit.weights))


def relative_entropy(p: Array, q: Array) -> float:
    """KL(p || q), in nats."""
    positive = p > 0
    return float(
        np.sum(p[positive] * np.log(p[positive] / np.maximum(q[positive], LEAST)))
    )


# ---- moves: empty classes take a half of others --------------------------------------


class Split(NamedTuple):
    """A class cut in two: what that would gain, and how."""

    gain: float  # nats, if both halves were told apart
    of: int
    domain_given_half: Array  # (2, n_domains)
    weights: Array  # (2, n_columns + 1), to be added to those of the class


def empty_classes(problem: MixtureProblem, fit: Fit) -> Array:
    """Numbers of the classes that hold next to no rows."""
    share = class_share(problem, fit)
    return np.flatnonzero(share < SETTINGS.nearly_empty / len(share))


def fill_empty_classes(
    problem: MixtureProblem, fit: Fit, penalties: Penalties, rng: np.random.Generator
) -> Fit:
    """Climb with halves of the classes that gain most by it, while that pays.

    Where halves for all empty classes do not pay, those of fewer may.
    """
    for _ in range(SETTINGS.most_splits):
        empty = empty_classes(problem, fit)
        if not len(empty):
            break
        splits = best_splits(problem, fit, empty, penalties.ridge, rng)
        n_filled = min(len(splits), len(empty))
        better = None
        while better is None and n_filled:
            better = _fill(problem, fit, penalties, empty, splits[:n_filled])
            n_filled //= 2
        if better is None:
            break
        fit = better
    return fit


def _fill(
    problem: MixtureProblem,
    fit: Fit,
    penalties: Penalties,
    empty: Array,
    splits: list["Split"],
) -> Fit | None:
    """The climb from these halves, if it ends in a better objective."""
    T, weights = fit.domain_given_class.copy(), fit.weights.copy()
    for freed, split in zip(empty, splits, strict=False):
        T[[split.of, freed]] = split.domain_given_half
        weights[[split.of, freed]] = weights[split.of] + split.weights
    other = optimize(problem, weights, T, penalties, max_iter=SETTINGS.final_joint)
    other.history = fit.history + other.history
    return other if other.objective < fit.objective else None


def best_splits(
    problem: MixtureProblem,
    fit: Fit,
    empty: Array,
    ridge: float,
    rng: np.random.Generator,
) -> list[Split]:
    """Halves of the other classes by k-means, the largest gain first."""
    posterior = class_posterior(
        problem.class_given_x(fit.weights), fit.domain_given_class, problem.codes
    )
    labels = posterior.argmax(axis=1)
    splits = []
    for number in np.setdiff1d(np.arange(posterior.shape[1]), empty):
        rows = np.flatnonzero(labels == number)
        if len(rows) >= SETTINGS.least_split:
            splits.append(_split(problem, int(number), rows, ridge, rng))
    return sorted(splits, key=lambda split: -split.gain)


def _split(
    problem: MixtureProblem,
    number: int,
    rows: Array,
    ridge: float,
    rng: np.random.Generator,
) -> Split:
    own = MixtureProblem(
        problem.design[rows],
        problem.codes[rows],
        problem.row_weight[rows],
        problem.n_domains,
    )
    halves = cluster_rows(own.design, 2, own.row_weight, rng)
    table = joint_table(own, halves, 2)
    mass, shares = table.sum(axis=1), normalize_rows(table)
    both = normalize_rows(table.sum(axis=0, keepdims=True))[0]
    gain = sum(
        m * relative_entropy(half, both) for m, half in zip(mass, shares, strict=True)
    )
    # half a row a domain, by chance, gains this much
    present = (table.sum(axis=0) > 0).sum()
    chance = (present - 1) / 2 * own.row_weight.sum() / len(rows)
    even = normalize_rows(table + SETTINGS.start_floor * table.sum() / table.size)
    weights = softmax_of_partition(own, halves, 2, ridge)
    return Split(float(gain - chance), number, even, weights)
