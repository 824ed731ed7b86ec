"""Scaling and expansions of features."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from shoal.likelihood._features import FeatureMap


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(500, 3)) * [1.0, 10.0, 100.0] + [5.0, 0.0, -3.0]


def test_column_scale_gives_unit_spread(rows):
    Z = FeatureMap("column").fit(rows, np.ones(500)).transform(rows)
    assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    assert_allclose(Z.std(axis=0), 1)


def test_global_scale_keeps_ratios_of_spreads(rows):
    Z = FeatureMap("global").fit(rows, np.ones(500)).transform(rows)
    assert_allclose((Z.std(axis=0) ** 2).mean(), 1)
    assert_allclose(Z.std(axis=0) / Z.std(axis=0)[0], rows.std(0) / rows.std(0)[0])


def test_weights_count_as_copies(rows):
    copies = np.arange(500) % 3 + 1
    weighted = FeatureMap("column").fit(rows, copies.astype(float))
    repeated = np.repeat(rows, copies, axis=0)
    plain = FeatureMap("column").fit(repeated, np.ones(len(repeated)))
    assert_allclose(weighted.centre_, plain.centre_)
    assert_allclose(weighted.spread_, plain.spread_)


def test_one_wild_cell_does_not_flatten_its_column(rows):
    calm = FeatureMap("column").fit(rows, np.ones(500)).spread_
    rows[7, 1] = 1e12
    wild = FeatureMap("column").fit(rows, np.ones(500))
    assert wild.spread_[1] < 3 * calm[1]
    assert np.abs(wild.transform(rows)).max() < 40


@pytest.mark.parametrize(
    ("expansion", "n_columns"), [("linear", 3), ("quadratic", 9), ("rbf", 23)]
)
def test_expansions_keep_the_columns_first(rows, expansion, n_columns):
    features = FeatureMap("column", expansion, n_components=20).fit(rows, np.ones(500))
    Z = features.transform(rows)
    assert Z.shape == (500, n_columns)
    assert_allclose(Z[:, :3], FeatureMap().fit(rows, np.ones(500)).transform(rows))
    assert_allclose(features.transform(rows[3:4])[0], Z[3], atol=1e-12)


@pytest.mark.parametrize("shape", [(60, 40), (300, 150), (150, 300)])
@pytest.mark.parametrize("thin", [False, True])
def test_components_are_the_leading_directions(shape, thin, seed):
    """Against numpy's SVD of weighted rows, in any order of rows and columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) + 3 * rng.normal(size=(shape[0], 4)) @ rng.normal(
        size=(4, shape[1])
    )
    X = sparse.csr_array(np.where(np.abs(X) > 2, X, 0)) if thin else X
    weight = rng.random(shape[0]) + 0.5
    features = FeatureMap("column", "components", n_components=5).fit(X, weight)
    Z = features.scaled(X)
    dense = Z.toarray() if thin else Z
    weight = weight / weight.sum()
    _, values, directions = np.linalg.svd(np.sqrt(weight)[:, None] * dense)
    found = features.components_ * np.sqrt(np.mean(values[:5] ** 2))
    assert_allclose(np.abs(directions[:5] @ found), np.eye(5), atol=1e-6)
    design = features.transform(X)
    assert_allclose(design, dense @ features.components_, atol=1e-9)
    assert_allclose((weight @ design**2).mean(), 1)
    across, down = rng.permutation(shape[1]), rng.permutation(shape[0])
    other = FeatureMap("column", "components", n_components=5)
    other.fit(X[down][:, across], weight[down])
    moved = other.transform(X[down][:, across])
    assert_allclose(np.abs(moved), np.abs(design[down]), atol=1e-6)
    weights = rng.normal(size=(4, 6))
    expected = weights[:, :-1] @ design.T + weights[:, -1:]
    assert_allclose(features.logits(X, weights), expected, atol=1e-9)


def test_there_are_no_more_components_than_columns(rows):
    features = FeatureMap("column", "components", n_components=20)
    assert features.fit(rows, np.ones(500)).transform(rows).shape == (500, 3)


