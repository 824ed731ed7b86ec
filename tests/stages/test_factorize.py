"""Factorize: both factors are recovered, not only their product."""

import dataclasses
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import NMF

from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import (
    class_posterior,
    domain_given_class,
    match_rows,
    normalize_rows,
)
from shoal.stages.adjust import (
    maximum_likelihood,
    pseudo_inverse,
    simplex_least_squares,
)
from shoal.stages.factorize import Factorizer, factorize
from support import check_table_estimator
from support.data import well_conditioned

EXACT_METHODS = ["spa", "snpa", "em", "volume"]
ALL_METHODS = [*EXACT_METHODS, "nmf"]
SIZES = [(2, 2, 4), (3, 5, 8), (5, 8, 30), (10, 12, 25), (20, 30, 60)]


def anchored_problem(rng, n_classes, n_domains, n_clusters):
    """Prevalences, and classes with one anchor cluster each, in shuffled places."""
    prevalence = well_conditioned(rng, n_classes, n_domains)
    clusters = np.zeros((n_classes, n_clusters))
    anchor_mass = rng.uniform(0.05, 0.4, n_classes)
    clusters[:, :n_classes] = np.diag(anchor_mass)
    shared = rng.dirichlet(np.full(n_clusters - n_classes, 0.3), n_classes)
    clusters[:, n_classes:] = shared * (1 - anchor_mass)[:, None]
    return prevalence, clusters[:, rng.permutation(n_clusters)]


def scattered_problem(rng, n_classes, n_domains, n_clusters):
    """No anchors: every cluster has at least two classes, and lacks at least one."""
    clusters = rng.dirichlet(np.ones(n_clusters), n_classes)
    for column in clusters.T:
        n_present = rng.integers(2, n_classes)
        column[rng.permutation(n_classes)[n_present:]] = 0
    return well_conditioned(rng, n_classes, n_domains), normalize_rows(clusters)


def sample_table(rng, prevalence, clusters, n_rows):
    counts = [rng.multinomial(n_rows, row) for row in prevalence @ clusters]
    return np.array(counts) / n_rows


def align(truth, found):
    """Both factors of ``found`` in the class order of the true prevalences."""
    order = match_rows(truth.T, found.class_given_domain.T)
    return found.class_given_domain[:, order], found.cluster_given_class[order]


def prevalence_error(truth, found):
    return np.abs(align(truth, found)[0] - truth).mean()


# ---- population tables: exact in, exact out ---------------------------------------


@pytest.mark.parametrize("method", EXACT_METHODS)
@pytest.mark.parametrize(("n_classes", "n_domains", "n_clusters"), SIZES)
@pytest.mark.parametrize("problem_seed", range(20))
def test_anchored_population_is_recovered(
    method, n_classes, n_domains, n_clusters, problem_seed
):
    rng = np.random.default_rng(problem_seed)
    prevalence, clusters = anchored_problem(rng, n_classes, n_domains, n_clusters)
    weight = rng.dirichlet(np.full(n_domains, 5.0))
    found = factorize(
        prevalence @ clusters, n_classes, method=method, domain_weight=weight
    )
    got_prevalence, got_clusters = align(prevalence, found)
    assert_allclose(got_prevalence, prevalence, atol=1e-9)
    assert_allclose(got_clusters, clusters, atol=1e-9)
    assert found.residual < 1e-9

    # Exact q(d|x) of any inputs then gives exact posteriors, agnostic and per domain.
    corners = domain_given_class(prevalence, weight)
    order = match_rows(prevalence.T, found.class_given_domain.T)
    got_corners = found.domain_given_class[order]
    class_given_x = rng.dirichlet(np.full(n_classes, 0.5), 30)
    domain_given_x = class_given_x @ corners
    codes = np.array([rng.choice(n_domains, p=row) for row in domain_given_x])
    for adjust in (pseudo_inverse, simplex_least_squares, maximum_likelihood):
        got = adjust(domain_given_x, got_corners)
        assert_allclose(got, class_given_x, atol=1e-6)
        assert_allclose(
            class_posterior(got, got_corners, codes),
            class_posterior(class_given_x, corners, codes),
            atol=1e-6,
        )


