"""Training rows in an order that only their content decides.

Folds, restarts and samples draw row numbers. If these meant other rows whenever the
table is shuffled, the same data would give other classes, and one row of weight 3
would not be the same as three rows.
"""

from typing import Any, NamedTuple

import numpy as np

from shoal.validation import is_sparse

__all__ = [
    "CanonicalRows",
    "canonical_rows",
    "copies_of",
    "match_keys",
    "row_keys",
    "sort_rows",
]

Array = np.ndarray[Any, Any]

BLOCK_ROWS = 8192

# Whole-number weights become repeated rows, up to a table this much longer.
MOST_REPEATS = 10


class CanonicalRows(NamedTuple):
    """Rows to train on.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Domain of each row.
    weight : ndarray of shape (n_rows,) or None
        Positive; None where every row counts once.
    order : ndarray of shape (n_rows,)
        Which of the given rows each of them is.
    """

    X: Any
    codes: Array
    weight: Array | None
    order: Array

    def restore_order(
        self, domain_given_x: Array, discriminator: Any, discretizer: Any
    ) -> None:
        """Let stages keep what they say of each row as fit was given the rows.

        Rows without weight get what the fitted stages say of them.

        Parameters
        ----------
        domain_given_x : ndarray of shape (n_samples, n_domains)
            q(d|x) of the rows as given.
        discriminator : fitted Discriminator
        discretizer : fitted discretizer or None
        """
        left_out = np.ones(len(domain_given_x), dtype=bool)
        left_out[self.order] = False
        restored = domain_given_x.copy()
        restored[self.order] = discriminator.domain_given_x_
        discriminator.domain_given_x_ = restored
        if discretizer is None:
            return
        labels = np.empty(len(domain_given_x), dtype=np.intp)
        labels[self.order] = discretizer.labels_
        if left_out.any():
            labels[left_out] = discretizer.predict(domain_given_x[left_out])
        discretizer.labels_ = labels


def sort_rows(X: Any, scaled: Any, codes: Array, weight: Array | None) -> CanonicalRows:
    """Sort rows by domain and content; rows without weight are left out.

    A row of weight 3 becomes three rows where all weights are whole numbers.

    Parameters
    ----------
    X, scaled : ndarray of shape (n_samples, n_features)
        ``scaled`` has columns of like spread, whose sums tell rows apart.
    codes : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,) or None

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[3.0], [1.0], [2.0]]), np.array([1, 1, 0])
    >>> sort_rows(X, X, codes, np.array([2, 1, 1])).X.ravel()
    array([2., 1., 3., 3.])
    """
    order = canonical_rows(scaled, codes)
    if weight is not None:
        order = order[weight[order] > 0]
        copies = copies_of(weight)
        if copies is not None:
            order = np.repeat(order, copies[order])
            weight = None
        else:
            weight = weight[order]
    return CanonicalRows(X[order], codes[order], weight, order)


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


def copies_of(weight: Array) -> Array | None:
    """Weights as numbers of equal rows; None where they are not whole, or large.

    Examples
    --------
    >>> copies_of(np.array([2.0, 0.0, 1.0]))
    array([2, 0, 1])
    >>> copies_of(np.array([0.5, 1.0])) is None
    True
    """
    whole = (weight == np.rint(weight)).all()
    if not whole or weight.sum() > MOST_REPEATS * len(weight):
        return None
    return np.asarray(weight, dtype=np.intp)


def row_keys(X: Array, codes: Array) -> Array:
    """A number for each row that its values and its domain decide, for looking up.

    Different rows have different numbers, but for one chance in 2^64 a pair.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Domain of each row.

    Returns
    -------
    ndarray of shape (n_samples,)
        Unsigned integers of 64 bits.
    """
    key = _scramble(codes.astype(np.uint64))
    for column in X.T:
        values = column.astype(np.float64) + 0.0  # so that -0 and 0 have the same bits
        key = _scramble(key ^ values.view(np.uint64))
    return key


def match_keys(known: Array, keys: Array) -> Array:
    """Position in ``known`` of each of ``keys``, -1 for those not there.

    Equal keys are given to equal ones in their order, the last of them again and again
    where ``known`` has fewer.

    Examples
    --------
    >>> match_keys(np.array([7, 5, 7]), np.array([5, 7, 7, 7, 9]))
    array([ 1,  0,  2,  2, -1])
    """
    order, wanted = (np.argsort(each, kind="stable") for each in (known, keys))
    sorted_known, sorted_keys = known[order], keys[wanted]
    first = np.searchsorted(sorted_known, sorted_keys, side="left")
    last = np.searchsorted(sorted_known, sorted_keys, side="right") - 1
    turn = np.arange(len(keys)) - np.searchsorted(sorted_keys, sorted_keys, side="left")
    found = np.full(len(keys), -1)
    there = last >= first
    found[wanted[there]] = order[np.minimum(first + turn, last)[there]]
    return found


def _scramble(key: Array) -> Array:
    """Spread every bit over all 64 (the finish of the SplitMix64 generator)."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> np.uint64(31)))
