"""Exact identities of the algebra, and the paper's lemmas on finite spaces."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from shoal import probability as prob


def random_stochastic(rng, n_rows, n_columns, concentration=1.0):
    return rng.dirichlet(np.full(n_columns, concentration), size=n_rows)


def finite_world(rng, n_classes=3, n_domains=5, n_inputs=12):
    """Build a joint q(x, y, d) on a finite space, with one anchor input per class.

    Returned as class_given_domain, input_given_class and the joint of shape
    (n_inputs, n_classes, n_domains) under equal domain weights.
    """
    prevalence = random_stochastic(rng, n_domains, n_classes)
    inputs = random_stochastic(rng, n_classes, n_inputs)
    for label in range(n_classes):
        inputs[np.arange(n_classes) != label, label] = 0
    inputs = prob.normalize_rows(inputs)
    joint = np.einsum("yx,dy->xyd", inputs, prevalence) / n_domains
    return prevalence, inputs, joint


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
weights = st.floats(0, 1e6, allow_subnormal=False)
tables = shapes.flatmap(lambda shape: hnp.arrays(float, shape, elements=weights))


# ---- normalize_rows and check_stochastic ------------------------------------------


@given(tables)
def test_normalized_rows_are_distributions_in_the_same_direction(table):
    before = table.copy()
    rows = prob.normalize_rows(table)
    assert_array_equal(table, before)
    assert_allclose(rows.sum(axis=1), 1)
    assert (rows >= 0).all()
    alive = table.sum(axis=1) > 0
    assert_allclose((rows * table.sum(axis=1, keepdims=True))[alive], table[alive])
    assert_allclose(rows[~alive], 1 / table.shape[1])
    assert_allclose(prob.normalize_rows(rows), rows)


def test_empty_row_becomes_what_is_asked():
    rows = prob.normalize_rows([[0, 0], [1, 1]], empty=[0.9, 0.1])
    assert_array_equal(rows, [[0.9, 0.1], [0.5, 0.5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normalize_keeps_the_precision(dtype):
    assert prob.normalize_rows(np.ones((2, 3), dtype)).dtype == dtype
    assert prob.normalize_rows(np.zeros((2, 3), dtype)).dtype == dtype
    assert prob.check_stochastic(np.eye(3, dtype=dtype), "table").dtype == dtype


def test_integers_become_floats():
    assert prob.normalize_rows([[1, 3]]).dtype == np.float64
    assert prob.check_stochastic(np.eye(2, dtype=int), "table").dtype == np.float64


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([0.5, 0.5], r"table must be a 2-D array of probabilities, got shape \(2,\)"),
        (np.ones((0, 3)), r"table is empty, got shape \(0, 3\)"),
        ([["a", "b"]], "table must be a table of numbers: could not convert string"),
        ([[0.5, 0.5], [1.0]], "table must be a table of numbers: setting an array"),
        ([[0.5, 0.5], [np.nan, 1]], r"table has NaN or infinite values \(first in row"),
        ([[0.5, 0.5], [np.inf, 1]], r"first in row 1"),
        ([[1, 0], [1.5, -0.5]], r"table has negative values \(row 1: -0.5\)"),
        ([[1, 0], [0.5, 0.4]], r"rows of table must sum to 1, row 1 sums to 0.9"),
    ],
)
def test_bad_tables_are_named(table, message):
    with pytest.raises(ValueError, match=message):
        prob.check_stochastic(table, "table")


@given(tables)
def test_normalized_tables_pass_the_check_in_both_precisions(table):
    rows = prob.normalize_rows(table)
    assert prob.check_stochastic(rows, "table") is rows
    prob.check_stochastic(rows.astype(np.float32), "table")


# ---- Bayes' rule between classes and domains (Lemmas 4 and 6) ---------------------


@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 8), st.booleans())
def test_domain_given_class_and_back(seed, n_classes, n_domains, equal):
    rng = np.random.default_rng(seed)
    prevalence = random_stochastic(rng, n_domains, n_classes)
    weight = None if equal else rng.dirichlet(np.ones(n_domains))
    share = np.full(n_domains, 1 / n_domains) if equal else weight
    inverse = prob.domain_given_class(prevalence, weight)
    assert inverse.shape == (n_classes, n_domains)
    assert_allclose(inverse.sum(axis=1), 1)
    back = prob.class_given_domain(inverse, share @ prevalence)
    assert_allclose(back, prevalence, atol=1e-12)


def test_domain_given_class_is_bayes_by_hand():
    # q(d=0|y=0) = .9 * .25 / (.9 * .25 + .2 * .75)
    got = prob.domain_given_class([[0.9, 0.1], [0.2, 0.8]], [1, 3])
    first = 0.9 * 0.25 / (0.9 * 0.25 + 0.2 * 0.75)
    second = 0.1 * 0.25 / (0.1 * 0.25 + 0.8 * 0.75)
    assert_allclose(got, [[first, 1 - first], [second, 1 - second]])


def test_class_that_never_occurs_gets_the_domain_weight():
    got = prob.domain_given_class([[1, 0], [1, 0]], [0.3, 0.7])
    assert_allclose(got, [[0.3, 0.7], [0.3, 0.7]])


def test_lemma_4_full_rank_means_every_class_occurs(seed):
    rng = np.random.default_rng(seed)
    prevalence = random_stochastic(rng, 6, 4, concentration=0.3)
    assert np.linalg.matrix_rank(prevalence) == 4
    assert (prevalence.mean(axis=0) > 0).all()
    prevalence[:, 2] = 0  # a class without weight, and the rank is gone
    assert np.linalg.matrix_rank(prob.normalize_rows(prevalence)) == 3


def test_lemma_6_independent_rows_stay_independent(seed):
    rng = np.random.default_rng(seed)
    for n_classes, n_domains in [(2, 2), (3, 5), (7, 9)]:
        prevalence = random_stochastic(rng, n_domains, n_classes)
        inverse = prob.domain_given_class(prevalence)
        assert np.linalg.matrix_rank(inverse) == n_classes
        # The paper's recipe: transpose, then scale every class to sum to 1.
        assert_allclose(inverse, (prevalence / prevalence.sum(axis=0)).T)


# ---- posteriors (Lemmas 1, 2, 5 and 7) --------------------------------------------


def test_lemma_7_domain_given_x_is_a_mix_of_domain_given_class(seed):
    prevalence, _, joint = finite_world(np.random.default_rng(seed))
    class_given_x = prob.normalize_rows(joint.sum(axis=2))
    domain_given_x = prob.normalize_rows(joint.sum(axis=1))
    mixed = class_given_x @ prob.domain_given_class(prevalence)
    assert_allclose(mixed, domain_given_x, atol=1e-14)


def test_lemma_1_class_given_x_is_determined(seed):
    prevalence, _, joint = finite_world(np.random.default_rng(seed))
    domain_given_x = prob.normalize_rows(joint.sum(axis=1))
    # Independent rows: a solution of f(x) = g(x) T is the only one.
    solved = domain_given_x @ np.linalg.pinv(prob.domain_given_class(prevalence))
    assert_allclose(solved, prob.normalize_rows(joint.sum(axis=2)), atol=1e-10)


def test_lemma_2_class_posterior_is_bayes_in_the_joint(seed):
    prevalence, inputs, joint = finite_world(np.random.default_rng(seed))
    class_given_x = prob.normalize_rows(joint.sum(axis=2))
    inverse = prob.domain_given_class(prevalence)
    for domain in range(prevalence.shape[0]):
        codes = np.full(inputs.shape[1], domain)
        got = prob.class_posterior(class_given_x, inverse, codes)
        assert_allclose(got, prob.normalize_rows(joint[:, :, domain]), atol=1e-13)


def test_lemma_5_posterior_is_one_hot_exactly_on_anchors(seed):
    _, inputs, joint = finite_world(np.random.default_rng(seed), n_classes=4)
    class_given_x = prob.normalize_rows(joint.sum(axis=2))
    anchor = (inputs > 0).sum(axis=0) == 1
    one_hot = np.isclose(class_given_x.max(axis=1), 1, atol=1e-12)
    assert_array_equal(one_hot, anchor)
    assert anchor.sum() >= 4


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 5), st.integers(1, 9))
def test_class_posterior_equals_a_slow_loop(seed, n_classes, n_domains, n_rows):
    rng = np.random.default_rng(seed)
    class_given_x = random_stochastic(rng, n_rows, n_classes)
    inverse = random_stochastic(rng, n_classes, n_domains)
    codes = rng.integers(n_domains, size=n_rows)
    before = class_given_x.copy()
    got = prob.class_posterior(class_given_x, inverse, codes)
    for row, code in enumerate(codes):
        joint = [class_given_x[row, y] * inverse[y, code] for y in range(n_classes)]
        for y in range(n_classes):
            assert got[row, y] == pytest.approx(joint[y] / sum(joint))
    assert_array_equal(class_given_x, before)


def test_class_posterior_where_the_domain_rules_out_x():
    # Domain 1 never has class 0, x can be nothing else: the domain's own mix is left.
    inverse = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75]]
    got = prob.class_posterior([[1.0, 0, 0], [0, 1, 0]], inverse, [1, 1])
    assert_allclose(got, [[0, 0.4, 0.6], [0, 1, 0]])


def test_what_is_left_then_is_the_prevalence(seed):
    prevalence = random_stochastic(np.random.default_rng(seed), 4, 3)
    prevalence[:, 0] = [1, 0, 0.5, 0]
    prevalence = prob.normalize_rows(prevalence)
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    got = prob.class_posterior(
        [[1.0, 0, 0]] * 4,
        prob.domain_given_class(prevalence, weight),
        range(4),
        class_weight=weight @ prevalence,
    )
    assert_allclose(got[[1, 3]], prevalence[[1, 3]])
    assert_allclose(got[[0, 2]], [[1, 0, 0], [1, 0, 0]])


def test_shift_prior_is_bayes_with_another_prior(seed):
    prevalence, inputs, joint = finite_world(np.random.default_rng(seed))
    class_given_x = prob.normalize_rows(joint.sum(axis=2))
    source = prevalence.mean(axis=0)
    target = np.array([0.2, 0.5, 0.3])
    expected = prob.normalize_rows((inputs * target[:, None]).T)
    assert_allclose(prob.shift_prior(class_given_x, source, target), expected)
    # The posterior in a training domain is the same thing (Lemma 2).
    codes = np.zeros(len(class_given_x), dtype=int)
    in_domain = prob.class_posterior(
        class_given_x, prob.domain_given_class(prevalence), codes
    )
    assert_allclose(
        prob.shift_prior(class_given_x, source, prevalence[0]), in_domain, atol=1e-13
    )


def test_shift_prior_round_trip_and_dead_classes():
    table = np.array([[0.2, 0.8], [0.5, 0.5]])
    there = prob.shift_prior(table, [0.5, 0.5], [0.1, 0.9])
    assert_allclose(prob.shift_prior(there, [0.1, 0.9], [0.5, 0.5]), table)
    # Source 0 cannot be revived; a row with nothing left gets the target itself.
    got = prob.shift_prior([[0.5, 0.5], [1.0, 0.0]], [0.0, 1.0], [0.3, 0.7])
    assert_allclose(got, [[0, 1], [0.3, 0.7]])


def test_balance_domains_undoes_unequal_sampling(seed):
    rng = np.random.default_rng(seed)
    input_given_domain = random_stochastic(rng, 3, 7)
    fitted, wanted = np.array([0.6, 0.3, 0.1]), np.full(3, 1 / 3)
    learned = prob.normalize_rows((input_given_domain * fitted[:, None]).T)
    balanced = prob.normalize_rows((input_given_domain * wanted[:, None]).T)
    assert_allclose(prob.balance_domains(learned, fitted, wanted), balanced)


# ---- tables and likelihood --------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 4), st.integers(1, 30))
def test_cluster_given_domain_counts(seed, n_clusters, n_domains, n_rows):
    rng = np.random.default_rng(seed)
    clusters = rng.integers(n_clusters, size=n_rows)
    codes = rng.integers(n_domains, size=n_rows)
    weight = rng.uniform(0.5, 2, size=n_rows)
    for sample_weight, row_weight in [(None, np.ones(n_rows)), (weight, weight)]:
        got = prob.cluster_given_domain(
            clusters, codes, n_clusters, n_domains, sample_weight
        )
        assert got.shape == (n_domains, n_clusters)
        for d, c in itertools.product(range(n_domains), range(n_clusters)):
            here = codes == d
            expected = 1 / n_clusters  # a domain without rows says nothing
            if here.any():
                inside = row_weight[here & (clusters == c)].sum()
                expected = inside / row_weight[here].sum()
            assert got[d, c] == pytest.approx(expected)


def test_cluster_given_domain_survives_small_integer_types():
    codes = np.arange(30, dtype=np.uint8)
    clusters = np.full(30, 59, dtype=np.uint8)  # 29 * 60 + 59 does not fit 8 bits
    got = prob.cluster_given_domain(clusters, codes, 60, 30)
    assert_array_equal(got[:, 59], 1)


def test_mean_log_likelihood_weighs_domains_equally():
    table = np.array([[0.5, 0.5], [0.25, 0.75], [0.1, 0.9]])
    got = prob.mean_log_likelihood(table, [0, 1, 1])
    assert got == pytest.approx((np.log(0.5) + np.log([0.75, 0.9]).mean()) / 2)
    weighted = prob.mean_log_likelihood(table, [0, 1, 1], [1, 3], [5, 2, 1])
    second = (2 * np.log(0.75) + np.log(0.9)) / 3
    assert weighted == pytest.approx(0.25 * np.log(0.5) + 0.75 * second)


def test_mean_log_likelihood_counts_only_domains_with_rows():
    table = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1]])
    got = prob.mean_log_likelihood(table, [0, 1], [0.25, 0.25, 0.5])
    assert got == pytest.approx((np.log(0.5) + np.log(0.8)) / 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_impossible_domain_costs_much_but_not_infinity(dtype):
    got = prob.mean_log_likelihood(np.array([[0, 1]], dtype=dtype), [0])
    assert got == pytest.approx(np.log(prob.TINY))


def test_appendix_c_cross_entropy_is_least_at_domain_given_x(seed):
    rng = np.random.default_rng(seed)
    _, _, joint = finite_world(rng)
    input_and_domain = joint.sum(axis=1)
    oracle = prob.normalize_rows(input_and_domain)

    def cross_entropy(table):
        return -(input_and_domain * np.log(table)).sum()

    for size in [1e-3, 0.1, 1]:
        other = prob.normalize_rows(
            oracle * np.exp(size * rng.normal(size=oracle.shape))
        )
        assert cross_entropy(other) > cross_entropy(oracle)


# ---- geometry, matching, order ----------------------------------------------------


def project_by_bisection(point):
    """Projection max(v - t, 0) with t found so that the parts sum to 1."""
    low, high = point.min() - 1, point.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(point - middle, 0).sum() > 1:
            low = middle
        else:
            high = middle
    return np.maximum(point - high, 0)


points = hnp.arrays(
    float, st.tuples(st.integers(1, 4), st.integers(1, 7)), elements=st.floats(-50, 50)
)


@given(points)
def test_projection_agrees_with_bisection(rows):
    got = prob.project_to_simplex(rows)
    expected = np.array([project_by_bisection(row) for row in rows])
    assert_allclose(got, expected, atol=1e-9)
    assert_allclose(got.sum(axis=1), 1)
    assert_allclose(prob.project_to_simplex(got), got, atol=1e-15)


@given(points, st.integers(0, 2**31))
def test_projection_is_the_nearest_point(rows, seed):
    got = prob.project_to_simplex(rows)
    others = random_stochastic(np.random.default_rng(seed), 50, rows.shape[1])
    for row, nearest in zip(rows, got, strict=True):
        distance = np.linalg.norm(row - nearest)
        assert distance <= np.linalg.norm(others - row, axis=1).min() + 1e-9


@pytest.mark.parametrize("size", [1e17, -1e17, 1e300])
def test_projection_of_huge_points(size):
    assert_allclose(
        prob.project_to_simplex([[size, 0.0], [size, size]]),
        [
            [1, 0] if size > 0 else [0, 1],
            [0.5, 0.5],
        ],
    )


def test_condition_number():
    assert prob.condition_number(np.diag([4.0, 2.0])) == pytest.approx(2)
    assert prob.condition_number(np.eye(3)[[2, 0, 1]]) == pytest.approx(1)
    assert prob.condition_number([[0.5, 0.5], [0.5, 0.5]]) == np.inf
    assert prob.condition_number(np.zeros((2, 3))) == np.inf
    table = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    assert prob.condition_number(table) == pytest.approx(np.linalg.cond(table))


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 4))
def test_match_rows_is_the_best_permutation(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    reference, rows = rng.normal(size=(2, n_rows, n_columns))
    got = prob.match_rows(reference, rows)
    assert sorted(got) == list(range(n_rows))
    cost = np.abs(reference - rows[got]).sum()
    permutations = itertools.permutations(range(n_rows))
    best = min(np.abs(reference - rows[list(p)]).sum() for p in permutations)
    assert cost == pytest.approx(best)


def test_match_rows_finds_the_permutation_back(seed):
    rng = np.random.default_rng(seed)
    reference = rng.normal(size=(20, 6))
    shuffled = reference[rng.permutation(20)]
    matched = shuffled[prob.match_rows(reference, shuffled)]
    assert_array_equal(matched, reference)


def test_match_rows_wants_equal_shapes():
    with pytest.raises(ValueError, match=r"same shape, got \(2, 3\) and \(3, 3\)"):
        prob.match_rows(np.ones((2, 3)), np.ones((3, 3)))


def test_canonical_order_is_by_decreasing_mean():
    assert_array_equal(
        prob.canonical_order([[0.2, 0.7, 0.1], [0.4, 0.1, 0.5]]), [1, 0, 2]
    )


def test_canonical_order_breaks_ties_by_the_first_domain_that_differs():
    prevalence = [[0.25, 0.25, 0.5], [0.25, 0.5, 0.25], [0.5, 0.25, 0.25]]
    assert_array_equal(prob.canonical_order(prevalence), [2, 1, 0])
    assert_array_equal(prob.canonical_order([[0.5, 0.5], [0.5, 0.5]]), [0, 1])


def test_canonical_order_ignores_the_last_bits():
    third = 0.1 + 0.2  # not quite 0.3
    prevalence = np.array([[third, 0.3, 0.4], [0.3, third, 0.4]])
    assert_array_equal(prob.canonical_order(prevalence), [2, 0, 1])


@given(st.integers(0, 2**31), st.permutations(range(5)))
def test_canonical_order_does_not_depend_on_the_order_given(seed, shuffle):
    prevalence = random_stochastic(np.random.default_rng(seed), 4, 5)
    shuffled = prevalence[:, shuffle]
    assert_array_equal(
        prevalence[:, prob.canonical_order(prevalence)],
        shuffled[:, prob.canonical_order(shuffled)],
    )


@pytest.mark.parametrize("row", [0, 4095, 4096, 9999])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.5, 0.9])
def test_one_bad_row_among_many_is_found(row, value):
    table = np.full((10_000, 3), 1 / 3)
    assert prob.check_stochastic(table, "q") is table
    table[row, 1] = value
    with pytest.raises(ValueError, match=rf"row {row}\b"):
        prob.check_stochastic(table, "q")


def test_infinities_that_cancel_are_found():
    table = np.array([[np.inf, -np.inf, 1.0]])
    with pytest.raises(ValueError, match="infinite values"):
        prob.check_stochastic(table, "q")
