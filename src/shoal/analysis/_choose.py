"""How many classes: a curve and a choice, not only a number.

What the choice rests on is told in :mod:`shoal.analysis._decide`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.utils import check_random_state

from shoal.analysis._decide import Evidence, check_candidates, decide
from shoal.analysis._draws import match_by_rows
from shoal.analysis._refits import Order, refit_evidence
from shoal.likelihood._problem import Fit
from shoal.mixture._curve import Curve, Point, baseline, make_curve, quiet_rank
from shoal.validation import check_whole, check_X_domains

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class NClassesChoice:
    """Outcome of :func:`choose_n_classes`.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,)
        Numbers of classes tried, ascending.
    held_out : ndarray of shape (n_candidates,)
        Mean log-likelihood of the domains on held-out rows, in nats; higher is better.
    standard_error : ndarray of shape (n_candidates,)
        Of ``held_out``. Mostly common to all candidates; compare them by the next.
    difference_error : ndarray of shape (n_candidates,)
        Standard error of the paired difference to the best candidate.
    stability : ndarray of shape (n_candidates,)
        Mean share of rows that keep their class when rows are drawn again; NaN
        without resamples. Small numbers of classes are stable even when wrong.
    identifiable : ndarray of shape (n_candidates,)
        False for more classes than domains: drawn, never chosen.
    singular_values : ndarray
        Of the cluster-by-domain table, largest first: the first belongs to the second
        class, the next to the third, and so on.
    null : ndarray of shape (n_null,)
        Largest singular value under permuted domains.
    rank : int
        Number of classes the singular values support.
    baseline : float
        ``held_out`` of knowing nothing but the weights of the domains.
    n_classes : int or None
        The choice; None when there is no clear one.
    sentence : str
        The choice and its reason in plain words.
    signal : bool
        False where domains do not differ beyond chance: nothing to learn from.
    """

    candidates: Array
    held_out: Array
    standard_error: Array
    difference_error: Array
    stability: Array
    identifiable: Array
    singular_values: Array = field(repr=False)
    null: Array = field(repr=False)
    rank: int
    baseline: float
    n_classes: int | None
    sentence: str
    signal: bool = True

    def to_pandas(self) -> Any:
        """Table with one row per candidate."""
        import pandas as pd

        padded = np.full(max(self.candidates.max(), len(self.singular_values) + 1), 0.0)
        padded[: len(self.singular_values)] = self.singular_values
        return pd.DataFrame(
            {
                "n_classes": self.candidates,
                "held_out": self.held_out,
                "standard_error": self.standard_error,
                "difference_error": self.difference_error,
                "stability": self.stability,
                "singular_value": padded[self.candidates - 2],
                "null": self.null.max(),
                "identifiable": self.identifiable,
                "chosen": self.candidates == (self.n_classes or 0),
            }
        )

    def __str__(self) -> str:
        lines = ["classes  held-out  behind best  stability"]
        best = self.held_out.max()
        for index, count in enumerate(self.candidates):
            mark = " <" if count == self.n_classes else ""
            mark = mark if self.identifiable[index] else " (not identifiable)"
            lines.append(
                f"{count:7d}  {self.held_out[index]:8.4f}  "
                f"{best - self.held_out[index]:.4f}+-{self.difference_error[index]:.4f}"
                f"  {self.stability[index]:.3f}{mark}"
            )
        return "\n".join([*lines, self.sentence])


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
    The rule: with k* the best on held-out rows, the rank of the cluster-by-domain table
    is taken if it is within two standard errors of k*; otherwise the number nearest to
    the rank among those within one. There is no clear number when domains do not
    differ, when the likelihood still rises at the largest candidate, or when that
    last set is wide. Never more classes than domains.

    Examples
    --------
    >>> from shoal.analysis._choose import choose_n_classes
    >>> from shoal.datasets._generated import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     1500, n_classes=3, n_domains=6, separation=1.5, random_state=0)
    >>> choice = choose_n_classes(X, domains, range(2, 6), random_state=0)
    >>> choice.n_classes
    3
    """
    from shoal.mixture._estimator import DomainMixture

    if n_folds is not None:
        check_whole(2, n_folds=n_folds)
    check_whole(0, n_resamples=n_resamples)
    order = Order(time_limit)
    rng = np.random.default_rng(
        check_random_state(random_state).randint(np.iinfo(np.int32).max)
    )
    model = DomainMixture() if estimator is None else clone(estimator)
    collect = _mixture_evidence if isinstance(model, DomainMixture) else refit_evidence
    evidence = collect(
        model, X, domains, n_classes, rng, n_folds, n_resamples, n_jobs, order
    )
    return _conclude(evidence)


# ---- the two ways to a curve -----------------------------------------------------


def _mixture_evidence(
    model: Any,
    X: Any,
    domains: Any,
    n_classes: Iterable[int] | None,
    rng: np.random.Generator,
    n_folds: int | None,
    n_resamples: int,
    n_jobs: int | None,
    order: Order,
) -> Evidence:
    X, codes, names = check_X_domains(model, X, domains, accept_sparse=True)
    rows, options = model._training_rows(X, codes, names, None), model._options()
    rank = quiet_rank(rows, options, rng)
    candidates = check_candidates(n_classes, rank.n_classes, rows.n_domains)
    curve = make_curve(
        rows,
        rank.n_classes,
        candidates[-1],
        options,
        rng,
        n_folds=n_folds,
        n_jobs=n_jobs,
    )
    points: dict[int, Point] = {}
    for some in order.groups(candidates, rank.n_classes):
        curve.extend(points, some)
    seeds = rng.integers(2**31 - 1, size=n_resamples)
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

    found = Parallel(n_jobs=curve.n_jobs, prefer="threads")(
        delayed(agreement)(int(seed)) for seed in seeds
    )
    known = [share for share in found if share == share]
    return float(np.mean(known)) if known else float("nan")


def _conclude(evidence: Evidence) -> NClassesChoice:
    scores = evidence.scores
    candidates = np.array(list(scores))
    identifiable = candidates <= evidence.n_domains
    mean = np.array([score.mean for score in scores.values()])
    possible = mean if not identifiable.any() else np.where(identifiable, mean, -np.inf)
    top = scores[int(candidates[possible.argmax()])]
    decision = decide(evidence)
    return NClassesChoice(
        candidates=candidates,
        held_out=mean,
        standard_error=np.array([one.standard_error() for one in scores.values()]),
        difference_error=np.array([top.standard_error(s) for s in scores.values()]),
        stability=np.array([evidence.stability[count] for count in scores]),
        identifiable=identifiable,
        singular_values=evidence.rank.singular_values,
        null=evidence.rank.null,
        rank=evidence.rank.n_classes,
        baseline=evidence.baseline.mean,
        n_classes=decision.n_classes,
        sentence=decision.sentence,
        signal=decision.signal,
    )
