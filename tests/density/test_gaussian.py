"""Densities against scipy's, and against explicit marginals where values miss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, multivariate_t

from shoal.density._gaussian import (
    KINDS,
    Density,
    class_log_densities,
    distances,
    expected_rows,
    find_gaps,
    reorder,
)

C, P = 3, 4
TAILS = [np.inf, 5.0]


def matrices(density):
    """A full matrix for each component, whatever the kind."""
    if density.kind == "tied":
        return np.tile(density.covariance, (C, 1, 1))
    if density.kind == "diag":
        return np.array([np.diag(row) for row in density.covariance])
    return density.covariance


def draw_density(kind, tail, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(C, P, P))
    full = root @ root.mT + np.eye(P)
    covariance = {"tied": full[0], "diag": np.diagonal(full, axis1=1, axis2=2)}
    return Density(
        means=rng.normal(size=(C, P)),
        covariance=covariance.get(kind, full),
        kind=kind,
        tail=tail,
        owner=np.array([0, 0, 1]),
        share=np.array([0.3, 0.7, 1.0]),
        mix=np.array([[0.4, 0.6], [0.9, 0.1]]),
    )


def reference(x, mean, covariance, tail):
    if not len(mean):
        return 0.0
    if np.isinf(tail):
        return multivariate_normal(mean, covariance).logpdf(x)
    return multivariate_t(mean, covariance, df=tail).logpdf(x)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.parametrize("tail", TAILS)
def test_densities_are_those_of_scipy(kind, tail):
    density = draw_density(kind, tail)
    X = np.random.default_rng(1).normal(size=(6, P))
    got = distances(X, None, density).log_density(tail)
    for c, covariance in enumerate(matrices(density)):
        expected = reference(X, density.means[c], covariance, tail)
        assert_allclose(got[:, c], expected, rtol=1e-10)


@pytest.mark.parametrize("tail", TAILS)
def test_missing_values_are_integrated_out(kind, tail):
    """A row has the marginal density of its seen columns; an empty row density 1."""
    density = draw_density(kind, tail)
    rng = np.random.default_rng(2)
    X, seen = rng.normal(size=(8, P)), rng.random((8, P)) < 0.6
    seen[0], seen[1] = True, False
    got = distances(np.where(seen, X, 99.0), find_gaps(seen), density)
    got = got.log_density(tail)
    for c, covariance in enumerate(matrices(density)):
        for row in range(len(X)):
            own = seen[row]
            part = X[row, own], density.means[c, own], covariance[np.ix_(own, own)]
            assert_allclose(got[row, c], reference(*part, tail), rtol=1e-9, atol=1e-12)


def test_marginals_by_numerical_integration():
    """The same by summing the joint density over a grid of the missing value."""
    density = draw_density("full", np.inf)
    density = Density(
        density.means[:, :2],
        density.covariance[:, :2, :2],
        "full",
        np.inf,
        density.owner,
        density.share,
        density.mix,
    )
    grid = np.linspace(-60, 60, 40_001)
    rows = np.column_stack([np.full_like(grid, 0.3), grid])
    joint = np.exp(distances(rows, None, density).log_density(np.inf))
    seen = np.array([[True, False]])
    marginal = distances(np.array([[0.3, 0.0]]), find_gaps(seen), density)
    summed = joint.sum(axis=0) * (grid[1] - grid[0])
    assert_allclose(np.exp(marginal.log_density(np.inf))[0], summed, rtol=1e-6)


def test_gaps_that_hide_nothing_change_nothing(kind):
    density = draw_density(kind, 5.0)
    X = np.random.default_rng(3).normal(size=(5, P))
    seen = np.ones((5, P), dtype=bool)
    assert find_gaps(seen) is None
    seen[0, 0] = False
    plain, with_gap = (distances(X, g, density) for g in (None, find_gaps(seen)))
    assert_allclose(with_gap.squares[1:], plain.squares[1:], rtol=1e-10)


def test_a_class_is_the_sum_of_its_components():
    density = draw_density("full", np.inf)
    X = np.random.default_rng(4).normal(size=(5, P))
    by_component = np.exp(distances(X, None, density).log_density(np.inf))
    weighted = by_component * density.share
    expected = np.column_stack([weighted[:, :2].sum(axis=1), weighted[:, 2]])
    assert_allclose(np.exp(class_log_densities(X, None, density)), expected)
    turned = reorder(density, np.array([1, 0]))
    assert_allclose(
        class_log_densities(X, None, turned),
        class_log_densities(X, None, density)[:, ::-1],
    )
    assert_allclose(turned.mix, density.mix[:, ::-1])


def test_expected_values_are_regressions():
    """With one component: the conditional mean of a Gaussian, by its formula."""
    density = draw_density("full", np.inf)
    density = Density(
        density.means[:1],
        density.covariance[:1],
        "full",
        np.inf,
        np.array([0]),
        np.ones(1),
        np.ones((1, 1)),
    )
    X, seen = np.ones((1, P)), np.array([[True, True, False, True]])
    got = expected_rows(X, find_gaps(seen), density, np.ones(1))
    own, miss, S, mu = seen[0], ~seen[0], density.covariance[0], density.means[0]
    slope = S[np.ix_(miss, own)] @ np.linalg.inv(S[np.ix_(own, own)])
    expected = mu[miss] + slope @ (X[0, own] - mu[own])
    assert_allclose(got[0, miss], expected)
    assert_allclose(got[0, own], 1)
