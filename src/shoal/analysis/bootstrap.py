"""Intervals for prevalences: rows resampled within domains, the cheap half refitted.

What is expensive (features, penalties, discriminator, clusters) is fitted once and
kept. A resample is a set of whole-number row weights, or a table of counts drawn from
the observed one, which is the same thing.
"""

import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.analysis.matching import match_by_rows
from shoal.analysis.proportions import (
    mixture_proportions,
    prevalence_interval,
    shrunken,
    stretched_quantile,
)
from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import match_rows, normalize_rows
from shoal.validation import encode_domains, is_whole

__all__ = ["Difference", "Intervals", "Resample", "bootstrap"]

Array = np.ndarray[Any, Any]

MIXTURE_ITERATIONS = 60
TINY = 1e-300
TRACE = 1e-6


class Resample(NamedTuple):
    """One refit, its classes matched to those of the fit."""

    prevalence: Array  # (n_domains, n_classes)
    classes: Array  # (n_samples,), of the rows that were passed in


Refit = Callable[[np.random.Generator], Resample]


class Difference(NamedTuple):
    """Prevalence in one domain minus that in another, each of shape (n_classes,)."""

    estimate: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals for the prevalences of a fitted estimator.

    Attributes
    ----------
    prevalence : ndarray of shape (n_domains, n_classes)
        The estimate, p_d(y).
    low, high : ndarray of shape (n_domains, n_classes)
    level : float
        Nominal coverage of each interval.
    draws : ndarray of shape (n_resamples, n_domains, n_classes)
        Prevalences of the resamples, classes matched to the estimate.
    co_assignment : ndarray of shape (n_samples,)
        Share of the resamples in which each row, given its domain, keeps its class.
    domains : ndarray of shape (n_domains,)
    class_names : list of str
    n_rows : ndarray of shape (n_domains,)
        Number of rows (words, for counts) behind each domain.
    """

    prevalence: Array
    low: Array
    high: Array
    level: float
    draws: Array = field(repr=False)
    co_assignment: Array = field(repr=False)
    domains: Array
    class_names: list[str]
    n_rows: Array

    def difference(self, domain_a: Any, domain_b: Any) -> Difference:
        """Prevalences in ``domain_a`` minus those in ``domain_b``, with intervals.

        The resamples are paired, so that what moves both domains cancels.
        """
        a, b = (self._index(domain) for domain in (domain_a, domain_b))
        estimate = self.prevalence[a] - self.prevalence[b]
        none = np.zeros_like(estimate)
        centre_a, floor_a = shrunken(self.prevalence[a], none, self.n_rows[a])
        centre_b, floor_b = shrunken(self.prevalence[b], none, self.n_rows[b])
        seen = (self.draws[:, a] - self.draws[:, b]).var(axis=0, ddof=1)
        reach = np.sqrt(np.maximum(seen, floor_a + floor_b))
        reach *= stretched_quantile(self.level)
        low = np.minimum(centre_a - centre_b - reach, estimate)
        high = np.maximum(centre_a - centre_b + reach, estimate)
        return Difference(estimate, np.maximum(low, -1), np.minimum(high, 1))

    def to_pandas(self) -> Any:
        """Tidy table with one row per domain and class."""
        import pandas as pd

        n_domains, n_classes = self.prevalence.shape
        return pd.DataFrame(
            {
                "domain": np.repeat(self.domains, n_classes),
                "class_id": np.tile(np.arange(n_classes), n_domains),
                "class_name": np.tile(self.class_names, n_domains),
                "estimate": self.prevalence.ravel(),
                "low": self.low.ravel(),
                "high": self.high.ravel(),
                "level": self.level,
                "n_rows": np.repeat(self.n_rows, n_classes),
            }
        )

    def _index(self, domain: Any) -> int:
        codes = encode_domains([domain], self.domains, n_samples=1)
        assert codes is not None
        return int(codes[0])


def bootstrap(
    estimator: Any,
    X: Any,
    domains: Any,
    *,
    n_resamples: int = 200,
    level: float = 0.9,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Intervals:
    """Intervals for ``prevalence_`` by resampling rows within domains.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
    X : array-like of shape (n_samples, n_features)
        The rows of fit.
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    n_resamples : int, default=200
    level : float, default=0.9
        Nominal coverage of each interval.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Intervals

    Notes
    -----
    The intervals cover the chance in which rows were seen. They do not cover a wrong
    number of classes, a fit that misses the best solution, or domains between which
    the classes themselves look different. Every row counts once: the sample weights of
    fit, if any, are not kept.

    A :class:`~shoal.DomainMixture` refits weights and prevalences from the fitted
    ones. :class:`~shoal.DDFA` and :class:`~shoal.DiscreteMixture` factorize the
    resampled table of clusters (words) by domains again, from the start: that is cheap
    and, measured, covers better than EM from the fitted factors. An estimator may bring
    its own way: ``_warm_refit(X, codes)`` returns a function from a random generator to
    a :class:`Resample`, its classes matched. Any other estimator keeps its q(y|x).

    References
    ----------
    B. Efron, R. J. Tibshirani (1993). An Introduction to the Bootstrap. A. Agresti,
    B. A. Coull (1998). Approximate is better than "exact" for interval estimation of
    binomial proportions. The American Statistician 52.

    Examples
    --------
    >>> from shoal.datasets.generated import make_latent_shift
    >>> from shoal.mixture import DomainMixture
    >>> X, domains, _ = make_latent_shift(
    ...     1000, n_classes=2, n_domains=3, separation=2.0, random_state=0)
    >>> model = DomainMixture(2, search=False, random_state=0).fit(X, domains)
    >>> intervals = model.bootstrap(X, domains, n_resamples=20, random_state=0)
    >>> intervals.draws.shape
    (20, 3, 2)
    >>> bool((intervals.low <= model.prevalence_).all())
    True
    """
    check_is_fitted(estimator)
    if not is_whole(n_resamples) or n_resamples < 2:
        raise ValueError(
            f"n_resamples must be a whole number from 2, got {n_resamples!r}"
        )
    stretched_quantile(level)
    X = estimator._check_rows(X)
    codes = _check_codes(estimator, X, domains)
    refit = _refitter(estimator, X, codes)
    classes = np.asarray(estimator._posterior(X, codes, None).argmax(axis=1))
    largest = np.iinfo(np.int32).max
    seeds = check_random_state(random_state).randint(largest, size=n_resamples)
    draws = np.empty((n_resamples, *estimator.prevalence_.shape))
    kept = np.zeros(X.shape[0], dtype=int)
    with warnings.catch_warnings():
        # What cannot be told apart was said by fit, once.
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(refit)(np.random.default_rng(seed)) for seed in seeds
        )
        for index, resample in enumerate(found):
            draws[index] = resample.prevalence
            kept += resample.classes == classes
    n_rows = _count_rows(estimator, X, codes)
    low, high = prevalence_interval(
        estimator.prevalence_, draws.var(axis=0, ddof=1), n_rows[:, None], level
    )
    return Intervals(
        prevalence=estimator.prevalence_,
        low=low,
        high=high,
        level=level,
        draws=draws,
        co_assignment=kept / n_resamples,
        domains=estimator.domains_,
        class_names=list(estimator.class_names_),
        n_rows=n_rows,
    )


def _check_codes(estimator: Any, X: Any, domains: Any) -> Array:
    n_samples, n_domains = X.shape[0], len(estimator.domains_)
    if domains is None and _counts_words(estimator) and n_samples == n_domains:
        return np.arange(n_samples)  # as in fit: every document its own domain
    if domains is None:
        raise ValueError("domains must be passed: the domain of each row of fit")
    codes = encode_domains(domains, estimator.domains_, n_samples=n_samples)
    assert codes is not None
    missing = np.bincount(codes, minlength=n_domains) == 0
    if missing.any():
        name = estimator.domains_[int(np.argmax(missing))]
        raise ValueError(
            f"domains has no rows of {name!r}, which fit has seen; pass all rows of fit"
        )
    return np.array(codes)


def _counts_words(estimator: Any) -> bool:
    return getattr(estimator, "input", "rows") == "counts"


def _count_rows(estimator: Any, X: Any, codes: Array) -> Array:
    each = np.ravel(X.sum(axis=1)) if _counts_words(estimator) else None
    count = np.bincount(codes, weights=each, minlength=len(estimator.domains_))
    return count.astype(np.int64)


# ---- ways to refit ---------------------------------------------------------------


def _refitter(estimator: Any, X: Any, codes: Array) -> Refit:
    """The refit that suits what the estimator has fitted."""
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
