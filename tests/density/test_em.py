"""Both steps against slow loops, and climbs that never go down."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from shoal.density._em import Expected, Prior, blank, climb, expect, maximize
from shoal.density._gaussian import KINDS, Rows, find_gaps
from shoal.density._starts import make_prior

K, R, P = 2, 3, 3
# Hardly any imaginary rows: the likelihood alone.
LIKELIHOOD = Prior(np.eye(P), 1e-12, mix_rows=0.0)


def draw_rows(seed, n=150, missing=0.0):
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(0, R, n))
    y = rng.random(n) < np.array([0.2, 0.5, 0.9])[codes]
    X = rng.normal(size=(n, P)) @ rng.normal(size=(P, P)) + 2.5 * y[:, None]
    seen = rng.random(X.shape) >= missing
    X = np.where(seen, X, 0)
    return Rows(X, codes, rng.random(n) + 0.5, R, find_gaps(seen))


def begin(rows, kind, tail=np.inf, owner=(0, 1), seed=5):
    """A start, as a density and the E step that gives it."""
    owner = np.array(owner)
    given = np.random.default_rng(seed).dirichlet(np.ones(len(owner)), len(rows.X))
    ones = np.ones_like(given)
    density = blank(rows, given, owner, kind, tail)
    return Expected(given, ones, np.zeros(len(given))), density


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def test_expect_is_bayes_rule(kind):
    """Against a loop over rows and classes with scipy's density."""
    rows = draw_rows(0, n=20)
    first, density = begin(rows, kind)
    density = maximize(rows, first, density, LIKELIHOOD)
    density = replace(density, drift=np.arange(R * P).reshape(R, P) / 10)
    got = expect(rows, density)
    for i, (x, d) in enumerate(zip(rows.X, rows.codes, strict=True)):
        joint = []
        for y in range(K):
            S = density.covariance if kind == "tied" else density.covariance[y]
            S = np.diag(S) if kind == "diag" else S
            mean = density.means[y] + density.drift[d]
            joint.append(density.mix[d, y] * multivariate_normal(mean, S).pdf(x))
        assert_allclose(got.component_given_x[i], np.array(joint) / sum(joint))
        assert_allclose(got.log_likelihood[i], np.log(sum(joint)))


def test_maximize_is_weighted_moments(kind):
    rows = draw_rows(1, n=40)
    first, density = begin(rows, kind)
    prior = Prior(2.0 * np.eye(P), 3.0, mix_rows=4.0)
    got = maximize(rows, first, density, prior)
    mass = first.component_given_x * rows.weight[:, None]
    scatter = np.zeros((K, P, P))
    for y in range(K):
        mean = sum(mass[i, y] * rows.X[i] for i in range(40)) / mass[:, y].sum()
        assert_allclose(got.means[y], mean)
        for i in range(40):
            apart = rows.X[i] - mean
            scatter[y] += mass[i, y] * np.outer(apart, apart)
    if kind == "tied":
        expected = (scatter.sum(axis=0) + 6 * np.eye(P)) / (mass.sum() + 3)
    else:
        expected = (scatter + 6 * np.eye(P)) / (mass.sum(axis=0) + 3)[:, None, None]
        if kind == "diag":
            expected = np.diagonal(expected, axis1=1, axis2=2)
    assert_allclose(got.covariance, expected)
    common = mass.sum(axis=0) / mass.sum()
    for d in range(R):
        own = mass[rows.codes == d].sum(axis=0)
        assert_allclose(got.mix[d], (own + 4 * common) / (own.sum() + 4))


def test_one_mix_for_all_domains():
    rows = draw_rows(2)
    first, density = begin(rows, "full")
    got = maximize(rows, first, density, replace(LIKELIHOOD, mix_rows=np.inf))
    assert_allclose(got.mix, np.tile(got.mix[0], (R, 1)))


