"""What a fitted DomainMixture says: predictions and hooks."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import gen_batches

from shoal._known import Knowledge
from shoal._novelty import Novelty
from shoal._unknown import fit_familiar
from shoal.analysis._resample import Resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, sample_rows
from shoal.base import LatentShiftEstimator
from shoal.base._explained import UsualRow, usual_row
from shoal.base._hooks import made_up_rows
from shoal.base._known import FitsKnown, folds_of_known, remember
from shoal.likelihood._features import FeatureMap
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    softmax_classes,
)
from shoal.likelihood._rows import TrainingRows
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    optimize_from,
)
from shoal.mixture._resampled import refits_of
from shoal.probability import TINY, normalize_rows
from shoal.validation._rows import canonical_rows

Array = np.ndarray[Any, Any]


class FittedMixture(FitsKnown, LatentShiftEstimator):
    """Features, a softmax on them and penalties, all fitted."""

    features_: FeatureMap
    penalties_: Penalties
    varying_: Array
    weights_: Array

    _accept_sparse = True
    _block_rows = SETTINGS.predict_rows
    _fits_in_parts = True
    _grows = True

    def _class_given_x(self, X: Any) -> Array:
        result = np.empty((X.shape[0], self.n_classes_))
        for rows in gen_batches(X.shape[0], SETTINGS.predict_rows):
            result[rows] = self._class_given_used(self._used_columns(X[rows]))
        return result

    def _class_given_used(self, X: Any) -> Array:
        """q(y|x) of rows without constant columns."""
        g = softmax_classes(self.features_.logits(X, self.weights_))[0]
        if g.dtype != np.float64:  # its sum is 1 in single precision only
            g = g.astype(np.float64)
            g /= g.sum(axis=0)
        return g.T

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        logits = self.features_.logits(self._used_columns(X), self.weights_)
        prior = np.log(np.maximum(self.class_weight_, TINY))
        return np.asarray(logits.T.astype(float) - prior)

    def _usual_row(self) -> UsualRow:
        return usual_row(self.varying_, self.features_.centre_)

    def _fit_familiar(self, rows: TrainingRows, seed: int) -> Novelty:
        """Where rows of fit lie; asked once the classes are there."""
        given = self._class_given_used(rows.X)
        own = self._in_domains(given, rows.codes)
        scaled = self.features_.scaled(rows.X)
        return fit_familiar(scaled, given, own, rows.codes, seed)

    # ---- hooks --------------------------------------------------------------------

    def _used_columns(self, X: Any) -> Any:
        return X if self.varying_.all() else X[:, self.varying_]

    def _familiar_space(self, X: Any) -> Any:
        return self.features_.scaled(self._used_columns(X))

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        classes = self._most_probable(X, codes)
        return Resampler(classes, refits_of(self, X, codes, weight))

    def _diagnosed_rows(
        self, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> DiagnosedRows:
        """Rows with the features of the fit, and at most its ridge."""
        X, rows = sample_rows(self, X, codes, max_rows, rng)
        classes = self._posterior(X, rows.codes, None)
        ridge = min(self.penalties_.ridge, DiagnosedRows.ridge)
        return DiagnosedRows(X, rows, self.features_, classes, ridge=ridge)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        """Fits without each fold, from the fitted q(d|y): in its basin."""
        problem, n_folds = rows.problem, int(folds.max()) + 1
        known = self._known_of(rows.X, rows.rows.codes)
        if known is not None:
            problem = replace(rows.rows, known=known).problem(rows.features)
        start = self.domain_given_class_
        class_given_x = np.empty((problem.n_rows, len(start)))
        corners = np.empty((n_folds, *start.shape))
        weight = np.empty((n_folds, len(start)))
        for fold in range(n_folds):
            train = problem.take(np.flatnonzero(folds != fold))
            test = np.flatnonzero(folds == fold)
            fit = self._refit_from(train, start)
            class_given_x[test] = problem.take(test).class_given_x(fit.weights)
            corners[fold] = fit.domain_given_class
            weight[fold] = train.row_weight @ train.class_given_x(fit.weights)
        return OutOfFold(class_given_x, corners, weight)

    def _keep_known(self, X: Any, codes: Array, known: Knowledge) -> None:
        """Keep what was known, and how far fits agree that are not told of it."""
        self._keep_labels(X, codes, known)
        folds = folds_of_known(known, SETTINGS.known_folds)
        rows = self._rows_to_judge(X, codes, known)
        told, own = known.take(rows.X), folds[rows.X]
        design = self.features_.transform(self._used_columns(X[rows.X]))
        posterior = np.full((len(folds), self.n_classes_), 1 / self.n_classes_)
        for fold in range(int(own.max()) + 1):
            blind = told.without(own == fold)
            given = rows.codes, rows.row_weight, rows.n_domains, blind
            problem = MixtureProblem(design, *given)
            fit = self._refit_from(problem, self.domain_given_class_)
            given_x = problem.class_given_x(fit.weights)[own == fold]
            T = fit.domain_given_class.T[rows.codes[own == fold]]
            posterior[rows.X[own == fold]] = normalize_rows(given_x * T)
        self.known_ = remember(known, X, codes, posterior[known.rows], folds)

    def _rows_to_judge(self, X: Any, codes: Array, known: Knowledge) -> TrainingRows:
        """Numbers of rows, as rows: some of all, and those whose class is known."""
        order = canonical_rows(self._familiar_space(X), codes)
        rng = np.random.default_rng(0)
        numbers = TrainingRows(
            order, codes[order], None, self.domain_weight_, known=known.take(order)
        )
        return numbers.sample(SETTINGS.route_rows, rng)

    def _refit_from(self, problem: MixtureProblem, start: Array) -> Fit:
        """A climb with weights of zero, where much confidence would empty classes."""
        penalties = self.penalties_
        little = min(penalties.confidence, SETTINGS.first_confidence)
        fit = optimize_from(
            problem,
            start,
            replace(penalties, confidence=little),
            n_joint=SETTINGS.out_of_fold_joint,
            named=True,
        )
        if penalties.confidence == little:
            return fit
        found = fit.weights, fit.domain_given_class
        return optimize(problem, *found, penalties, max_iter=SETTINGS.step_joint)

    def _probe_rows(self, n_rows: int) -> Array:
        features, used = self.features_, self.varying_
        return made_up_rows(n_rows, used, features.centre_, features.spread_)

    def _fitted_arrays(self) -> list[Array]:
        return [self.prevalence_, self.weights_]

    def _pseudo_counts(self, n_rows: int) -> float:
        return float(self.penalties_.dirichlet / self.prevalence_.size * n_rows)

    def _larger(self, seed: int) -> Any:
        """By shift alone: this is the fit that speaks."""
        return super()._larger(seed).set_params(by="shift")

    def _reorder_classes(self, order: Array) -> None:
        super()._reorder_classes(order)
        self.weights_ = self.weights_[order]
