"""What a fitted DomainMixture says: predictions, hooks and resamples."""

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from shoal.analysis._novelty import Novelty
from shoal.analysis._resample import (
    Refit,
    Resample,
    Resampler,
    draw_rows,
    match_by_rows,
)
from shoal.analysis._unknown import fit_familiar
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold, sample_rows
from shoal.base import LatentShiftEstimator
from shoal.base._hooks import made_up_rows
from shoal.base._known import FitsKnown, folds_of_known, remember
from shoal.base._shown import UsualRow, usual_row
from shoal.likelihood._features import FeatureMap, TrainingRows
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    softmax_classes,
)
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
from shoal.validation._known import Knowledge
from shoal.validation._rows import canonical_rows, is_sparse

if TYPE_CHECKING:
    from shoal.mixture._gaps import Filling

Array = np.ndarray[Any, Any]


class FittedMixture(FitsKnown, LatentShiftEstimator):
    """Features, a softmax on them and penalties, all fitted."""

    features_: FeatureMap
    penalties_: Penalties
    varying_: Array
    weights_: Array

    filling_: "Filling | None"

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
        X = self._filled(X)
        return X if self.varying_.all() else X[:, self.varying_]

    @property
    def _allow_nan(self) -> bool:  # type: ignore[override]
        """Models of an earlier shoal do not know what to put in a gap."""
        fitted = vars(self)
        return "prevalence_" not in fitted or fitted.get("filling_") is not None

    def _filled(self, X: Any) -> Any:
        """Rows with what fit has chosen to stand where a value misses."""
        filling = vars(self).get("filling_")
        return X if filling is None or is_sparse(X) else filling.fill(X)

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


# ---- resamples: rows drawn again, and the climb from the fit -------------------------


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
