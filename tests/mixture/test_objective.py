"""The likelihood and its gradient against slow formulas and numeric derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import approx_fprime

from shoal.likelihood import _problem as objective
from shoal.likelihood._problem import (
    MixtureProblem,
    Penalties,
    make_blocks,
    optimize,
    optimize_by_em,
    softmax_rows,
)
from shoal.probability import class_posterior


def random_problem(seed, *, n=120, p=4, k=3, r=5, dtype=float):
    rng = np.random.default_rng(seed)
    design = rng.normal(size=(n, p)).astype(dtype)
    codes = np.sort(np.r_[np.arange(r), rng.integers(0, r, n - r)])
    weight = rng.uniform(0.5, 1.5, n)
    problem = MixtureProblem(design, codes, weight / weight.sum(), r)
    weights = rng.normal(size=(k, p + 1))
    return problem, weights, softmax_rows(rng.normal(size=(k, r)))


def slow_objective(problem, weights, T, penalties):
    """The module's docstring, row by row."""
    total = 0.0
    for z, d, w in zip(problem.design, problem.codes, problem.row_weight, strict=True):
        logits = weights[:, :-1] @ z + weights[:, -1]
        g = np.exp(logits) / np.exp(logits).sum()
        total -= w * np.log(sum(g[y] * T[y, d] for y in range(len(g))))
        total += penalties.confidence * w * -(g * np.log(g)).sum()
    return total + penalties.ridge / 2 * (weights[:, :-1] ** 2).sum()


@pytest.mark.parametrize("small_domain", [1, 10**6])
@pytest.mark.parametrize("penalties", [Penalties(0.0), Penalties(0.1, 0.3)])
def test_value_is_the_slow_formula(seed, penalties, small_domain, monkeypatch):
    changed = replace(objective.SETTINGS, small_domain=small_domain)
    monkeypatch.setattr(objective, "SETTINGS", changed)
    problem, weights, T = random_problem(seed)
    value, _, mass = problem.value_and_gradient(weights, T, penalties)
    assert_allclose(value, slow_objective(problem, weights, T, penalties), rtol=1e-12)
    posterior = class_posterior(problem.class_given_x(weights), T, problem.codes)
    for d in range(problem.n_domains):
        rows = problem.codes == d
        expected = problem.row_weight[rows] @ posterior[rows]
        assert_allclose(mass[:, d], expected, atol=1e-12)


@pytest.mark.parametrize("block_rows", [7, 2048])
def test_gradients_are_the_numeric_ones(seed, block_rows, monkeypatch):
    changed = replace(objective.SETTINGS, block_rows=block_rows)
    monkeypatch.setattr(objective, "SETTINGS", changed)
    penalties = Penalties(0.05, 0.2, dirichlet=0.3, volume=0.4)
    problem, weights, T = random_problem(seed)
    logs = np.log(T)

    def value(parameters):
        W = parameters[: weights.size].reshape(weights.shape)
        rows = softmax_rows(parameters[weights.size :].reshape(T.shape))
        return (
            problem.value_and_gradient(W, rows, penalties)[0]
            + penalties.of_domains(rows)[0]
        )

    _, gradient, mass = problem.value_and_gradient(weights, T, penalties)
    pull = T * penalties.of_domains(T)[1] - mass
    slope = pull - T * pull.sum(axis=1, keepdims=True)
    start = np.r_[weights.ravel(), logs.ravel()]
    numeric = approx_fprime(start, value, 1e-6)
    assert_allclose(np.r_[gradient.ravel(), slope.ravel()], numeric, atol=2e-5)


def test_sparse_rows_are_dense_rows(seed):
    problem, weights, T = random_problem(seed)
    thin = np.where(np.abs(problem.design) > 1, problem.design, 0)
    dense = MixtureProblem(thin, problem.codes, problem.row_weight, 5)
    csr = MixtureProblem(sparse.csr_array(thin), problem.codes, problem.row_weight, 5)
    for one, other in zip(
        dense.value_and_gradient(weights, T, Penalties(3e-4)),
        csr.value_and_gradient(weights, T, Penalties(3e-4)),
        strict=True,
    ):
        assert_allclose(one, other, atol=1e-12)


def test_float32_agrees_with_float64(seed):
    problem, weights, T = random_problem(seed, n=400)
    half = MixtureProblem(
        problem.design.astype(np.float32), problem.codes, problem.row_weight, 5
    )
    exact = problem.value_and_gradient(weights, T, Penalties(0.1, 0.1))
    rough = half.value_and_gradient(weights, T, Penalties(0.1, 0.1))
    for one, other in zip(exact, rough, strict=True):
        assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_blocks_cover_every_row_once(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([0, 1, 5, 300, 5000], size=40)
    codes = np.repeat(np.arange(40), sizes)
    seen = np.concatenate([np.arange(b.rows.start, b.rows.stop)
                           for b in make_blocks(codes, 40)])  # fmt: skip
    assert_allclose(seen, np.arange(len(codes)))


def test_take_keeps_the_weight_of_each_domain(seed):
    problem, _, _ = random_problem(seed)
    rows = np.sort(np.random.default_rng(seed).choice(120, 80, replace=False))
    part = problem.take(rows)
    whole = np.bincount(problem.codes, problem.row_weight, minlength=5)
    assert_allclose(np.bincount(part.codes, part.row_weight, minlength=5), whole)


def test_climbing_never_goes_down_and_em_meets_lbfgs(seed):
    problem, weights, T = random_problem(seed, n=600)
    penalties = Penalties(0.01, dirichlet=0.02)
    start = problem.value_and_gradient(weights, T, penalties)[0]
    fit = optimize(problem, weights, T, penalties, max_iter=500, tol=1e-12)
    assert fit.objective < start
    assert np.all(np.diff(fit.history) <= 1e-12)
    em = optimize_by_em(
        problem, fit.weights, fit.domain_given_class, penalties, max_iter=500
    )
    assert np.all(np.diff(em.history) <= 1e-12)
    assert_allclose(em.objective, fit.objective, atol=1e-5)


def test_the_optimum_is_its_own_em_update(seed):
    problem, weights, T = random_problem(seed, n=600)
    fit = optimize(problem, weights, T, Penalties(0.01), max_iter=5000, tol=1e-14)
    mass = problem.value_and_gradient(
        fit.weights, fit.domain_given_class, Penalties(0.01)
    )[2]
    update = mass / mass.sum(axis=1, keepdims=True)
    assert_allclose(update, fit.domain_given_class, atol=1e-3)


def test_frozen_leaves_domains_alone(seed):
    problem, weights, T = random_problem(seed)
    fit = optimize(problem, weights, T, Penalties(3e-4), max_iter=5, frozen=True)
    assert_allclose(fit.domain_given_class, T)


def test_em_refuses_penalties_without_closed_form(seed):
    problem, weights, T = random_problem(seed)
    with pytest.raises(ValueError, match="solver='em' cannot take"):
        optimize_by_em(problem, weights, T, Penalties(3e-4, volume=0.1), max_iter=3)
