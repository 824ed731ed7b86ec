"""Peers told the mixes, or no domain: what must hold of each."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import check_grad

from shoal_bench import peers
from shoal_bench.methods import METHODS, find_method
from shoal_bench.problems import load_problem
from shoal_bench.run import score
from shoal_bench.spec import Spec


@pytest.fixture(scope="module")
def problem():
    """Ten clouds mixed by one of the paper's matrices."""
    return load_problem(Spec("gauss10", 10, 3, 0, "kmeans", n_rows=3000))


def test_told_the_mixes_comes_near_labels(problem):
    """Never told a label, both find the very labels: the mixes name the classes."""
    found = {}
    for name in ("um_ssc", "known_mixes", "reference"):
        answer = find_method(name).answer(problem, 0)
        assert METHODS[name].labelled
        found[name] = score(answer, problem.truth, True)[0]["accuracy"]
    assert min(found["um_ssc"], found["known_mixes"]) > found["reference"] - 0.03


def test_surrogate_sets_are_our_likelihood_for_another_prior(problem):
    """Offsets take up the prior, and no ridge is on them: the optimum is the same."""
    first, second = (
        find_method(name).answer(problem, 0, max_iter=3000).classes
        for name in ("um_ssc", "known_mixes")
    )
    assert np.mean(first == second) > 0.995


def test_labels_reach_neither_fit(problem):
    """Of the truth they read the mixes alone."""
    rng = np.random.default_rng(0)
    truth = problem.truth
    other = type(truth)(
        rng.permutation(truth.labels),
        rng.permutation(truth.labels_test),
        truth.prevalence,
    )
    planted = type(problem)(
        problem.n_classes, problem.X, problem.domains, problem.X_test,
        problem.domains_test, other,
    )  # fmt: skip
    for name in ("um_ssc", "known_mixes", "max_margin"):
        method = find_method(name)
        settings = {"steps": 5} if name == "max_margin" else {"max_iter": 5}
        first, again = (method.answer(p, 0, **settings) for p in (problem, planted))
        assert_array_equal(first.classes, again.classes)


def test_the_gradient_of_the_told_likelihood(monkeypatch):
    rng = np.random.default_rng(1)
    X, table = rng.normal(size=(20, 3)), rng.dirichlet(np.ones(4), size=20)
    kept = {}

    def look(loss, start, **_):
        kept["loss"] = loss
        return type("Found", (), {"x": start})

    monkeypatch.setattr(peers, "minimize", look)
    moved = rng.normal(size=4)
    peers.fit_told(X, table, moved, 0.1, 1)
    at = rng.normal(size=16)
    loss = kept["loss"]
    error = check_grad(lambda w: loss(w)[0], lambda w: loss(w)[1], at)
    assert error < 1e-5


def test_maximum_margin_finds_far_clouds_and_uses_every_class():
    rng = np.random.default_rng(2)
    centres = 6 * np.eye(4)
    truth = np.repeat(np.arange(4), 100)
    X = centres[truth] + rng.normal(size=(400, 4)) * 0.3
    X = (X - X.mean(axis=0)) / X.std()
    best = 0.0
    for seed in range(3):
        weights = peers.search_labels(X, 4, seed, 200, 10, 400, 10.0)
        found = (X @ weights).argmax(axis=1)
        table = np.zeros((4, 4))
        np.add.at(table, (truth, found), 1)
        assert_allclose(table.sum(), 400)
        best = max(best, table.max(axis=1).sum() / 400 if table.any(0).all() else 0)
    assert best > 0.99
