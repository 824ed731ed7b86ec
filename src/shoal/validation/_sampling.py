"""Samples and folds of rows, drawn within domains."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def stratified_sample(codes: Array, max_rows: int, rng: np.random.Generator) -> Array:
    """At most ``max_rows`` row numbers, spread as evenly over domains as they allow.

    ``codes`` is sorted. A small domain gives all its rows and leaves its unused share
    to the larger ones.
    """
    n_domains = int(codes[-1]) + 1
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    sizes = np.bincount(codes, minlength=n_domains)
    quota = even_quota(sizes, max_rows)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    picks = [
        start + np.sort(rng.choice(size, take, replace=False))
        for start, size, take in zip(starts, sizes, quota, strict=True)
    ]
    return np.concatenate(picks)


def even_quota(sizes: Array, max_rows: int) -> Array:
    """How many rows each domain gives to a sample of at most ``max_rows``.

    >>> even_quota(np.array([5, 100, 100]), 45)
    array([ 5, 20, 20])
    """
    quota = np.zeros(len(sizes), dtype=int)
    left = max_rows
    for rank, domain in enumerate(np.argsort(sizes, kind="stable")):
        quota[domain] = min(sizes[domain], left // (len(sizes) - rank))
        left -= quota[domain]
    return quota


def fold_of_rows(codes: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Fold of each row; every domain is spread evenly over the folds."""
    folds = np.empty(len(codes), dtype=int)
    for domain in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == domain)
        folds[rows] = (rng.permutation(len(rows)) + domain) % n_folds
    return folds
