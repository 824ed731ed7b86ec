"""Resamples of a fitted DomainMixture: rows drawn again, and the climb from the fit."""

import copy
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from shoal.analysis._draws import Refit, Resample, draw_rows, match_by_rows
from shoal.likelihood._problem import Fit, MixtureProblem, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    cluster_counts,
    cluster_rows,
    em_guess,
    joint_table,
    optimize_from,
)
from shoal.probability import TINY, domain_given_class, normalize_rows
from shoal.validation import row_weights
from shoal.validation._rows import canonical_rows

Array = np.ndarray[Any, Any]


def refits_of(
    estimator: Any, X: Any, codes: Array, weight: Array | None = None
) -> Refit:
    """Refits to all rows or, of very many that leave no doubt, to a sample of them."""
    if len(codes) > SETTINGS.refit_rows and weight is None:
        order = canonical_rows(estimator._familiar_space(X), codes)
        numbers = order[same_part_of_each(codes[order], SETTINGS.refit_rows)]
        if estimator._known_of(X, codes) is None:
            refit = MixtureRefit(estimator, X[numbers], codes[numbers])
            if not refit.doubtful:
                return ScaledRefit(refit, X, codes, codes[numbers])
    return MixtureRefit(estimator, X, codes, weight)


def same_part_of_each(codes: Array, n_rows: int) -> Array:
    """Numbers of about ``n_rows`` rows, of each domain the same part, but some of all.

    ``codes`` is sorted.
    """
    rng = np.random.default_rng(0)
    sizes = np.bincount(codes)
    quota = np.ceil(sizes * (n_rows / len(codes))).astype(int)
    quota = np.maximum(quota, np.minimum(sizes, SETTINGS.refit_least))
    starts = np.cumsum(sizes) - sizes
    picks = [
        start + rng.choice(size, some, replace=False)
        for start, size, some in zip(starts, sizes, quota, strict=True)
    ]
    return np.sort(np.concatenate(picks))


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
        columns = estimator._used_columns(X)
        # Draws are of row numbers: the order of the rows given must not matter.
        self.order = canonical_rows(estimator.features_.scaled(columns), codes)
        self.codes = codes[self.order]
        self.weight = None if weight is None else weight[self.order]
        columns = columns[self.order]
        share = row_weights(self.codes, estimator.domain_weight_)
        known = estimator._known_of(X, codes)
        self.problem = MixtureProblem(
            estimator.features_.transform(columns),
            self.codes,
            share,
            len(estimator.domain_weight_),
            None if known is None else known.take(self.order),
        )
        self.fitted = self._classify(
            self.problem.class_given_x(estimator.weights_),
            estimator.domain_given_class_,
        )
        rng = np.random.default_rng(0)
        plain = estimator.features_.scaled(columns)
        counts = cluster_counts(self.problem, estimator.n_classes_)
        self.clusters = [(cluster_rows(plain, n, share, rng), n) for n in counts]
        self.doubtful = any(
            self._finds_another(seed) for seed in range(SETTINGS.n_probes)
        )

    def __call__(self, generator: np.random.Generator) -> Resample:
        """Rows drawn, the mixture fitted to them, classes matched."""
        return self.solve(generator)[0]

    def solve(self, generator: np.random.Generator) -> tuple[Resample, Array]:
        """The same, and the weights of the softmax."""
        problem = self._draw(generator)
        fit = self._from_fit(problem)
        if self.doubtful:
            own = self._from_anchors(problem, generator)
            fit = min(fit, own, key=lambda found: found.objective)
        prevalence, found = self._read(problem, fit)
        renamed = match_by_rows(self.fitted, found, self.estimator.n_classes_)
        classes = np.empty(len(found), dtype=np.intp)
        classes[self.order] = renamed[found]
        back = np.argsort(renamed)
        return Resample(prevalence[:, back], classes), fit.weights[back]

    def _draw(self, generator: np.random.Generator) -> MixtureProblem:
        problem = copy.copy(self.problem)  # the same rows, other weights
        drawn = draw_rows(self.codes, generator, self.weight)
        drawn = row_weights(self.codes, self.estimator.domain_weight_, drawn)
        problem.row_weight = drawn.astype(self.problem.row_weight.dtype)
        return problem

    def _from_fit(self, problem: MixtureProblem) -> Fit:
        fitted = self.estimator
        start = fitted.weights_, fitted.domain_given_class_, fitted.penalties_
        return optimize(
            problem, *start, max_iter=SETTINGS.refit_joint, tol=SETTINGS.refit_tol
        )

    def _from_anchors(
        self, problem: MixtureProblem, generator: np.random.Generator
    ) -> Fit:
        """A fit from the anchors of the rows drawn, blind to the fit."""
        clusters = self.clusters[int(generator.integers(len(self.clusters)))]
        table = joint_table(problem, *clusters)
        return optimize_from(
            problem,
            em_guess(table, self.estimator.n_classes_),
            self.estimator.penalties_,
            n_frozen=SETTINGS.refit_frozen,
            n_joint=SETTINGS.refit_joint,
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
        return bool(np.mean(same) < SETTINGS.same)

    def _read(self, problem: MixtureProblem, fit: Fit) -> tuple[Array, Array]:
        """Prevalences, and the class of each row by the rule of the estimator."""
        class_given_x = problem.class_given_x(fit.weights)
        joint = class_given_x * fit.domain_given_class.T[self.codes]
        joint *= (problem.row_weight / np.maximum(joint.sum(axis=1), TINY))[:, None]
        starts = np.searchsorted(self.codes, np.arange(problem.n_domains))
        prevalence = normalize_rows(np.add.reduceat(joint, starts, axis=0))
        if problem.constraints is not None:
            at = fit.weights, fit.domain_given_class, self.estimator.penalties_
            mass = problem.value_and_gradient(*at)[2]
            known = problem.constraints.known
            prevalence = known.impose(normalize_rows(mass.T))
        # as after a fit: rows are classified with the q(d|y) of the prevalences
        corners = domain_given_class(prevalence, self.estimator.domain_weight_)
        return prevalence, self._classify(class_given_x, corners)

    def _classify(self, class_given_x: Array, corners: Array) -> Array:
        return np.asarray((class_given_x * corners.T[self.codes]).argmax(axis=1))


class ScaledRefit:
    """Resamples of m of n rows, each step from the fit shrunk to what n would make.

    Estimates from m rows scatter by sqrt(n / m) as much, while they stay near the fit;
    a fit in doubt among several solutions does not, and is refitted to all rows.

    Parameters
    ----------
    refit : MixtureRefit
        To the sample.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        All rows.
    codes, sampled : ndarray
        Domains of all rows, and of those of the sample.

    References
    ----------
    Bickel PJ, Goetze F, van Zwet WR (1997). Resampling fewer than n observations:
    gains, losses, and remedies for losses. Statistica Sinica 7.
    """

    def __init__(
        self, refit: MixtureRefit, X: Any, codes: Array, sampled: Array
    ) -> None:
        self.refit, self.codes = refit, codes
        estimator = refit.estimator
        self.design = estimator.features_.transform(estimator._used_columns(X))
        self.step = np.sqrt(len(sampled) / len(codes))
        # a thin domain gives more of its rows, and scatters by less
        n_domains = len(estimator.domain_weight_)
        counts = [np.bincount(c, minlength=n_domains) for c in (sampled, codes)]
        self.steps = np.sqrt(counts[0] / np.maximum(counts[1], 1))[:, None]

    def __call__(self, generator: np.random.Generator) -> Resample:
        """Shrunken prevalences, and the classes of all rows by shrunken weights."""
        estimator = self.refit.estimator
        found, weights = self.refit.solve(generator)
        fitted = estimator.prevalence_
        prevalence = fitted + self.steps * (found.prevalence - fitted)
        weights = estimator.weights_ + self.step * (weights - estimator.weights_)
        corners = domain_given_class(prevalence, estimator.domain_weight_)
        log_corners = np.log(np.maximum(corners, TINY)).T
        classes = np.empty(len(self.codes), dtype=np.intp)
        for rows in gen_batches(len(classes), SETTINGS.predict_rows):
            logits = self.design[rows] @ weights[:, :-1].T + weights[:, -1]
            classes[rows] = (logits + log_corners[self.codes[rows]]).argmax(axis=1)
        return Resample(prevalence, classes)
