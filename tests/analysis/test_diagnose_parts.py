"""The numbers behind a diagnosis, each against a slow formula or a known truth."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from shoal.analysis.diagnose._guess import (
    best_guess,
    column_accuracy,
    find_repeats,
    logit_guess,
    naming_columns,
    normal_guess,
    null_gains,
    table_guess,
    tree_guess,
)
from shoal.analysis.diagnose._refit import (
    Shifts,
    cell_departure,
    class_shifts,
    weighted_agreement,
)
from shoal.analysis.diagnose._result import Diagnosis, Finding, verdict_of
from shoal.analysis.diagnose._rows import DiagnosisRows, common_words
from shoal.datasets import make_latent_shift
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.probability import HeldOut
from shoal.validation import row_weights
from shoal.validation._rows import fold_of_rows


def make_problem(X, codes, n_domains, weight=None):
    order = np.argsort(codes, kind="stable")
    weight = np.full(n_domains, 1 / n_domains) if weight is None else weight
    X, codes = np.asarray(X, dtype=float)[order], np.asarray(codes)[order]
    problem = MixtureProblem(X, codes, row_weights(codes, weight), n_domains)
    return problem, order, weight


def make_rows(problem, weight, folds=None, cells=None):
    """Rows whose columns are their features."""
    cells = np.zeros(problem.n_rows, dtype=int) if cells is None else cells
    return DiagnosisRows(problem, cells, problem.design, folds, weight, Penalties(1e-4))


@pytest.fixture(scope="module")
def two_normals(seed):
    """Two domains, one a step of 2 to the right: the best gain is known."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1], 1500)
    X = rng.normal(size=(3000, 1)) + 2.0 * codes[:, None]
    points = np.random.default_rng(0).normal(size=200_000)
    best = np.log(2) - np.mean(np.log1p(np.exp(-2 * points - 2)))
    problem, _, weight = make_problem(X, codes, 2)
    folds = fold_of_rows(problem.codes, 3, rng)
    cells = (problem.design[:, 0] > 1).astype(int)
    return make_rows(problem, weight, folds, cells), best


# ---- gains ---------------------------------------------------------------------


def test_guessing_the_prior_gains_nothing():
    weight = np.array([0.2, 0.8])
    problem, _, _ = make_problem(np.zeros((5, 1)), [0, 0, 1, 1, 1], 2, weight)
    gain = make_rows(problem, weight).gain("prior", weight[problem.codes])
    assert_allclose(gain.each, 0, atol=1e-12)
    assert gain.standard_error() == pytest.approx(0, abs=1e-12)


def test_an_impossible_row_costs_no_more_than_a_row_per_domain():
    problem, _, weight = make_problem(np.zeros((6, 1)), [0, 0, 0, 1, 1, 1], 2)
    gain = make_rows(problem, weight).gain("wrong", np.zeros(6))
    assert_allclose(gain.each, np.log(2 / (2 + 6)))


def test_standard_error_of_a_difference_is_paired(seed):
    rng = np.random.default_rng(seed)
    weight = np.full(400, 1 / 400)
    common = rng.normal(size=400)
    first = HeldOut(common, weight)
    second = HeldOut(common + 1 + 0.01 * rng.normal(size=400), weight)
    assert first.standard_error(second) < first.standard_error() / 50


@pytest.mark.parametrize("guess", ["logit", "normal"])
def test_guessers_reach_the_best_gain_of_two_normals(two_normals, guess):
    rows, best = two_normals
    gain = {"logit": logit_guess, "normal": normal_guess}[guess](rows)
    assert gain.mean == pytest.approx(best, abs=4 * gain.standard_error())
    assert gain.mean > 0.9 * best


def test_table_counts_the_other_folds(seed):
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(3, size=90))
    cells = rng.integers(4, size=90)
    weight = np.array([0.5, 0.3, 0.2])
    problem, _, _ = make_problem(np.zeros((90, 1)), codes, 3, weight)
    folds = fold_of_rows(codes, 3, rng)
    got = table_guess(make_rows(problem, weight, folds, cells))
    sizes = np.bincount(codes)
    for row in range(90):
        share = np.zeros(3)
        for other in range(90):
            if folds[other] != folds[row] and cells[other] == cells[row]:
                share[codes[other]] += 90 * weight[codes[other]] / sizes[codes[other]]
        share += 3 * weight
        own = share[codes[row]] / share.sum()
        mixed = (own * 90 + weight[codes[row]] * 3) / 93
        assert got.each[row] == pytest.approx(np.log(mixed / weight[codes[row]]))