def test_drift_solves_its_normal_equations(kind):
    """The gradient of the expected penalized likelihood in each drift is zero."""
    rows = draw_rows(3)
    first, density = begin(rows, kind, tail=5.0)
    prior = Prior(1.5 * np.eye(P), 2.0, drift_rows=7.0)
    density = maximize(rows, first, density, replace(prior, drift_rows=np.inf))
    expected = expect(rows, density)
    got = maximize(rows, expected, density, prior)
    pulled = expected.component_given_x * expected.pull * rows.weight[:, None]
    for d in range(R):
        gradient = -prior.drift_rows * np.linalg.solve(prior.shape, got.drift[d])
        for y in range(K):
            S = got.covariance if kind == "tied" else got.covariance[y]
            S = np.diag(S) if kind == "diag" else S
            own = rows.codes == d
            apart = rows.X[own] - got.means[y] - got.drift[d]
            gradient += np.linalg.solve(S, pulled[own, y] @ apart)
        assert_allclose(gradient, 0, atol=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("tail", [np.inf, 5.0])
@pytest.mark.parametrize("drift_rows", [np.inf, 5.0])
def test_climbs_never_go_down(kind, missing, tail, drift_rows):
    rows = draw_rows(4, missing=missing)
    first, density = begin(rows, kind, tail, owner=(0, 0, 1))
    prior = Prior(np.eye(P), 4.0, mix_rows=0.0, drift_rows=drift_rows)
    fit = climb(rows, first, density, prior, max_iter=60, tol=0.0)
    assert np.diff(fit.history).min() > -1e-9
    assert len(fit.history) > 5


def test_the_likeliest_tail_is_found():
    rng = np.random.default_rng(5)
    X = rng.standard_t(5, size=(4000, 1)) + 8 * (np.arange(4000) % 2)[:, None]
    rows = Rows(X, np.arange(4000) // 2000, np.ones(4000), 2)
    given = np.eye(2)[np.arange(4000) % 2]
    start = Expected(given, np.ones_like(given), np.zeros(4000))
    for tail in (10.0, np.inf):
        density = blank(rows, given, np.arange(2), "full", tail)
        fit = climb(
            rows, start, density, Prior(np.eye(1), 2.0), max_iter=100, tol=1e-7,
            choose_tail=True,
        )  # fmt: skip
        assert fit.density.tail == 5.0
        assert_allclose(np.sort(fit.density.means.ravel()), [0, 8], atol=0.1)


def test_one_mix_and_no_priors_is_the_mixture_of_scikit_learn(kind):
    rows = draw_rows(6, n=400)
    rows = replace(rows, weight=np.ones(400))
    first, density = begin(rows, kind)
    first = first._replace(component_given_x=np.eye(2)[(rows.X.sum(axis=1) > 2) * 1])
    prior = replace(LIKELIHOOD, mix_rows=np.inf)
    fit = climb(rows, first, density, prior, max_iter=2000, tol=1e-10)
    theirs = GaussianMixture(
        2, covariance_type=kind, tol=1e-10, max_iter=2000, reg_covar=1e-12,
        means_init=fit.density.means, random_state=0,
    ).fit(rows.X)  # fmt: skip
    ours = expect(rows, fit.density).log_likelihood
    assert_allclose(ours.mean(), theirs.score(rows.X), atol=1e-5)


def test_weights_are_repetitions(kind):
    rows = draw_rows(7, n=60, missing=0.2)
    count = np.random.default_rng(7).integers(1, 4, 60)
    long = Rows(
        np.repeat(rows.X, count, axis=0),
        np.repeat(rows.codes, count),
        np.ones(count.sum()),
        R,
        find_gaps(np.repeat(rows.gaps.seen, count, axis=0)),
    )
    rows = replace(rows, weight=count.astype(float))
    first, density = begin(rows, kind)
    second = Expected(*(np.repeat(part, count, axis=0) for part in first))
    prior = Prior(np.eye(P), 3.0)
    kwargs = {"max_iter": 10, "tol": 0.0}
    one = climb(rows, first, density, prior, **kwargs)
    other = climb(long, second, density, prior, **kwargs)
    assert_allclose(one.density.means, other.density.means, rtol=1e-8)
    assert_allclose(one.density.covariance, other.density.covariance, rtol=1e-8)
    assert_allclose(one.objective, other.objective)


def test_the_prior_can_be_inverted_however_wide_the_table():
    rng = np.random.default_rng(8)
    rows = Rows(rng.normal(size=(12, 40)), np.arange(12) % 3, np.ones(12), 3)
    shape = make_prior(rows, 2, 0).shape
    assert np.linalg.eigvalsh(shape).min() > 0
    assert_allclose(shape, shape.T)