def test_random_nmf_fits_the_table_and_misses_the_classes():
    """The published factorizer is not identified: the reason for all the others."""
    residuals, errors = [], []
    for problem_seed in range(20):
        rng = np.random.default_rng(problem_seed)
        prevalence, clusters = anchored_problem(rng, 3, 5, 8)
        table = prevalence @ clusters
        found = factorize(
            table, 3, method="nmf", max_iter=20_000, tol=1e-12, random_state=0
        )
        residuals.append(found.residual)
        errors.append(prevalence_error(prevalence, found))
        anchored = factorize(table, 3, method="nmf", init="spa", random_state=0)
        assert prevalence_error(prevalence, anchored) < 1e-7
    assert np.median(residuals) < 1e-9
    assert np.median(errors) > 0.03
    assert max(errors) > 0.1


@pytest.mark.parametrize("n_classes", [5, 10])
def test_published_settings_lose_most_where_anchors_lose_nothing(n_classes, seed):
    errors = []
    for run in range(10):
        rng = np.random.default_rng([seed, run])
        prevalence, clusters = anchored_problem(
            rng, n_classes, n_classes, 3 * n_classes
        )
        table = prevalence @ clusters
        errors.append(
            [
                prevalence_error(
                    prevalence,
                    factorize(table, n_classes, method=method, random_state=run),
                )
                for method in ("nmf", "spa")
            ]
        )
    published, anchors = np.median(errors, axis=0)
    assert published > 0.02
    assert anchors < 1e-9


def test_minimum_volume_needs_no_anchors(seed):
    rng = np.random.default_rng(seed)
    for n_classes, n_domains, n_clusters in [(4, 6, 80), (6, 8, 150), (10, 12, 400)]:
        prevalence, clusters = scattered_problem(rng, n_classes, n_domains, n_clusters)
        table = prevalence @ clusters
        found = factorize(table, n_classes, method="volume")
        assert_allclose(align(prevalence, found)[0], prevalence, atol=1e-6)
        assert_allclose(align(prevalence, found)[1], clusters, atol=1e-6)
        anchors = factorize(table, n_classes, method="spa")
        assert prevalence_error(prevalence, anchors) > 1e-3


# ---- sampled tables ---------------------------------------------------------------


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_error_shrinks_with_the_square_root_of_rows(method, seed):
    n_rows = np.array([1_000, 10_000, 100_000, 1_000_000])
    errors = np.zeros((8, len(n_rows)))
    for run, row in enumerate(errors):
        rng = np.random.default_rng([seed, run])
        prevalence, clusters = anchored_problem(rng, 5, 8, 20)
        for column, size in enumerate(n_rows):
            table = sample_table(rng, prevalence, clusters, size)
            row[column] = prevalence_error(
                prevalence, factorize(table, 5, method=method)
            )
    slope = np.polyfit(np.log(n_rows), np.log(errors).mean(axis=0), 1)[0]
    assert -0.62 < slope < -0.38


def test_maximum_likelihood_beats_its_own_start(seed):
    """EM listens to all clusters, the anchors it starts from only to a few."""
    gain = []
    for run in range(10):
        rng = np.random.default_rng([seed, run])
        prevalence, clusters = anchored_problem(rng, 10, 20, 60)
        table = sample_table(rng, prevalence, clusters, 3_000)
        anchors, likelihood = (
            prevalence_error(prevalence, factorize(table, 10, method=method))
            for method in ("spa", "em")
        )
        gain.append(np.log(likelihood / anchors))
    assert np.mean(gain) < -0.05


def test_denoising_helps_where_domains_outnumber_classes(seed):
    gain = []
    for run in range(10):
        rng = np.random.default_rng([seed, run])
        prevalence, clusters = anchored_problem(rng, 4, 40, 30)
        table = sample_table(rng, prevalence, clusters, 300)
        plain, denoised = (
            prevalence_error(
                prevalence, factorize(table, 4, method="spa", denoise=choice)
            )
            for choice in (False, True)
        )
        gain.append(np.log(denoised / plain))
    assert np.mean(gain) < -0.05


