"""How many classes: the curve of held-out likelihood, and the choice inside ``fit``.

All numbers of classes share one feature map, one clustering and the same folds, so that
their differences are paired. Solutions are found from the largest number down: besides
its own anchors, each k starts from the solution with one class more, its two most
similar classes merged. Without that, a k that misses its best solution would lose to
the next one, which finds it with one class to spare. The rule that reads the curve is
that of :func:`shoal.choose_n_classes`.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal._rank import RankResult, supported_rank
from shoal.analysis._choose import (
    Evidence,
    decide,
    default_folds,
    rank_clusters,
    shows_signal,
    smooth,
)
from shoal.analysis._draws import match_by_rows
from shoal.analysis._refits import Order, Trials
from shoal.exceptions import IdentifiabilityWarning
from shoal.likelihood._features import LINEAR, FeatureMap
from shoal.likelihood._folds import Folds, Guess, Trial, baseline
from shoal.likelihood._looks import look_starts
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties
from shoal.likelihood._rows import TrainingRows, feature_map, list_expansions
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    ANCHORS,
    Start,
    cluster_counts,
    cluster_rows,
    em_guess,
    joint_table,
    merge_costs,
    optimize_from,
    rank_starts,
)
from shoal.mixture._options import SearchOptions, list_scales
from shoal.mixture._search import beats
from shoal.probability import HeldOut, class_posterior
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]

# ---- the choice inside fit -----------------------------------------------------------


def pick_n_classes(
    rows: TrainingRows, options: SearchOptions, rng: np.random.Generator
) -> int:
    """Choose the number of classes inside ``fit``, by the same rule at less cost.

    Numbers around the rank are tried first, and further ones only while the best is at
    the edge. Without a clear choice the fewest of the near-best are taken; where
    domains do not differ, 2, with an IdentifiabilityWarning.

    Parameters
    ----------
    rows : TrainingRows
    options : SearchOptions
        Features and penalties that the caller has fixed.
    rng : numpy Generator

    Returns
    -------
    int
        Between 2 and the number of domains.
    """
    rank = quiet_rank(rows, options, rng)
    most = rows.n_domains
    low, high = max(2, rank.n_classes - 1), min(most, rank.n_classes + 2)
    curve = make_curve(rows, rank.n_classes, high, options, rng)
    points: dict[int, Point] = {}
    curve.extend(points, range(low, high + 1))
    while True:
        best = max(points, key=lambda count: points[count].held_out.mean)
        if best == high < most:
            high = min(high + 2, most)
        elif best == low > 2:
            low -= 1
        else:
            break
        curve.extend(points, range(low, high + 1))
    choice = decide(curve.evidence(points, rank))
    if not choice.signal:
        warnings.warn(
            f"{choice.sentence}; using 2", IdentifiabilityWarning, stacklevel=5
        )
    return choice.fallback


def curve_evidence(
    rows: TrainingRows, options: SearchOptions, trials: Trials
) -> Evidence:
    """The curve behind :func:`shoal.choose_n_classes`, with the stability of each k."""
    rng, order = trials.rng, trials.order
    rank = quiet_rank(rows, options, rng)
    candidates = trials.candidates(rank.n_classes, rows.n_domains)
    most = candidates[-1]
    curve = make_curve(rows, rank.n_classes, most, options, rng, trials.n_folds)
    points: dict[int, Point] = {}
    for some in order.groups(candidates, rank.n_classes):
        curve.extend(points, some)
    seeds = rng.integers(2**31 - 1, size=trials.n_resamples)
    stability = {
        count: curve.stability(points[count].fit, seeds, order)
        for count in sorted(points)
    }
    return curve.evidence(points, rank, stability)


def has_signal(
    rows: TrainingRows,
    options: SearchOptions,
    judge: Callable[[], tuple[HeldOut, HeldOut]],
) -> bool:
    """Whether domains differ beyond chance.

    Clusters are asked first; only where these do not see it is ``judge`` asked for the
    held-out score of the fit and that of knowing nothing.
    """
    rng = np.random.default_rng(0)  # its own, so that the fit does not depend on it
    rank = quiet_rank(rows, options, rng, n_null=SETTINGS.signal_null)
    if rank.singular_values.max(initial=0) > rank.null.max():
        return True
    score, nothing = judge()
    return shows_signal(score, Evidence({}, {}, rank, nothing, rows.n_domains))


# ---- the curve -----------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One number of classes: its solution, and what the folds found of it."""

    fit: Fit
    trial: Trial
    held_out: HeldOut

    def merged(
        self, problem: MixtureProblem, rows: Any = None, fold: int | None = None
    ) -> Array:
        """T with the two most similar classes made one: a start for a class less."""
        fit = self.fit if fold is None else self.trial.fits[fold]
        kept, freed, row = merge_costs(problem, fit)[0]
        T = fit.domain_given_class.copy()
        T[kept] = row
        return np.delete(T, freed, axis=0)


