"""Truths about adjust: exact recovery, optimality certificates, Bayes by hand."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, nnls
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from shoal.probability import balance_domains, domain_given_class, normalize_rows
from shoal.stages._simplex import interior_point, newton_steps
from shoal.stages._splitting import Divergence, SquaredDistance
from shoal.stages.adjust import (
    Adjuster,
    adjust,
    maximum_likelihood,
    pseudo_inverse,
    simplex_least_squares,
)
from support import TableProblem, check_table_estimator

SOLVERS = [pseudo_inverse, simplex_least_squares, maximum_likelihood]
CONSTRAINED = [simplex_least_squares, maximum_likelihood]


def noisy_rows(rng, n, table, spread=0.7):
    """Mixtures of the classes, each probability off by a random factor."""
    mixtures = rng.dirichlet(np.full(len(table), 0.3), n) @ table
    return normalize_rows(
        mixtures * np.exp(spread * rng.standard_normal(mixtures.shape))
    )


def least_squares_gap(points, table, answer):
    """How much min ||f - g T||^2 / 2 could still gain, row by row."""
    slope = (points - answer @ table) @ table.T
    return slope.max(axis=1) - (answer * slope).sum(axis=1)


def likelihood_gap(points, table, answer):
    """How much min KL(f || g T) could still gain, row by row; 1e-12 counts as 0."""
    mixed = answer @ table
    ratio = np.divide(points, mixed, out=np.zeros_like(mixed), where=points >= 1e-12)
    return (ratio @ table.T).max(axis=1) - 1


def difficult_tables(rng, k, r):
    """Tables on which the fast methods fail in different ways."""
    sparse = rng.dirichlet(np.full(r, 0.05), k)
    holes = rng.random((k, r)) * (rng.random((k, r)) < 0.3)
    holes[np.arange(k), np.arange(k) % r] += 0.1
    flat = rng.dirichlet(np.ones(r), k)
    twins = flat.copy()
    twins[-1] = twins[0]
    holes = holes[:, holes.any(axis=0)]
    return {
        "flat": flat,
        "sparse": sparse,
        "holes": normalize_rows(holes),
        "twins": twins,
        "nearly_equal": 0.9999 * flat[:1] + 0.0001 * flat,
        "equal": np.repeat(flat[:1], k, axis=0),
    }


def difficult_rows(rng, n, table):
    """Noisy mixtures, certainties, and probabilities of very different size."""
    r = table.shape[1]
    wild = normalize_rows(np.exp(10 * rng.standard_normal((n, r))))
    certain = np.eye(r)[rng.integers(r, size=n)]
    return np.vstack([noisy_rows(rng, n, table), certain, wild])


# ---- recovery and optimality --------------------------------------------------------


@pytest.mark.parametrize("solve", SOLVERS)
@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (4, 7), (20, 30)])
def test_population_tables_give_back_the_posterior(solve, shape, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(shape[1], 0.5), shape[0])
    class_given_x = rng.dirichlet(np.full(shape[0], 0.5), 200)
    class_given_x[:10] = np.eye(shape[0])[np.arange(10) % shape[0]]  # anchors
    class_given_x[10, 0], class_given_x[10, 1:] = 0, 1 / (shape[0] - 1)
    assert_allclose(solve(class_given_x @ table, table), class_given_x, atol=1e-6)


def test_least_squares_agrees_with_nnls_row_by_row(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(9), 6)
    points = noisy_rows(rng, 300, table)
    got = simplex_least_squares(points, table)
    for point, row in zip(points, got, strict=True):
        # The smallest vector of the hull of (table - point): non-negative least
        # squares with one more equation, up to scale.
        system = np.vstack([(table - point).T, np.ones(6)])
        weights, _ = nnls(system, np.append(np.zeros(9), 1.0))
        assert_allclose(row, weights / weights.sum(), atol=1e-7)


def test_likelihood_agrees_with_slsqp_row_by_row(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), 4)
    points = noisy_rows(rng, 25, table)
    got = maximum_likelihood(points, table)
    for point, row in zip(points, got, strict=True):
        slow = minimize(
            lambda g, f=point: -f @ np.log(np.maximum(g @ table, 1e-12)),
            np.full(4, 0.25),
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda g: g.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert_allclose(row, slow.x, atol=1e-4)
        assert -point @ np.log(row @ table) <= slow.fun + 1e-6


def test_likelihood_agrees_with_em(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(8), 3)
    points = noisy_rows(rng, 100, table)
    slow = np.full((100, 3), 1 / 3)
    for _ in range(20_000):
        slow *= (points / (slow @ table)) @ table.T
    got = maximum_likelihood(points, table, tol=1e-10)
    assert_allclose(got @ table, slow @ table, atol=1e-4)
    gain = (points * np.log((got @ table) / (slow @ table))).sum(axis=1)
    assert gain.min() > -1e-10


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (5, 8), (8, 4), (20, 30), (40, 40)])
def test_gaps_are_closed_on_difficult_problems(shape, seed):
    rng = np.random.default_rng(seed)
    for name, table in difficult_tables(rng, *shape).items():
        points = difficult_rows(rng, 60, table)
        nearest = simplex_least_squares(points, table)
        likely = maximum_likelihood(points, table)
        for answer in (nearest, likely):
            assert np.isfinite(answer).all(), name
            assert answer.min() >= 0, name
            assert_allclose(answer.sum(axis=1), 1, atol=1e-12, err_msg=name)
        assert least_squares_gap(points, table, nearest).max() < 1.1e-11, name
        assert likelihood_gap(points, table, likely).max() < 1.1e-6, name


@pytest.mark.parametrize("tol", [1e-5, 1e-7, 1e-10])
def test_tol_is_kept(tol, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(30), 20)
    points = noisy_rows(rng, 2000, table)
    nearest = simplex_least_squares(points, table, tol=tol)
    assert least_squares_gap(points, table, nearest).max() <= 1.01 * tol
    likely = maximum_likelihood(points, table, tol=tol)
    assert likelihood_gap(points, table, likely).max() <= 1.01 * tol


def test_each_solver_is_best_at_its_own_aim(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(7), 5)
    points = noisy_rows(rng, 500, table)
    answers = {solve: solve(points, table) for solve in SOLVERS}

    def distance(answer):
        return ((points - answer @ table) ** 2).sum(axis=1)

    def divergence(answer):
        return -(points * np.log(answer @ table)).sum(axis=1)

    for other in SOLVERS:
        best = distance(answers[simplex_least_squares])
        assert (best <= distance(answers[other]) + 1e-10).all()
        best = divergence(answers[maximum_likelihood])
        assert (best <= divergence(answers[other]) + 1e-6).all()


# ---- the methods alone, so that none hides behind another ----------------------------


@pytest.mark.parametrize("objective", [SquaredDistance, Divergence])
def test_newton_and_interior_point_agree(objective, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(9), 6)
    points = noisy_rows(rng, 200, table, spread=0.3).T
    if objective is SquaredDistance:
        function = objective(table @ table.T, table @ points)
    else:
        function = objective(table, points)
    inside, steps = np.empty((6, 200)), np.full((6, 200), 1 / 6)
    assert not interior_point(function, inside, tol=1e-12).any()
    left = newton_steps(
        function, steps, tol=1e-12, n_steps=20, inner=12, dtype=np.float64
    )
    assert left.mean() < 0.5  # from far away some do not descend, and say so
    assert_allclose(table.T @ steps[:, ~left], table.T @ inside[:, ~left], atol=1e-6)


def test_newton_never_makes_a_row_worse(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(9, 0.1), 6)
    points = noisy_rows(rng, 300, table, spread=1.5).T
    start = rng.dirichlet(np.ones(6), 300).T
    after = start.copy()
    function = SquaredDistance(table @ table.T, table @ points)
    newton_steps(function, after, tol=1e-9, n_steps=1, inner=12, dtype=np.float64)
    before_distance = ((points - table.T @ start) ** 2).sum(axis=0)
    after_distance = ((points - table.T @ after) ** 2).sum(axis=0)
    assert (after_distance <= before_distance + 1e-11).all()


@pytest.mark.parametrize("solve", CONSTRAINED)
def test_far_more_classes_than_domains(solve, seed):
    """60 classes, 4 domains: many answers, any of them certified."""
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.full(4, 0.3), 60)
    points = rng.dirichlet(np.full(4, 0.3), 100)
    answer = solve(points, table)
    gap = likelihood_gap if solve is maximum_likelihood else least_squares_gap
    assert gap(points, table, answer).max() < 1.1e-6


# ---- invariances --------------------------------------------------------------------


@pytest.mark.parametrize("solve", SOLVERS)
def test_float32_stays_float32_and_agrees(solve, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(8), 5)
    points = noisy_rows(rng, 400, table)
    narrow = solve(points.astype(np.float32), table)
    assert narrow.dtype == np.float32
    assert_allclose(narrow, solve(points, table), atol=2e-5)


@pytest.mark.parametrize(
    ("solve", "options"),
    [
        (pseudo_inverse, {}),
        (simplex_least_squares, {}),
        (maximum_likelihood, {"tol": 1e-12}),
    ],
)
def test_a_row_alone_equals_the_row_in_a_batch(solve, options, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(10), 6)
    points = noisy_rows(rng, 1500, table)
    batch = solve(points, table, **options)
    for row in (0, 7, 975, 976, 1499):  # around the end of a block
        alone = solve(points[row : row + 1], table, **options)
        assert_allclose(alone[0], batch[row], atol=1e-9)


@pytest.mark.parametrize("solve", CONSTRAINED)
def test_threads_change_nothing(solve, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(8), 5)
    points = noisy_rows(rng, 5000, table)
    with threadpool_limits(1, user_api="blas"):
        one = solve(points, table)
    with threadpool_limits(2, user_api="blas"):
        two = solve(points, table)
    assert_array_equal(one, two)


@pytest.mark.parametrize("solve", SOLVERS)
def test_order_of_domains_and_classes_does_not_matter(solve, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(9), 5)
    points = noisy_rows(rng, 200, table)
    domains, classes = rng.permutation(9), rng.permutation(5)
    got = solve(points[:, domains], table[classes][:, domains])
    assert_allclose(got, solve(points, table)[:, classes], atol=1e-4)


@pytest.mark.parametrize("solve", CONSTRAINED)
def test_memory_beyond_the_input_is_less_than_twice_the_input(solve):
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(30), 20)
    points = noisy_rows(rng, 60_000, table).astype(np.float32)
    with threadpool_limits(1, user_api="blas"):
        solve(points[:2000], table)
        tracemalloc.start()
        solve(points, table)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2 * points.nbytes


# ---- small cases by hand ------------------------------------------------------------


@pytest.mark.parametrize("solve", SOLVERS)
def test_two_classes_two_domains_by_hand(solve):
    # 0.6 = 0.8 g + 0.3 (1 - g) gives g = 0.6; 0.9 and 0.1 are beyond both classes.
    table = [[0.8, 0.2], [0.3, 0.7]]
    got = solve([[0.6, 0.4], [0.9, 0.1], [0.1, 0.9]], table)
    assert_allclose(got[0], [0.6, 0.4], atol=1e-9)
    assert_allclose(got[1:], [[1, 0], [0, 1]], atol=1e-9)


def test_clipping_keeps_the_arg_max(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(8), 6)
    points = rng.dirichlet(np.ones(8), 2000)
    raw = pseudo_inverse(points, table, clip=False)
    clipped = pseudo_inverse(points, table)
    assert (raw < 0).any(axis=1).mean() > 0.5
    assert_allclose(raw, points @ np.linalg.pinv(table), atol=1e-12)
    positive = raw.max(axis=1) > 0
    assert positive.mean() > 0.9
    assert_array_equal(raw.argmax(axis=1)[positive], clipped.argmax(axis=1)[positive])
    assert_allclose(clipped.sum(axis=1), 1)
    assert clipped.min() >= 0


def test_a_row_that_clips_to_nothing_is_uniform():
    table = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert_allclose(pseudo_inverse([[0.0, 0.0, 1.0]], table), [[0.5, 0.5]])


def test_domains_that_no_class_produces_are_left_out():
    table = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]
    with_impossible = maximum_likelihood([[0.3, 0.3, 0.1, 0.3]], table)
    without = maximum_likelihood([[3 / 7, 3 / 7, 1 / 7]], [row[:3] for row in table])
    assert_allclose(with_impossible, without, atol=1e-6)
    only_impossible = maximum_likelihood([[0.0, 0.0, 0.0, 1.0]], table)
    assert_allclose(only_impossible, [[0.5, 0.5]], atol=1e-6)


@pytest.mark.parametrize("solve", CONSTRAINED)
def test_twin_classes_share_the_weight_of_one(solve, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), 3)
    points = noisy_rows(rng, 200, table, spread=0.3)
    single = solve(points, table, tol=1e-11)
    twins = solve(points, np.vstack([table, table[:1]]), tol=1e-11)
    assert_allclose(twins[:, 0] + twins[:, 3], single[:, 0], atol=1e-4)
    assert_allclose(twins[:, 1:3], single[:, 1:], atol=1e-4)


@pytest.mark.parametrize("solve", SOLVERS)
def test_no_rows_one_row_one_class(solve):
    table = np.array([[0.8, 0.2], [0.3, 0.7]])
    with pytest.raises(
        ValueError, match=r"domain_given_x is empty, got shape \(0, 2\)"
    ):
        solve(np.empty((0, 2)), table)
    assert solve([[0.5, 0.5]], table).shape == (1, 2)
    assert_allclose(solve([[0.4, 0.6], [1, 0]], table[:1]), [[1.0], [1.0]])


# ---- any input ----------------------------------------------------------------------


@st.composite
def tables(draw):
    """Row-stochastic q(d|x) and q(d|y), zeros and repeated rows welcome."""
    n, k, r = (draw(st.integers(1, high)) for high in (5, 5, 6))
    entry = st.sampled_from([0.0, 0.0, 1e-9, 1e-3, 0.1, 0.5, 1.0, 7.0])
    parts = [draw(arrays(float, (rows, r), elements=entry)) for rows in (n, k)]
    return tuple(normalize_rows(part) for part in parts)


@given(tables())
def test_answers_are_distributions_and_optimal(pair):
    points, table = pair
    for solve in SOLVERS:
        answer = solve(points, table)
        assert answer.shape == (len(points), len(table))
        assert np.isfinite(answer).all()
        assert answer.min() >= 0
        assert_allclose(answer.sum(axis=1), 1, atol=1e-12)
    nearest = simplex_least_squares(points, table)
    assert least_squares_gap(points, table, nearest).max() < 1.1e-11
    possible = table.max(axis=0) > 0
    kept = points[:, possible]
    kept = normalize_rows(kept, empty=table[:, possible].mean(axis=0))
    likely = maximum_likelihood(points, table)
    assert likelihood_gap(kept, table[:, possible], likely).max() < 1.1e-6


# ---- bad tables ---------------------------------------------------------------------

GOOD = np.array([[0.8, 0.2], [0.3, 0.7]])


@pytest.mark.parametrize("solve", [*SOLVERS, adjust])
@pytest.mark.parametrize(
    ("points", "table", "message"),
    [
        (GOOD * 2, GOOD, "rows of domain_given_x must sum to 1, row 0 sums to 2"),
        (GOOD, GOOD + 0.1, "rows of domain_given_class must sum to 1"),
        ([[np.nan, 1.0]], GOOD, "domain_given_x has NaN or infinite values"),
        (GOOD, [[np.inf, 0.0]], "domain_given_class has NaN or infinite values"),
        ([[-0.5, 1.5]], GOOD, "domain_given_x has negative values"),
        (np.full((2, 3), 1 / 3), GOOD, "domain_given_x has 3 columns"),
        ([0.5, 0.5], GOOD, "domain_given_x must be a 2-D array"),
        (GOOD, np.empty((0, 2)), "domain_given_class is empty"),
    ],
)
def test_bad_tables_are_refused(solve, points, table, message):
    with pytest.raises(ValueError, match=message):
        solve(points, table)


@pytest.mark.parametrize("solve", CONSTRAINED)
@pytest.mark.parametrize("tol", [0, -1e-3, 1e-20, np.nan])
def test_tol_must_be_within_reach(solve, tol):
    with pytest.raises(ValueError, match="tol must be at least 1e-13, got"):
        solve(GOOD, GOOD, tol=tol)


# ---- adjust and Adjuster ------------------------------------------------------------


def test_adjust_picks_the_solver(seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(5), 3)
    points = noisy_rows(rng, 20, table)
    for method, solve in [
        ("likelihood", maximum_likelihood),
        ("simplex", simplex_least_squares),
        ("pinv", pseudo_inverse),
    ]:
        assert_array_equal(adjust(points, table, method=method), solve(points, table))
    assert_array_equal(adjust(points, table), maximum_likelihood(points, table))
    with pytest.raises(ValueError, match="method must be one of 'likelihood'"):
        adjust(points, table, method="nnls")


@pytest.mark.parametrize("method", ["likelihood", "simplex", "pinv"])
def test_adjuster_is_bayes(method):
    """q(y|x) = (.6, .4); p_d(y|x) is proportional to q(d|y) q(y|x), by hand."""
    adjuster = Adjuster(method).fit([[0.8, 0.2], [0.3, 0.7]])
    rows = np.array([[0.6, 0.4], [0.6, 0.4]])
    first = [0.8 * 0.6 / 0.6, 0.3 * 0.4 / 0.6]
    second = [0.2 * 0.6 / 0.4, 0.7 * 0.4 / 0.4]
    assert_allclose(adjuster.predict_proba(rows), [[0.6, 0.4]] * 2, atol=1e-9)
    assert_allclose(adjuster.predict_proba(rows, 0), [first] * 2, atol=1e-9)
    assert_allclose(adjuster.predict_proba(rows, [0, 1]), [first, second], atol=1e-9)
    assert_array_equal(adjuster.predict(rows), [0, 0])
    assert_array_equal(adjuster.predict(rows, codes=[0, 1]), [0, 1])


def test_domain_weight_is_inside_the_tables(seed):
    """p_d(y|x) does not depend on q(d), as long as both tables use the same q(d)."""
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.ones(3), 5)  # p_d(y)
    densities = rng.random((40, 3))  # p(x|y) at 40 points
    codes = rng.integers(5, size=40)
    truth = normalize_rows(densities * prevalence[codes])
    weight, equal = rng.dirichlet(np.full(5, 3.0)), np.full(5, 0.2)
    domain_given_x = normalize_rows(densities @ prevalence.T)
    reweighted = balance_domains(domain_given_x, equal, weight)
    for points, q in [(domain_given_x, equal), (reweighted, weight)]:
        for method in ("likelihood", "simplex", "pinv"):
            adjuster = Adjuster(method).fit(domain_given_class(prevalence, q))
            assert_allclose(adjuster.predict_proba(points, codes), truth, atol=1e-6)


def test_adjuster_keeps_its_own_copy_and_float32():
    table = GOOD.copy()
    adjuster = Adjuster("simplex").fit(table)
    table[:] = 0.5
    assert_array_equal(adjuster.domain_given_class_, GOOD)
    narrow = adjuster.predict_proba(np.array([[0.6, 0.4]], np.float32), codes=1)
    assert narrow.dtype == np.float32
    copy = clone(adjuster)
    assert copy.get_params() == {"method": "simplex"}
    with pytest.raises(NotFittedError):
        copy.predict_proba(GOOD)


@pytest.mark.parametrize("method", ["likelihood", "simplex", "pinv"])
def test_adjuster_keeps_the_contract_of_table_stages(method, seed):
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(6), 4)
    problem = TableProblem(table, noisy_rows(rng, 12, table))
    assert len(check_table_estimator(Adjuster(method), problem=problem)) == 15


@pytest.mark.parametrize(
    ("codes", "error", "message"),
    [
        ([0], ValueError, "domain_given_x has 2 rows, codes has shape"),
        ([[0], [1]], ValueError, "codes has shape"),
        (2, ValueError, "codes must be in 0..1, got 2"),
        ([0, -1], ValueError, "codes must be in 0..1, got -1"),
        ([0.0, 1.0], TypeError, "codes must be integers"),
        ("a", TypeError, "codes must be integers"),
    ],
)
def test_bad_codes_are_refused(codes, error, message):
    with pytest.raises(error, match=message):
        Adjuster().fit(GOOD).predict_proba(GOOD, codes)


def test_bad_method_is_refused_at_fit():
    with pytest.raises(ValueError, match="method must be one of .* got 'em'"):
        Adjuster("em").fit(GOOD)