@pytest.mark.parametrize("method", ["spa", "snpa"])
def test_clusters_too_small_to_trust_are_no_anchors(method, seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 3, 5, 8)
    stray = np.zeros((5, 1))
    stray[0] = 1e-4  # a handful of rows, all of one domain: the most extreme of all
    table = normalize_rows(np.c_[prevalence @ clusters, stray])
    misled = factorize(table, 3, method=method, denoise=False)
    careful = factorize(table, 3, method=method, denoise=False, min_share=0.01)
    assert prevalence_error(prevalence, misled) > 0.01
    assert prevalence_error(prevalence, careful) < 1e-3
    # Fewer trusted clusters than classes: the heaviest stand in.
    assert factorize(table, 3, method=method, min_share=100).n_classes == 3


# ---- invariances ------------------------------------------------------------------


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_permuted_domains_and_clusters_permute_the_factors(method, seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 4, 7, 15)
    table = sample_table(rng, prevalence, clusters, 2_000)
    weight = rng.dirichlet(np.full(7, 5.0))
    rows, columns = rng.permutation(7), rng.permutation(15)
    plain = factorize(table, 4, method=method, domain_weight=weight)
    moved = factorize(
        table[rows][:, columns], 4, method=method, domain_weight=weight[rows]
    )
    assert_allclose(moved.class_given_domain, plain.class_given_domain[rows], atol=1e-6)
    assert_allclose(
        moved.cluster_given_class, plain.cluster_given_class[:, columns], atol=1e-6
    )
    assert_array_equal(columns[moved.anchors], plain.anchors)