@dataclass(frozen=True)
class Curve:
    """What all numbers of classes share."""

    problem: MixtureProblem
    plain: MixtureProblem
    clusters: Array
    n_clusters: int
    folds: Folds
    options: SearchOptions
    seed: int

    def penalties(self, n_classes: int) -> Penalties:
        """Penalties of a fit with this many classes."""
        return self.options.first_penalties(self.problem, n_classes)

    def extend(self, points: dict[int, Point], n_classes: Iterable[int]) -> None:
        """Add the points of some numbers of classes, from the largest down."""
        for count in sorted(set(n_classes) - set(points), reverse=True):
            guesses = [start.guess for start in self.starts(count)]
            if count + 1 in points:
                guesses.append(points[count + 1].merged)
            points[count] = self.point(count, guesses)

    def starts(self, n_classes: int) -> list[Start]:
        """Anchors and looks: EM and projection on the shared clusters, and k-means."""
        rng = np.random.default_rng(self.seed)
        starts = [
            Start(
                name,
                self.clusters,
                self.n_clusters,
                partial(method, n_classes=n_classes),
            )
            for name, method in ANCHORS.items()
        ]
        starts = rank_starts(
            self.problem, starts, self.penalties(n_classes), rng, self.options.n_jobs
        )
        return [starts[0], look_starts(self.plain, n_classes, rng, quick=True)[0]]

    def point(self, n_classes: int, guesses: Sequence[Guess]) -> Point:
        """The guess that leads to the best held-out likelihood, and its solution."""
        penalties = self.penalties(n_classes)
        trials = self.folds.start(guesses, penalties, n_joint=SETTINGS.curve_held_out)
        best = int(np.argmax([trial.mean for trial in trials]))
        T = guesses[best](self.problem, slice(None), None)
        fit = self._climb(self.problem, T)
        score = smooth(trials[best].score, self.problem.n_domains)
        return Point(fit, trials[best], score)

    def _climb(self, problem: MixtureProblem, domain_given_class: Array) -> Fit:
        return optimize_from(
            problem,
            domain_given_class,
            self.penalties(len(domain_given_class)),
            n_frozen=SETTINGS.curve_frozen,
            n_joint=SETTINGS.curve_joint,
        )

    def evidence(
        self,
        points: dict[int, Point],
        rank: RankResult,
        stability: dict[int, float] | None = None,
    ) -> Evidence:
        """What the points found so far say."""
        scores = {count: points[count].held_out for count in sorted(points)}
        chance = baseline(self.problem)
        return Evidence(scores, stability or {}, rank, chance, self.problem.n_domains)

    def stability(self, fit: Fit, seeds: Array, order: Order) -> float:
        """Mean share of rows that keep their class when rows are drawn again."""
        classes, n_classes = self.classes(fit), len(fit.weights)

        def agreement(seed: int) -> float:
            if order.late():
                return float("nan")
            other = self.refit(n_classes, np.random.default_rng(seed))
            found = self.classes(other)
            same = match_by_rows(classes, found, n_classes)[found] == classes
            return float(self.problem.row_weight @ same)

        found = Parallel(n_jobs=self.options.n_jobs, prefer="threads")(
            delayed(agreement)(int(seed)) for seed in seeds
        )
        known = [share for share in found if share == share]
        return float(np.mean(known)) if known else float("nan")

    def refit(self, n_classes: int, generator: np.random.Generator) -> Fit:
        """A climb with rows drawn again: a Bayesian bootstrap with its own anchors."""
        problem = self._reweighted(generator)
        table = joint_table(problem, self.clusters, self.n_clusters)
        return self._climb(problem, em_guess(table, n_classes))

    def classes(self, fit: Fit) -> Array:
        """Most probable class of each row, given its domain."""
        class_given_x = self.problem.class_given_x(fit.weights)
        T = fit.domain_given_class
        return class_posterior(class_given_x, T, self.problem.codes).argmax(axis=1)

    def _reweighted(self, generator: np.random.Generator) -> MixtureProblem:
        whole = self.problem
        drawn = generator.exponential(size=whole.n_rows) * whole.row_weight
        mass = np.bincount(whole.codes, drawn, minlength=whole.n_domains)
        before = np.bincount(whole.codes, whole.row_weight, minlength=whole.n_domains)
        scale = np.divide(before, mass, out=np.zeros_like(mass), where=mass > 0)
        return MixtureProblem(
            whole.design, whole.codes, drawn * scale[whole.codes], whole.n_domains
        )


