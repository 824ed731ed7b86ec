"""Samples and folds of rows, drawn within domains."""

from typing import Any

import numpy as np

__all__ = ["fold_of_rows", "stratified_sample"]

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
    quota = np.zeros(n_domains, dtype=int)
    left = max_rows
    for rank, domain in enumerate(np.argsort(sizes, kind="stable")):
        quota[domain] = min(sizes[domain], left // (n_domains - rank))
        left -= quota[domain]
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    picks = [
        start + np.sort(rng.choice(size, take, replace=False))
        for start, size, take in zip(starts, sizes, quota, strict=True)
    ]
    return np.concatenate(picks)


def fold_of_rows(codes: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Fold of each row; every domain is spread evenly over the folds."""
    folds = np.empty(len(codes), dtype=int)
    for domain in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == domain)
        folds[rows] = (rng.permutation(len(rows)) + domain) % n_folds
    return folds
