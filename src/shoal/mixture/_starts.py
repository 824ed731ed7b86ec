"""What a search begins with: a single optimization, then starts of other kinds."""

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
from shoal.likelihood._features import (
    LINEAR,
    SCALES,
    FeatureMap,
    TrainingRows,
    feature_map,
    list_expansions,
)
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Guess,
    Recipe,
    Start,
    anchor_starts,
    best_start,
    cluster_rows,
    em_guess,
    held_out,
    joint_table,
    optimize_from,
    softmax_of_partition,
)
from shoal.mixture._options import Found, SearchOptions, beats, list_scales, polish
from shoal.probability import HeldOut, domain_given_class, normalize_rows
from shoal.validation._rows import fold_of_rows, is_sparse

Array = np.ndarray[Any, Any]

# ---- a single optimization -----------------------------------------------------------


@dataclass(frozen=True)
class Rung:
    """Features, the best fit made with them, and their held-out score."""

    features: FeatureMap
    problem: MixtureProblem
    starts: list[Start]
    start: Start
    fit: Fit
    penalties: Penalties
    score: HeldOut | None


class Quick:
    """What ``search=False`` fits; a search begins with it, and must do better.

    Attributes
    ----------
    sample : TrainingRows
        The rows that are fitted before all rows are.
    record : dict of str to (float, float)
        Held-out mean and standard error of every setting compared.
    """

    def __init__(
        self,
        rows: TrainingRows,
        n_classes: int,
        options: SearchOptions,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.n_classes = rows, n_classes
        self.options = replace(options, search=False)
        self.rng = rng
        self.sample = rows.sample(options.quick_rows, rng)
        self.folds = fold_of_rows(self.sample.codes, options.n_folds, rng)
        self.seed = int(rng.integers(2**31))
        self.record: dict[str, tuple[float, float]] = {}

    def climb(self) -> Rung:
        """The better scale of many columns, components of wide tables, one climb."""
        options, sample = self.options, self.sample
        scales = list_scales(sample, options)
        # whether rows are few for the columns is asked of the whole table
        expansions = list_expansions(sample, options.expansion, n_rows=self.rows.n_rows)
        if options.expansion == "auto":
            expansions = [name for name in expansions if name in LINEAR]
        if len(scales) > 1:
            scales = [self._probe_scale(expansions[0])]
        return self.best_rung(scales, expansions)

    def best_rung(self, scales: list[str], expansions: list[str]) -> Rung:
        """Best of the scales, simplest expansion, then best of its expansions."""
        alone = len(scales) == len(expansions) == 1
        best = self._make_rung(scales[0], expansions[0], judged=not alone)
        for scale in scales[1:]:
            best = _better(best, self._make_rung(scale, expansions[0]))
        known = best.starts  # clusters of the simplest features serve the others
        for expansion in expansions[1:]:
            other = self._make_rung(best.features.scale, expansion, known)
            best = _better(best, other)
        return best

    def finish(
        self, rung: Rung, start: str | None = None, fit: Fit | None = None
    ) -> Found:
        """The fit of all rows, from the climb or from another solution of a sample.

        A penalty worth so many rows weighs less beside more.
        """
        problem, penalties = rung.problem, rung.penalties
        if self.sample is not self.rows:
            problem = self.rows.problem(rung.features)
            share = self.sample.n_rows / self.rows.n_rows
            penalties = replace(penalties, dirichlet=penalties.dirichlet * share)
        return polish(
            problem,
            rung.features,
            start or rung.start.name,
            fit or rung.fit,
            penalties,
            self.options,
        )

    def _make_rung(
        self,
        scale: str,
        expansion: str,
        known: list[Start] | None = None,
        judged: bool = True,
    ) -> Rung:
        """Features, the likeliest anchors with them, the climb and its score."""
        options, rng = self.options, np.random.default_rng(self.seed)
        features = feature_map(
            self.sample, scale, expansion, SETTINGS.n_centres, self.seed
        )
        problem = self.sample.problem(features)
        first = options.first_penalties(problem, self.n_classes)
        starts = known or [
            *known_starts(problem, self.n_classes),
            *anchor_starts(problem, self.n_classes, rng),
        ]
        start, fit = best_start(problem, starts, first, rng, options.n_jobs)
        score = self._judge(problem, fit, first) if judged else None
        if score is not None:
            self.record[f"{scale} {expansion}"] = score.mean, score.standard_error()
        return Rung(features, problem, starts, start, fit, first, score)

    def _judge(self, problem: MixtureProblem, fit: Fit, first: Penalties) -> HeldOut:
        """Held-out likelihood of a rung at its first ridge or a much larger one."""
        grid = [first]
        if self.options.ridge is None:
            grid.append(replace(first, ridge=first.ridge * SETTINGS.much_ridge))
        scores = held_out(
            problem,
            fit.domain_given_class,
            grid,
            self.folds,
            n_jobs=self.options.n_jobs,
        )
        return max(scores, key=lambda score: score.mean)

    def _probe_scale(self, simplest: str) -> str:
        """Scale with the better held-out likelihood on a small sample."""
        small = self.sample.sample(SETTINGS.probe_rows, self.rng)
        probe = Quick(small, self.n_classes, self.options, self.rng)
        return probe.best_rung(list(SCALES), [simplest]).features.scale


def _better(simple: Rung, other: Rung) -> Rung:
    """The other rung only if its likelihood is better beyond doubt."""
    assert simple.score is not None
    assert other.score is not None
    return other if beats(other.score, simple.score) else simple


# ---- starts from how rows look -------------------------------------------------------

# A partition is blind to domains. A mixture of Gaussians with a mix per domain is not:
# every set of training rows fits its own, from the same partition.

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


# ---- a climb that begins with the rows whose class is known --------------------------


@dataclass(frozen=True)
class KnownStart(Start):
    """A softmax taught by known rows alone; every fold teaches its own."""

    def guess(self, problem: MixtureProblem, rows: Any = slice(None)) -> Guess:
        """From the known rows of ``problem``, and the domains of all its rows."""
        return guess_by_known(problem, self.n_clusters)


def known_starts(problem: MixtureProblem, n_classes: int) -> list[Start]:
    """That start, where some row is known of every class."""
    told = problem.constraints
    if told is None or told.known.n_told < n_classes:
        return []
    nothing = np.zeros(problem.n_rows, dtype=np.intp)  # it has no need of clusters
    return [KnownStart("known", nothing, n_classes, normalize_rows)]


def guess_by_known(problem: MixtureProblem, n_classes: int) -> Guess:
    """A softmax taught by the known rows alone, and the domains of what it says."""
    told = problem.constraints
    weights = np.zeros((n_classes, problem.n_features + 1))
    if told is not None and len(told.rows):
        order = np.argsort(told.classes, kind="stable")
        rows, classes = told.rows[order], told.classes[order]
        even = np.full(len(rows), 1 / len(rows))
        taught = MixtureProblem(problem.design[rows], classes, even, n_classes)
        weights = optimize(
            taught,
            weights,
            np.eye(n_classes),
            Penalties(SETTINGS.known_ridge / len(rows)),
            max_iter=SETTINGS.known_iterations,
            frozen=True,
        ).weights
    mass = np.zeros((problem.n_domains, n_classes))
    given = problem.class_given_x(weights).astype(float)
    np.add.at(mass, problem.codes, given * problem.row_weight[:, None])
    even = SETTINGS.start_floor * mass.sum() / mass.size
    return Guess(normalize_rows(mass.T + even), weights)