def make_curve(
    rows: TrainingRows,
    rank: int,
    max_classes: int,
    options: SearchOptions,
    rng: np.random.Generator,
    n_folds: int | None = None,
) -> Curve:
    """Features, clusters and folds for up to ``max_classes`` classes, on a sample."""
    sample = rows.sample(SETTINGS.curve_rows, rng)
    likely = min(rank + 1, rows.n_domains)
    features = _choose_features(sample, likely, options, rng, rows.n_rows)
    problem = sample.problem(features)
    plain = sample.problem(FeatureMap(features.scale).fit(sample.X, sample.row_weight))
    n_clusters = cluster_counts(problem, max_classes)[-1]
    clusters = cluster_rows(plain.design, n_clusters, problem.row_weight, rng)
    folds = fold_of_rows(sample.codes, n_folds or default_folds(rows.n_rows), rng)
    return Curve(
        problem,
        plain,
        clusters,
        n_clusters,
        Folds(problem, folds, options.n_jobs),
        options,
        int(rng.integers(2**31 - 1)),
    )


def quiet_rank(
    rows: TrainingRows,
    options: SearchOptions,
    rng: np.random.Generator,
    n_null: int = 20,
) -> RankResult:
    """Classes that a domain-blind clustering of the rows supports, without a warning.

    That the table supports none is one witness; the caller hears the other as well.
    """
    sample = rows.sample(SETTINGS.rank_rows, rng)
    scale = "column" if options.scale == "auto" else options.scale
    features = FeatureMap(scale).fit(sample.X, sample.row_weight)
    n_clusters = rank_clusters(sample.n_rows, sample.n_domains)
    design = sample.design(features)
    clusters = cluster_rows(design, n_clusters, sample.row_weight, rng)
    seed = int(rng.integers(2**31 - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return supported_rank(clusters, sample.codes, n_null=n_null, random_state=seed)


# ---- features --------------------------------------------------------------------


def _choose_features(
    sample: TrainingRows,
    n_classes: int,
    options: SearchOptions,
    rng: np.random.Generator,
    n_rows: int,
) -> FeatureMap:
    """The simplest features that no richer ones beat on held-out rows."""
    small = sample.sample(SETTINGS.curve_feature_rows, rng)
    fold_of_row = fold_of_rows(small.codes, SETTINGS.curve_feature_folds, rng)
    seed = int(rng.integers(2**31 - 1))
    rungs = _rungs(small, options, n_rows)

    def judge(scale: str, expansion: str) -> HeldOut:
        features = feature_map(small, scale, expansion, SETTINGS.curve_centres, seed)
        problem = small.problem(features)
        plain = problem
        if expansion not in LINEAR:
            plain = small.problem(FeatureMap(scale).fit(small.X, small.row_weight))
        generator = np.random.default_rng(seed)
        trials = Folds(problem, fold_of_row, options.n_jobs).start(
            [start.guess for start in _probes(plain, n_classes, generator)],
            options.first_penalties(problem, n_classes),
            n_joint=SETTINGS.curve_features,
        )
        best = max(trials, key=lambda trial: trial.mean)
        return smooth(best.score, small.n_domains)

    best, best_score = rungs[0], None
    for rung in rungs[1:]:
        best_score = best_score or judge(*best)
        score = judge(*rung)
        if beats(score, best_score):
            best, best_score = rung, score
    return feature_map(sample, *best, SETTINGS.curve_centres, seed)


def _probes(
    plain: MixtureProblem, n_classes: int, rng: np.random.Generator
) -> list[Start]:
    """EM on a table of coarse clusters, and k-means."""
    n_clusters = cluster_counts(plain, n_classes)[0]
    clusters = cluster_rows(plain.design, n_clusters, plain.row_weight, rng)
    anchors = Start("em", clusters, n_clusters, partial(em_guess, n_classes=n_classes))
    return [anchors, *look_starts(plain, n_classes, rng, quick=True)]


def _rungs(
    sample: TrainingRows, options: SearchOptions, n_rows: int
) -> list[tuple[str, str]]:
    """Scales and expansions to compare, simplest first."""
    scales = list_scales(sample, replace(options, search=False))
    simplest, *richer = list_expansions(
        sample, options.expansion, SETTINGS.curve_centres, n_rows
    )
    if simplest == "discriminator" and sample.log_domain_given_x is None:
        simplest = "linear"
    rungs = [(scale, simplest) for scale in scales]
    return rungs + [(scales[0], expansion) for expansion in richer]