def test_bumps_are_gaussians_at_the_centres(rows):
    features = FeatureMap("column", "rbf", n_components=5).fit(rows, np.ones(500))
    Z = features.transform(rows[:4])
    for i in range(4):
        for j in range(5):
            square = ((Z[i, :3] - features.centres_[j]) ** 2).sum()
            expected = np.exp(-square / (2 * features.width_**2))
            assert_allclose(Z[i, 3 + j], expected, atol=1e-9)


def test_quadratic_has_every_product_once():
    X = np.array([[1.0, 2.0], [3.0, -1.0], [0.0, 5.0], [2.0, 2.0]])
    features = FeatureMap("column", "quadratic").fit(X, np.ones(4))
    Z = features.transform(X)
    assert_allclose(Z[:, 2:], np.c_[Z[:, 0] ** 2, Z[:, 0] * Z[:, 1], Z[:, 1] ** 2])


def test_sparse_stays_sparse_and_uncentred(rows):
    thin = sparse.csr_array(np.where(rows > 5, rows, 0))
    Z = FeatureMap("column").fit(thin, np.ones(500)).transform(thin)
    assert sparse.issparse(Z)
    assert Z.nnz == thin.nnz


def test_sparse_has_no_expansion(rows):
    thin = sparse.csr_array(rows)
    with pytest.raises(ValueError, match="expansion='quadratic' needs dense X"):
        FeatureMap("column", "quadratic").fit(thin, np.ones(500))


def test_dense_and_sparse_rows_of_one_map_agree(rows):
    for fitted_on in (rows, sparse.csr_array(rows)):
        features = FeatureMap("column").fit(fitted_on, np.ones(500))
        dense, thin = (
            features.transform(rows),
            features.transform(sparse.csr_array(rows)),
        )
        if sparse.issparse(dense):
            dense, thin = dense.toarray(), thin.toarray()
        assert_allclose(dense, thin)


def test_one_centre_has_a_width():
    features = FeatureMap("column", "rbf").fit(np.array([[0.0], [1.0]]), np.ones(2))
    assert np.isfinite(features.transform(np.array([[0.5]]))).all()


def test_float32_in_float32_out(rows):
    features = FeatureMap("column", "rbf", n_components=9)
    Z = features.fit(rows.astype(np.float32), np.ones(500)).transform(
        rows.astype(np.float32)
    )
    assert Z.dtype == np.float32


@pytest.mark.parametrize("expansion", ["linear", "components", "rbf", "quadratic"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_logits_are_weights_times_the_design(rows, expansion, dtype, seed):
    rows = rows.astype(dtype)
    rows[3, 2] = 1e6  # a wild cell is pulled in on both ways
    features = FeatureMap("column", expansion, n_components=7)
    features.fit(rows, np.ones(500))
    Z = features.transform(rows)
    weights = np.random.default_rng(seed).normal(size=(4, Z.shape[1] + 1))
    logits = features.logits(rows, weights)
    assert logits.flags.c_contiguous
    expected = weights[:, :-1] @ Z.T.astype(float) + weights[:, -1:]
    assert_allclose(logits, expected, atol=1e-10 if dtype == "f8" else 1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_logits_keep_their_digits_far_from_zero(rows, offset, seed):
    """Moving a column moves nothing else, but for the digits that X itself loses."""
    weights = np.random.default_rng(seed).normal(size=(4, 4))
    moved = rows + offset
    near, far = (FeatureMap("column").fit(X, np.ones(500)) for X in (rows, moved))
    lost = max(offset * np.finfo(float).eps * 100, 1e-11)
    assert_allclose(far.logits(moved, weights), near.logits(rows, weights), atol=lost)


def test_logits_survive_a_spread_that_cannot_divide_the_weights():
    X = np.array([[0.0], [1.0], [0.0], [1.0]]) * 1e-42
    X = X.astype("f4")
    features = FeatureMap("column").fit(X, np.ones(4))
    weights = np.array([[1e3, 0.0], [-1e3, 0.0]])
    assert np.isfinite(features.logits(X, weights)).all()
