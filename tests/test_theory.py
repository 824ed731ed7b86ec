"""The paper's theory on small finite problems, by summing the joint distribution.

Nothing of shoal is trusted here without an independent formula: q(x, y, d) is written
out as an array and every claim is read off it.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from shoal.probability import (
    class_given_domain,
    class_posterior,
    condition_number,
    domain_given_class,
    match_rows,
)
from shoal.stages.adjust import pseudo_inverse, simplex_least_squares
from shoal.stages.factorize import factorize, minimum_volume_polytope


class Finite:
    """A distribution Q over (d, y, x) with label shift, A.1 to A.4, and q(d) = 1/r."""

    def __init__(self, seed, n_classes=3, n_domains=4, n_inputs=9):
        rng = np.random.default_rng(seed)
        while True:
            prevalence = rng.dirichlet(np.ones(n_classes), n_domains)
            if condition_number(prevalence) < 30:
                break
        inputs = rng.dirichlet(np.ones(n_inputs), n_classes)
        # Two anchors for the first class, one for each other class.
        self.anchor_of = np.array([0, *range(n_classes)])
        for x, y in enumerate(self.anchor_of):
            inputs[np.arange(n_classes) != y, x] = 0
        inputs /= inputs.sum(axis=1, keepdims=True)
        self.n_classes, self.n_domains, self.n_inputs = n_classes, n_domains, n_inputs
        self.prevalence = prevalence
        self.inputs = inputs  # p(x|y)
        self.joint = (prevalence[:, :, None] * inputs[None]) / n_domains  # q(d, y, x)

    @property
    def domain_given_x(self):
        marginal = self.joint.sum(axis=1)  # q(d, x)
        return (marginal / marginal.sum(axis=0)).T

    @property
    def class_given_x(self):
        marginal = self.joint.sum(axis=0)  # q(y, x)
        return (marginal / marginal.sum(axis=0)).T


problems = st.builds(
    Finite,
    st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 5),
    n_domains=st.integers(5, 8),
    n_inputs=st.integers(7, 14),
)


# ---- Appendix A -------------------------------------------------------------------


@given(problems)
def test_every_class_has_positive_probability(q):
    """Lemma: A.1 to A.3 imply q(y) > 0 ..."""
    assert (q.joint.sum(axis=(0, 2)) > 0).all()
    # ... because a class of probability zero is a zero column, and lowers the rank.
    without = q.prevalence.copy()
    without[:, 0] = 0
    assert np.linalg.matrix_rank(without) == q.n_classes - 1


@given(problems)
def test_the_posterior_is_one_hot_exactly_at_anchors(q):
    """Lemma: x is in A_y if and only if q(y|x) = 1."""
    possible = q.inputs > 0
    is_anchor = possible.sum(axis=0) == 1
    one_hot = q.class_given_x.max(axis=1) == 1
    assert_array_equal(one_hot, is_anchor)
    assert_array_equal(np.flatnonzero(is_anchor), np.arange(len(q.anchor_of)))
    assert_array_equal(q.class_given_x[is_anchor].argmax(axis=1), q.anchor_of)


@given(problems)
def test_domain_given_class_has_independent_rows_and_follows_from_prevalence(q):
    """Lemma: Q_{D|Y} has independent columns, and is Q_{Y|D} transposed, normalized."""
    marginal = q.joint.sum(axis=2)  # q(d, y)
    by_definition = (marginal / marginal.sum(axis=0)).T
    assert_allclose(domain_given_class(q.prevalence), by_definition, atol=1e-12)
    assert_allclose(
        by_definition, (q.prevalence / q.prevalence.sum(axis=0)).T, atol=1e-12
    )
    assert np.linalg.matrix_rank(by_definition) == q.n_classes
    class_weight = q.joint.sum(axis=(0, 2))
    assert_allclose(
        class_given_domain(by_definition, class_weight), q.prevalence, atol=1e-12
    )


@given(problems)
def test_the_input_says_nothing_more_about_the_domain_once_the_class_is_known(q):
    """Lemma: q(d|x, y) = q(d|y)."""
    corners = domain_given_class(q.prevalence)
    for y in range(q.n_classes):
        for x in np.flatnonzero(q.inputs[y] > 0):
            given_both = q.joint[:, y, x] / q.joint[:, y, x].sum()
            assert_allclose(given_both, corners[y], atol=1e-12)


# ---- Lemmas 1 to 3 ----------------------------------------------------------------


@given(problems)
def test_lemma_1_prevalence_and_discriminator_determine_the_posterior(q):
    corners = domain_given_class(q.prevalence)
    assert_allclose(q.class_given_x @ corners, q.domain_given_x, atol=1e-12)
    for solve in (pseudo_inverse, simplex_least_squares):
        got = solve(q.domain_given_x, corners)
        assert_allclose(got, q.class_given_x, atol=1e-8)
    # Unique: no direction of the posterior is invisible to the discriminator.
    assert np.linalg.svd(corners, compute_uv=False).min() > 1e-6


@given(problems)
def test_lemma_2_the_posterior_per_domain_follows(q):
    corners = domain_given_class(q.prevalence)
    for d in range(q.n_domains):
        direct = (q.joint[d] / q.joint[d].sum(axis=0)).T  # q(y|x, d)
        codes = np.full(q.n_inputs, d)
        got = class_posterior(q.class_given_x, corners, codes)
        assert_allclose(got, direct, atol=1e-12)


@given(problems)
def test_lemma_3_the_discriminator_maps_an_anchor_set_to_a_point_of_its_own(q):
    f = q.domain_given_x
    for y in range(q.n_classes):
        inside = q.class_given_x[:, y] == 1
        assert np.ptp(f[inside], axis=0).max() < 1e-12
        gap = np.abs(f[~inside] - f[inside][0]).max(axis=1)
        # At least as far as the posterior is from certain, times the smallest stretch.
        doubt = np.linalg.norm(
            q.class_given_x[~inside] - np.eye(q.n_classes)[y], axis=1
        )
        smallest = np.linalg.svd(
            domain_given_class(q.prevalence), compute_uv=False
        ).min()
        assert (gap >= doubt * smallest / np.sqrt(q.n_domains) - 1e-12).all()
        assert (gap > 1e-9).all()


# ---- Theorems 1 and 2, Appendix F -------------------------------------------------


@pytest.mark.parametrize("method", ["spa", "snpa", "em", "volume"])
@pytest.mark.parametrize("problem_seed", range(5))
def test_theorem_1_anchor_words_identify_both_factors(method, problem_seed):
    q = Finite(problem_seed, n_classes=4, n_domains=5, n_inputs=12)
    table = q.joint.sum(axis=1) * q.n_domains  # q(x|d)
    found = factorize(table, 4, method=method)
    order = match_rows(q.prevalence.T, found.class_given_domain.T)
    assert_allclose(found.class_given_domain[:, order], q.prevalence, atol=1e-9)
    assert_allclose(found.cluster_given_class[order], q.inputs, atol=1e-9)


@pytest.mark.parametrize("problem_seed", range(5))
def test_theorem_2_point_masses_make_anchor_words(problem_seed):
    """The proof's own construction, on a mixture of point masses and a continuum.

    Anchor inputs of a class share one value of f; 500 other inputs each have their own.
    Every value of mass >= eps becomes a cluster, all the rest one more.
    """
    q = Finite(problem_seed, n_classes=3, n_domains=4, n_inputs=504)
    mass_of_input = q.joint.sum(axis=(0, 1))
    values, group = np.unique(
        np.round(q.domain_given_x, 10), axis=0, return_inverse=True
    )
    group = group.ravel()  # numpy 2.0 gives it two dimensions
    mass = np.bincount(group, weights=mass_of_input)
    eps = min(mass[group[x]] for x in range(len(q.anchor_of)))
    heavy = np.flatnonzero(mass >= eps)
    assert 3 <= len(heavy) <= 1 / eps
    cluster = np.full(len(values), len(heavy))
    cluster[heavy] = np.arange(len(heavy))
    indicator = np.eye(len(heavy) + 1)[cluster[group]]  # x -> c(x)
    table = (q.joint.sum(axis=1) * q.n_domains) @ indicator
    found = factorize(table, 3, method="spa")
    order = match_rows(q.prevalence.T, found.class_given_domain.T)
    assert_allclose(found.class_given_domain[:, order], q.prevalence, atol=1e-7)
    corners = found.domain_given_class[order]
    assert_allclose(
        simplex_least_squares(q.domain_given_x, corners), q.class_given_x, atol=1e-6
    )


@given(problems)
def test_appendix_f_all_points_lie_in_the_polytope_and_anchors_are_its_corners(q):
    corners = domain_given_class(q.prevalence)
    weights = q.domain_given_x @ np.linalg.pinv(corners)
    assert weights.min() > -1e-9
    assert_allclose(weights.sum(axis=1), 1, atol=1e-9)
    assert_allclose(
        q.domain_given_x[: len(q.anchor_of)], corners[q.anchor_of], atol=1e-12
    )
    found = minimum_volume_polytope(q.domain_given_x, q.n_classes)
    assert_allclose(found[match_rows(corners, found)], corners, atol=1e-9)


def test_condition_number_one_with_two_classes_is_a_permutation():
    grid = np.linspace(0, 1, 41)
    perfect = [
        (a, b)
        for a in grid
        for b in grid
        if condition_number([[a, 1 - a], [b, 1 - b]]) < 1 + 1e-9
    ]
    assert perfect == [(0, 1), (1, 0)]


# ---- Appendix C -------------------------------------------------------------------


def cross_entropy(joint, domain_given_x):
    """E over (x, d) of -log f_d(x); joint is q(d, x)."""
    return -(joint.T * np.log(domain_given_x)).sum()


@given(problems, st.integers(0, 2**32 - 1))
def test_excess_cross_entropy_is_the_divergence_from_the_true_discriminator(q, seed):
    """L(f) - L(q(d|x)) = E_x KL(q(d|x) || f(x)) >= 0: q(d|x) is the minimizer."""
    joint, truth = q.joint.sum(axis=1), q.domain_given_x
    rng = np.random.default_rng(seed)
    other = rng.dirichlet(np.ones(q.n_domains), q.n_inputs)
    excess = cross_entropy(joint, other) - cross_entropy(joint, truth)
    divergence = (truth * np.log(truth / other)).sum(axis=1)
    assert_allclose(excess, joint.sum(axis=0) @ divergence, atol=1e-10)
    assert excess >= 0
    for step in (0.1, 0.001):
        nearby = (1 - step) * truth + step * other
        assert cross_entropy(joint, nearby) >= cross_entropy(joint, truth) - 1e-15


@pytest.mark.parametrize("problem_seed", range(3))
def test_minimizing_cross_entropy_finds_the_discriminator(problem_seed):
    """Numerically, over all functions on a finite space: one logit per (x, d)."""
    q = Finite(problem_seed)
    joint = q.joint.sum(axis=1)
    weight = joint.sum(axis=0)  # q(x)

    def loss(flat):
        logits = flat.reshape(q.n_inputs, q.n_domains)
        log_f = logits - logsumexp(logits, axis=1, keepdims=True)
        gradient = weight[:, None] * np.exp(log_f) - joint.T
        return -(joint.T * log_f).sum(), gradient.ravel()

    start = np.random.default_rng(problem_seed).normal(size=joint.size)
    best = minimize(loss, start, jac=True, options={"gtol": 1e-10, "maxiter": 5_000})
    found = softmax(best.x.reshape(q.n_inputs, q.n_domains), axis=1)
    assert_allclose(found, q.domain_given_x, atol=1e-6)
    entropy = cross_entropy(joint, q.domain_given_x)
    assert_allclose(best.fun, entropy, atol=1e-10)
