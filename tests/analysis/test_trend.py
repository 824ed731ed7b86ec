"""Trends: limits and slow formulas of the walk, planted changes, false alarms."""

import json

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.special import softmax

import shoal
from shoal.analysis import mixture_proportions
from shoal.analysis._walk import (
    ChangeSearch,
    TimedRows,
    _solve,
    best_split,
    centred_logits,
    covariance,
    least_p,
    objective,
    scores,
    smooth,
    split_gains,
)
from shoal.base import LatentShiftEstimator
from shoal.exceptions import InputError

mpl.use("agg")


class KnownClasses(LatentShiftEstimator):
    """An estimator whose rows are q(y|x) themselves, under equal shares."""

    def fit(self, X, y=None, *, domains=None):
        k = self.n_features_in_ = X.shape[1]
        self._store(np.full((2, k), 1 / k), np.arange(2), np.full(2, 0.5))
        self.labels_ = X.argmax(axis=1)
        return self

    def _class_given_x(self, X):
        return X


def draw(seed, *, n_times=20, step=0.3, jump=None, n_classes=3, most=60, scatter=0.0):
    """A walk of mixes, years of rows, and q(y|x) of Gaussian rows."""
    rng = np.random.default_rng(seed)
    moves = step * rng.normal(size=(n_times, n_classes))
    logits = rng.normal(size=n_classes) + np.cumsum(moves, axis=0)
    logits += scatter * rng.normal(size=logits.shape)
    if jump:
        logits[jump:, 0] += 2
        logits[jump:, 1] -= 1
    mixes = softmax(logits, axis=1)
    years = np.repeat(1990 + np.arange(n_times), rng.integers(4, most, n_times))
    y = (rng.random((len(years), 1)) > mixes[years - 1990].cumsum(axis=1)).sum(axis=1)
    x = 2.5 * np.eye(n_classes)[y] + rng.normal(size=(len(y), n_classes))
    return mixes, years, softmax(2.5 * x, axis=1)


def timed(years, proba, n_times=None):
    n_times = n_times or len(np.unique(years))
    return TimedRows(proba, years - years.min(), np.ones(n_times - 1))


def ask(proba, years, **options):
    model = KnownClasses().fit(proba)
    options = {"n_permutations": 99, "random_state": 0} | options
    return shoal.trend(model, proba, order=years, **options)


# ---- the walk ------------------------------------------------------------------------


def test_objective_is_the_slow_formula_and_its_gradient(seed):
    _, years, proba = draw(seed, n_times=5, most=9)
    rows = TimedRows(proba, years - 1990, np.array([1.0, 0.5, 2.0, 1.0]))
    rng = np.random.default_rng(seed)
    logits, weight = rng.normal(size=(5, 3)), rng.random(len(years))
    slow = 0.0
    for one, time, count in zip(proba, years - 1990, weight, strict=True):
        mix = np.exp(logits[time]) / np.exp(logits[time]).sum()
        slow += count * np.log(sum(one[y] * mix[y] for y in range(3)))
    for t, gap in enumerate(rows.gap):
        slow -= 0.7 / 2 * ((logits[t + 1] - logits[t]) ** 2).sum() / gap
    value, slope = objective(rows, weight, logits, 0.7)
    assert_allclose(value, slow)

    def of_flat(flat):
        return objective(rows, weight, flat.reshape(5, 3), 0.7)[0]

    assert_allclose(slope.ravel(), approx_fprime(logits.ravel(), of_flat), atol=1e-4)


@pytest.mark.parametrize("strength", [0.1, 10.0, 1e4])
def test_smooth_ends_where_the_gradient_is_zero(seed, strength):
    _, years, proba = draw(seed)
    rows = timed(years, proba)
    weight = np.ones(len(years))
    mixes = smooth(rows, weight, strength)
    value, slope = objective(rows, weight, centred_logits(mixes), strength)
    assert np.abs(slope).max() < 1e-2
    rng = np.random.default_rng(seed)
    for _ in range(5):
        other = centred_logits(mixes) + 0.05 * rng.normal(size=mixes.shape)
        assert objective(rows, weight, other, strength)[0] < value


