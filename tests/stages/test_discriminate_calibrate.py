"""Calibration: exact identities of temperature and vector scaling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime

from shoal.probability import mean_log_likelihood, normalize_rows
from shoal.stages.discriminate._calibrate import (
    CALIBRATIONS,
    STEEPEST,
    _loss_and_gradient,
    fit_calibration,
)


def random_rows(seed, n_samples=60, n_domains=4):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.ones(n_domains), size=n_samples)
    codes = np.arange(n_samples) % n_domains
    return q, rng.permutation(codes)


def population(q):
    """One row per input and domain, weighted by the domain's true probability."""
    n_samples, n_domains = q.shape
    rows = np.repeat(np.arange(n_samples), n_domains)
    codes = np.tile(np.arange(n_domains), n_samples)
    return rows, codes, q.ravel(), q.mean(axis=0)


@pytest.mark.parametrize("n_parameters", [1, 8])
def test_gradient(seed, n_parameters):
    q, codes = random_rows(seed)
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.ones(len(q)))
    point = rng.uniform(0.5, 1.5, size=n_parameters)
    args = np.log(q), codes, weight
    _, gradient = _loss_and_gradient(point, *args)
    numeric = approx_fprime(point, lambda at: _loss_and_gradient(at, *args)[0], 1e-7)
    assert_allclose(gradient, numeric, atol=1e-5)


def test_loss_is_the_weighted_cross_entropy(seed):
    q, codes = random_rows(seed)
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    got = fit_calibration(q, codes, domain_weight=weight)
    assert_allclose(got.loss_before, -mean_log_likelihood(q, codes, weight))
    after = -mean_log_likelihood(got.apply(q), codes, weight)
    assert_allclose(got.loss_after, after)


@pytest.mark.parametrize("method", CALIBRATIONS)
@given(data=st.data())
def test_held_out_loss_never_rises(method, data):
    n_domains = data.draw(st.integers(2, 4))
    n_samples = data.draw(st.integers(n_domains, 12))
    # Sure and wrong, exact zeros, ties: whatever a classifier may say.
    entry = st.one_of(st.just(0.0), st.floats(1e-12, 1))
    q = data.draw(
        st.lists(
            st.lists(entry, min_size=n_domains, max_size=n_domains),
            min_size=n_samples,
            max_size=n_samples,
        )
    )
    codes = np.arange(n_samples) % n_domains
    q = normalize_rows(q)
    got = fit_calibration(q, codes, method=method)
    assert got.loss_after <= got.loss_before
    after = got.apply(q)
    assert np.isfinite(after).all()
    assert_allclose(after.sum(axis=1), 1)


# ---- temperature ---------------------------------------------------------------------


def test_temperature_is_recovered_from_the_population(seed):
    truth, _ = random_rows(seed)
    rows, codes, weight, domain_weight = population(truth)
    too_sure = normalize_rows(truth**2)
    got = fit_calibration(
        too_sure[rows], codes, domain_weight=domain_weight, sample_weight=weight
    )
    assert_allclose(got.temperature, 2, rtol=1e-5)
    assert_allclose(got.apply(too_sure), truth, atol=1e-6)


@pytest.mark.parametrize("power", [0.2, 3.0])
def test_the_temperature_of_the_input_does_not_matter(seed, power):
    q, codes = random_rows(seed)
    tempered = normalize_rows(q**power)
    expected = fit_calibration(q, codes)
    got = fit_calibration(tempered, codes)
    assert_allclose(got.slope * power, expected.slope, rtol=1e-4, atol=1e-6)
    assert_allclose(got.apply(tempered), expected.apply(q), atol=1e-5)


def test_temperature_keeps_ranks_and_uniform_rows(seed):
    q, codes = random_rows(seed)
    q[0] = 1 / 4
    codes = q.argmax(axis=1)
    codes[:8] = np.arange(8) % 4  # mostly right, not always
    got = fit_calibration(q, codes)
    assert got.slope[0] > 0
    after = got.apply(q)
    assert_array_equal(np.argsort(after[1:]), np.argsort(q[1:]))
    assert_allclose(after[0], 1 / 4)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_slopes_stay_finite_where_every_row_is_right(method):
    q = normalize_rows(np.ones((8, 2)) + np.eye(2)[np.arange(8) % 2])
    got = fit_calibration(q, np.arange(8) % 2, method=method)
    assert got.loss_after < 1e-6
    assert (got.slope <= STEEPEST).all()


