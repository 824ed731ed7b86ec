"""Likelihood of the domains on held-out rows, the one judge of every choice.

Every fold makes its own start from its training rows, or goes on from what it found in
them: nothing that held-out rows say of their domains reaches the fit judged by them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._starts import optimize_from
from shoal.probability import HeldOut

Array = np.ndarray[Any, Any]
# From a problem of training rows, their numbers and that of the fold (None: all rows)
# to q(d|y).
Guess = Callable[[MixtureProblem, Any, Any], Array]


def baseline(problem: MixtureProblem) -> HeldOut:
    """Score of knowing nothing but the weights of the domains."""
    weight = problem.row_weight.astype(float)
    share = np.bincount(problem.codes, weight, minlength=problem.n_domains)
    return HeldOut(np.log(share)[problem.codes], weight)


@dataclass(frozen=True)
class Trial:
    """One setting, fitted without each fold in turn."""

    score: HeldOut
    fits: list[Fit]
    penalties: Penalties

    @property
    def mean(self) -> float:
        """Held-out log-likelihood, in nats."""
        return self.score.mean


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
        self, problem: MixtureProblem, fold_of_row: Array, n_jobs: int | None = None
    ) -> None:
        self.problem, self.n_jobs = problem, n_jobs
        self.parts: list[HeldOutSplit] = []
        for fold in range(int(fold_of_row.max()) + 1):
            rows = np.flatnonzero(fold_of_row != fold)
            rest = np.flatnonzero(fold_of_row == fold)
            train, test = problem.take(rows), problem.take(rest)
            self.parts.append(HeldOutSplit(fold, rows, train, rest, test))

    def start(
        self, guesses: Sequence[Guess], penalties: Penalties, *, n_joint: int = 60
    ) -> list[Trial]:
        """Climb from each guess, made by every fold from its training rows alone."""

        def climb(part: HeldOutSplit, guess: Guess) -> Fit:
            T = guess(part.train, part.rows, part.number)
            return optimize_from(part.train, T, penalties, n_joint=n_joint)

        return self._run(climb, guesses, [penalties] * len(guesses))

    def go_on(
        self, trial: Trial, grid: Sequence[Penalties], *, n_joint: int = 30
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

        return self._run(climb, grid, grid)

    def _run(
        self,
        climb: Callable[[HeldOutSplit, Any], Fit],
        settings: Sequence[Any],
        penalties: Sequence[Penalties],
    ) -> list[Trial]:
        jobs = [(part, setting) for setting in settings for part in self.parts]
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(climb)(*job) for job in jobs
        )
        n_folds = len(self.parts)
        return [
            self._judge(fits[index * n_folds : (index + 1) * n_folds], penalty)
            for index, penalty in enumerate(penalties)
        ]

    def _judge(self, fits: list[Fit], penalties: Penalties) -> Trial:
        each = np.empty(self.problem.n_rows)
        for part, fit in zip(self.parts, fits, strict=True):
            each[part.held_out] = part.test.log_likelihood(
                fit.weights, fit.domain_given_class
            )
        weight = self.problem.row_weight.astype(float)
        return Trial(HeldOut(each, weight), fits, penalties)
