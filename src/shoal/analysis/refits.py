"""Held-out likelihood of any estimator: cloned and fitted for every k and fold."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from shoal.analysis.curve import (
    LEAST_CLUSTERS,
    ROWS_PER_CELL,
    Evidence,
    check_candidates,
    default_folds,
    smooth,
)
from shoal.analysis.matching import match_by_rows
from shoal.analysis.rank import RankResult, supported_rank
from shoal.exceptions import ShoalWarning
from shoal.mixture.held_out import HeldOut
from shoal.mixture.rows import fold_of_rows
from shoal.probability import TINY
from shoal.validation import check_domains, resolve_domain_weight, row_weights

__all__ = ["refit_evidence"]

Array = np.ndarray[Any, Any]


def refit_evidence(
    model: Any,
    X: Any,
    domains: Any,
    n_classes: Iterable[int] | None,
    rng: np.random.Generator,
    n_folds: int | None,
    n_resamples: int,
    n_jobs: int | None,
) -> Evidence:
    """Scores, stability and rank for an estimator without a faster way.

    ``model`` is an unfitted LatentShiftEstimator; rows of X are picked by number.
    """
    X = _indexable(X)
    codes, names = check_domains(domains, n_samples=X.shape[0])
    if "random_state" in model.get_params():
        model = clone(model).set_params(random_state=int(rng.integers(2**31 - 1)))
    with warnings.catch_warnings():
        # Each fit would repeat what the user has seen, or will see, once.
        warnings.simplefilter("ignore", ShoalWarning)
        rank = _rank(model, X, codes, rng)
        candidates = check_candidates(n_classes, rank.n_classes, len(names))
        folds = fold_of_rows(codes, n_folds or default_folds(len(codes)), rng)
        seeds = rng.integers(2**31 - 1, size=n_resamples)
        found = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_evaluate)(_with_classes(model, count), X, codes, folds, seeds)
            for count in candidates
        )
    sizes = np.bincount(codes)
    share = resolve_domain_weight(model.domain_weight, np.arange(len(names)), sizes)
    weight = row_weights(codes, share)
    each = [smooth(HeldOut(score, weight), len(names)) for score, _ in found]
    return Evidence(
        dict(zip(candidates, each, strict=True)),
        {count: kept for count, (_, kept) in zip(candidates, found, strict=True)},
        rank,
        HeldOut(np.log(share)[codes], weight),
        len(names),
    )


def _evaluate(
    model: Any, X: Any, codes: Array, folds: Array, seeds: Array
) -> tuple[Array, float]:
    """Out-of-fold log q(d|x) of every row, and the stability of the classes."""
    score = np.full(len(codes), np.log(TINY))
    for fold in range(int(folds.max()) + 1):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        fitted = clone(model).fit(X[train], domains=codes[train])
        rows = fitted._check_rows(X[test])
        domain_given_x = fitted._class_given_x(rows) @ fitted.domain_given_class_
        column = np.searchsorted(fitted.domains_, codes[test])
        known = np.isin(codes[test], fitted.domains_)
        own = domain_given_x[np.flatnonzero(known), column[known]]
        score[test[known]] = np.log(np.maximum(own, TINY))
    kept = float("nan")
    if len(seeds):
        whole = clone(model).fit(X, domains=codes)
        kept = float(np.mean([_agreement(whole, X, codes, seed) for seed in seeds]))
    return score, kept


def _agreement(whole: Any, X: Any, codes: Array, seed: int) -> float:
    """Share of rows that keep their class when every domain's rows are drawn again."""
    generator = np.random.default_rng(seed)
    drawn = np.concatenate(
        [
            generator.choice(np.flatnonzero(codes == code), int((codes == code).sum()))
            for code in range(int(codes.max()) + 1)
        ]
    )
    other = clone(whole).fit(X[drawn], domains=codes[drawn])
    before, after = whole.predict(X, codes), other.predict(X, codes)
    renamed = match_by_rows(before, after, whole.n_classes_)
    return float(np.mean(renamed[after] == before))


def _rank(model: Any, X: Any, codes: Array, rng: np.random.Generator) -> RankResult:
    """Rank of the estimator's own table where it keeps one, else of clusters of X."""
    if hasattr(model, "input"):
        return clone(model).set_params(n_classes=None).fit(X, domains=codes).rank_
    from shoal.stages.discretize import KMeansDiscretizer

    points = np.asarray(X, dtype=float)
    spread = points.std(axis=0)
    n_domains = int(codes.max()) + 1
    most = max(len(points) // (ROWS_PER_CELL * n_domains), 4)
    n_clusters = min(max(LEAST_CLUSTERS, 3 * n_domains // 2), most)
    seed = int(rng.integers(2**31 - 1))
    kmeans = KMeansDiscretizer(n_clusters, n_init=1, random_state=seed)
    clusters = kmeans.fit(points / np.where(spread > 0, spread, 1)).labels_
    return supported_rank(clusters, codes, random_state=seed)


def _with_classes(model: Any, count: int) -> Any:
    changes: dict[str, Any] = {"n_classes": count}
    if "check_identifiable" in model.get_params():
        changes["check_identifiable"] = False
    return clone(model).set_params(**changes)


def _indexable(X: Any) -> Any:
    """Rows that can be picked by number, whatever kind of table they come from."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    if hasattr(X, "to_numpy"):
        return X.to_numpy()
    return np.asarray(X)
