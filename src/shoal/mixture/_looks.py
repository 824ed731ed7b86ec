"""Starts from how rows look: partitions into k classes, and mixtures of densities.

A partition is blind to domains. A mixture of Gaussians with a mix per domain is not:
every set of training rows fits its own, from the same partition.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning

from shoal.density._em import Prior
from shoal.density._gaussian import Rows
from shoal.density._starts import DensityOptions, climb_from, make_prior
from shoal.likelihood._problem import MixtureProblem
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Guess,
    Recipe,
    cluster_rows,
    em_guess,
    joint_table,
    optimize_from,
    softmax_of_partition,
)
from shoal.probability import domain_given_class, normalize_rows
from shoal.validation import is_sparse

Array = np.ndarray[Any, Any]

SHAPES = ("diag", "tied")


@dataclass(frozen=True)
class Partition:
    """The parts as classes: their table of domains, and a softmax that tells them."""

    name: str
    labels: Array
    n_classes: int
    ridge: float

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """Domains are those of ``rows`` alone."""
        labels = self.labels[rows]
        return _told_apart(problem, labels, self.n_classes, self.ridge)


@dataclass(frozen=True)
class MixPerDomain:
    """Gaussians with a mix per domain, fitted by EM from a partition."""

    name: str
    labels: Array
    points: Array
    n_classes: int
    shape: str
    prior: Prior
    ridge: float

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """Domains are those of ``rows`` alone."""
        fit = climb_from(
            _as_density_rows(self.points[rows], problem),
            self.labels[rows],
            self.n_classes,
            self.shape,
            self.prior,
            OPTIONS,
        )
        labels = fit.expected.component_given_x.argmax(axis=1)
        told = _told_apart(problem, labels, self.n_classes, self.ridge)
        return told._replace(domain_given_class=domain_given_class(fit.density.mix))


@dataclass(frozen=True)
class Reanchored:
    """Anchors among clusters of the classes' logits that a first climb has found.

    Clusters of the columns mix classes that overlap there; in the subspace of the
    weights, which the climb has learned, they lie apart. Every set of training rows
    makes its own first climb.
    """

    base: Recipe
    penalties: Any
    n_classes: int
    seed: int

    @property
    def name(self) -> str:
        """That of the first start, again."""
        return f"{self.base.name}-again"

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """Domains are those of ``rows`` alone."""
        first = self.base.guess(problem, rows).domain_given_class
        fit = optimize_from(problem, first, self.penalties, n_frozen=20, n_joint=40)
        points = problem.logits(fit.weights, slice(None)).T
        points = points - points.mean(axis=1, keepdims=True)
        n_clusters = min(
            max(SETTINGS.clusters_again * self.n_classes, 20), problem.n_rows // 4
        )
        n_clusters = max(n_clusters, self.n_classes + 1)
        rng = np.random.default_rng(self.seed)
        clusters = cluster_rows(points, n_clusters, problem.row_weight, rng)
        table = joint_table(problem, clusters, n_clusters)
        return Guess(em_guess(table, self.n_classes))


OPTIONS = DensityOptions(
    tail=float("inf"), max_iter=SETTINGS.look_iterations, tol=SETTINGS.look_tol
)


def look_starts(
    problem: MixtureProblem, n_classes: int, ridge: float, rng: np.random.Generator
) -> list[Recipe]:
    """K-means and, of dense rows, Gaussians of two shapes, with one mix and with many.

    ``ridge`` is that of the softmax that tells the parts of a partition apart.
    """
    starts = domain_looks(problem, n_classes, ridge, rng)
    for start in starts[1:]:
        assert isinstance(start, MixPerDomain)
        alike = replace(start.prior, mix_rows=float("inf"))
        rows = _as_density_rows(start.points, problem)
        fit = climb_from(rows, start.labels, n_classes, start.shape, alike, OPTIONS)
        parts = fit.expected.component_given_x.argmax(axis=1)
        starts.append(Partition(f"gaussian-{start.shape}", parts, n_classes, ridge))
    return starts


def domain_looks(
    problem: MixtureProblem, n_classes: int, ridge: float, rng: np.random.Generator
) -> list[Recipe]:
    """K-means and, of dense rows, Gaussians of two shapes with a mix per domain."""
    labels = kmeans_labels(problem.design, n_classes, problem.row_weight, rng)
    starts: list[Recipe] = [Partition("k-means", labels, n_classes, ridge)]
    if is_sparse(problem.design):
        return starts
    points = problem.design.astype(float)
    rows = _as_density_rows(points, problem)
    prior = make_prior(rows, n_classes, int(rng.integers(2**31 - 1)))
    return starts + [
        MixPerDomain(f"density-{shape}", labels, points, n_classes, shape, prior, ridge)
        for shape in SHAPES
    ]


def kmeans_labels(
    points: Any, n_classes: int, row_weight: Array, rng: np.random.Generator
) -> Array:
    """K-means from a finer partition whose centres Ward's rule has merged.

    Of many classes, k-means alone leaves some pairs in one cluster and cuts others in
    two.
    """
    n_fine = max(SETTINGS.fine_clusters * n_classes, 20)
    if is_sparse(points) or n_fine >= points.shape[0]:
        return cluster_rows(points, n_classes, row_weight, rng)
    weight = row_weight.astype(float)
    fine = cluster_rows(points, n_fine, weight, rng)
    centres, mass = _centres(points, fine, weight)
    if len(centres) <= n_classes:  # rows that repeat
        return cluster_rows(points, n_classes, row_weight, rng)
    groups = AgglomerativeClustering(n_classes).fit_predict(centres)
    merged, _ = _centres(centres, groups, mass)
    kmeans = KMeans(n_classes, init=merged, n_init=1, max_iter=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(kmeans.fit(points, sample_weight=weight).labels_)


def _centres(points: Array, clusters: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted means of the clusters that have weight, and that weight."""
    mass = np.bincount(clusters, weight)
    belongs = csr_array(
        (weight, (clusters, np.arange(len(points)))), shape=(len(mass), len(points))
    )
    solid = mass > 0
    return (belongs @ points)[solid] / mass[solid, None], mass[solid]


def _as_density_rows(points: Array, problem: MixtureProblem) -> Rows:
    weight = problem.row_weight.astype(float) * problem.n_rows
    return Rows(points, problem.codes, weight, problem.n_domains, None)


def _told_apart(
    problem: MixtureProblem, labels: Array, n_classes: int, ridge: float
) -> Guess:
    """A part without training rows comes from anywhere."""
    table = joint_table(problem, labels, n_classes)
    even = SETTINGS.start_floor * table.sum() / table.size
    weights = softmax_of_partition(problem, labels, n_classes, ridge)
    return Guess(normalize_rows(table + even), weights)