@pytest.mark.parametrize("method", ALL_METHODS)
def test_float32_agrees_with_float64(method, seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 4, 6, 12)
    table = sample_table(rng, prevalence, clusters, 5_000)
    double = factorize(table, 4, method=method, random_state=0)
    single = factorize(table.astype(np.float32), 4, method=method, random_state=0)
    assert_allclose(single.class_given_domain, double.class_given_domain, atol=2e-4)
    assert single.class_given_domain.dtype == np.float64


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_empty_clusters_and_domain_weights_do_not_matter_in_population(method, seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 3, 5, 8)
    table = np.insert(prevalence @ clusters, [2, 8], 0.0, axis=1)
    found = factorize(table, 3, method=method, domain_weight=[5, 1, 1, 2, 1])
    assert_allclose(align(prevalence, found)[0], prevalence, atol=1e-9)
    assert_array_equal(found.cluster_given_class[:, [2, 9]], 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_classes=st.integers(2, 4),
    extra_domains=st.integers(0, 3),
    extra_clusters=st.integers(0, 5),
    n_rows=st.sampled_from([3, 30, 300]),
    method=st.sampled_from(ALL_METHODS),
)
def test_any_table_gives_two_stochastic_factors(
    seed, n_classes, extra_domains, extra_clusters, n_rows, method
):
    """Tiny counts too: repeated rows, empty clusters, rank below the class count."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(
        np.ones(n_classes + extra_clusters), n_classes + extra_domains
    )
    table = np.array([rng.multinomial(n_rows, row) for row in shares]) / n_rows
    if (table.sum(axis=0) > 0).sum() < n_classes:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = factorize(table, n_classes, method=method, random_state=0)
    for factor in (found.class_given_domain, found.cluster_given_class):
        assert (factor >= 0).all()
        assert_allclose(factor.sum(axis=1), 1, atol=1e-9)
    assert np.isfinite(found.residual)
    means = found.class_given_domain.mean(axis=0)
    assert (np.diff(means) <= 1e-9).all()


# ---- what the result says about itself --------------------------------------------


def test_the_result_describes_its_fit(seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 3, 6, 10)
    table = sample_table(rng, prevalence, clusters, 500)
    weight = rng.dirichlet(np.full(6, 5.0))
    found = factorize(table, 3, method="em", domain_weight=weight)
    product = found.class_given_domain @ found.cluster_given_class
    assert_allclose(found.residual, np.sqrt(((table - product) ** 2).sum()))
    divergence = sum(
        weight[d] * table[d, c] * np.log(table[d, c] / product[d, c])
        for d in range(6)
        for c in range(10)
        if table[d, c] > 0
    )
    assert_allclose(found.divergence, divergence, rtol=1e-9)
    assert_allclose(found.divergence, found.history[-1], rtol=1e-6)
    assert_allclose(found.condition_number, np.linalg.cond(found.class_given_domain))
    joint = weight[:, None] * found.class_given_domain
    assert_allclose(found.class_weight, joint.sum(axis=0))
    assert_allclose(found.domain_given_class, (joint / joint.sum(axis=0)).T)
    joint = found.class_weight[:, None] * found.cluster_given_class
    filled = table.sum(axis=0) > 0
    joint = joint[:, filled]
    assert_allclose(found.class_given_cluster[filled], (joint / joint.sum(axis=0)).T)
    assert found.n_classes == 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.residual = 0.0


@pytest.mark.parametrize("method", EXACT_METHODS)
def test_anchors_are_found_and_pure(method, seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 5, 7, 20)
    found = factorize(prevalence @ clusters, 5, method=method)
    assert (found.anchor_purity >= 0.999).all()
    order = match_rows(prevalence.T, found.class_given_domain.T)
    joint = prevalence.mean(axis=0)[:, None] * clusters
    purity = (joint / joint.sum(axis=0))[np.arange(5), found.anchors[order]]
    assert_allclose(purity, found.anchor_purity[order], atol=1e-9)


def test_the_heaviest_of_several_anchors_is_named():
    clusters = np.array([[0.1, 0.3, 0.0, 0.6], [0.0, 0.0, 0.5, 0.5]])
    found = factorize([[0.8, 0.2], [0.3, 0.7]] @ clusters, 2, method="spa")
    assert_array_equal(found.anchors, [1, 2])


def test_rank_below_the_class_count_is_said(seed):
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(2), 5)
    table = prevalence @ rng.dirichlet(np.ones(6), 2)
    for method in ("spa", "snpa"):
        with pytest.warns(IdentifiabilityWarning, match="rank 2, too little for n_cl"):
            found = factorize(table, 3, method=method)
        assert found.residual < 1e-6
    with pytest.warns(IdentifiabilityWarning, match="span 1 dimensions"):
        factorize(table, 3, method="volume")


# ---- bad input --------------------------------------------------------------------

TABLE = np.array([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster_given_domain": TABLE * 2}, "must sum to 1, row 0 sums to 2"),
        ({"cluster_given_domain": TABLE - [0.6, -0.3, -0.3]}, "has negative values"),
        ({"cluster_given_domain": TABLE * np.nan}, "NaN or infinite"),
        ({"cluster_given_domain": TABLE[0]}, "must be a 2-D array"),
        ({"cluster_given_domain": TABLE * [[1], [0], [1]]}, "only zeros in row 1"),
        ({"n_classes": 1}, "n_classes must be a whole number from 2"),
        ({"n_classes": 2.0}, "n_classes must be a whole number from 2"),
        ({"n_classes": 4}, "n_classes=4 cannot be told apart with 3 domains"),
        ({"method": "magic"}, "method must be one of .* got 'magic'"),
        ({"domain_weight": [1, 1]}, r"one finite entry per domain \(3\)"),
        ({"domain_weight": [1, 0, 1]}, "must be positive, got 0 for domain 1"),
        ({"init": "magic"}, "init must be one of"),
        ({"n_init": 0}, "n_init must be a whole number from 1"),
        ({"method": "nmf", "n_init": 0}, "n_init must be a whole number from 1"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"method": "volume", "outside": 1}, r"outside must be in \[0, 1\), got 1"),
    ],
)
def test_bad_input_is_named(change, message):
    arguments = {"cluster_given_domain": TABLE, "n_classes": 2} | change
    with pytest.raises(ValueError, match=message):
        factorize(**arguments)


def test_unknown_options_are_refused():
    with pytest.raises(TypeError, match="'spa' has no option 'max_iter'; it takes"):
        factorize(TABLE, 2, method="spa", max_iter=10)


def test_fewer_clusters_than_classes():
    table = np.array([[0.5, 0.5], [0.2, 0.8], [0.7, 0.3]])
    with pytest.raises(
        ValueError, match="2 clusters are too few for n_classes=3; make"
    ):
        factorize(table, 3, method="nmf")
    with pytest.raises(ValueError, match="too few"):
        factorize(table, 3, method="spa", allow_fewer=True)
    with pytest.raises(ValueError, match="2 non-empty clusters are too few"):
        factorize(np.insert(table, 1, 0.0, axis=1), 3)
    for method in ("nmf", "em"):
        with pytest.warns(IdentifiabilityWarning, match="not identified"):
            found = factorize(table, 3, method=method, allow_fewer=True, random_state=0)
        assert found.class_given_domain.shape == (3, 3)
        assert_allclose(
            found.class_given_domain @ found.cluster_given_class, table, atol=0.02
        )


def test_fewer_domains_than_classes_can_be_allowed(seed):
    table = np.random.default_rng(seed).dirichlet(np.ones(8), 2)
    for method in ("spa", "snpa", "em", "nmf"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = factorize(
                table, 3, method=method, check_identifiable=False, random_state=0
            )
        assert caught
        assert {w.category for w in caught} == {IdentifiabilityWarning}
        assert_allclose(found.class_given_domain.sum(axis=1), 1)


# ---- NMF as published -------------------------------------------------------------


@pytest.mark.parametrize("run", range(3))
def test_nmf_is_scikit_learns_with_the_papers_renormalization(run, seed):
    rng = np.random.default_rng([seed, run])
    prevalence, clusters = anchored_problem(rng, 4, 6, 12)
    table = sample_table(rng, prevalence, clusters, 500)
    model = NMF(4, init="random", random_state=run, max_iter=200, tol=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        left = model.fit_transform(table)
    # The paper's Q_{c(X)|Y} (m x k) and Q_{Y|D} (k x r), columns normalized in turn.
    classes, mix = model.components_.T, left.T
    norms = classes.sum(axis=0)
    classes, mix = classes / norms, mix * norms[:, None]
    mix = mix / mix.sum(axis=0)
    found = factorize(table, 4, method="nmf", random_state=run)
    order = match_rows(mix, found.class_given_domain.T)
    assert_allclose(found.class_given_domain.T[order], mix, atol=1e-9)
    assert_allclose(found.cluster_given_class[order].T, classes, atol=1e-9)
    assert found.n_iter == model.n_iter_
    assert found.converged == (model.n_iter_ < 200)


def test_nmf_restarts_keep_the_smallest_residual(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(9), 6)
    one = factorize(table, 3, method="nmf", random_state=0)
    many = factorize(table, 3, method="nmf", n_init=10, random_state=0)
    assert many.residual <= one.residual + 1e-3
    again = factorize(table, 3, method="nmf", n_init=10, random_state=0)
    assert_array_equal(many.class_given_domain, again.class_given_domain)


# ---- the estimator ----------------------------------------------------------------


def test_factorizer_is_the_function_as_an_estimator(seed):
    rng = np.random.default_rng(seed)
    prevalence, clusters = anchored_problem(rng, 3, 5, 8)
    table = sample_table(rng, prevalence, clusters, 1_000)
    factorizer = Factorizer(
        3,
        method="em",
        options={"n_init": 3},
        domain_weight=[2, 1, 1, 1, 1],
        random_state=0,
    )
    fitted = clone(factorizer).fit(table)
    expected = factorize(
        table, 3, method="em", n_init=3, domain_weight=[2, 1, 1, 1, 1], random_state=0
    )
    assert_array_equal(fitted.class_given_domain_, expected.class_given_domain)
    assert_array_equal(fitted.cluster_given_class_, expected.cluster_given_class)
    assert fitted.factorization_.method == "em"
    assert fitted.n_iter_ == expected.n_iter
    assert fitted.n_features_in_ == 8
    assert not hasattr(factorizer, "factorization_")
    with pytest.raises(ValueError, match="method must be one of"):
        clone(factorizer).set_params(method="magic").fit(table)


@pytest.mark.parametrize("method", ALL_METHODS)
def test_the_battery_for_tables(method):
    factorizer = Factorizer(2, method=method, random_state=0)
    assert len(check_table_estimator(factorizer)) == 15
