"""How many classes: the curve of held-out likelihood, and the choice inside ``fit``.

All numbers of classes share one feature map, one clustering and the same folds, so that
their differences are paired. Each is as good as the best of a short race: from anchors,
from how rows look, and, found from the largest number down, from what every fold has
found with one class more, its two most similar classes merged. Without these a k that
misses its best solution would lose to another by accident. The rule that reads the
curve is that of :func:`shoal.choose_n_classes`.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.analysis._choose import (
    RULE,
    Evidence,
    decide,
    default_folds,
    rank_clusters,
    shows_signal,
    smooth,
)
from shoal.analysis._rank import RankResult, supported_rank
from shoal.analysis._refits import Order, Trials
from shoal.analysis._resample import match_by_rows
from shoal.exceptions import IdentifiabilityWarning
from shoal.likelihood._features import (
    LINEAR,
    FeatureMap,
    TrainingRows,
    feature_map,
    list_expansions,
)
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Start,
    cluster_rows,
    em_guess,
    held_out,
    joint_table,
    merge_costs,
    optimize_from,
)
from shoal.mixture._options import Folds, SearchOptions, Trial, beats, list_scales
from shoal.mixture._route import QuickLooks
from shoal.mixture._search import best_first
from shoal.mixture._starts import domain_looks
from shoal.probability import HeldOut, class_posterior
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]

# ---- the choice inside fit -----------------------------------------------------------


def pick_n_classes(
    rows: TrainingRows, options: SearchOptions, rng: np.random.Generator
) -> int:
    """Choose the number of classes inside ``fit``, by the same rule at less cost.

    Numbers around the rank are tried first, then further ones until some in a row gain
    nothing. Without a clear choice the fewest of the near-best are taken; where
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
        scores = curve.evidence(points, rank).scores
        best = max(scores, key=lambda count: scores[count].mean)
        if high < min(most, best + SETTINGS.curve_patience):
            high += 1
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
        count: curve.stability(curve.fit(points[count].trial), seeds, order)
        for count in sorted(points)
    }
    return curve.evidence(points, rank, stability)


def has_signal(
    rows: TrainingRows,
    options: SearchOptions,
    features: FeatureMap,
    domain_given_class: Array,
    penalties: Penalties,
) -> bool:
    """Whether domains differ beyond chance.

    Clusters are asked first; rows are held out only where these do not see it.
    """
    rng = np.random.default_rng(0)  # its own, so that the fit does not depend on it
    rank = quiet_rank(rows, options, rng, n_null=SETTINGS.signal_null)
    if rank.singular_values.max(initial=0) > rank.null.max():
        return True
    sample = rows.sample(SETTINGS.signal_rows, rng)
    problem = sample.problem(features)
    folds = fold_of_rows(sample.codes, default_folds(sample.n_rows), rng)
    scores = held_out(problem, domain_given_class, [penalties], folds)
    evidence = Evidence({}, {}, rank, baseline(problem), rows.n_domains)
    return shows_signal(scores[0], evidence)


# ---- the curve -----------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """One number of classes: what folds have found, and what predicts held-out rows."""

    trial: Trial
    shift: HeldOut
    looks: HeldOut | None

    def mean(self) -> HeldOut:
        """What both say."""
        assert self.looks is not None
        each = (self.shift.each + self.looks.each) / 2
        return HeldOut(each, self.shift.weight)


