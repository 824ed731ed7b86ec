"""Intervals for prevalences: rows resampled within domains, the cheap half refitted."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal._work import counted, one_thread
from shoal.analysis._resample import (
    Refit,
    Resample,
    check_all_domains,
    count_units,
    count_words_or_bags,
    prevalence_interval,
    shrunken,
    stretched_quantile,
)
from shoal.exceptions import IdentifiabilityWarning, ShoalWarning
from shoal.validation import check_whole
from shoal.validation._domains import check_sample_weight, encode_domains

Array = np.ndarray[Any, Any]

LARGEST = np.iinfo(np.int32).max
# Coverage of the inner intervals that are drawn within the others.
HALF = 0.5


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
        Prevalences of the resamples, classes matched to the estimate; where looks and
        shift were both heard, moved by how far the two differ, and by how far looks
        with two Gaussians a class do, one way and the other in turn.
    co_assignment : ndarray of shape (n_samples,)
        Share of the resamples in which each row, given its domain, keeps its class;
        for DDFA, the class of its cluster.
    domains : ndarray of shape (n_domains,)
    class_names : list of str
    n_rows : ndarray of shape (n_domains,)
        Number of rows behind each domain; of a domain that is a single bag of words,
        the number of these; of weighted rows, their whole weights or the number of
        equally weighted rows as precise.
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

    def middle_half(self) -> tuple[Array, Array]:
        """Intervals with a coverage of one half, made as the others and inside them."""
        variance = self.draws.var(axis=0, ddof=1)
        rows = np.asarray(self.n_rows)[:, None]
        low, high = prevalence_interval(self.prevalence, variance, rows, HALF)
        return np.clip(low, self.low, self.high), np.clip(high, self.low, self.high)

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
    sample_weight: Any = None,
    n_resamples: int = 200,
    level: float = 0.9,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Intervals:
    """Intervals for ``prevalence_`` by resampling rows within domains.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
    X, domains, n_resamples, level, n_jobs, random_state
        As in its ``bootstrap``.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of fit. Whole numbers are copies of a row; with others, rows are
        drawn whatever their weight and then count their weight.

    Returns
    -------
    Intervals

    Notes
    -----
    The intervals cover the chance in which rows were seen and, of a
    :class:`~shoal.DomainMixture` that heard both, how far looks and shift differ on the
    rows of fit, and how far looks do whose classes are in two pieces each. They do not
    cover what all of these miss: a wrong number of classes, or domains between which
    the classes themselves look different.

    A :class:`~shoal.DomainMixture` refits weights and prevalences from the fitted
    ones, and from anchors of its own as well where a resample may end elsewhere.
    :class:`~shoal.DDFA` and :class:`~shoal.DiscreteMixture` factorize the
    resampled table of clusters (words) by domains again, from the start: that is cheap
    and, measured, covers better than EM from the fitted factors. Any other estimator
    keeps its q(y|x), unless it brings a way of its own: the hook ``_resampler``.

    References
    ----------
    B. Efron, R. J. Tibshirani (1993). An Introduction to the Bootstrap. A. Agresti,
    B. A. Coull (1998). Approximate is better than "exact" for interval estimation of
    binomial proportions. The American Statistician 52.

    Examples
    --------
    >>> from shoal.datasets import make_latent_shift
    >>> from shoal.mixture import DomainMixture
    >>> X, domains, _ = make_latent_shift(
    ...     1000, n_classes=2, n_domains=3, separation=2.0, random_state=1)
    >>> model = DomainMixture(2, search=False, random_state=0).fit(X, domains)
    >>> intervals = model.bootstrap(X, domains, n_resamples=20, random_state=0)
    >>> intervals.draws.shape
    (20, 3, 2)
    >>> bool((intervals.low <= model.prevalence_).all())
    True
    """
    check_is_fitted(estimator)
    check_whole(2, n_resamples=n_resamples)
    stretched_quantile(level)
    X = estimator._check_rows(X)
    codes = check_all_domains(estimator, X, domains)
    origin = estimator._origin
    weight = _check_weight(origin, sample_weight, codes)
    with one_thread():
        resampler = origin._resampler(X, codes, weight)
    merged = estimator._add_up(np.eye(origin.n_classes_)).argmax(axis=1)
    own = merged[resampler.classes]
    seeds = check_random_state(random_state).randint(LARGEST, size=n_resamples)
    draws = np.empty((n_resamples, *estimator.prevalence_.shape))
    kept = np.zeros(X.shape[0], dtype=int)
    refits = counted(_resample(resampler.refit, seeds, n_jobs), n_resamples)
    for index, resample in enumerate(refits):
        draws[index] = estimator._add_up(resample.prevalence)
        kept += merged[resample.classes] == own
    draws = _moved(draws, _doubts(estimator, X, codes))
    n_rows = _count_rows(origin, X, codes, weight)
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


def _resample(refit: Refit, seeds: Array, n_jobs: int | None) -> Iterator[Resample]:
    """Refits one after the other, in the order of the seeds."""
    with one_thread(), warnings.catch_warnings():
        # What cannot be told apart was said by fit, once.
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        yield from Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(refit)(np.random.default_rng(seed)) for seed in seeds
        )


def _doubts(estimator: Any, X: Any, codes: Array) -> list[Array]:
    """How far other fits of the rows move the estimate, of the classes asked about."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)  # fit has said its own
        return [estimator._add_up(one) for one in estimator._in_doubt(X, codes)]


def _moved(draws: Array, doubts: list[Array]) -> Array:
    """Draws moved, one way and the other in turn, by what each other fit differs by.

    Their variance so grows by the squared differences, as if any could be right.
    """
    moved = draws
    for place, doubt in enumerate(doubts):
        turns = np.where(np.arange(len(draws)) >> place & 1, 1.0, -1.0)
        moved = moved + turns[:, None, None] * doubt
    moved = np.clip(moved, 0, 1)
    return np.asarray(moved / moved.sum(axis=2, keepdims=True))


def _check_weight(fitted: Any, sample_weight: Any, codes: Array) -> Array | None:
    """The weights of fit: all or none of the two may have them."""
    if fitted._was_weighted and sample_weight is None:
        raise ValueError(
            "sample_weight must be passed: fit was given weights; pass the same ones"
        )
    if sample_weight is None:
        return None
    if not fitted._was_weighted:
        raise ValueError("sample_weight must be None: fit was not given weights")
    return check_sample_weight(
        sample_weight, len(codes), codes=codes, names=fitted.domains_
    )


def _count_rows(fitted: Any, X: Any, codes: Array, weight: Array | None) -> Array:
    n_domains = len(fitted.domains_)
    if fitted._counts_words:
        return count_words_or_bags(X, codes, n_domains)
    return count_units(codes, weight, n_domains)
