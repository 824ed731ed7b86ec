"""Likelihood of the domains on held-out rows, the one judge of every choice.

Folds start from the T of all rows with W = 0: that keeps the basin under test without
leaking the weights.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._starts import optimize_from

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class HeldOut:
    """How well rows that took no part in a fit are predicted: one number a row.

    The one statistic behind every choice: of features, penalties, numbers of classes
    and epochs, and of the guessers that ``diagnose`` compares.

    Attributes
    ----------
    each : ndarray of shape (n,)
        Log-likelihood of every row's domain, or its gain over q(d), in nats.
    weight : ndarray of shape (n,)
        Sums to 1; domains as heavy as q(d) says.
    name : str
        What predicted.
    """

    each: Array
    weight: Array
    name: str = ""

    @property
    def mean(self) -> float:
        """Weighted mean, in nats."""
        return float(self.weight @ self.each)

    def standard_error(self, other: "HeldOut | None" = None) -> float:
        """Standard error of the mean, or of the paired difference to ``other``."""
        values = self.each if other is None else self.each - other.each
        centred = values - self.weight @ values
        return float(np.sqrt((self.weight**2) @ centred**2))


def held_out(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Iterable[Penalties],
    folds: Array,
    *,
    n_jobs: int | None = None,
    n_joint: int = 60,
) -> list[HeldOut]:
    """Out-of-fold likelihood under each of ``penalties``, from the same T."""
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