@dataclass(frozen=True)
class Curve:
    """What all numbers of classes share."""

    problem: MixtureProblem
    clusters: Array
    table: Array
    folds: Folds
    options: SearchOptions
    seed: int
    looks: QuickLooks | None = None

    def penalties(self, n_classes: int) -> Penalties:
        """Penalties of a fit with this many classes."""
        return self.options.race_penalties(self.problem, n_classes)

    def extend(self, points: dict[int, Point], n_classes: Iterable[int]) -> None:
        """Add the points of some numbers of classes, from the largest down."""
        for count in sorted(set(n_classes) - set(points), reverse=True):
            above = points.get(count + 1)
            trial = self.race(count, None if above is None else above.trial)
            shift, looks = smooth(trial.score, self.problem.n_domains), None
            if self.looks is not None:
                each = self.looks.log_likelihood(count)
                looks = smooth(HeldOut(each, shift.weight), self.problem.n_domains)
            points[count] = Point(trial, shift, looks)

    def race(self, n_classes: int, above: Trial | None = None) -> Trial:
        """Best climb from anchors, from looks, and from ``above`` with two merged."""
        penalties = self.penalties(n_classes)
        rng = np.random.default_rng(self.seed)
        read = partial(em_guess, n_classes=n_classes)
        anchors = Start("em", self.clusters, len(self.table), read)
        looks = domain_looks(self.problem, n_classes, penalties.ridge, rng)
        trials = self.folds.start(
            [anchors, *looks],
            penalties,
            n_frozen=SETTINGS.curve_frozen,
            n_joint=SETTINGS.curve_joint,
        )
        few = best_first(trials)[: SETTINGS.curve_raced]
        if above is not None:
            few.append(replace(above, fits=self._merged(above.fits)))
        return best_first(
            self.folds.go_on(trial, [penalties], n_joint=SETTINGS.curve_joint)[0]
            for trial in few
        )[0]

    def _merged(self, fits: list[Fit]) -> list[Fit]:
        parts = [part.train for part in self.folds.parts]
        return [_merge(*pair) for pair in zip(parts, fits, strict=True)]

    def fit(self, trial: Trial) -> Fit:
        """Of all rows, from what the first fold has found."""
        found = trial.fits[0]
        return optimize(
            self.problem,
            found.weights,
            found.domain_given_class,
            trial.penalties,
            max_iter=SETTINGS.curve_joint,
        )

    def evidence(
        self,
        points: dict[int, Point],
        rank: RankResult,
        stability: dict[int, float] | None = None,
    ) -> Evidence:
        """What the points found so far say.

        Shift misses classes that move together, which looks see: the mean of both
        counts. But looks take a class in pieces for several: they count only where, of
        as many classes as shift wants, they tell a good part of what it tells.
        """
        scores = {count: points[count].shift for count in sorted(points)}
        chance = baseline(self.problem)
        alone = Evidence(scores, stability or {}, rank, chance, self.problem.n_domains)
        few = points[max(decide(alone).fallback, min(points))]
        if few.looks is None or few.looks.mean - chance.mean < (
            SETTINGS.curve_part * (few.shift.mean - chance.mean)
        ):
            return alone
        return replace(alone, scores={count: points[count].mean() for count in scores})

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
        table = joint_table(problem, self.clusters, len(self.table))
        return optimize_from(
            problem,
            em_guess(table, n_classes),
            self.penalties(n_classes),
            n_frozen=SETTINGS.curve_frozen,
            n_joint=SETTINGS.curve_joint,
        )

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
    plain = FeatureMap(features.scale).fit(sample.X, sample.row_weight)
    most = sample.n_rows // (RULE.rows_per_cell * sample.n_domains)
    wanted = max(SETTINGS.curve_clusters_per_class * max_classes, RULE.least_clusters)
    n_clusters = max(min(wanted, most), max_classes + 1)
    clusters = cluster_rows(sample.design(plain), n_clusters, problem.row_weight, rng)
    folds = fold_of_rows(sample.codes, n_folds or default_folds(rows.n_rows), rng)
    seed = int(rng.integers(2**31))
    return Curve(
        problem,
        clusters,
        joint_table(problem, clusters, n_clusters),
        Folds(problem, folds, options.n_jobs),
        options,
        seed,
        QuickLooks.of(sample, folds, seed) if options.hears_looks(rows) else None,
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


def baseline(problem: MixtureProblem) -> HeldOut:
    """Score of knowing nothing but the weights of the domains."""
    weight = problem.row_weight.astype(float)
    share = np.bincount(problem.codes, weight, minlength=problem.n_domains)
    return HeldOut(np.log(share)[problem.codes], weight)


def _merge(problem: MixtureProblem, above: Fit) -> Fit:
    """A solution whose two most similar classes became one."""
    kept, freed, row = merge_costs(problem, above)[0]
    T = above.domain_given_class.copy()
    T[kept] = row
    T, weights = (np.delete(both, freed, axis=0) for both in (T, above.weights))
    return Fit(weights, T, above.objective)


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
    folds = fold_of_rows(small.codes, SETTINGS.curve_feature_folds, rng)
    seed = int(rng.integers(2**31 - 1))
    rungs = _rungs(small, options, n_rows)

    def judge(scale: str, expansion: str) -> HeldOut:
        features = feature_map(small, scale, expansion, SETTINGS.curve_centres, seed)
        return judge_features(small, features, n_classes, options, folds, seed)

    best, best_score = rungs[0], None
    for rung in rungs[1:]:
        best_score = best_score or judge(*best)
        score = judge(*rung)
        if beats(score, best_score):
            best, best_score = rung, score
    return feature_map(sample, *best, SETTINGS.curve_centres, seed)


def judge_features(
    rows: TrainingRows,
    features: FeatureMap,
    n_classes: int,
    options: SearchOptions,
    folds: Array,
    seed: int,
) -> HeldOut:
    """Held-out likelihood of the domains by a quick fit with some features."""
    problem = plain = rows.problem(features)
    if features.expansion not in LINEAR:
        scaled = FeatureMap(features.scale).fit(rows.X, rows.row_weight)
        plain = rows.problem(scaled)
    generator = np.random.default_rng(seed)
    n_clusters = min(SETTINGS.curve_clusters_per_class * n_classes, plain.n_rows)
    clusters = cluster_rows(plain.design, n_clusters, plain.row_weight, generator)
    table = joint_table(plain, clusters, n_clusters)
    score = held_out(
        problem,
        em_guess(table, n_classes),
        [options.race_penalties(problem, n_classes)],
        folds,
        n_jobs=options.n_jobs,
        n_joint=SETTINGS.curve_features,
    )
    return smooth(score[0], rows.n_domains)


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