def test_limits_are_each_time_alone_and_one_mix(seed):
    _, years, proba = draw(seed, n_times=6)
    rows, weight = timed(years, proba), np.ones(len(years))
    alone = [mixture_proportions(proba[years == year]) for year in np.unique(years)]
    whole = np.tile(mixture_proportions(proba), (6, 1))
    assert_allclose(smooth(rows, weight, 0.0), alone)
    assert_allclose(smooth(rows, weight, 1e-7), alone, atol=2e-3)
    assert_allclose(smooth(rows, weight, np.inf), whole)
    assert_allclose(smooth(rows, weight, 1e9), whole, atol=1e-4)
    one = TimedRows(proba, np.zeros(len(years), dtype=int), np.empty(0))
    for strength in (0.0, 3.0, np.inf):
        assert_allclose(smooth(one, weight, strength)[0], whole[0], atol=1e-7)


def test_chain_is_solved_and_inverted_as_a_dense_matrix(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(6, 3, 3))
    blocks, pull = root @ root.transpose(0, 2, 1), rng.random(5) + 0.1
    dense = np.zeros((18, 18))
    for t in range(6):
        dense[3 * t : 3 * t + 3, 3 * t : 3 * t + 3] += blocks[t]
    for t, one in enumerate(pull):
        link = one * np.kron([[1, -1], [-1, 1]], np.eye(3))
        dense[3 * t : 3 * t + 6, 3 * t : 3 * t + 6] += link
    right = rng.normal(size=(6, 3))
    solved = np.linalg.solve(dense, right.ravel()).reshape(6, 3)
    assert_allclose(_solve(blocks, pull, right), solved, rtol=1e-5)
    inverse = np.linalg.inv(dense)
    own = [inverse[3 * t : 3 * t + 3, 3 * t : 3 * t + 3] for t in range(6)]
    assert_allclose(covariance(blocks, pull), own, rtol=1e-5)


def test_a_gap_of_two_is_two_steps_with_an_empty_time_between():
    _, years, proba = draw(3, n_times=6)
    kept = years != 1992
    with_hole = TimedRows(
        proba[kept],
        np.unique(years[kept], return_inverse=True)[1],
        np.array([1.0, 2.0, 1.0, 1.0]),
    )
    direct = smooth(with_hole, np.ones(kept.sum()), 5.0)
    weighted = smooth(timed(years, proba), kept.astype(float), 5.0)
    assert_allclose(direct, np.delete(weighted, 2, axis=0), atol=1e-4)
    logits = centred_logits(weighted)
    assert_allclose(logits[2], (logits[1] + logits[3]) / 2, atol=1e-3)


# ---- a trend -------------------------------------------------------------------------


def test_thin_years_are_nearer_to_the_truth_when_smoothed():
    better, covered = [], []
    for seed in range(6):
        mixes, years, proba = draw(seed, step=0.2)
        found = ask(proba, years, n_permutations=1)
        errors = [np.abs(one - mixes) for one in (found.prevalence, found.unsmoothed)]
        better.append(errors[0].mean() / errors[1].mean())
        covered.append(((found.low <= mixes) & (mixes <= found.high)).mean())
    assert np.mean(better) < 0.75
    assert 0.8 <= np.mean(covered) <= 0.97


def test_order_of_rows_and_numbers_of_classes_do_not_matter(seed):
    _, years, proba = draw(seed, jump=9, n_times=14)
    found = ask(proba, years)
    rng = np.random.default_rng(seed)
    order, classes = rng.permutation(len(years)), np.array([2, 0, 1])
    shuffled = ask(proba[order], years[order])
    relabelled = ask(proba[:, classes], years)
    for other, columns in ((shuffled, [0, 1, 2]), (relabelled, classes)):
        assert other.strength == found.strength
        assert_allclose(other.prevalence, found.prevalence[:, columns], atol=1e-6)
        assert_allclose(other.low, found.low[:, columns], atol=1e-5)
        assert [one.first for one in other.changes] == [
            one.first for one in found.changes
        ]


