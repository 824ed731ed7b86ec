import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import kstest

from shoal.analysis._novelty import familiarity, fit_novelty, novelty_quantiles


@pytest.mark.parametrize(("n_rows", "n_columns"), [(300, 2), (2000, 10), (2000, 60)])
def test_new_rows_of_the_same_kind_are_uniformly_familiar(n_rows, n_columns, seed):
    rng = np.random.default_rng([seed, n_columns])
    novelty = fit_novelty(
        rng.normal(size=(n_rows, n_columns)), random_state=seed
    ).novelty
    fresh = rng.normal(size=(2000, n_columns))
    share = familiarity(novelty.distance(fresh), novelty.quantiles)
    # the quantiles come from half of the rows
    assert kstest(share, "uniform").statistic < 2.5 / np.sqrt(n_rows / 2)


def test_far_rows_are_not_familiar_at_all(seed):
    rng = np.random.default_rng(seed)
    novelty = fit_novelty(rng.normal(size=(500, 4)), random_state=seed).novelty
    assert_array_equal(
        familiarity(novelty.distance(np.full((3, 4), 30.0)), novelty.quantiles), 0
    )


def test_distance_is_that_to_the_nearest_centre_in_its_spread(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200, 3))
    novelty = fit_novelty(rows, random_state=seed).novelty
    apart = np.linalg.norm(rows[:, None] - novelty.centres, axis=2) / novelty.spread
    assert_allclose(novelty.distance(rows), apart.min(axis=1), atol=1e-6)


def test_narrow_and_wide_clouds_are_equally_familiar(seed):
    # the spread is each cluster's own, so that a rare wide class is not strange
    rng = np.random.default_rng(seed)
    wide, narrow = rng.normal(size=(400, 3)), 40 + 0.3 * rng.normal(size=(400, 3))
    novelty = fit_novelty(np.vstack([wide, narrow]), random_state=seed).novelty
    fresh = familiarity(
        novelty.distance(40 + 0.3 * rng.normal(size=(500, 3))), novelty.quantiles
    )
    assert 0.35 < fresh.mean() < 0.65


def test_sparse_rows_are_like_dense_ones(seed):
    rows = sparse.random(300, 20, 0.2, random_state=seed, format="csr")
    thin, full = (
        fit_novelty(Z, random_state=seed).novelty for Z in (rows, rows.toarray())
    )
    assert_allclose(thin.distance(rows), full.distance(rows.toarray()), atol=1e-6)


@pytest.mark.parametrize("n_rows", [2, 3, 21])
def test_few_and_equal_rows(n_rows, seed):
    novelty = fit_novelty(np.ones((n_rows, 2)), random_state=seed).novelty
    share = familiarity(
        novelty.distance(np.array([[1.0, 1], [2, 2]])), novelty.quantiles
    )
    assert_array_equal(share, [1, 0])


def test_familiarity_is_the_share_of_training_rows_beyond(seed):
    train = np.random.default_rng(seed).exponential(size=100_000)
    share = familiarity(np.array([0.0, 1.0, 2.0, 1e9]), novelty_quantiles(train))
    assert_allclose(share, [1, np.exp(-1), np.exp(-2), 0], atol=0.01)
