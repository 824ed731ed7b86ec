import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.stages.discriminate._named import rbf_features, rbf_width


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bumps_are_their_formula(seed, dtype):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(20, 3)).astype(dtype)
    centers = rng.normal(size=(4, 3))
    expected = [
        [np.exp(-((point - center) ** 2).sum() / (2 * 0.7**2)) for center in centers]
        for point in points
    ]
    found = rbf_features(points, centers, 0.7)
    assert_allclose(found, expected, rtol=1e-12 if dtype == np.float64 else 1e-4)
    assert_allclose(np.diag(rbf_features(centers, centers, 0.7)), 1, atol=1e-12)


def test_width_is_half_the_median_distance():
    square = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.0], [2.0, 2.0]])
    assert rbf_width(square) == 1
    assert rbf_width(square[:1]) == 1
    assert rbf_width(np.zeros((3, 2))) > 0  # equal centres: no division by zero