def test_merged_classes_are_sums(seed):
    _, years, proba = draw(seed)
    model = KnownClasses().fit(proba)
    how = {"order": years, "strength": 4.0, "n_permutations": 9, "random_state": 0}
    found = shoal.trend(model, proba, **how)
    merged = shoal.trend(model.merge(0, 2), proba, **how)
    assert_allclose(
        np.sort(merged.prevalence, axis=1),
        np.sort(
            np.stack(
                [found.prevalence[:, [0, 2]].sum(axis=1), found.prevalence[:, 1]],
                axis=1,
            ),
            axis=1,
        ),
    )
    alone = merged.prevalence[0].argmin() if found.prevalence[0, 1] < 0.5 else None
    if alone is not None:  # what the third class is, the merged one is not
        assert_allclose(merged.low[:, alone], found.low[:, 1])
    assert_allclose(merged.high[:, 0], 1 - merged.low[:, 1], atol=1e-9)


def test_numbers_dates_texts_and_domains_say_the_same(seed):
    _, years, proba = draw(seed, n_times=6)
    model = KnownClasses().fit(proba)
    sites = np.array([f"site {year}" for year in years])
    found = ask(proba, years)
    dates = np.array([f"{year}-01-01" for year in years], dtype="datetime64[D]")
    orders = [
        (None, years), (None, [str(year) for year in years]), (None, 10.0 * years),
        (dates, None), (dates.astype(str), None),
        ({f"site {year}": year for year in years}, sites),
    ]  # fmt: skip
    for order, domains in orders:
        other = shoal.trend(
            model, proba, domains, order=order, n_permutations=99, random_state=0
        )
        # years of 366 days are longer, a little
        assert_allclose(other.prevalence, found.prevalence, atol=1e-3)
        assert len(other.times) == 6
    assert shoal.trend(model, proba, order=dates).to_dict()["times"][0] == "1990-01-01"


def test_one_time_is_not_smoothed(seed):
    _, years, proba = draw(seed, n_times=1)
    found = ask(proba, years)
    assert_allclose(found.prevalence, found.unsmoothed)
    assert_allclose(found.prevalence[0], mixture_proportions(proba))
    assert (found.strength, found.changes, found.too_few) == (0.0, [], True)
    assert np.isnan(found.p_value)


# ---- changes -------------------------------------------------------------------------


def test_planted_jumps_are_named():
    right = 0
    for seed in range(8):
        mixes, years, proba = draw(seed, step=0.0, jump=12, scatter=0.2)
        found = ask(proba, years, strength=9.0, n_permutations=199)
        right += [one.first for one in found.changes] == [2002]
        for change in found.changes:
            assert change.p_value <= 0.05
            assert change.moved == np.abs(change.after - change.before).argmax()
    assert right >= 6
    # mixes of the stretches are those of their rows
    late, early = proba[years >= 2002], proba[years < 2002]
    (change,) = found.changes
    assert (change.last, change.first) == (2001, 2002)
    assert_allclose(change.before, mixture_proportions(early), atol=1e-6)
    assert_allclose(change.after, mixture_proportions(late), atol=1e-6)
    assert np.abs(change.after - mixes[12:].mean(axis=0)).max() < 0.1


@pytest.mark.parametrize("scatter", [0.0, 0.5])
def test_false_alarms_are_as_rare_as_asked(scatter):
    rng, alarms = np.random.default_rng(0), 0
    for seed in range(60):
        _, years, proba = draw([seed, 9], n_times=12, step=0.0, scatter=scatter)
        how = ChangeSearch(0.05, 99, lambda table: table, rng)
        alarms += best_split(timed(years, proba), how).p_value <= 0.05
    assert alarms <= 8  # more than 8 of 60 at a rate of .05: one time in 200


