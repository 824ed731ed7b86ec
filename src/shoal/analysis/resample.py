"""One resample of a fitted estimator: new rows, the cheap half fitted again.

What is expensive (features, penalties, discriminator, clusters) is fitted once and
kept. A resample is a set of whole-number row weights, or a table of counts drawn from
the observed one, which is the same thing.
"""

from typing import Any, NamedTuple

import numpy as np

from shoal.analysis.draws import (
    Refit,
    Resample,
    count_bags,
    count_units,
    draw_rows,
)
from shoal.analysis.mixture_refit import MixtureRefit
from shoal.analysis.proportions import mixture_proportions
from shoal.canonical import match_keys, row_keys
from shoal.merged import add_up, original
from shoal.probability import match_rows, normalize_rows
from shoal.stages.factorize import factorize
from shoal.words import single_word_bags, sum_by_domain

__all__ = [
    "Resampler",
    "counts_words",
    "make_resampler",
    "original",
    "proportions_refit",
    "table_resampler",
]

Array = np.ndarray[Any, Any]

TINY = 1e-300
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
