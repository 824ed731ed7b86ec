"""Starts and penalties with one set of features, compared on held-out rows."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._features import FeatureMap
from shoal.likelihood._folds import Folds, Trial
from shoal.likelihood._problem import Fit, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._splits import empty_classes, fill_empty_classes
from shoal.likelihood._starts import Recipe
from shoal.mixture._options import SearchOptions

Array = np.ndarray[Any, Any]


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
