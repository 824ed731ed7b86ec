"""Held-out likelihood of any estimator, cloned and fitted for every k and fold."""

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from shoal.analysis._choose import (
    Evidence,
    check_candidates,
    default_folds,
    rank_clusters,
    smooth,
)
from shoal.analysis._rank import RankResult, supported_rank
from shoal.analysis._resample import match_by_rows
from shoal.exceptions import ShoalWarning
from shoal.probability import TINY, HeldOut
from shoal.stages.discretize import KMeansDiscretizer
from shoal.validation import check_domains, resolve_domain_weight, row_weights
from shoal.validation._domains import encode_domains
from shoal.validation._rows import fold_of_rows

# ---- What to try first where time is short -------------------------------------------

# Numbers of classes this far below and above the rank are always tried.
BELOW, ABOVE = 1, 2


class Order:
    """Numbers of classes in the order in which they are tried.

    Parameters
    ----------
    time_limit : float or None
        Seconds from now; None for all the time in the world.
    now : callable, default=time.monotonic
        The clock.
    """

    def __init__(
        self, time_limit: float | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(
                f"time_limit must be seconds above 0 or None, got {time_limit!r}"
            )
        self._now = now
        self._end = None if time_limit is None else now() + time_limit

    def late(self) -> bool:
        """Whether the time is over."""
        return self._end is not None and self._now() > self._end

    def groups(self, candidates: Sequence[int], rank: int) -> Iterator[list[int]]:
        """Candidates in groups, until the time is over; the first comes always.

        Without a limit, all at once. With one, first those around the rank, then the
        others one by one, the nearest first.
        """
        if self._end is None:
            yield list(candidates)
            return
        near = [k for k in candidates if rank - BELOW <= k <= rank + ABOVE]
        rest = sorted(set(candidates) - set(near), key=lambda k: (abs(k - rank), k))
        groups = [near] if near else []
        for number, group in enumerate([*groups, *([k] for k in rest)]):
            if number and self.late():
                return
            yield group


@dataclass(frozen=True)
class Trials:
    """Which numbers of classes are tried, and how.

    Attributes
    ----------
    n_classes : iterable of int or None
        Candidates; None for those around the rank.
    n_folds : int or None
    n_resamples : int
        Behind the stability.
    n_jobs : int or None
    rng : numpy Generator
    order : Order
    """

    n_classes: Iterable[int] | None
    n_folds: int | None
    n_resamples: int
    n_jobs: int | None
    rng: np.random.Generator
    order: Order

    def candidates(self, rank: int, n_domains: int) -> list[int]:
        """Numbers of classes to try, ascending."""
        return check_candidates(self.n_classes, rank, n_domains)


# ---- fits with every number of classes -----------------------------------------------

Array = np.ndarray[Any, Any]
# From a model, its rows and their domains: how many classes a table of these supports.
RankOf = Callable[[Any, Any, Array, Array, np.random.Generator], RankResult]


def evidence_of_rows(model: Any, X: Any, domains: Any, trials: Trials) -> Evidence:
    """What speaks for each number of classes, of an estimator of numeric rows."""
    X = indexable(X)
    codes, names = check_domains(domains, n_samples=X.shape[0])
    return evidence_of_refits(model, X, codes, names, trials, _rank_of_rows)


def evidence_of_refits(
    model: Any, X: Any, codes: Array, names: Array, trials: Trials, rank_of: RankOf
) -> Evidence:
    """Scores and stability by a fit for every number of classes and fold, and a rank.

    ``model`` is an unfitted LatentShiftEstimator; rows of X are picked by number.
    """
    rng = trials.rng
    if "random_state" in model.get_params():
        model = clone(model).set_params(random_state=int(rng.integers(2**31 - 1)))
    with warnings.catch_warnings():
        # Each fit would repeat what the user has seen, or will see, once.
        warnings.simplefilter("ignore", ShoalWarning)
        rank = rank_of(model, X, codes, names, rng)
        candidates = trials.candidates(rank.n_classes, len(names))
        folds = fold_of_rows(codes, trials.n_folds or default_folds(len(codes)), rng)
        seeds = rng.integers(2**31 - 1, size=trials.n_resamples)
        rows = X, codes, names, folds, seeds, trials.order
        found: dict[int, tuple[Array, float]] = {}
        for some in trials.order.groups(candidates, rank.n_classes):
            tried = Parallel(n_jobs=trials.n_jobs, prefer="threads")(
                delayed(_evaluate)(with_classes(model, count), *rows) for count in some
            )
            found |= zip(some, tried, strict=True)
    share = resolve_domain_weight(model.domain_weight, names, np.bincount(codes))
    weight = row_weights(codes, share)
    return Evidence(
        {k: smooth(HeldOut(found[k][0], weight), len(names)) for k in sorted(found)},
        {k: found[k][1] for k in sorted(found)},
        rank,
        HeldOut(np.log(share)[codes], weight),
        len(names),
    )


def _evaluate(
    model: Any,
    X: Any,
    codes: Array,
    names: Array,
    folds: Array,
    seeds: Array,
    order: Order,
) -> tuple[Array, float]:
    """Out-of-fold log q(d|x) of every row, and the stability of the classes."""
    score = np.full(len(codes), np.log(TINY))
    for fold in range(int(folds.max()) + 1):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = clone(model).fit(X[train], domains=names[codes[train]])
        rows = fitted._check_rows(X[test])
        domain_given_x = fitted._class_given_x(rows) @ fitted.domain_given_class_
        # a domain whose only rows are held out is unknown to the fit
        column = np.full(len(names), -1)
        known = np.unique(codes[train])
        column[known] = encode_domains(
            names[known], fitted.domains_, n_samples=len(known)
        )
        own = column[codes[test]]
        seen = np.flatnonzero(own >= 0)
        score[test[seen]] = np.log(np.maximum(domain_given_x[seen, own[seen]], TINY))
    kept: list[float] = []
    if len(seeds) and not order.late():
        domains = names[codes]
        whole = clone(model).fit(X, domains=domains)
        for seed in seeds:
            if not (kept and order.late()):
                kept.append(_agreement(whole, X, codes, domains, seed))
    return score, float(np.mean(kept)) if kept else float("nan")


def _agreement(whole: Any, X: Any, codes: Array, domains: Array, seed: int) -> float:
    """Share of rows that keep their class when every domain's rows are drawn again."""
    generator = np.random.default_rng(seed)
    drawn = np.concatenate(
        [
            generator.choice(np.flatnonzero(codes == code), int((codes == code).sum()))
            for code in range(int(codes.max()) + 1)
        ]
    )
    other = clone(whole).fit(X[drawn], domains=domains[drawn])
    before, after = whole.predict(X, domains), other.predict(X, domains)
    renamed = match_by_rows(before, after, whole.n_classes_)
    return float(np.mean(renamed[after] == before))


def _rank_of_rows(
    model: Any, X: Any, codes: Array, names: Array, rng: np.random.Generator
) -> RankResult:
    return rank_of_clusters(X, codes, names, rng)


def rank_of_clusters(
    X: Any, codes: Array, names: Array, rng: np.random.Generator
) -> RankResult:
    """Rank of a table of clusters of X by domains."""
    points = np.asarray(X, dtype=float)
    spread = points.std(axis=0)
    n_clusters = rank_clusters(len(points), len(names))
    seed = int(rng.integers(2**31 - 1))
    kmeans = KMeansDiscretizer(n_clusters, n_init=1, random_state=seed)
    clusters = kmeans.fit(points / np.where(spread > 0, spread, 1)).labels_
    return supported_rank(clusters, codes, random_state=seed)


def with_classes(model: Any, count: int) -> Any:
    """An unfitted clone for so many classes, identifiable or not."""
    changes: dict[str, Any] = {"n_classes": count}
    if "check_identifiable" in model.get_params():
        changes["check_identifiable"] = False
    return clone(model).set_params(**changes)


def indexable(X: Any) -> Any:
    """Rows that can be picked by number, whatever kind of table they come from."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return np.asarray(X)
