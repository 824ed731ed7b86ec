"""Rows in an order, and under a number, that only their content decides."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from shoal.validation._rows import copies_of, match_keys, row_keys, sort_rows

small = arrays(np.int64, st.integers(1, 30), elements=st.integers(0, 5))


@given(small, small)
def test_keys_are_matched_as_in_a_loop(known, keys):
    found = match_keys(known, keys)
    left = {value: list(np.flatnonzero(known == value)) for value in set(known)}
    for key, position in zip(keys, found, strict=True):
        queue = left.get(key)
        if not queue:
            assert position == -1
            continue
        assert position == queue[0]
        if len(queue) > 1:
            queue.pop(0)


def test_keys_of_rows_follow_the_rows(seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.integers(0, 3, (200, 4)).astype(float), rng.integers(0, 3, 200)
    keys = row_keys(X, codes)
    order = rng.permutation(200)
    assert_array_equal(row_keys(X[order], codes[order]), keys[order])
    assert_array_equal(row_keys(X.astype(np.float32), codes), keys)
    assert_array_equal(row_keys(-X * -1, codes), keys)  # minus zero is zero
    table = np.column_stack([X, codes])
    assert len(np.unique(keys)) == len(np.unique(table, axis=0))
    assert_array_equal(match_keys(keys, keys), np.arange(200))


@pytest.mark.parametrize("change", ["columns", "domain", "value"])
def test_keys_tell_rows_apart(change):
    X, codes = np.arange(1.0, 7.0).reshape(2, 3), np.array([0, 1])
    other, other_codes = X.copy(), codes.copy()
    if change == "columns":
        other = X[:, ::-1]
    elif change == "domain":
        other_codes = codes[::-1]
    else:
        other = np.nextafter(X, np.inf)
    different = row_keys(other, other_codes)
    assert not np.isin(different, row_keys(X, codes)).any()


def test_whole_weights_are_copies(seed):
    weight = np.random.default_rng(seed).integers(0, 5, 50).astype(float)
    assert_array_equal(copies_of(weight), weight)
    assert copies_of(weight + 0.5) is None
    assert copies_of(np.full(3, 1e6)) is None  # a table a million times longer


def test_sorted_rows_are_the_same_for_any_order(seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    weight = rng.integers(0, 3, 60)
    order = rng.permutation(60)
    first = sort_rows(X, X, codes, weight)
    second = sort_rows(X[order], X[order], codes[order], weight[order])
    assert_array_equal(first.X, second.X)
    assert_array_equal(first.codes, second.codes)
    assert_array_equal(first.X, X[first.order])
    assert first.weight is None
    assert len(first.X) == weight.sum()
