"""EM: the likelihood rises, the updates are pLSA's, the start is repaired."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal.probability import domain_given_class, normalize_rows
from shoal.stages.factorize import factorize
from shoal.stages.factorize._iterative import em_step, lift_wrong_zeros, run_em


def noisy_table(rng, n_classes=4, n_domains=7, n_clusters=15, n_rows=300):
    prevalence = rng.dirichlet(np.full(n_classes, 0.4), n_domains)
    clusters = rng.dirichlet(np.full(n_clusters, 0.4), n_classes)
    counts = [rng.multinomial(n_rows, row) for row in prevalence @ clusters]
    return np.array(counts) / n_rows


def slow_em(table, weight, prevalence, clusters):
    """One pLSA iteration with the whole posterior array q(y|d,c) in memory."""
    joint = weight[:, None, None] * prevalence[:, :, None] * clusters[None]
    posterior = joint / joint.sum(axis=1, keepdims=True)  # (r, k, m)
    counts = (weight[:, None] * table)[:, None, :] * posterior
    return normalize_rows(counts.sum(axis=2)), normalize_rows(counts.sum(axis=0))


def test_one_step_is_plsa_written_out(seed):
    rng = np.random.default_rng(seed)
    table = noisy_table(rng)
    weight = rng.dirichlet(np.full(7, 5.0))
    prevalence = rng.dirichlet(np.ones(4), 7)
    clusters = rng.dirichlet(np.ones(15), 4)
    corners = domain_given_class(prevalence, weight)
    both = (weight @ prevalence)[:, None] * clusters
    corners, both, history, _ = run_em(
        weight[:, None] * table, corners, both, max_iter=1, tol=0, freeze=0
    )
    slow_prevalence, slow_clusters = slow_em(table, weight, prevalence, clusters)
    got = normalize_rows((both.sum(axis=1)[:, None] * corners).T)
    assert_allclose(got, slow_prevalence, atol=1e-12)
    assert_allclose(normalize_rows(both), slow_clusters, atol=1e-12)
    assert len(history) == 2


@pytest.mark.parametrize("init", ["spa", "snpa", "volume", "random"])
@pytest.mark.parametrize("freeze", [0, 20])
def test_the_likelihood_never_falls(init, freeze, seed):
    rng = np.random.default_rng(seed)
    weight = rng.dirichlet(np.full(7, 5.0))
    found = factorize(
        noisy_table(rng),
        4,
        domain_weight=weight,
        init=init,
        freeze=freeze,
        tol=0,
        random_state=seed,
    )
    assert (np.diff(found.history) <= 1e-12).all()
    assert found.n_iter == len(found.history) - 1 <= 200


def test_a_frozen_start_keeps_its_corners(seed):
    rng = np.random.default_rng(seed)
    joint = noisy_table(rng) / 7
    corners, both = (
        rng.dirichlet(np.ones(7), 4),
        rng.dirichlet(np.ones(60)).reshape(4, 15),
    )
    held, _, history, _ = run_em(
        joint, corners, both, max_iter=20, tol=np.inf, freeze=20
    )
    assert_array_equal(held, corners)
    assert len(history) == 21
    free, _, _, _ = run_em(joint, corners, both, max_iter=20, tol=0, freeze=0)
    assert np.abs(free - corners).max() > 0.01


def test_wrong_zeros_are_lifted_and_right_ones_stay(seed):
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(3), 6)
    clusters = rng.dirichlet(np.ones(8), 3)
    clusters[0, :3] = 0
    clusters = normalize_rows(clusters)
    joint = prevalence @ clusters / 6
    corners = domain_given_class(prevalence)
    both = prevalence.mean(axis=0)[:, None] * clusters
    kept, untouched = lift_wrong_zeros(joint, corners, both)
    assert_allclose(kept, corners, atol=1e-15)
    assert_allclose(untouched, both, atol=1e-15)
    broken = both.copy()
    broken[1, 2] = 0
    _, repaired = lift_wrong_zeros(joint, corners, broken / broken.sum())
    assert repaired[1, 2] > 0
    assert_array_equal(repaired[0, :2], 0)
    # From there EM can go on; without the lift the zero would be for ever.
    _, both, history, _ = run_em(
        joint, corners, repaired, max_iter=5_000, tol=0, freeze=5_000
    )
    assert_allclose(both[1, 2], prevalence.mean(axis=0)[1] * clusters[1, 2], rtol=0.02)


def test_a_start_that_rules_out_what_was_seen_is_repaired():
    joint = np.array([[0.3, 0.1], [0.1, 0.5]])
    corners, both = lift_wrong_zeros(joint, np.eye(2), np.diag([0.4, 0.6]))
    _, _, loss = em_step(joint, corners, both)
    assert np.isfinite(loss)
    assert loss < 3
    *_, history, _ = run_em(joint, corners, both, max_iter=500, tol=0, freeze=0)
    assert history[-1] < 1e-6


def test_restarts_keep_the_best_likelihood_and_ties_keep_the_anchors(seed):
    rng = np.random.default_rng(seed)
    table = noisy_table(rng)
    losses = [
        factorize(table, 4, init="random", n_init=n, random_state=0).history[-1]
        for n in (1, 4, 8)
    ]
    assert losses[0] >= losses[1] >= losses[2]
    # An exact table has many exact factorizations: the anchors' one must win.
    prevalence = np.array([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    clusters = np.array([[0.2, 0.0, 0.5, 0.3], [0.0, 0.1, 0.4, 0.5]])
    exact = factorize(prevalence @ clusters, 2, n_init=10, tol=1e-9, random_state=0)
    assert_allclose(exact.class_given_domain, prevalence, atol=1e-6)


def test_converged_says_whether_the_tolerance_was_met(seed):
    table = noisy_table(np.random.default_rng(seed))
    assert not factorize(table, 4, max_iter=3, tol=0).converged
    assert factorize(table, 4, max_iter=3, tol=0).n_iter == 3
    assert factorize(table, 4, max_iter=2_000, tol=1e-3).converged


def test_topic_sized_table(seed):
    """200 documents, 2,000 words, 20 topics with anchor words: both factors."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(2_000, 0.1), 20)
    topics[:, :20] = np.eye(20) * 0.02
    topics[:, 20:] *= 0.98 / topics[:, 20:].sum(axis=1, keepdims=True)
    mix = rng.dirichlet(np.full(20, 0.1), 200)
    counts = np.array([rng.multinomial(5_000, row) for row in mix @ topics])
    found = factorize(counts / 5_000, 20)
    order = np.argmax(found.cluster_given_class[:, :20], axis=0)  # by anchor word
    assert sorted(order) == list(range(20))
    assert np.abs(found.class_given_domain[:, order] - mix).mean() < 0.005
    assert np.abs(found.cluster_given_class[order] - topics).sum(axis=1).mean() < 0.2
