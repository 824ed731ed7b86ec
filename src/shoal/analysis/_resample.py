"""One resample of a fitted estimator: new rows, the cheap half fitted again."""

import copy
from typing import Any, NamedTuple

import numpy as np

from shoal._words import single_word_bags, sum_by_domain
from shoal.analysis._draws import (
    Refit,
    Resample,
    count_bags,
    count_units,
    draw_rows,
    match_by_rows,
    mixture_proportions,
)
from shoal.base._merged import add_up, original
from shoal.likelihood._problem import Fit, MixtureProblem, optimize
from shoal.likelihood._starts import (
    anchor_guesses,
    climb,
    cluster_counts,
    cluster_rows,
    joint_table,
)
from shoal.probability import domain_given_class, match_rows, normalize_rows
from shoal.stages.factorize import factorize
from shoal.validation import row_weights
from shoal.validation._rows import canonical_rows, match_keys, row_keys

# ---- mixture refit -------------------------------------------------------------------

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


# ---- resample ------------------------------------------------------------------------

TRACE = 1e-6


class Resampler(NamedTuple):
    """The rows' classes under the fit, and refits that classify by the same rule."""

    classes: Array  # (n_samples,)
    refit: Refit


def counts_words(estimator: Any) -> bool:
    """Whether a row of X is a bag of words, of which each counts."""
    return getattr(original(estimator), "input", "rows") == "counts"


def make_resampler(
    estimator: Any, X: Any, codes: Array, weight: Array | None = None
) -> Resampler:
    """The refit that suits what the estimator has fitted; ``weight`` as in fit."""
    if hasattr(estimator, "groups"):
        return _merged_resampler(estimator, X, codes, weight)
    if hasattr(estimator, "word_given_class_"):
        return table_resampler(estimator, estimator._read_bags(X), codes, weight)
    if getattr(estimator, "discretizer_", None) is not None:
        bags = _cluster_bags(estimator, X, codes)
        return table_resampler(estimator, bags, codes, weight)
    classes = estimator._posterior(X, codes, None).argmax(axis=1)
    if hasattr(estimator, "_warm_refit"):
        return Resampler(classes, estimator._warm_refit(X, codes))
    if hasattr(estimator, "features_") and hasattr(estimator, "weights_"):
        return Resampler(classes, MixtureRefit(estimator, X, codes, weight))
    return Resampler(classes, proportions_refit(estimator, X, codes, weight))


def _merged_resampler(
    estimator: Any, X: Any, codes: Array, weight: Array | None
) -> Resampler:
    """The original's refit, its classes merged afterwards."""
    inner = make_resampler(original(estimator), X, codes, weight)
    merged = add_up(estimator, np.eye(original(estimator).n_classes_)).argmax(axis=1)

    def refit(generator: np.random.Generator) -> Resample:
        found = inner.refit(generator)
        whole = add_up(estimator, found.prevalence)
        return Resample(whole, merged[found.classes])

    return Resampler(merged[inner.classes], refit)


def table_resampler(
    estimator: Any, bags: Any, codes: Array, weight: Array | None = None
) -> Resampler:
    """Both factors of a table of words (clusters) by domains, counts drawn again.

    Words of one bag come together, so where a domain has several bags, whole bags are
    drawn; where it is a single bag, its words are.

    The class of a bag is the likeliest of its words, given its domain: for DDFA that
    is the class of the row's cluster, not of its own q(d|x), which a resample would
    have to adjust row by row.
    """
    fitted = estimator.factorization_
    n_words = fitted.cluster_given_class.shape[1]
    bags = bags[:, :n_words]  # words that fit has not seen have no factor
    n_domains = len(estimator.domains_)
    counts = sum_by_domain(bags, codes, n_domains, weight)
    size = counts.sum(axis=1).round().astype(int)
    if weight is not None:
        size = count_units(codes, weight, n_domains)
    share = normalize_rows(counts)
    several = count_bags(bags, codes, n_domains) > 1
    several &= bool(bags.sum(axis=1).max() > 1)
    options = _factorizer_options(estimator)

    def draw(generator: np.random.Generator) -> Array:
        words = generator.multinomial(size, share)
        if not several.any():
            return words
        count = draw_rows(codes, generator, weight)
        whole = sum_by_domain(bags, codes, n_domains, count)
        return np.where(several[:, None], whole, words)

    def classify(word_given_class: Array, prevalence: Array) -> Array:
        log_words = np.log(np.maximum(word_given_class, TINY))
        log_prior = np.log(np.maximum(prevalence, TINY))
        return np.asarray((bags @ log_words.T + log_prior[codes]).argmax(axis=1))

    def refit(generator: np.random.Generator) -> Resample:
        # A word that is missed by chance leaves a trace, and keeps its column.
        drawn = draw(generator) + TRACE * share
        found = factorize(
            normalize_rows(drawn),
            estimator.n_classes_,
            method=fitted.method,
            domain_weight=estimator.domain_weight_,
            allow_fewer=True,
            check_identifiable=False,
            random_state=int(generator.integers(np.iinfo(np.int32).max)),
            **options,
        )
        same = match_rows(fitted.cluster_given_class, found.cluster_given_class)
        prevalence = found.class_given_domain[:, same]
        return Resample(
            prevalence, classify(found.cluster_given_class[same], prevalence)
        )

    classes = classify(fitted.cluster_given_class, estimator.prevalence_)
    return Resampler(classes, refit)


def proportions_refit(
    estimator: Any, X: Any, codes: Array, weight: Array | None = None
) -> Refit:
    """Prevalences alone, with q(y|x) kept: for estimators without a cheaper half."""
    class_given_x = np.asarray(estimator._class_given_x(X), dtype=float)
    ratio = class_given_x / np.maximum(estimator.class_weight_, TINY)
    rows_of = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]

    def refit(generator: np.random.Generator) -> Resample:
        count = draw_rows(codes, generator, weight)
        prevalence = np.array(
            [mixture_proportions(ratio[r], count[r], tol=1e-5) for r in rows_of]
        )
        return Resample(prevalence, (ratio * prevalence[codes]).argmax(axis=1))

    return refit


# ---- their parts -----------------------------------------------------------------


def _cluster_bags(estimator: Any, X: Any, codes: Array) -> Any:
    """Cluster of each row, as bags of one: that of fit where the row was in it.

    Clusters of fit come from out-of-fold q(d|x); those of other rows are predicted.
    """
    discretizer = estimator.discretizer_
    position = match_keys(estimator.row_keys_, row_keys(X, codes))
    clusters = discretizer.labels_[position]
    new = position < 0
    if new.any():
        columns = X[new] if estimator.varying_.all() else X[new][:, estimator.varying_]
        domain_given_x = estimator.discriminator_.predict_proba(columns)
        clusters[new] = discretizer.predict(domain_given_x)
    return single_word_bags(clusters, discretizer.n_clusters_)


def _factorizer_options(estimator: Any) -> dict[str, Any]:
    """Options of the factorizer that fit was given, if they are for its method."""
    given = estimator.factorizer
    if isinstance(given, str) or given.method != estimator.factorization_.method:
        return {}
    return dict(given.options or {})