def test_trees_and_cells_see_what_no_direction_shows(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(1200, 2))
    codes = (X[:, 0] * X[:, 1] > 0).astype(int)  # XOR
    problem, order, weight = make_problem(X, codes, 2)
    folds = fold_of_rows(problem.codes, 3, rng)
    cells = (2 * (X[:, 0] > 0) + (X[:, 1] > 0))[order]
    rows = make_rows(problem, weight, folds, cells)
    assert logit_guess(rows).mean < 0.05
    assert tree_guess(rows, seed).mean > 0.4
    best = best_guess(rows)
    assert best.name == "table of cells"
    assert best.mean > 0.6


def test_shuffled_domains_gain_nothing(two_normals, seed):
    rows, best = two_normals
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(rows.problem.n_rows) for _ in range(6)]
    null = null_gains(rows, orders)
    assert null.shape == (6,)
    assert null.max() < 0.01 * best


def test_trees_survive_a_domain_with_one_row(seed):
    rng = np.random.default_rng(seed)
    problem, _, weight = make_problem(
        rng.normal(size=(61, 2)), [*range(2)] * 30 + [2], 3
    )
    folds = fold_of_rows(problem.codes, 3, rng)
    gain = tree_guess(make_rows(problem, weight, folds), seed)
    assert np.isfinite(gain.each).all()


# ---- departures ----------------------------------------------------------------


def departure(cells, codes, q):
    """Of a q(d|x) that comes in two pieces."""
    middle = len(q) // 2
    pieces = [(part, q[part]) for part in (slice(middle), slice(middle, None))]
    return cell_departure(cells, codes, pieces, n_domains=q.shape[1])


def test_cell_departure_is_its_formula(seed):
    rng = np.random.default_rng(seed)
    n, r, m = 400, 3, 5
    q = rng.dirichlet(np.ones(r), size=n)
    cells, codes = rng.integers(m, size=n), rng.integers(r, size=n)
    got = departure(cells, codes, q)
    misfit, unexplained, signal = [], [], []
    for c in range(m):
        for d in range(r):
            inside = cells == c
            share = np.mean(codes == d)
            observed = np.sum(inside & (codes == d))
            variance = np.sum(q[inside, d] * (1 - q[inside, d]))
            plain = inside.sum() * share * (1 - share)
            square = (observed - q[inside, d].sum()) ** 2
            misfit.append(square / variance)
            unexplained.append((square - variance) / plain)
            signal.append(((observed - inside.sum() * share) ** 2 - plain) / plain)
    assert got.misfit == pytest.approx(np.mean(misfit))
    assert got.unexplained == pytest.approx(np.mean(unexplained))
    assert got.signal == pytest.approx(np.mean(signal))


def test_departure_is_noise_under_the_truth_and_signal_without_a_model(seed):
    rng = np.random.default_rng(seed)
    q = rng.dirichlet([0.5, 0.5, 0.5], size=20_000)
    codes = (rng.random(20_000)[:, None] > q.cumsum(axis=1)).sum(axis=1)
    codes = np.minimum(codes, 2)
    cells = q.argmax(axis=1) * 10 + rng.integers(10, size=20_000)
    true = departure(cells, codes, q)
    assert true.misfit == pytest.approx(1, abs=0.5)
    assert abs(true.unexplained) < 0.02 * true.signal
    share = np.tile(np.bincount(codes) / len(codes), (20_000, 1))
    blind = departure(cells, codes, share)
    assert blind.unexplained == pytest.approx(blind.signal)


def test_departure_of_empty_cells_is_none():
    codes = np.array([0, 1])
    got = departure(np.array([0, 1]), codes, np.eye(2))
    assert (got.misfit, got.unexplained, got.signal) == (1.0, 0.0, 0.0)


