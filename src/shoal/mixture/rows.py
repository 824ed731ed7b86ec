"""Order and samples of rows that do not depend on how the user's table was sorted.

Random starts draw row numbers. If those numbers meant another row whenever the table
is shuffled, the same data would give other classes; so rows are first put into an
order that only their content decides.
"""

from typing import Any

import numpy as np

from shoal.validation import is_sparse

__all__ = ["canonical_rows", "fold_of_rows", "stratified_sample"]

Array = np.ndarray[Any, Any]

BLOCK_ROWS = 8192


def canonical_rows(Z: Any, codes: Array) -> Array:
    """Order of rows by domain, then by content.

    The content key is symmetric in the columns and computed row by row, so neither
    shuffled rows nor shuffled columns change the order.
    """
    key = np.zeros(Z.shape[0])
    for start in range(0, len(key), BLOCK_ROWS):
        block = Z[start : start + BLOCK_ROWS]
        square = block.multiply(block) if is_sparse(Z) else block * block
        total = np.asarray(block.sum(axis=1), dtype=float).ravel()
        total += 0.37 * np.asarray(square.sum(axis=1), dtype=float).ravel()
        key[start : start + BLOCK_ROWS] = total
    # the last digits depend on the order of the sum
    key = np.round(key, 9)
    order = np.lexsort([key, codes])
    tied = (np.diff(key[order]) == 0) & (np.diff(codes[order]) == 0)
    if is_sparse(Z) or not tied.any():
        return order
    return np.lexsort([*Z.T, key, codes])


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
