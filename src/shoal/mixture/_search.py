"""A search: a single optimization first, then what beats it on held-out rows.

Starts, penalties and features are compared by the likelihood of the domains of rows
that took no part in the fit; labels do not exist here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._features import (
    LINEAR,
    FeatureMap,
    TrainingRows,
    feature_map,
    list_expansions,
)
from shoal.likelihood._known import sample_rows
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Recipe,
    Start,
    anchor_starts,
    empty_classes,
    fill_empty_classes,
)
from shoal.mixture._options import (
    Folds,
    Found,
    SearchOptions,
    Trial,
    list_scales,
    polish,
)
from shoal.mixture._starts import Quick, Reanchored, Rung, known_starts, look_starts
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]

# ---- races: starts and penalties with one set of features ----------------------------


class Race:
    """Starts by held-out likelihood, under the penalties that suit the winner.

    Parameters
    ----------
    features : FeatureMap
    folds : Folds
        Of the rows that are compared on, with these features.
    penalties : Penalties
        Those that starts are compared under.
    options : SearchOptions
    record : dict of str to (float, float)
        Held-out mean and standard error of everything compared is added to it.
    seed : int

    Attributes
    ----------
    trials : list of Trial
        After each of :meth:`screen`, :meth:`climb_on` and :meth:`settle`, best first.
    stages : list of Trial
        The best after each of these.
    """

    def __init__(
        self,
        features: FeatureMap,
        folds: Folds,
        penalties: Penalties,
        options: SearchOptions,
        record: dict[str, tuple[float, float]],
        seed: int,
    ) -> None:
        self.features, self.folds, self.penalties = features, folds, penalties
        self.options, self.record, self.seed = options, record, seed
        self.problem = folds.problem
        self.trials: list[Trial] = []
        self.stages: list[Trial] = []

    @property
    def best(self) -> Trial:
        """The winner so far."""
        return self.trials[0]

    @property
    def name(self) -> str:
        """As in the record."""
        return f"{self.features.scale} {self.features.expansion}"

    def screen(self, starts: Sequence[Recipe]) -> "Race":
        """Short climbs from all; the best are first."""
        trials = self.folds.start(
            starts,
            self.penalties,
            n_frozen=SETTINGS.screen_frozen,
            n_joint=SETTINGS.screen_joint,
        )
        for trial in trials:
            self._note(f"{self.name} from {trial.start.name}", trial)
        return self._keep(trials)

    def climb_on(self, n_raced: int) -> "Race":
        """Longer climbs from the best that were screened."""
        return self._keep(
            self.folds.go_on(trial, [self.penalties], n_joint=SETTINGS.race_joint)[0]
            for trial in self.trials[:n_raced]
        )

    def settle(self, choose: bool) -> "Race":
        """Penalties that suit the best, if asked, and all others under them."""
        first = self.best
        winner = self._choose_weights(first) if choose else first
        others = [
            self.folds.go_on(trial, [winner.penalties], n_joint=SETTINGS.step_joint)[0]
            for trial in self.trials[1:]
        ]
        self._keep([winner, *others])
        self._note(self.name, self.best)
        return self

    def behind(self, other: "Race") -> bool:
        """Whether its best was no better than that of another race at this stage."""
        return self.best.mean <= other.stages[len(self.stages) - 1].mean

    def _keep(self, trials: Iterable[Trial]) -> "Race":
        self.trials = best_first(trials)
        self.stages.append(self.best)
        return self

    def judge(self, start: Recipe, penalties: Penalties) -> Trial:
        """One start as a single optimization would climb from it."""
        return self.folds.start(
            [start],
            penalties,
            n_frozen=SETTINGS.screen_frozen,
            n_joint=SETTINGS.screen_joint + SETTINGS.race_joint + SETTINGS.step_joint,
        )[0]

    def _choose_weights(self, trial: Trial) -> Trial:
        """Ridge and pseudo-counts, a step of either at a time, the better one first.

        Chosen one after the other, the first would make up for the second.
        """
        free = [
            name
            for name in ("ridge", "dirichlet")
            if getattr(self.options, name) is None
        ]
        known = {trial.penalties: trial}
        for _ in range(SETTINGS.most_steps):
            steps = weight_steps(trial.penalties, free)
            self._try(trial, steps, known)
            here = trial
            trial = max(
                [here, *(known[step] for step in steps)],
                key=lambda other: step_gain(other, here),
            )
            if trial is here:
                break
        return trial

    def choose_confidence(self) -> Trial:
        """The winner under the confidence that suits it, last of all.

        In a climb from afar it empties classes.
        """
        trial = self.best
        if self.options.confidence is not None:
            return trial
        grid = [
            replace(trial.penalties, confidence=value) for value in SETTINGS.confidences
        ]
        known: dict[Penalties, Trial] = {}
        self._try(trial, grid, known)
        return best_first(known.values())[0]

    def _try(
        self, trial: Trial, grid: list[Penalties], known: dict[Penalties, Trial]
    ) -> None:
        new = [penalties for penalties in grid if penalties not in known]
        for found in self.folds.go_on(trial, new, n_joint=SETTINGS.step_joint):
            known[found.penalties] = found
            self._note(str(found.penalties), found)

    def solve(self, penalties: Penalties, fill: bool) -> tuple[str, Fit]:
        """The start and solution of all rows, from the best that folds have found.

        Under penalties that suit the rows, the better objective is the better
        solution. One without empty classes is better than one with: they are filled
        first if asked.
        """
        few = self.folds.solutions(self.trials)[: SETTINGS.n_finalists]

        def climb(fit: Fit) -> tuple[int, Fit]:
            found = optimize(
                self.problem,
                fit.weights,
                fit.domain_given_class,
                penalties,
                max_iter=SETTINGS.final_joint,
            )
            if fill:
                rng = np.random.default_rng(self.seed)
                found = fill_empty_classes(self.problem, found, penalties, rng)
            return len(empty_classes(self.problem, found)), found

        found = Parallel(n_jobs=self.options.n_jobs, prefer="threads")(
            delayed(climb)(fit) for _, _, fit in few
        )
        order = [(n_empty, fit.objective) for n_empty, fit in found]
        best = order.index(min(order))
        return few[best][1].start.name, found[best][1]

    def _note(self, name: str, trial: Trial) -> None:
        self.record[name] = trial.mean, trial.score.standard_error()


def best_first(trials: Any) -> list[Trial]:
    """Best held-out likelihood first."""
    return sorted(trials, key=lambda trial: -trial.mean)


def weight_steps(here: Penalties, names: list[str]) -> list[Penalties]:
    """One step up and one down of each of some penalties."""
    factor = SETTINGS.weight_factor
    return [
        replace(here, **{name: getattr(here, name) * step})
        for name in names
        for step in (factor, 1 / factor)
    ]


def step_gain(other: Trial, here: Trial) -> float:
    """What a step gains; more ridge must gain beyond a standard error.

    It holds q(y|x) off the corners, and classes melt into each other before the
    likelihood shows it.
    """
    if other.penalties.ridge <= here.penalties.ridge:
        return other.mean - here.mean
    return other.mean - here.mean - other.score.standard_error(here.score)


# ---- the search ----------------------------------------------------------------------


class Search:
    """One search: on a sample of the rows, then polished on all.

    Penalties are chosen where all rows are compared on. Those of a single optimization
    suit larger tables, and those that suit a sample would not: there only starts are
    raced, and of the two fits of all rows the one with the better objective, under the
    same penalties, is kept. (Anchors of all rows are sharper than those of a fold of a
    sample: held-out rows of it would not do them justice.)

    Attributes
    ----------
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
        self.rows, self.n_classes, self.options = rows, n_classes, options
        self.quick = Quick(rows, n_classes, options, rng)
        self.record = self.quick.record
        self.rng = rng

    def run(self) -> Found:
        """The single optimization, or what is better on held-out rows."""
        plain = self.quick.climb()
        if not self.options.search:
            return self.quick.finish(plain)
        self._draw_sample()
        first = self._race(plain)
        best = self._richer(first)
        if self.small:
            return self._choose_all(plain, first, best)
        name, fit = best.solve(best.best.penalties, fill=False)  # all rows do
        if best is not first:  # other features, which won beyond doubt
            problem = self.rows.problem(best.features)
            penalties = self.options.first_penalties(problem, self.n_classes)
            return polish(problem, best.features, name, fit, penalties, self.options)
        both = self.quick.finish(plain), self.quick.finish(plain, name, fit)
        return min(both, key=lambda found: found.fit.objective)

    def _choose_all(self, plain: Rung, first: Race, best: Race) -> Found:
        """Penalties too, where no row is left out of the comparison."""
        before = first.judge(self._taken(plain.start), plain.penalties)
        self.record["search=False"] = before.mean, before.score.standard_error()
        winner = best.choose_confidence()
        if not winner.beats(before, 0.0):
            return self.quick.finish(plain)
        name, fit = best.solve(winner.penalties, fill=True)
        return polish(
            best.problem, best.features, name, fit, winner.penalties, self.options
        )

    # ---- races, one for each set of features ----------------------------------------

    @property
    def small(self) -> bool:
        """Whether all rows are compared on."""
        return self.sample is self.rows

    def _draw_sample(self) -> None:
        """Rows that are compared on, their numbers in the quick sample, and folds."""
        whole = self.quick.sample
        self.numbers = np.arange(whole.n_rows)
        self.sample = whole
        n_rows = self.options.race_rows(whole.n_domains)
        if whole.n_rows > n_rows:
            self.numbers = sample_rows(whole.codes, whole.known, n_rows, self.rng)
            self.sample = whole.take(self.numbers)
        self.fold_of_row = fold_of_rows(
            self.sample.codes, self.options.n_folds, self.rng
        )
        self.seed = int(self.rng.integers(2**31))

    def _taken(self, start: Start) -> Start:
        """A start of the quick sample, for the rows that are compared on."""
        return replace(start, clusters=start.clusters[self.numbers])

    def _race(self, plain: Rung) -> Race:
        """All starts with the features of the single optimization."""
        problem = plain.problem
        if self.sample is not self.quick.sample:
            problem = problem.take(self.numbers)
        penalties = self._in_a_fold(plain.penalties)
        if self.small:
            penalties = self.options.race_penalties(problem, self.n_classes)
        race = self._new_race(plain.features, problem, penalties)
        ridge, rng = race.penalties.ridge, np.random.default_rng(self.seed)
        first = self._taken(plain.start)
        again = Reanchored(first, race.penalties, self.n_classes, self.seed)
        anchors = self._anchors(problem)
        looks = look_starts(problem, self.n_classes, ridge, rng)
        screened = race.screen([*anchors, again, *looks]).trials
        self.anchors = [
            trial.start for trial in screened if isinstance(trial.start, Start)
        ][: SETTINGS.n_screened_again]
        few = SETTINGS.n_raced if self.small else SETTINGS.n_raced_again
        return race.climb_on(few).settle(self.small)

    def _new_race(
        self, features: FeatureMap, problem: MixtureProblem, penalties: Penalties
    ) -> Race:
        folds = Folds(problem, self.fold_of_row, self.options.n_jobs)
        return Race(features, folds, penalties, self.options, self.record, self.seed)

    def _anchors(self, problem: MixtureProblem) -> list[Start]:
        rng = np.random.default_rng(self.seed)
        counts = race_clusters(problem, self.n_classes)
        anchors = anchor_starts(problem, self.n_classes, rng, counts)
        return [*known_starts(problem, self.n_classes), *anchors]

    def _richer(self, best: Race) -> Race:
        """The features that win beyond doubt over simpler ones.

        Those that fall behind are left where they do.
        """
        plain = best.features
        for scale, expansion in self._other_features(plain.scale, plain.expansion):
            features = feature_map(
                self.sample, scale, expansion, SETTINGS.n_centres, self.seed
            )
            problem = self.sample.problem(features)
            ridge = self.options.race_penalties(problem, self.n_classes).ridge
            known = replace(best.best.penalties, ridge=ridge)
            race = self._new_race(features, problem, known)
            starts = self.anchors
            if expansion in LINEAR:  # columns weigh otherwise: other clusters
                starts = self._anchors(problem)[: SETTINGS.n_screened_again]
            if race.screen(starts).behind(best):
                continue
            if race.climb_on(SETTINGS.n_raced_again).behind(best):
                continue
            race.settle(self.small)
            if race.best.beats(best.best, SETTINGS.doubt, SETTINGS.least_gain):
                best = race
        return best

    def _other_features(self, scale: str, expansion: str) -> list[tuple[str, str]]:
        """What may win over the features of the single optimization."""
        scales = list_scales(self.sample, self.options)
        expansions = list_expansions(
            self.sample, self.options.expansion, n_rows=self.rows.n_rows
        )
        few = self.sample.X.shape[1] < SETTINGS.many_columns
        others = [(other, expansion) for other in scales if few and other != scale]
        richer = [name for name in expansions if few and name not in LINEAR]
        return others + [(scale, name) for name in richer]

    def _in_a_fold(self, penalties: Penalties) -> Penalties:
        """Penalties for all rows, worth as much beside those of a sample's folds."""
        if self.small:
            return penalties
        n_judging = self.sample.n_rows * (1 - 1 / self.options.n_folds)
        return replace(
            penalties,
            ridge=penalties.ridge * self.rows.n_rows / n_judging,
            dirichlet=penalties.dirichlet * self.quick.sample.n_rows / n_judging,
        )


def race_clusters(problem: MixtureProblem, n_classes: int) -> list[int]:
    """Coarse and fine clusters that anchors are looked for in."""
    n_rows = problem.n_rows
    most = max(
        n_rows // (SETTINGS.race_rows_per_cell * problem.n_domains),
        min(
            SETTINGS.race_least_clusters * n_classes,
            n_rows // SETTINGS.race_rows_per_cluster,
        ),
        n_classes + 1,
    )
    few, many = SETTINGS.race_clusters
    wanted = max(few * n_classes, 5 * few), max(many * n_classes, 5 * many)
    return sorted({min(count, most) for count in wanted})
