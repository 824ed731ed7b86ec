"""A climb that begins with the rows whose class is known."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.likelihood._problem import MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import Guess, Start
from shoal.probability import normalize_rows

Array = np.ndarray[Any, Any]


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
