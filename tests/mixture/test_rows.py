"""Canonical order, stratified samples, folds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shoal.validation._rows import (
    SAMPLED_TOGETHER,
    canonical_rows,
    fold_of_rows,
    stratified_sample,
)


def test_order_depends_on_content_only(seed):
    rng = np.random.default_rng(seed)
    Z, codes = rng.normal(size=(300, 4)), rng.integers(0, 5, 300)
    shuffle = rng.permutation(300)
    columns = rng.permutation(4)
    first = canonical_rows(Z, codes)
    second = canonical_rows(Z[shuffle][:, columns], codes[shuffle])
    assert_array_equal(first, shuffle[second])
    assert np.all(np.diff(codes[first]) >= 0)


@given(
    sizes=st.lists(st.integers(1, 60), min_size=1, max_size=8),
    budget=st.integers(64, 200),
)
def test_sample_is_even_and_without_repeats(sizes, budget):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    rows = stratified_sample(codes, budget, np.random.default_rng(0))
    assert len(np.unique(rows)) == len(rows) == min(budget, len(codes))
    assert np.all(np.diff(rows) > 0)
    taken = np.bincount(codes[rows], minlength=len(sizes))
    cut = taken < np.array(sizes)
    # whoever had to give up rows has as many as any other domain, but for rounding
    if cut.any():
        assert taken[cut].min() >= taken.max() - 1


@given(n_domains=st.integers(100, 400), size=st.integers(SAMPLED_TOGETHER, 30))
def test_a_sample_of_very_many_domains_keeps_rows_together(n_domains, size):
    codes = np.repeat(np.arange(n_domains), size)
    together = min(size, SAMPLED_TOGETHER)
    budget = n_domains * together // 2
    rows = stratified_sample(codes, budget, np.random.default_rng(0))
    taken = np.bincount(codes[rows], minlength=n_domains)
    assert set(taken) <= {0, together}
    assert budget - together < len(rows) <= budget
    assert np.all(np.diff(rows) > 0)


def test_folds_spread_every_domain(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), [3, 10, 31, 7])
    folds = fold_of_rows(codes, 3, rng)
    for domain in range(4):
        counts = np.bincount(folds[codes == domain], minlength=3)
        assert counts.max() - counts.min() <= 1
