"""Resamples of a DomainMixture: weights and prevalences from the fitted ones.

Where the data hardly tell one solution from another, a climb from the fitted one stays
near it whatever rows were drawn, and its spread would be much too small. So a few
resamples are first asked for solutions of their own, from the anchors that they see
themselves: if these are better, with other classes, every resample looks for its own.
"""

import copy
from typing import Any

import numpy as np

from shoal.analysis.draws import Resample, draw_rows
from shoal.analysis.matching import match_by_rows
from shoal.canonical import canonical_rows
from shoal.mixture.objective import MixtureProblem
from shoal.mixture.optimizer import Fit, optimize
from shoal.mixture.starts import (
    anchor_guesses,
    climb,
    cluster_counts,
    cluster_rows,
    joint_table,
)
from shoal.probability import domain_given_class, normalize_rows
from shoal.validation import row_weights

__all__ = ["MixtureRefit"]

Array = np.ndarray[Any, Any]

ITERATIONS = 60
N_FROZEN = 20
TOL = 1e-7
# Resamples that are asked for a solution of their own, and the share of rows in the
# same class below which it is another one.
N_PROBES = 8
SAME = 0.95
TINY = 1e-300


class MixtureRefit:
    """From a random generator to a resample of a fitted DomainMixture.

    Parameters
    ----------
    estimator : fitted DomainMixture
    X : ndarray or CSR matrix of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,), default=None
        As in fit.

    Attributes
    ----------
    doubtful : bool
        Whether resamples find better solutions of their own.
    """

    def __init__(
        self, estimator: Any, X: Any, codes: Array, weight: Array | None = None
    ) -> None:
        self.estimator = estimator
        columns = X if estimator.varying_.all() else X[:, estimator.varying_]
        # Draws are of row numbers: the order of the rows given must not matter.
        self.order = canonical_rows(estimator.features_.scaled(columns), codes)
        self.codes = codes[self.order]
        self.weight = None if weight is None else weight[self.order]
        columns = columns[self.order]
        share = row_weights(self.codes, estimator.domain_weight_)
        self.problem = MixtureProblem(
            estimator.features_.transform(columns),
            self.codes,
            share,
            len(estimator.domain_weight_),
        )
        self.fitted = self._classify(
            self.problem.class_given_x(estimator.weights_),
            estimator.domain_given_class_,
        )
        rng = np.random.default_rng(0)
        plain = estimator.features_.scaled(columns)
        counts = cluster_counts(self.problem, estimator.n_classes_)
        self.clusters = [(cluster_rows(plain, n, share, rng), n) for n in counts]
        self.doubtful = any(self._finds_another(seed) for seed in range(N_PROBES))

    def __call__(self, generator: np.random.Generator) -> Resample:
        """Rows drawn, the mixture fitted to them, classes matched."""
        problem = self._draw(generator)
        fit = self._from_fit(problem)
        if self.doubtful:
            own = self._from_anchors(problem, generator)
            fit = min(fit, own, key=lambda found: found.objective)
        prevalence, found = self._read(problem, fit)
        renamed = match_by_rows(self.fitted, found, self.estimator.n_classes_)
        classes = np.empty(len(found), dtype=np.intp)
        classes[self.order] = renamed[found]
        return Resample(prevalence[:, np.argsort(renamed)], classes)

    def _draw(self, generator: np.random.Generator) -> MixtureProblem:
        problem = copy.copy(self.problem)  # the same rows, other weights
        drawn = draw_rows(self.codes, generator, self.weight)
        drawn = row_weights(self.codes, self.estimator.domain_weight_, drawn)
        problem.row_weight = drawn.astype(self.problem.row_weight.dtype)
        return problem

    def _from_fit(self, problem: MixtureProblem) -> Fit:
        fitted = self.estimator
        start = fitted.weights_, fitted.domain_given_class_, fitted.penalties_
        return optimize(problem, *start, max_iter=ITERATIONS, tol=TOL)

    def _from_anchors(
        self, problem: MixtureProblem, generator: np.random.Generator
    ) -> Fit:
        """A climb from the anchors of the rows drawn, blind to the fit."""
        clusters = self.clusters[int(generator.integers(len(self.clusters)))]
        table = joint_table(problem, *clusters)
        guess = dict(anchor_guesses(table, self.estimator.n_classes_))["em"]
        return climb(
            problem,
            guess,
            self.estimator.penalties_,
            n_frozen=N_FROZEN,
            n_joint=ITERATIONS,
        )

    def _finds_another(self, seed: int) -> bool:
        """Whether a resample has a better solution than near the fit, unlike that."""
        generator = np.random.default_rng(seed)
        problem = self._draw(generator)
        near, own = self._from_fit(problem), self._from_anchors(problem, generator)
        if own.objective >= near.objective:
            return False
        before, after = (self._read(problem, fit)[1] for fit in (near, own))
        same = match_by_rows(before, after, self.estimator.n_classes_)[after] == before
        return bool(np.mean(same) < SAME)

    def _read(self, problem: MixtureProblem, fit: Fit) -> tuple[Array, Array]:
        """Prevalences, and the class of each row by the rule of the estimator."""
        class_given_x = problem.class_given_x(fit.weights)
        joint = class_given_x * fit.domain_given_class.T[self.codes]
        joint *= (problem.row_weight / np.maximum(joint.sum(axis=1), TINY))[:, None]
        starts = np.searchsorted(self.codes, np.arange(problem.n_domains))
        prevalence = normalize_rows(np.add.reduceat(joint, starts, axis=0))
        # as after a fit: rows are classified with the q(d|y) of the prevalences
        corners = domain_given_class(prevalence, self.estimator.domain_weight_)
        return prevalence, self._classify(class_given_x, corners)

    def _classify(self, class_given_x: Array, corners: Array) -> Array:
        return np.asarray((class_given_x * corners.T[self.codes]).argmax(axis=1))