def test_temperature_at_its_optimum(seed):
    # At the best slope, the mean log-probability of the own domain is the one that
    # the calibrated model expects.
    q, codes = random_rows(seed)
    own = np.arange(len(q)), codes
    q[own] += 0.5
    q = normalize_rows(q)
    got = fit_calibration(q, codes)
    after = got.apply(q)
    expected = (after * np.log(q)).sum(axis=1)
    assert_allclose(np.log(q[own]).mean(), expected.mean(), atol=1e-6)


def test_useless_probabilities_become_uniform():
    q = np.array([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]])
    got = fit_calibration(q, [1, 0, 1, 0])  # always wrong: no slope >= 0 helps
    assert_allclose(got.apply(q), 0.5)
    assert got.temperature == np.inf


# ---- vector --------------------------------------------------------------------------


def test_vector_scaling_is_recovered_from_the_population(seed):
    q, _ = random_rows(seed)
    slope, offset = np.array([0.5, 1.0, 1.5, 2.0]), np.array([0.3, -0.2, 0.1, -0.2])
    truth = normalize_rows(q**slope * np.exp(offset))
    rows, codes, weight, domain_weight = population(truth)
    got = fit_calibration(
        q[rows],
        codes,
        method="vector",
        domain_weight=domain_weight,
        sample_weight=weight,
    )
    assert_allclose(got.slope, slope, rtol=1e-3)
    assert_allclose(got.apply(q), truth, atol=1e-4)


@pytest.mark.parametrize("domain_weight", [None, np.array([0.4, 0.3, 0.2, 0.1])])
def test_vector_scaling_is_calibrated_on_average(seed, domain_weight):
    q, codes = random_rows(seed, n_samples=200)
    got = fit_calibration(q, codes, method="vector", domain_weight=domain_weight)
    wanted = np.full(4, 1 / 4) if domain_weight is None else domain_weight
    per_domain = [got.apply(q)[codes == code].mean(axis=0) for code in range(4)]
    assert_allclose(wanted @ per_domain, wanted, atol=1e-5)


def test_vector_is_at_least_as_good_as_temperature(seed):
    q, codes = random_rows(seed)
    losses = {
        method: fit_calibration(q, codes, method=method).loss_after
        for method in CALIBRATIONS
    }
    assert losses["vector"] <= losses["temperature"] + 1e-9


# ---- both ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_order_of_rows_and_domains_does_not_matter(seed, method):
    q, codes = random_rows(seed)
    rng = np.random.default_rng(seed)
    rows, domains = rng.permutation(len(q)), rng.permutation(4)
    expected = fit_calibration(q, codes, method=method)
    got = fit_calibration(q[rows], codes[rows], method=method)
    assert_allclose(got.apply(q), expected.apply(q), atol=1e-4)
    got = fit_calibration(q[:, domains], np.argsort(domains)[codes], method=method)
    assert_allclose(got.apply(q[:, domains]), expected.apply(q)[:, domains], atol=1e-4)


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_single_precision_stays(seed, method):
    q, codes = random_rows(seed)
    got = fit_calibration(q.astype(np.float32), codes, method=method)
    after = got.apply(q.astype(np.float32))
    assert after.dtype == np.float32
    expected = fit_calibration(q, codes, method=method).apply(q)
    assert_allclose(after, expected, atol=1e-4)


def test_input_is_not_overwritten(seed):
    q, codes = random_rows(seed)
    before = q.copy()
    fit_calibration(q, codes, method="vector").apply(q)
    assert_array_equal(q, before)


def test_unknown_method():
    with pytest.raises(
        ValueError, match="method must be one of 'temperature', 'vector', got 'platt'"
    ):
        fit_calibration([[0.5, 0.5]], [0], method="platt")
