"""Planes: distances kept, signs fixed, rows spread over domains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import pdist

from shoal.analysis._profile import (
    domain_plane,
    feature_plane,
    plane_columns,
    sample_rows,
)


def test_three_corners_keep_all_distances(seed):
    rng = np.random.default_rng(seed)
    corners = rng.dirichlet(np.ones(6), size=3)
    points = rng.dirichlet(np.ones(3), size=50) @ corners
    plane = domain_plane(points, corners)
    assert_allclose(pdist(plane.points), pdist(points), atol=1e-12)
    assert_allclose(pdist(plane.corners), pdist(corners), atol=1e-12)
    assert_allclose(plane.explained.sum(), 1)


def test_two_corners_lie_on_a_line():
    corners = np.array([[0.9, 0.1], [0.2, 0.8]])
    plane = domain_plane(np.array([[0.55, 0.45]]), corners)
    assert_allclose(plane.corners[:, 1], 0)
    assert_allclose(plane.points, [[0, 0]], atol=1e-12)


def test_feature_plane_is_that_of_the_correlations(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) * [1, 100, 1, 0.01]
    plane = feature_plane(X, seed=0)
    values = np.linalg.eigvalsh(np.corrcoef(X.T))[::-1]
    assert_allclose(plane.explained, values[:2] / values.sum())
    assert_allclose(plane.points.var(axis=0), values[:2], rtol=0.02)


def test_turned_signs_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(60, 3)) ** 3
    assert_allclose(
        np.abs(feature_plane(-X, 0).points), np.abs(feature_plane(X, 0).points)
    )
    farthest = np.abs(feature_plane(X, 0).points).argmax(axis=0)
    assert (feature_plane(X, 0).points[farthest, [0, 1]] > 0).all()


@pytest.mark.parametrize("n_features", [1, 2, 30])
def test_sparse_and_narrow_rows(n_features, seed):
    rng = np.random.default_rng(seed)
    X = sparse.csr_array(rng.poisson(0.5, size=(50, n_features)).astype(float))
    for rows in (X, X.toarray()):
        assert feature_plane(rows, 0).points.shape == (50, 2)


def test_sample_takes_evenly_and_in_order(seed):
    codes = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2], [5, 200, 300]))
    chosen = sample_rows(codes, 65, seed)
    assert np.bincount(codes[chosen]).tolist() == [5, 30, 30]
    assert (np.diff(chosen) > 0).all()


def test_columns_with_few_values_make_no_plane():
    rng = np.random.default_rng(0)
    numbers, year = rng.normal(size=(60, 2)), rng.integers(2007, 2010, size=60)
    X = np.column_stack([numbers, year, numbers[:, 0] > 0])
    assert plane_columns(X).tolist() == [True, True, False, False]
    assert plane_columns(X[:, 1:]).all()  # one alone makes no plane
