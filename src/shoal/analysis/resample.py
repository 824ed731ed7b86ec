"""One resample of a fitted estimator: new rows, the cheap half fitted again.

What is expensive (features, penalties, discriminator, clusters) is fitted once and
kept. A resample is a set of whole-number row weights, or a table of counts drawn from
the observed one, which is the same thing.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shoal.analysis.matching import match_by_rows
from shoal.analysis.proportions import mixture_proportions
from shoal.probability import match_rows, normalize_rows

__all__ = [
    "Refit",
    "Resample",
    "counts_words",
    "fitted_classes",
    "make_refit",
    "merged_refit",
    "mixture_refit",
    "original",
    "proportions_refit",
    "table_refit",
]

Array = np.ndarray[Any, Any]

MIXTURE_ITERATIONS = 60
TINY = 1e-300
TRACE = 1e-6


class Resample(NamedTuple):
    """One refit, its classes matched to those of the fit."""

    prevalence: Array  # (n_domains, n_classes)
    classes: Array  # (n_samples,), of the rows that were passed in


Refit = Callable[[np.random.Generator], Resample]


def original(estimator: Any) -> Any:
    """The fitted estimator itself, also when some of its classes were merged."""
    return estimator.estimator if hasattr(estimator, "groups") else estimator


def counts_words(estimator: Any) -> bool:
    """Whether a row of X is a bag of words, of which each counts."""
    return getattr(original(estimator), "input", "rows") == "counts"


def fitted_classes(estimator: Any, X: Any, codes: Array) -> Array:
    """Class of each row, to compare with those of resamples."""
    posterior = original(estimator)._posterior(X, codes, None)
    return _merge(estimator, posterior.argmax(axis=1))


def make_refit(estimator: Any, X: Any, codes: Array) -> Refit:
    """The refit that suits what the estimator has fitted."""
    if hasattr(estimator, "groups"):
        return merged_refit(estimator, X, codes)
    if hasattr(estimator, "_warm_refit"):
        return estimator._warm_refit(X, codes)
    if hasattr(estimator, "features_") and hasattr(estimator, "weights_"):
        return mixture_refit(estimator, X, codes)
    if hasattr(estimator, "word_given_class_"):
        return table_refit(estimator, estimator._read_bags(X), codes)
    if getattr(estimator, "discretizer_", None) is not None:
        return table_refit(estimator, _cluster_bags(estimator, X), codes)
    return proportions_refit(estimator, X, codes)


def mixture_refit(estimator: Any, X: Any, codes: Array) -> Refit:
    """Weights and prevalences of a DomainMixture, a few iterations from the fit."""
    from shoal.mixture.objective import MixtureProblem
    from shoal.mixture.optimizer import optimize

    order = np.argsort(codes, kind="stable")
    columns = X if estimator.varying_.all() else X[:, estimator.varying_]
    design = estimator.features_.transform(columns[order])
    sorted_codes = codes[order]
    share = _row_share(sorted_codes, estimator.domain_weight_)
    whole = MixtureProblem(design, sorted_codes, share, len(estimator.domains_))

    def classify(weights: Array, corners: Array) -> tuple[Array, Array]:
        joint = whole.class_given_x(weights) * corners.T[sorted_codes]
        return joint, joint.argmax(axis=1)

    _, fitted = classify(estimator.weights_, estimator.domain_given_class_)

    def refit(generator: np.random.Generator) -> Resample:
        problem = copy.copy(whole)  # the same rows, other weights
        count = _resample_rows(sorted_codes, generator)
        problem.row_weight = (count * share).astype(design.dtype)
        fit = optimize(
            problem,
            estimator.weights_,
            estimator.domain_given_class_,
            estimator.penalties_,
            max_iter=MIXTURE_ITERATIONS,
            tol=1e-7,
        )
        joint, found = classify(fit.weights, fit.domain_given_class)
        weight = problem.row_weight / np.maximum(joint.sum(axis=1), TINY)
        mass = np.empty(estimator.prevalence_.shape)
        renamed = match_by_rows(fitted, found, estimator.n_classes_)
        mass[:, renamed] = _sum_by_code(joint * weight[:, None], sorted_codes)
        classes = np.empty(len(codes), dtype=np.intp)
        classes[order] = renamed[found]
        return Resample(normalize_rows(mass), classes)

    return refit


def merged_refit(estimator: Any, X: Any, codes: Array) -> Refit:
    """The original's refit, its classes merged afterwards."""
    inner = make_refit(original(estimator), X, codes)

    def refit(generator: np.random.Generator) -> Resample:
        found = inner(generator)
        parts = [found.prevalence[:, group].sum(axis=1) for group in estimator.groups]
        return Resample(np.stack(parts, axis=1), _merge(estimator, found.classes))

    return refit


