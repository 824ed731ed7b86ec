"""Likelihood of the domains on held-out rows, the judge of every choice.

Every fold makes its own start from its training rows, or goes on from what it found in
them: nothing that held-out rows say of their domains reaches the fit judged by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import Recipe, optimize_from
from shoal.probability import HeldOut

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Trial:
    """One start under one setting, fitted without each fold in turn."""

    start: Recipe
    penalties: Penalties
    fits: list[Fit]
    score: HeldOut

    @property
    def mean(self) -> float:
        """Held-out log-likelihood, in nats."""
        return self.score.mean

    def beats(self, other: "Trial", errors: float, least: float = 0.0) -> bool:
        """Whether it is better by more than so many paired standard errors."""
        doubt = errors * self.score.standard_error(other.score)
        return self.mean - other.mean > doubt + least


class HeldOutSplit(NamedTuple):
    """One fold: the rows that fit, and those that judge."""

    number: int
    rows: Array
    train: MixtureProblem
    held_out: Array
    test: MixtureProblem


class Folds:
    """Fits without each fold in turn, judged by the domains of the rows left out.

    Parameters
    ----------
    problem : MixtureProblem
    fold_of_row : ndarray of shape (n,)
    n_jobs : int, default=None
        Fits side by side (threads); results do not depend on it.
    """

    def __init__(
        self,
        problem: MixtureProblem,
        fold_of_row: Array,
        n_jobs: int | None = None,
    ) -> None:
        self.problem, self.n_jobs = problem, n_jobs
        self.parts: list[HeldOutSplit] = []
        light = problem.in_single_precision()
        for fold in range(int(fold_of_row.max()) + 1):
            rows = np.flatnonzero(fold_of_row != fold)
            rest = np.flatnonzero(fold_of_row == fold)
            train, test = light.take(rows), light.take(rest)
            self.parts.append(HeldOutSplit(fold, rows, train, rest, test))

    def start(
        self,
        starts: Sequence[Recipe],
        penalties: Penalties,
        *,
        n_frozen: int,
        n_joint: int,
    ) -> list[Trial]:
        """Climb from each start, read by every fold from its training rows alone."""

        def climb(part: HeldOutSplit, start: Recipe) -> Fit:
            guess = start.guess(part.train, part.rows)
            known = guess.weights is not None
            return optimize_from(
                part.train,
                guess.domain_given_class,
                penalties,
                weights=guess.weights,
                n_frozen=SETTINGS.known_frozen if known else n_frozen,
                n_joint=n_joint,
            )

        fits = self._run(climb, starts)
        return [
            Trial(start, penalties, found, self._judge(found))
            for start, found in zip(starts, fits, strict=True)
        ]

    def go_on(
        self, trial: Trial, grid: Sequence[Penalties], *, n_joint: int
    ) -> list[Trial]:
        """Climb on from what each fold has found, under other penalties."""

        def climb(part: HeldOutSplit, penalties: Penalties) -> Fit:
            fit = trial.fits[part.number]
            return optimize(
                part.train,
                fit.weights,
                fit.domain_given_class,
                penalties,
                max_iter=n_joint,
            )

        fits = self._run(climb, grid)
        return [
            Trial(trial.start, penalties, found, self._judge(found))
            for penalties, found in zip(grid, fits, strict=True)
        ]

    def solutions(self, trials: Sequence[Trial]) -> list[tuple[float, Trial, Fit]]:
        """What folds have found, the most ahead of the others on its own rows first."""
        each = np.array([trial.score.each for trial in trials])
        ahead = (each - each.mean(axis=0)) * self.problem.row_weight
        found = []
        for part in self.parts:
            mass = self.problem.row_weight[part.held_out].sum()
            gains = ahead[:, part.held_out].sum(axis=1) / max(float(mass), 1e-12)
            for trial, gain in zip(trials, gains, strict=True):
                found.append((float(gain), trial, trial.fits[part.number]))
        return sorted(found, key=lambda solution: -solution[0])

    def _run(
        self, climb: Callable[[HeldOutSplit, Any], Fit], settings: Sequence[Any]
    ) -> list[list[Fit]]:
        jobs = [(part, setting) for setting in settings for part in self.parts]
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(climb)(*job) for job in jobs
        )
        n = len(self.parts)
        return [fits[index * n : (index + 1) * n] for index in range(len(settings))]

    def _judge(self, fits: list[Fit]) -> HeldOut:
        each = np.empty(self.problem.n_rows)
        for part, fit in zip(self.parts, fits, strict=True):
            each[part.held_out] = part.test.log_likelihood(
                fit.weights, fit.domain_given_class
            )
        return HeldOut(each, self.problem.row_weight.astype(float))