def test_class_shifts_are_their_formula(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [40, 30, 50])
    columns = rng.normal(size=(120, 2)) + codes[:, None]
    posterior = rng.dirichlet([1, 1], size=120)
    problem, _, weight = make_problem(columns, codes, 3)
    got = class_shifts(columns, problem, posterior)
    sizes = np.bincount(codes)
    for label in range(2):
        heavy = posterior[:, label] * weight[codes] / sizes[codes]
        mean = heavy @ columns / heavy.sum()
        variance = heavy @ (columns - mean) ** 2 / heavy.sum()
        for domain in range(3):
            a = posterior[codes == domain, label]
            x = columns[codes == domain]
            here = a @ x / a.sum()
            worth = a.sum() ** 2 / (a**2).sum()
            error = (a**2) @ (x - here) ** 2 / a.sum() ** 2 * worth / (worth - 1)
            want = np.mean(((here - mean) ** 2 - error) / variance)
            assert got.square[label, domain] == pytest.approx(want)
            assert got.mass[label, domain] == pytest.approx(
                heavy[codes == domain].sum()
            )


def test_true_posteriors_show_no_shift_whatever_the_mix(seed):
    data = make_latent_shift(
        20_000,
        n_classes=3,
        n_domains=4,
        n_features=2,
        separation=1.0,
        random_state=seed,
        return_bunch=True,
    )
    problem, order, _ = make_problem(data.X, data.domains, 4)
    shifts = class_shifts(data.X[order], problem, data.posterior[order])
    assert abs(shifts.overall) < 0.002


def test_small_domains_show_no_shift_either(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(2000), 9)
    columns = rng.normal(size=(len(codes), 1))
    problem, _, _ = make_problem(columns, codes, 2000)
    shifts = class_shifts(columns, problem, np.ones((len(codes), 1)))
    assert abs(shifts.overall) < 0.015  # the error itself is 1/9


def test_a_planted_shift_is_measured_in_standard_deviations(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), 2000)
    move = np.array([0.6, -0.6, 0.6, -0.6])
    columns = rng.normal(size=(8000, 1)) + move[codes, None]
    problem, _, _ = make_problem(columns, codes, 4)
    shifts = class_shifts(columns, problem, np.ones((8000, 1)))
    # the class's spread includes its own shift
    assert_allclose(np.sqrt(shifts.square), 0.6 / np.sqrt(1 + 0.36), atol=0.06)


def test_domains_without_rows_of_a_class_are_left_out():
    codes = np.repeat([0, 1], 20)
    posterior = np.repeat([[1.0, 0.0], [0.5, 0.5]], 20, axis=0)
    columns = np.random.default_rng(0).normal(size=(40, 1))
    problem, _, _ = make_problem(columns, codes, 2)
    shifts = class_shifts(columns, problem, posterior)
    assert np.isnan(shifts.square[1, 0])
    assert shifts.mass[1, 0] == 0
    assert np.isfinite(shifts.by_class).all()


def test_means_of_shifts_are_weighted_by_mass():
    square = np.array([[1.0, 3.0], [np.nan, 2.0]])
    shifts = Shifts(square, np.array([[0.3, 0.1], [0.0, 0.6]]))
    assert_allclose(shifts.by_class, [1.5, 2.0])
    assert shifts.overall == pytest.approx(1.8)


@given(st.permutations(range(4)))
def test_agreement_does_not_depend_on_the_order_of_classes(order):
    posterior = np.random.default_rng(0).dirichlet(np.ones(4), size=60)
    weight = np.full(60, 1 / 60)
    assert weighted_agreement(posterior, posterior[:, order], weight) == 1


def test_agreement_is_a_weighted_share():
    first, second = np.eye(2)[[0, 0, 1, 1]], np.eye(2)[[0, 0, 1, 0]]
    weight = np.array([0.1, 0.2, 0.3, 0.4])
    assert weighted_agreement(first, second, weight) == pytest.approx(0.6)


# ---- the table -----------------------------------------------------------------


