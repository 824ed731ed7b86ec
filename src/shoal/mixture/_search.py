"""From rows to one solution: features, a race of starts, penalties, a last polish.

Everything is chosen by the likelihood of the domains on held-out rows; labels do not
exist here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._features import LINEAR, FeatureMap
from shoal.likelihood._folds import Folds, Trial, baseline
from shoal.likelihood._looks import look_starts
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    optimize_by_em,
)
from shoal.likelihood._rows import TrainingRows, feature_map, list_expansions
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Reanchored,
    Recipe,
    Start,
    anchor_starts,
    optimize_from,
    random_starts,
    rank_starts,
)
from shoal.mixture._options import SearchOptions, list_scales
from shoal.probability import HeldOut, normalize_rows
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rung:
    """Features, the likelihood of the sampled rows under them, and first penalties."""

    features: FeatureMap
    problem: MixtureProblem
    first: Penalties

    @property
    def name(self) -> str:
        """As in the record."""
        return f"{self.features.scale} {self.features.expansion}"


@dataclass(frozen=True)
class Carried:
    """A solution with simpler features as a start for others; folds carry their own."""

    name: str
    trial: Trial
    whole: Callable[[], Fit]

    def guess(
        self, problem: MixtureProblem, rows: Any = None, fold: int | None = None
    ) -> Array:
        """The q(d|y) that was found, in a fold or in the whole sample."""
        fit = self.whole() if fold is None else self.trial.fits[fold]
        return fit.domain_given_class


@dataclass(frozen=True)
class Entrant:
    """A start in the race, and what the folds found from it."""

    start: Recipe
    trial: Trial


@dataclass(frozen=True)
class Found:
    """Where a search ends.

    Attributes
    ----------
    rung : Rung
        The features that won.
    start : Start
        The start that won.
    fit : Fit
        Of all rows.
    penalties : Penalties
        Those of ``fit``.
    class_given_domain : ndarray of shape (n_domains, n_classes)
        Mean posterior of each domain's rows.
    """

    rung: Rung
    start: Recipe
    fit: Fit
    penalties: Penalties
    class_given_domain: Array


class Search:
    """One search: on a sample of the rows, then polished on all.

    Attributes
    ----------
    sample : TrainingRows
        What features, starts and penalties are compared on.
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
        self.options, self.rng = options, rng
        self.sample = rows.sample(options.search_rows, rng)
        self.fold_of_row = fold_of_rows(self.sample.codes, options.n_folds, rng)
        self.seed = int(rng.integers(2**31))
        self.record: dict[str, tuple[float, float]] = {}

    def run(self) -> Found:
        """The whole search, or one climb from the likeliest anchors."""
        # whether rows are few for the columns is asked of the whole table
        simplest, *richer = list_expansions(
            self.sample, self.options.expansion, n_rows=self.rows.n_rows
        )
        if not self.options.search:
            richer = [expansion for expansion in richer if expansion in LINEAR]
        plain = self._rung(self._choose_scale(simplest), simplest)
        anchors = self._ranked_anchors(plain)
        if not self.options.search and not richer:  # nothing to compare
            fit = self._climb(plain, anchors[0])
            return self._polish(plain, anchors[0], fit, plain.first)
        entrants = self._race(plain, anchors)
        rung, best = self._choose_features(plain, richer, entrants, anchors)
        chosen = self._choose_confidence(rung, best.trial)
        return self._polish(rung, best.start, self._solve(rung, best), chosen)

    # ---- the race of starts ---------------------------------------------------------

    def _ranked_anchors(self, rung: Rung) -> list[Start]:
        """Starts from anchors, the best objective first, and random ones as a check."""
        problem, options, n_classes = rung.problem, self.options, self.n_classes
        rng = np.random.default_rng(self.seed)
        starts = anchor_starts(problem, n_classes, rng)
        if options.search:
            starts += random_starts(problem, n_classes, options.n_random, rng)
        return rank_starts(problem, starts, rung.first, rng, options.n_jobs)

    def _race(self, rung: Rung, anchors: list[Start]) -> list[Entrant]:
        """Starts by held-out likelihood, best first, each under the penalties chosen.

        The penalties are those that suit the first winner.
        """
        starts: list[Recipe] = list(anchors[:1])
        if self.options.search:
            rng = np.random.default_rng(self.seed)
            again = Reanchored(anchors[0], rung.first, self.n_classes, self.seed)
            looks = look_starts(rung.problem, self.n_classes, rng)
            starts = [*anchors[: SETTINGS.anchors_raced], again, *looks]
        folds = self._folds(rung)
        entrants = self._enter(folds, starts, rung.first)
        for entrant in entrants:
            self._note(f"start {entrant.start.name}", entrant.trial)
        winner = self._choose_weights(folds, entrants[0].trial, "ridge", "dirichlet")
        second = [Entrant(entrants[0].start, winner)]
        for other in entrants[1 : SETTINGS.second_race]:
            trial = folds.go_on(other.trial, [winner.penalties])[0]
            second.append(Entrant(other.start, trial))
        return best_first(second)

    def _enter(
        self, folds: Folds, starts: Sequence[Recipe], penalties: Penalties
    ) -> list[Entrant]:
        trials = folds.start([start.guess for start in starts], penalties)
        return best_first(map(Entrant, starts, trials))

    def _climb(self, rung: Rung, start: Recipe) -> Fit:
        """From a start to a solution of the whole sample."""
        problem = rung.problem
        return optimize_from(problem, start.guess(problem), rung.first)

    def _solve(self, rung: Rung, best: Entrant) -> Fit:
        """The best solution of the sample from the start, or from what folds found.

        Of one recipe, the better objective is the better solution: a climb that ends
        badly where those of most folds did not is put right.
        """
        first = self._climb(rung, best.start)
        fits = Parallel(n_jobs=self.options.n_jobs, prefer="threads")(
            delayed(optimize)(
                rung.problem,
                fit.weights,
                fit.domain_given_class,
                best.trial.penalties,
                max_iter=SETTINGS.solve_joint,
            )
            for fit in [first, *best.trial.fits]
        )
        found = min(fits, key=lambda fit: fit.objective)
        found.history = first.history + found.history
        return found

    def judge(self, found: Found) -> tuple[HeldOut, HeldOut]:
        """Held-out score of the start that won, and that of knowing nothing."""
        rung, folds = found.rung, self._folds(found.rung)
        trial = folds.start([found.start.guess], rung.first)[0]
        return trial.score, baseline(rung.problem)

    # ---- features -------------------------------------------------------------------

    def _rung(self, scale: str, expansion: str, first: Penalties | None = None) -> Rung:
        features = feature_map(
            self.sample, scale, expansion, SETTINGS.n_centres, self.seed
        )
        problem = self.sample.problem(features)
        first = first or self.options.first_penalties(problem, self.n_classes)
        return Rung(features, problem, first)

    def _folds(self, rung: Rung) -> Folds:
        return Folds(rung.problem, self.fold_of_row, self.options.n_jobs)

    def _choose_scale(self, simplest: str) -> str:
        """Scale with the better held-out likelihood on a small sample."""
        usual, *others = list_scales(self.sample, self.options)
        if not others:
            return usual
        small = self.sample.sample(SETTINGS.probe_rows, self.rng)
        fold_of_row = fold_of_rows(small.codes, self.options.n_folds, self.rng)
        best = self._probe(small, fold_of_row, usual, simplest)
        for scale in others:
            trial = self._probe(small, fold_of_row, scale, simplest)
            if beats(trial.score, best.score):
                usual, best = scale, trial
        return usual

    def _probe(
        self, small: TrainingRows, fold_of_row: Array, scale: str, expansion: str
    ) -> Trial:
        """What looks and the likeliest anchors reach with a scale."""
        rng = np.random.default_rng(self.seed)
        features = feature_map(small, scale, expansion, SETTINGS.n_centres, self.seed)
        problem, n_jobs = small.problem(features), self.options.n_jobs
        first = self.options.first_penalties(problem, self.n_classes)
        anchors = anchor_starts(problem, self.n_classes, rng)
        starts = rank_starts(problem, anchors, first, rng, n_jobs)[:1]
        starts += look_starts(problem, self.n_classes, rng, quick=True)
        trials = Folds(problem, fold_of_row, n_jobs).start(
            [start.guess for start in starts], first
        )
        best = max(trials, key=lambda trial: trial.mean)
        self._note(f"{scale} {expansion}", best)
        return best

    def _choose_features(
        self,
        plain: Rung,
        richer: list[str],
        entrants: list[Entrant],
        anchors: list[Start],
    ) -> tuple[Rung, Entrant]:
        """The rung and start that win: richer features must do so beyond doubt."""
        rung, best = plain, entrants[0]
        self._note(plain.name, best.trial)
        start = best.start
        carried = Carried(start.name, best.trial, lambda: self._climb(plain, start))
        for expansion in richer:
            first = best.trial.penalties
            other = self._rung(plain.features.scale, expansion, first)
            folds = self._folds(other)
            starts: list[Recipe] = [carried]
            if expansion in LINEAR:  # columns instead of components: other clusters
                anchors = self._ranked_anchors(other)
            starts += anchors[: SETTINGS.anchors_again]
            entrant = self._enter(folds, starts, first)[0]
            entrant = Entrant(
                entrant.start, self._choose_weights(folds, entrant.trial, "ridge")
            )
            self._note(other.name, entrant.trial)
            if beats(entrant.trial.score, best.trial.score):
                rung, best = other, entrant
        return rung, best

    # ---- penalties ------------------------------------------------------------------

    def _choose_weights(self, folds: Folds, trial: Trial, *names: str) -> Trial:
        """Ridge and pseudo-counts, a step of either at a time, the better one first.

        Chosen one after the other, the first would make up for the second.
        """
        if not self.options.search:
            return trial
        free = [name for name in names if getattr(self.options, name) is None]
        known: dict[Penalties, Trial] = {trial.penalties: trial}
        for _ in range(SETTINGS.most_steps):
            steps = weight_steps(trial.penalties, free)
            new = [step for step in steps if step not in known]
            for found in folds.go_on(trial, new):
                known[found.penalties] = found
                self._note(str(found.penalties), found)
            here = trial
            trial = max(
                [trial, *(known[s] for s in steps)], key=lambda t: gain(t, here)
            )
            if trial is here:
                break
        return trial

    def _choose_confidence(self, rung: Rung, trial: Trial) -> Penalties:
        """Last, on what has been found: in a climb from afar it empties classes.

        As high as doubt allows: it picks the solution that has anchors.
        """
        if not self.options.search or self.options.confidence is not None:
            return trial.penalties
        grid = [
            replace(trial.penalties, confidence=value) for value in SETTINGS.confidences
        ]
        tried = self._folds(rung).go_on(trial, grid)
        for found in tried:
            self._note(str(found.penalties), found)
        best = max(tried, key=lambda found: found.mean)
        near = [found for found in tried if not clearly_better(best, found)]
        return near[-1].penalties

    def _note(self, name: str, trial: Trial) -> None:
        self.record[name] = trial.mean, trial.score.standard_error()

    # ---- all rows -------------------------------------------------------------------

    def _polish(
        self, rung: Rung, start: Recipe, fit: Fit, penalties: Penalties
    ) -> Found:
        """Fit all rows from the solution of the sample."""
        problem = rung.problem
        if self.sample is not self.rows:
            problem = self.rows.problem(rung.features)
            penalties = self._beside_all_rows(penalties, problem)
        solve = optimize if self.options.solver == "lbfgs" else optimize_by_em
        final = solve(
            problem,
            fit.weights,
            fit.domain_given_class,
            penalties,
            max_iter=self.options.max_iter,
            tol=self.options.tol,
        )
        final.history = fit.history + final.history
        T = final.domain_given_class
        mass = problem.value_and_gradient(final.weights, T, penalties)[2]
        return Found(rung, start, final, penalties, normalize_rows(mass.T))

    def _beside_all_rows(
        self, penalties: Penalties, problem: MixtureProblem
    ) -> Penalties:
        """Penalties of the sample for all rows.

        A penalty is worth so many rows, and weighs less beside more of them. What was
        chosen was judged by fits to all folds of the sample but one.
        """
        options = self.options
        if not options.search:
            return options.first_penalties(problem, self.n_classes)
        share = self.sample.n_rows / self.rows.n_rows
        judged = share * (1 - 1 / options.n_folds)
        return replace(
            penalties,
            ridge=penalties.ridge * (judged if options.ridge is None else 1),
            dirichlet=penalties.dirichlet
            * (judged if options.dirichlet is None else share),
        )


