"""Features and words that tell classes apart, against slow formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from shoal import DiscreteMixture
from shoal.analysis._profile import (
    contrast_features,
    contrast_words,
    nearest_class,
    numeric_columns,
    share_overlap,
    top_features,
    top_words,
)
from shoal.base import LatentShiftEstimator


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 5)) * [1, 10, 0.1, 1, 1] + [0, 1e6, 0, 0, 0]
    return X, rng.dirichlet(np.ones(3), size=80)


def test_contrast_is_the_weighted_mean_and_spread(rows):
    X, proba = rows
    found = contrast_features(X, proba)
    for y in range(3):
        for j in range(5):
            inside, outside = proba[:, y], 1 - proba[:, y]
            a, b = (np.average(X[:, j], weights=w) for w in (inside, outside))
            u = np.average((X[:, j] - a) ** 2, weights=inside)
            v = np.average((X[:, j] - b) ** 2, weights=outside)
            assert_allclose(found.mean[y, j], a)
            assert_allclose(found.rest[y, j], b)
            expected = (a - b) / np.sqrt((u + v) / 2)
            assert_allclose(found.difference[y, j], expected, rtol=1e-6)


def test_sparse_rows_give_the_same_contrast(rows):
    X, proba = rows
    X = np.where(np.abs(X) > 1, np.round(X), 0)
    dense = contrast_features(X, proba)
    thin = contrast_features(sparse.csr_array(X), proba)
    assert_allclose(thin.difference, dense.difference, atol=1e-4)
    assert_allclose(thin.mean, dense.mean)


def test_constant_and_perfect_columns_stay_finite():
    proba = np.repeat(np.eye(2), 5, axis=0)
    X = np.column_stack([np.ones(10), proba[:, 0]])
    found = contrast_features(X, proba)
    assert_allclose(found.difference, [[0, 20], [0, -20]])


def test_top_features_are_sorted_and_capped(rows):
    X, proba = rows
    wide = np.hstack([X] * 4)
    names = [f"f{j}" for j in range(20)]
    found = top_features(wide, proba, names, 0, contrast_features(wide, proba))
    sizes = [abs(record["difference"]) for record in found]
    assert len(found) == 8
    assert sizes == sorted(sizes, reverse=True)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=40), st.integers(0, 9))
def test_overlap_of_few_values_is_exact(values, chosen):
    values = np.array(values, dtype=float)
    weight = np.linspace(0.1, 0.9, len(values))
    weight[chosen % len(values)] = 1.0
    a = {v: weight[values == v].sum() / weight.sum() for v in values}
    b = {v: (1 - weight)[values == v].sum() / (1 - weight).sum() for v in values}
    expected = sum(min(a[v], b[v]) for v in set(values))
    assert_allclose(share_overlap(values, weight), expected)


def test_overlap_of_shifted_normals(seed):
    rng = np.random.default_rng(seed)
    values = np.r_[rng.normal(size=4000), rng.normal(2, size=4000)]
    weight = np.repeat([1.0, 0.0], 4000)
    # the overlap of two normals two standard deviations apart is 2 * Phi(-1)
    assert share_overlap(values, weight) == pytest.approx(0.317, abs=0.04)


def test_words_are_named_where_odds_are_higher_beyond_chance():
    counts = np.array([[40.0, 0, 200, 3], [0, 40, 200, 2]])
    found = top_words(counts, ["fish", "bird", "the", "odd"], 0)
    assert [record["word"] for record in found] == ["fish"]
    assert found[0]["share"] == pytest.approx(40 / 243)
    assert found[0]["rest"] == 0


@pytest.fixture(scope="module")
def bags():
    """Bags of words of six towns, and topics found in them."""
    rng = np.random.default_rng(0)
    towns = np.repeat(np.arange(6), 20)
    topics = rng.dirichlet(np.full(12, 0.3), size=3)
    mix = rng.dirichlet(np.ones(3), size=6)[towns] @ topics
    counts = np.stack([rng.multinomial(60, words) for words in mix])
    return DiscreteMixture(3, input="counts", random_state=0).fit(counts, towns), counts


def test_expected_words_add_up_to_those_seen(bags):
    model, counts = bags
    found = contrast_words(model, counts, model.predict_proba(counts))
    assert_allclose(found.sum(axis=0), counts.sum(axis=0))


def test_words_of_a_model_without_any_are_those_of_its_rows(bags):
    _, counts = bags
    proba = np.random.default_rng(0).dirichlet(np.ones(2), size=len(counts))
    found = contrast_words(LatentShiftEstimator(), sparse.csr_array(counts), proba)
    # a word that one row repeats is one word of that row
    assert_allclose(found, proba.T @ np.log1p(counts))


def test_words_are_ranked_by_their_share_times_its_log_ratio():
    counts = np.array([[30.0, 100, 60, 1], [3, 250, 1, 40], [2, 240, 2, 300]])
    found = top_words(counts, ["circuit", "the", "voltage", "god"], 0)
    assert [record["word"] for record in found] == ["voltage", "circuit"]
    assert nearest_class(counts, 0) == 1
    assert nearest_class(counts, 2) == 1


def test_merged_classes_add_their_words(bags):
    model, counts = bags
    merged = model.merge(0, 2)
    parts = contrast_words(model, counts, None)
    expected = [parts[group].sum(axis=0) for group in merged.groups]
    assert_allclose(contrast_words(merged, counts, None), expected)


def test_numeric_columns():
    X = np.array([["red", 1, None], ["blue", 2, None]] * 6, dtype=object)
    columns, names = numeric_columns(X[:, :2], ["color", "size"])
    assert names == ["color = blue", "color = red", "size"]
    assert_allclose(columns.toarray()[:2], [[0, 1, 1], [1, 0, 2]])
    plain = np.arange(6.0).reshape(3, 2)
    assert numeric_columns(plain, ["a", "b"])[0] is plain
