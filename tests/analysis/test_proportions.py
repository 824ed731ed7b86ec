import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from shoal.analysis._resample import mixture_proportions, prevalence_interval
from support.slow import slow_shares


def class_densities(rng, n_classes, separation, n_rows=300):
    means = separation * rng.normal(size=(n_classes, 5))
    rows = means[rng.integers(n_classes, size=n_rows)] + rng.normal(size=(n_rows, 5))
    return np.exp(-0.5 * ((rows[:, None] - means) ** 2).sum(axis=2))


@pytest.mark.parametrize(("n_classes", "separation"), [(2, 2.0), (5, 0.7), (4, 0.2)])
def test_agrees_with_plain_em(n_classes, separation, seed):
    rng = np.random.default_rng([seed, n_classes])
    ratio = class_densities(rng, n_classes, separation)
    weight = rng.exponential(size=len(ratio))
    assert_allclose(
        mixture_proportions(ratio, weight), slow_shares(ratio, weight), atol=2e-6
    )


@given(st.integers(2, 6), st.integers(1, 40), st.integers(0, 2**31 - 1))
def test_satisfies_the_conditions_of_the_optimum(n_classes, n_rows, seed):
    # mean of ratio_y / density is 1 where the share is positive and less elsewhere
    rng = np.random.default_rng(seed)
    ratio = rng.gamma(0.3, size=(n_rows, n_classes)) + 1e-3
    shares = mixture_proportions(ratio)
    slope = (ratio / (ratio @ shares)[:, None]).mean(axis=0)
    assert_allclose(shares.sum(), 1)
    assert slope.max() <= 1 + 1e-4
    assert_allclose(slope @ shares, 1)


def test_several_problems_at_once_are_the_same_one_by_one(seed):
    rng = np.random.default_rng(seed)
    ratio = class_densities(rng, 4, 0.7)
    weight = rng.multinomial(300, np.full(300, 1 / 300), size=6)
    together = mixture_proportions(ratio, weight)
    alone = np.array([mixture_proportions(ratio, row) for row in weight])
    assert_allclose(together, alone, atol=1e-8)


def test_factor_per_row_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    ratio = class_densities(rng, 3, 0.7)
    scaled = ratio * rng.exponential(size=(len(ratio), 1))
    assert_allclose(mixture_proportions(scaled), mixture_proportions(ratio), atol=1e-8)


@given(st.floats(0, 1), st.integers(1, 5000), st.floats(0, 0.2), st.floats(0.05, 0.99))
def test_interval_holds_the_estimate_within_the_unit(share, n_rows, variance, level):
    low, high = prevalence_interval(share, variance, n_rows, level)
    assert 0 <= low <= share <= high <= 1
    assert high > low


def test_interval_grows_with_variance_and_level_and_shrinks_with_rows():
    def width(variance, n_rows, level):
        low, high = prevalence_interval(0.4, variance, n_rows, level)
        return high - low

    assert width(0.01, 500, 0.9) > width(0.001, 500, 0.9)
    assert width(0.001, 500, 0.95) > width(0.001, 500, 0.9)
    assert width(0.0, 100, 0.9) > width(0.0, 1000, 0.9)


def test_binomial_shares_are_covered(seed):
    # without any resampling variance the floor alone must do
    rng = np.random.default_rng(seed)
    for share in (0.0, 0.02, 0.3, 0.97):
        for n_rows in (30, 300):
            seen = rng.binomial(n_rows, share, size=4000) / n_rows
            low, high = prevalence_interval(seen, np.zeros(4000), n_rows, 0.9)
            assert np.mean((low <= share) & (share <= high)) > 0.88


@pytest.mark.parametrize("level", [0, 1, 90, -0.5])
def test_level_must_be_a_probability(level):
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        prevalence_interval(0.5, 0.01, 100, level)


def test_one_class_takes_all():
    assert_array_equal(mixture_proportions(np.ones((5, 1))), [1.0])