def test_gains_are_those_of_least_squares(seed):
    rng = np.random.default_rng(seed)
    points, root = rng.normal(size=(9, 2)), rng.random(9) + 0.5

    def rest(columns):
        basis = np.linalg.qr(columns * root[:, None])[0]
        return (points**2).sum() - ((basis.T @ points) ** 2).sum()

    one = np.ones((9, 1))
    slow = [
        1 - rest(np.hstack([one, np.arange(9)[:, None] >= split])) / rest(one)
        for split in range(1, 9)
    ]
    assert_allclose(split_gains(points, root), slow)


def test_scores_are_white_and_add_to_zero(seed):
    _, years, proba = draw(seed, step=0.0, most=400)
    points, noise = scores(timed(years, proba), lambda table: table)
    assert points.shape == (20, 2)
    assert_allclose(points.T @ (1 / noise), 0, atol=1e-3 * len(years))
    squares = (points**2 / noise[:, None]).sum() / (19 * 2)
    assert 0.4 < squares < 1.9


def test_few_times_say_little():
    assert_allclose([least_p(n, 999) for n in (3, 4, 5, 30)], [1 / 3, 1 / 12, 1 / 60,
                                                               1 / 1000])  # fmt: skip
    _, years, proba = draw(0, n_times=4, step=3.0)
    found = ask(proba, years)
    assert (found.changes, found.too_few) == ([], True)


# ---- what comes back -----------------------------------------------------------------


def test_records_and_figure_have_everything(seed):
    _, years, proba = draw(seed, step=0.0, jump=12)
    found = ask(proba, years)
    table = found.to_pandas()
    assert_allclose(table["estimate"], found.prevalence.ravel())
    assert_array_equal(table["time"].unique(), found.times)
    kept = json.loads(json.dumps(found.to_dict()))
    assert len(kept["changes"]) == len(found.changes) >= 1
    assert kept["strengths"][0]["strength"] is None  # infinite
    best = max(kept["strengths"], key=lambda one: one["held_out"])
    assert best["strength"] == kept["strength"]
    ax = found.plot()
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == [
        (one.last + one.first) / 2 for one in found.changes
    ]
    assert_allclose(ax.lines[0].get_ydata(), 100 * found.prevalence[:, 0])


def test_words_are_refused():
    rates = np.array([[30, 1, 9], [1, 30, 9]] * 3)
    counts = np.random.default_rng(0).poisson(rates)
    model = shoal.DiscreteMixture(2, input="counts", random_state=0).fit(
        counts, domains=np.arange(6)
    )
    with pytest.raises(InputError, match="rows of this model are bags of words"):
        shoal.trend(model, counts, np.arange(6))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"order": None}, "neither domains nor the time of each row were given"),
        ({"order": [1, 2]}, r"order has shape \(2,\), X has \d+ rows"),
        ({"order": "spring"}, "order must be numbers or dates .* got 'spring'"),
        ({"order": np.nan}, "order has no value for row 1"),
        ({"order": np.datetime64("NaT")}, "order has no value for row 1"),
        ({"order": {1990: 1}}, "order has no time for the domain 1991"),
        ({"order": "many"}, "order has 1200 different times, more than 1000"),
        ({"level": 90}, "level must lie between 0 and 1, got 90"),
        ({"alarm": 0}, "alarm must lie between 0 and 1, got 0"),
        ({"strength": -1}, "strength must be a number from 0, or None .* got -1"),
        ({"n_permutations": 0}, "n_permutations must be .* got 0"),
    ],
)
def test_it_refuses_in_one_line(options, told):
    _, years, proba = draw(0, n_times=3)
    given, domains = options.get("order", years), None
    if isinstance(given, dict):
        domains = years
    elif given is not None and np.ndim(given) == 0:
        if given == "many":
            proba, given = np.tile(proba[:1], (1200, 1)), np.arange(1200)
        else:
            given = np.full(len(years), given)
    model = KnownClasses().fit(proba)
    with pytest.raises(ValueError, match=told):
        shoal.trend(model, proba, domains, **options | {"order": given})