# ---- what is compared, and how -------------------------------------------------------


def beats(score: HeldOut, simple: HeldOut) -> bool:
    """Whether a likelihood is better than that of simpler features, beyond doubt."""
    doubt = SETTINGS.doubt * score.standard_error(simple)
    return score.mean - simple.mean > doubt + SETTINGS.least_gain


def best_first(entrants: Iterable[Entrant]) -> list[Entrant]:
    """Best held-out likelihood first."""
    return sorted(entrants, key=lambda entrant: -entrant.trial.mean)


def weight_steps(here: Penalties, names: list[str]) -> list[Penalties]:
    """One step up and one down of each of some penalties."""
    return [
        replace(here, **{name: getattr(here, name) * factor})
        for name in names
        for factor in (SETTINGS.weight_factor, 1 / SETTINGS.weight_factor)
    ]


def gain(other: Trial, here: Trial) -> float:
    """What a step gains; more ridge, which merges classes, must gain beyond chance."""
    if other.penalties.ridge <= here.penalties.ridge:
        return other.mean - here.mean
    return other.mean - here.mean - other.score.standard_error(here.score)


def clearly_better(best: Trial, other: Trial) -> bool:
    """Whether two trials differ by more than one paired standard error."""
    return best.mean - other.mean > best.score.standard_error(other.score)
