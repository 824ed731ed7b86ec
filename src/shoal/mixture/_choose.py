"""The public door to a number of classes, with DomainMixture as its default."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from shoal._work import one_thread
from shoal.analysis._choose import NClassesChoice, conclude
from shoal.analysis._refits import Order, Trials
from shoal.mixture._estimator import DomainMixture
from shoal.validation import check_whole


def choose_n_classes(
    X: Any,
    domains: Any,
    n_classes: Iterable[int] | None = None,
    *,
    estimator: Any = None,
    n_folds: int | None = None,
    n_resamples: int = 5,
    time_limit: float | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> NClassesChoice:
    """Try several numbers of classes, and choose one if the data do.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,)
        Where each row comes from. None for counts of words: every row is a domain of
        its own.
    n_classes : iterable of int, default=None
        Candidates, such as ``range(2, 9)``. None: from 2 to a few more than the rank
        of the cluster-by-domain table, at least to 8, at most the number of domains.
    estimator : LatentShiftEstimator, default=None
        What is fitted. A :class:`~shoal.DomainMixture`, the default, takes a fast path
        on a sample of at most 6,000 rows, with its own features and penalties where
        these are given; any other is cloned and fitted for every candidate and fold.
        Of counts, each word is a row, at most 50,000 of them.
    n_folds : int, default=None
        Folds of the held-out likelihood, stratified by domain; None: 3, or 5 for
        fewer than 2,000 rows.
    n_resamples : int, default=5
        Resamples behind the stability; 0 leaves it out.
    time_limit : float, default=None
        Seconds after which no further number of classes, nor resample, is begun.
        Numbers near the rank come first: those left out are the least likely.
    n_jobs : int, default=None
        Threads; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    NClassesChoice
        The curve, the choice (None for "no clear number") and a sentence.

    Notes
    -----
    The rule: the rank of the cluster-by-domain table unless held-out rows refute it by
    two standard errors; otherwise the fewest classes within one of the best. There is
    no clear number when domains do not differ, when the likelihood still rises at the
    largest candidate, or when those within one error are many. Never more classes than
    domains. Where a DomainMixture hears looks, the likelihood is the mean of what
    shift and looks say.

    Examples
    --------
    >>> from shoal import choose_n_classes
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     1500, n_classes=3, n_domains=6, separation=1.5, random_state=0)
    >>> choice = choose_n_classes(X, domains, range(2, 6), random_state=0)
    >>> choice.n_classes
    3
    """
    if n_folds is not None:
        check_whole(2, n_folds=n_folds)
    check_whole(0, n_resamples=n_resamples)
    trials = Trials(
        n_classes=n_classes,
        n_folds=n_folds,
        n_resamples=n_resamples,
        n_jobs=n_jobs,
        rng=np.random.default_rng(
            check_random_state(random_state).randint(np.iinfo(np.int32).max)
        ),
        order=Order(time_limit),
    )
    model = DomainMixture() if estimator is None else clone(estimator)
    with one_thread():
        return conclude(model._evidence(X, domains, trials))