def table_refit(estimator: Any, bags: Any, codes: Array) -> Refit:
    """Both factors of a table of words (clusters) by domains, counts drawn again."""
    from shoal.stages.factorize import factorize
    from shoal.words import sum_by_domain

    fitted = estimator.factorization_
    n_words = fitted.cluster_given_class.shape[1]
    bags = bags[:, :n_words]  # words that fit has not seen have no factor
    counts = sum_by_domain(bags, codes, len(estimator.domains_))
    size = counts.sum(axis=1).round().astype(int)
    share = normalize_rows(counts)

    def refit(generator: np.random.Generator) -> Resample:
        # A word that is missed by chance leaves a trace, and keeps its column.
        drawn = generator.multinomial(size, share) + TRACE * share
        found = factorize(
            normalize_rows(drawn),
            estimator.n_classes_,
            method=fitted.method,
            domain_weight=estimator.domain_weight_,
            allow_fewer=True,
            check_identifiable=False,
            random_state=int(generator.integers(np.iinfo(np.int32).max)),
        )
        same = match_rows(fitted.cluster_given_class, found.cluster_given_class)
        prevalence = found.class_given_domain[:, same]
        log_words = np.log(np.maximum(found.cluster_given_class[same], TINY))
        log_prior = np.log(np.maximum(prevalence, TINY))
        classes = (bags @ log_words.T + log_prior[codes]).argmax(axis=1)
        return Resample(prevalence, classes)

    return refit


def proportions_refit(estimator: Any, X: Any, codes: Array) -> Refit:
    """Prevalences alone, with q(y|x) kept: for estimators without a cheaper half."""
    class_given_x = np.asarray(estimator._class_given_x(X), dtype=float)
    ratio = class_given_x / np.maximum(estimator.class_weight_, TINY)
    rows_of = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]

    def refit(generator: np.random.Generator) -> Resample:
        count = _resample_rows(codes, generator)
        prevalence = np.array(
            [mixture_proportions(ratio[r], count[r], tol=1e-5) for r in rows_of]
        )
        return Resample(prevalence, (ratio * prevalence[codes]).argmax(axis=1))

    return refit


# ---- their parts -----------------------------------------------------------------


def _merge(estimator: Any, classes: Array) -> Array:
    """Classes of the original as classes of ``estimator``."""
    if not hasattr(estimator, "groups"):
        return classes
    merged = np.empty(original(estimator).n_classes_, dtype=np.intp)
    for index, group in enumerate(estimator.groups):
        merged[list(group)] = index
    return merged[classes]


def _cluster_bags(estimator: Any, X: Any) -> Any:
    """Cluster of each row, as bags of one; those of fit where these are its rows."""
    from shoal.words import single_word_bags

    discretizer = estimator.discretizer_
    clusters = discretizer.labels_
    if len(clusters) != X.shape[0]:
        columns = X if estimator.varying_.all() else X[:, estimator.varying_]
        clusters = discretizer.predict(estimator.discriminator_.predict_proba(columns))
    return single_word_bags(clusters, discretizer.n_clusters_)


def _resample_rows(codes: Array, generator: np.random.Generator) -> Array:
    """How often each row is drawn when every domain draws as many rows as it has."""
    count = np.empty(len(codes), dtype=np.int64)
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        drawn = generator.integers(len(rows), size=len(rows))
        count[rows] = np.bincount(drawn, minlength=len(rows))
    return count


def _row_share(codes: Array, domain_weight: Array) -> Array:
    """Weight of one row: those of a domain sum to its weight."""
    size = np.bincount(codes, minlength=len(domain_weight))
    return np.asarray((domain_weight / size)[codes])


def _sum_by_code(values: Array, codes: Array) -> Array:
    """Sums of rows within sorted codes."""
    starts = np.searchsorted(codes, np.arange(int(codes[-1]) + 1))
    return np.asarray(np.add.reduceat(values, starts, axis=0))
