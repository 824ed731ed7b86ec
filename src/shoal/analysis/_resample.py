"""One resample of a fitted estimator: new rows, the cheap half fitted again."""

from typing import Any, NamedTuple

import numpy as np

from shoal._words import sum_by_domain
from shoal.analysis._draws import (
    Refit,
    Resample,
    count_bags,
    count_units,
    draw_rows,
    mixture_proportions,
)
from shoal.probability import TINY, match_rows, normalize_rows
from shoal.stages.factorize import factorize

Array = np.ndarray[Any, Any]

# What a word that a resample misses by chance keeps of its share.
TRACE = 1e-6


class Resampler(NamedTuple):
    """The rows' classes under the fit, and refits that classify by the same rule."""

    classes: Array  # (n_samples,)
    refit: Refit


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


def proportions_resampler(
    estimator: Any, X: Any, codes: Array, weight: Array | None = None
) -> Resampler:
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

    classes = estimator._posterior(X, codes, None).argmax(axis=1)
    return Resampler(classes, refit)


def _factorizer_options(estimator: Any) -> dict[str, Any]:
    """Options of the factorizer that fit was given, if they are for its method."""
    given = estimator.factorizer
    if isinstance(given, str) or given.method != estimator.factorization_.method:
        return {}
    return dict(given.options or {})
