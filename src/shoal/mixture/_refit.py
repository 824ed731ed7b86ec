"""A fitted DomainMixture once more: resampled, out of fold, with other classes."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from shoal.analysis._decide import Evidence
from shoal.analysis._draws import Resample, draw_rows, match_by_rows
from shoal.analysis._refits import Order, Trials
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, sample_rows
from shoal.likelihood._problem import Fit, MixtureProblem, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    cluster_counts,
    cluster_rows,
    em_guess,
    joint_table,
    optimize_from,
)
from shoal.mixture._n_classes import Curve, Point, baseline, make_curve, quiet_rank
from shoal.probability import TINY, domain_given_class, normalize_rows
from shoal.validation import check_X_domains, row_weights
from shoal.validation._rows import canonical_rows

Array = np.ndarray[Any, Any]


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
        self.doubtful = any(
            self._finds_another(seed) for seed in range(SETTINGS.n_probes)
        )

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
        # as after a fit: rows are classified with the q(d|y) of the prevalences
        corners = domain_given_class(prevalence, self.estimator.domain_weight_)
        return prevalence, self._classify(class_given_x, corners)

    def _classify(self, class_given_x: Array, corners: Array) -> Array:
        return np.asarray((class_given_x * corners.T[self.codes]).argmax(axis=1))


# ---- diagnose ------------------------------------------------------------------------


def diagnosed_rows(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> DiagnosedRows:
    """Rows with the features of the fit, and at most its ridge."""
    X, rows = sample_rows(estimator, X, codes, max_rows, rng)
    return DiagnosedRows(
        X,
        rows,
        estimator.features_,
        estimator._posterior(X, rows.codes, None),
        ridge=min(estimator.penalties_.ridge, DiagnosedRows.ridge),
    )


def optimize_out_of_fold(
    estimator: Any, rows: DiagnosedRows, folds: Array
) -> OutOfFold:
    """Fits without each fold, from the fitted q(d|y): in its basin."""
    problem, n_folds = rows.problem, int(folds.max()) + 1
    start, penalties = estimator.domain_given_class_, estimator.penalties_
    class_given_x = np.empty((problem.n_rows, len(start)))
    corners, weight = np.empty((n_folds, *start.shape)), np.empty((n_folds, len(start)))
    for fold in range(n_folds):
        train = problem.take(np.flatnonzero(folds != fold))
        test = np.flatnonzero(folds == fold)
        fit = optimize_from(train, start, penalties, n_joint=SETTINGS.out_of_fold_joint)
        class_given_x[test] = problem.take(test).class_given_x(fit.weights)
        corners[fold] = fit.domain_given_class
        weight[fold] = train.row_weight @ train.class_given_x(fit.weights)
    return OutOfFold(class_given_x, corners, weight)


# ---- other numbers of classes --------------------------------------------------------


def evidence_on_a_sample(model: Any, X: Any, domains: Any, trials: Trials) -> Evidence:
    """The curve of held-out likelihood from fits that share features and folds."""
    X, codes, names = check_X_domains(model, X, domains, accept_sparse=True)
    rows = model._training_rows(X, codes, names, None)
    options = replace(model._options(), n_jobs=trials.n_jobs)
    rng, order = trials.rng, trials.order
    rank = quiet_rank(rows, options, rng)
    candidates = trials.candidates(rank.n_classes, rows.n_domains)
    curve = make_curve(
        rows, rank.n_classes, candidates[-1], options, rng, trials.n_folds
    )
    points: dict[int, Point] = {}
    for some in order.groups(candidates, rank.n_classes):
        curve.extend(points, some)
    seeds = rng.integers(2**31 - 1, size=trials.n_resamples)
    tried = sorted(points)
    return Evidence(
        {count: points[count].held_out for count in tried},
        {count: _stability(curve, points[count].fit, seeds, order) for count in tried},
        rank,
        baseline(curve.problem),
        rows.n_domains,
    )


def _stability(curve: Curve, fit: Fit, seeds: Array, order: Order) -> float:
    """Mean share of rows that keep their class when rows are drawn again."""
    classes, n_classes = curve.classes(fit), len(fit.weights)

    def agreement(seed: int) -> float:
        if order.late():
            return float("nan")
        other = curve.refit(n_classes, np.random.default_rng(seed))
        found = curve.classes(other)
        same = match_by_rows(classes, found, n_classes)[found] == classes
        return float(curve.problem.row_weight @ same)

    found = Parallel(n_jobs=curve.options.n_jobs, prefer="threads")(
        delayed(agreement)(int(seed)) for seed in seeds
    )
    known = [share for share in found if share == share]
    return float(np.mean(known)) if known else float("nan")