def test_a_column_of_domain_numbers_names_the_domain(seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(5, size=500)
    X = np.column_stack([rng.normal(size=500), codes + 0.1 * rng.normal(size=500)])
    accuracy = naming_columns(X, codes, rng)
    assert accuracy[1] == 1
    assert accuracy[0] < 0.35


@pytest.mark.parametrize("values", ["noise", "constant", "coarse"])
def test_ties_and_sorted_rows_name_nothing(seed, values):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(4), 300)
    column = {
        "noise": rng.normal(size=1200),
        "constant": np.zeros(1200),
        "coarse": rng.integers(3, size=1200),
    }[values]
    assert column_accuracy(column, codes, rng.random(1200)) < 0.32


def test_words_can_name_the_domain():
    X = np.array([["a", "x"], ["b", "x"]] * 30, dtype=object)
    codes = np.tile([0, 1], 30)
    accuracy = naming_columns(X, codes, np.random.default_rng(0))
    assert accuracy[0] == 1


def test_wide_and_sparse_tables_are_asked_about_their_most_telling_columns(seed):
    from scipy import sparse

    rng = np.random.default_rng(seed)
    codes = rng.integers(3, size=240)
    X = rng.normal(size=(240, 300))
    X[:, 271] += 10 * codes
    for table in (X, sparse.csr_array(X)):
        accuracy = naming_columns(table, codes, np.random.default_rng(0))
        assert len(accuracy) == 200
        assert max(accuracy, key=accuracy.__getitem__) == 271


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=30)
)
def test_repeats_are_counted_as_by_hand(pairs):
    values, codes = (np.array(column) for column in zip(*pairs, strict=True))
    codes = np.unique(codes, return_inverse=True)[1]
    got = find_repeats(values[:, None].astype(float), codes)
    n = len(values)
    by_hand = sum(
        any(values[i] == values[j] and codes[i] != codes[j] for j in range(n))
        for i in range(n)
    )
    assert got.n_rows == by_hand


def test_copies_exceed_chance_and_coarse_values_do_not(seed):
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], 200)
    X = rng.normal(size=(600, 2))
    X[200:250] = X[:50]
    copies = find_repeats(X, codes)
    assert (copies.n_rows, copies.excess) == (100, np.inf)
    coarse = find_repeats(rng.integers(10, size=(600, 2)), codes)
    assert coarse.n_rows > 500
    assert coarse.excess == pytest.approx(1, abs=0.2)
    minus_zero = find_repeats(np.array([[0.0], [-0.0]]), np.array([0, 1]))
    assert minus_zero.n_rows == 2


# ---- words ---------------------------------------------------------------------


def test_rare_words_share_the_last_cell():
    count = np.array([3, 50, 7, 4, 90])
    assert_array_equal(common_words(count, 10), [3, 1, 2, 3, 0])
    assert_array_equal(common_words(count, 2), [1, 1, 1, 1, 0])


# ---- results -------------------------------------------------------------------


@pytest.fixture
def diagnosis():
    findings = (
        Finding("E138", "Do domains differ?", "ok", {"gain": 0.5}, "They do."),
        Finding("W139", "Rich?", "caution", {"n": np.inf}, "c0 only in a.", "Look."),
    )
    numbers = {"n_rows": 900, "n_rows_used": 500, "table": np.array([[np.nan, 1.0]])}
    return Diagnosis(
        verdict_of(findings), findings, numbers, np.array(["a", "b"]), ["c0", "c1"]
    )


def test_the_worst_status_decides():
    def verdict(*statuses):
        return verdict_of(tuple(Finding("x", "?", s, {}, "") for s in statuses))

    assert verdict("ok", "ok") == "clear"
    assert verdict("ok", "caution") == "caution"
    assert verdict("caution", "fail", "ok") == "do not use"


def test_a_diagnosis_reads_and_exports(diagnosis):
    text = str(diagnosis)
    assert text.startswith("verdict: caution\n900 rows, judged on a sample of 500")
    assert "CAUTION c0 only in a. [W139]" in text
    assert "-> Look." in text
    plain = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert plain["numbers"]["table"] == [[None, 1.0]]
    assert plain["findings"][1]["numbers"]["n"] is None
    frame = diagnosis.to_pandas()
    assert frame["status"].tolist() == ["ok", "caution"]
    assert diagnosis["W139"].advice == "Look."
    with pytest.raises(KeyError, match="E138, W139"):
        diagnosis["W140"]
