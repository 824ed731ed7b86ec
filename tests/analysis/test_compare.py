"""Why mixes differ: exact identities, stated rates, and every refusal."""

import json
import re
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import false_discovery_control, ttest_ind, ttest_rel

import shoal
from shoal.analysis import Intervals
from shoal.analysis._formula import make_design, parse_formula
from shoal.analysis._regression import (
    LogOdds,
    between_domains,
    common_variance,
    log_odds_of_counts,
    log_odds_of_draws,
    n_arrangements,
    shuffled_rows,
)
from shoal.exceptions import InputError
from shoal.plots import plot_comparison

SEED = 0
MANY = 10**12  # rows of a domain: counting them adds no noise


def mixes(logits, size=MANY):
    """Counts whose log odds of class a against b are those given."""
    share = 1 / (1 + np.exp(-np.asarray(logits)))
    return pd.DataFrame({"a": share * size, "b": (1 - share) * size})


def drug(n):
    return pd.DataFrame({"drug": ["no", "yes"] * (n // 2)})


def ask(counts, table, formula, n_permutations=199, **options):
    options = {"random_state": SEED, "n_permutations": n_permutations} | options
    return shoal.compare(counts, table, formula, **options)


# ---- exact identities ----------------------------------------------------------------


def test_two_groups_of_many_rows_are_the_t_test():
    logits = np.random.default_rng(1).normal(size=12)
    found = ask(mixes(logits), drug(12), "~ drug", level=0.8)
    known = ttest_ind(logits[1::2], logits[::2])
    assert_allclose(found.p_model[0, 0], known.pvalue, rtol=1e-4)
    assert_allclose(
        found.estimate[0, 0], logits[1::2].mean() - logits[::2].mean(), rtol=1e-5
    )
    interval = known.confidence_interval(0.8)
    assert_allclose([found.low[0, 0], found.high[0, 0]], interval, rtol=1e-4)


def test_pairs_of_many_rows_are_the_paired_t_test():
    logits = np.random.default_rng(2).normal(size=16)
    table = drug(16).assign(patient=np.repeat(list("abcdefgh"), 2))
    found = ask(mixes(logits), table, "~ drug | patient")
    known = ttest_rel(logits[1::2], logits[::2])
    assert_allclose(found.p_model[0, 0], known.pvalue, rtol=1e-4)


def test_shuffles_are_all_arrangements_where_these_are_few():
    """Nine domains, a number in the table: p is a share of the arrangements."""
    logits = np.random.default_rng(3).normal(size=8)
    table = drug(8)
    found = ask(mixes(logits), table, "~ drug", n_permutations=20_000)
    group = (table["drug"] == "yes").to_numpy()

    seen = abs(logits[group].mean() - logits[~group].mean())
    other = [
        abs(2 * logits[list(one)].sum() - logits.sum()) / 4
        for one in combinations(range(8), 4)
    ]
    share = np.mean(np.array(other) >= seen * (1 - 1e-6))
    assert_allclose(found.p_value[0, 0], share, atol=0.01)
    assert_allclose(found.least_p[0], 2 / 70)


def test_two_classes_mirror_each_other():
    rng = np.random.default_rng(4)
    counts = pd.DataFrame(rng.integers(5, 80, (10, 2)), columns=["a", "b"])
    found = ask(counts, drug(10).assign(age=rng.normal(size=10)), "~ drug + age")
    assert_allclose(found.estimate[:, 0], -found.estimate[:, 1])
    assert_allclose(found.low[:, 0], -found.high[:, 1])
    assert_allclose(found.p_model[:, 0], found.p_model[:, 1])


def test_order_of_domains_and_of_the_table_says_nothing():
    rng = np.random.default_rng(5)
    names = [f"s{i}" for i in range(12)]
    counts = pd.DataFrame(
        rng.integers(5, 80, (12, 3)), index=names, columns=list("abc")
    )
    table = drug(12).assign(site=names)
    found = ask(counts, table, "~ drug", on="site")
    other = ask(counts.iloc[rng.permutation(12)], table.iloc[::-1], "~ drug", on="site")
    assert_allclose(other.estimate, found.estimate, rtol=1e-6)
    assert_allclose(other.p_model, found.p_model, rtol=1e-6)


def test_units_of_a_number_scale_its_effect():
    rng = np.random.default_rng(6)
    counts = pd.DataFrame(rng.integers(5, 80, (9, 3)), columns=list("abc"))
    table = pd.DataFrame({"age": rng.normal(50, 10, 9)})
    years = ask(counts, table, "~ age")
    days = ask(counts, table * 365, "~ age")
    assert_allclose(days.estimate * 365, years.estimate)
    assert_allclose(days.p_value, years.p_value)


def test_a_category_of_two_levels_is_its_number():
    rng = np.random.default_rng(7)
    counts = pd.DataFrame(rng.integers(5, 80, (10, 2)), columns=["a", "b"])
    table = drug(10).assign(number=[0, 1] * 5)
    words = ask(counts, table, "~ C(drug, yes)")
    numbers = ask(counts, table, "~ number")
    assert words.effects == ["drug: no vs yes"]
    assert_allclose(words.estimate, -numbers.estimate)
    assert_allclose(words.p_value, numbers.p_value)


def test_a_covariate_of_several_levels_is_tested_as_one():
    rng = np.random.default_rng(8)
    logits = rng.normal(scale=0.3, size=15) + np.repeat([0.0, 0.0, 3.0], 5)
    table = pd.DataFrame(
        {"site": np.repeat(["x", "y", "z"], 5), "age": rng.normal(size=15)}
    )
    found = ask(mixes(logits), table, "~ site + age")
    assert found.effects == ["site: y vs x", "site: z vs x", "age"]
    assert found.terms == ["site", "site", "age"]
    assert list(found.joint) == ["site"]
    assert (found.joint["site"] <= 0.01).all()


def test_a_draw_of_intervals_without_spread_is_counting():
    """Resamples that say no more than the number of rows leave the noise of counts."""
    prevalence = np.array([[0.2, 0.8], [0.5, 0.5], [0.6, 0.4]])
    n_rows = np.array([100, 200, 50])
    draws = np.repeat(prevalence[None], 5, axis=0)
    sure = log_odds_of_draws(prevalence, draws, n_rows)
    counted = log_odds_of_counts(prevalence * n_rows[:, None])
    assert_allclose(sure.value, counted.value)
    assert_allclose(sure.noise, counted.noise)


def test_spread_of_the_draws_widens_and_what_moves_all_domains_does_not():
    rng = np.random.default_rng(9)
    prevalence = np.full((8, 2), 0.5)
    n_rows = np.full(8, 1e6)
    logits = rng.normal(scale=0.4, size=(4000, 8))
    share = 1 / (1 + np.exp(-logits))
    apart = log_odds_of_draws(prevalence, np.stack([share, 1 - share], -1), n_rows)
    # of eight domains, one eighth of their spread moves all alike
    assert_allclose(apart.noise, 0.16 * 7 / 8, rtol=0.1)
    alike = np.repeat(share[:, :1], 8, axis=1)
    together = log_odds_of_draws(prevalence, np.stack([alike, 1 - alike], -1), n_rows)
    assert_allclose(together.noise, 4 / 1e6, rtol=1e-3)


def test_variance_between_domains_makes_squares_as_many_as_freedoms():
    rng = np.random.default_rng(10)
    odds = LogOdds(rng.normal(size=(20, 2)), rng.uniform(0.1, 0.5, (20, 2)))
    columns = np.column_stack([np.ones(20), rng.normal(size=20)])
    found = between_domains(columns, odds)
    squares = 0.0
    for value, noise in zip(odds.value.T, odds.noise.T, strict=True):
        weight = np.diag(1 / (found + noise))
        fit = columns @ np.linalg.solve(
            columns.T @ weight @ columns, columns.T @ weight @ value
        )
        squares += (value - fit) @ weight @ (value - fit)
    assert_allclose(squares, 2 * 18, rtol=1e-6)
    assert between_domains(columns, LogOdds(odds.value, odds.noise * 100)) == 0


def test_common_variance_is_that_of_its_variances():
    rng = np.random.default_rng(11)
    known, freedoms = 6.0, 10
    own = 0.3 * known / rng.chisquare(known, 4000)
    found = common_variance(own * rng.chisquare(freedoms, 4000) / freedoms, freedoms)
    assert_allclose(found.freedoms, known, rtol=0.15)
    assert_allclose(found.variance, 0.3, rtol=0.05)
    assert common_variance(np.array([1.0, 2.0]), 5).freedoms == 0
    assert common_variance(np.ones(5), 4).freedoms == 12  # alike: as the others but one
    assert_allclose(found.moderate(np.array([0.3]), 4), 0.3, rtol=0.05)


def test_shuffles_stay_within_their_blocks():
    blocks = np.array([2, 0, 1, 0, 2, 1, 1])
    shuffles = shuffled_rows(blocks, 200, np.random.default_rng(SEED))
    assert (np.sort(shuffles, axis=1) == np.arange(7)).all()
    assert (blocks[shuffles] == blocks).all()
    assert len(np.unique(shuffles, axis=0)) == 2 * 2 * 6


@pytest.mark.parametrize(
    ("column", "blocks", "ways"),
    [
        ([0, 1, 0, 1], [0, 0, 0, 0], 3),  # six, each with its twin
        ([0, 1, 0, 1], [0, 0, 1, 1], 2),
        ([0, 0, 1], [0, 0, 0], 3),
        ([1, 2, 4], [0, 0, 0], 6),
    ],
)
def test_arrangements_are_counted(column, blocks, ways):
    assert n_arrangements(np.array(column, float), np.array(blocks)) == ways


def test_q_values_are_those_of_benjamini_and_hochberg():
    rng = np.random.default_rng(12)
    counts = pd.DataFrame(rng.integers(5, 80, (10, 6)), columns=list("abcdef"))
    found = ask(counts, drug(10).assign(age=rng.normal(size=10)), "~ drug + age")
    assert_allclose(found.q_value, false_discovery_control(found.p_value, axis=1))


# ---- recovery, and stated rates ------------------------------------------------------


def test_a_planted_effect_is_found_and_not_laid_on_other_covariates():
    rng = np.random.default_rng(13)
    age = rng.normal(50, 10, 60)
    table = drug(60).assign(age=age)
    logits = 1.0 * (table["drug"] == "yes") - 0.05 * (age - 50) + rng.normal(0, 0.2, 60)
    found = ask(mixes(logits, 4000), table, "~ drug + age", level=0.999)
    assert (found.low[:, 0] <= [1.0, -0.05]).all()
    assert (found.high[:, 0] >= [1.0, -0.05]).all()
    assert_allclose(found.between[0], 0.2, atol=0.06)
    assert (found.p_value[:, 0] == 1 / 200).all()


@pytest.mark.parametrize("paired", [False, True])
def test_intervals_cover_and_p_values_are_uniform(paired):
    """400 sets of 12 domains and three classes: within four standard errors."""
    rng = np.random.default_rng(14)
    table = drug(12).assign(patient=np.repeat(list("abcdef"), 2))
    formula = "~ drug | patient" if paired else "~ drug"
    covered, p_values = [], []
    for _ in range(400):
        logits = rng.normal(scale=0.5, size=(12, 3))
        if paired:
            logits += np.repeat(rng.normal(size=(6, 3)), 2, axis=0)
        share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        sizes = rng.integers(40, 1000, 12)
        counts = [rng.multinomial(*one) for one in zip(sizes, share, strict=True)]
        frame = pd.DataFrame(counts, columns=list("abc")) + 1e-9
        found = ask(
            frame, table, formula, n_permutations=99, random_state=rng.integers(99)
        )
        covered.append(found.low[0, 0] <= 0 <= found.high[0, 0])
        p_values.append(found.p_value[0, 0])
    assert abs(np.mean(covered) - 0.9) < 4 * np.sqrt(0.9 * 0.1 / 400)
    for rate in (0.1, 0.3, 0.5):
        error = np.sqrt(rate * (1 - rate) / 400)
        assert abs(np.mean(np.array(p_values) <= rate) - rate) < 4 * error


def test_unsure_domains_count_less():
    """A domain whose draws scatter moves the estimate less than a sure one."""
    prevalence = np.array([[0.5, 0.5]] * 5 + [[0.8, 0.2]])
    draws = np.repeat(prevalence[None], 50, axis=0)
    sure = made_intervals(prevalence, draws)
    scattered = draws.copy()
    scattered[:, 5, 0] = np.random.default_rng(15).uniform(0.05, 0.95, 50)
    scattered[:, 5, 1] = 1 - scattered[:, 5, 0]
    unsure = made_intervals(prevalence, scattered)
    table = pd.DataFrame({"drug": [0, 1] * 3}, index=sure.domains)
    effect = [ask(one, table, "~ drug").estimate[0, 0] for one in (sure, unsure)]
    assert 0 < effect[1] < effect[0] / 2


def made_intervals(prevalence, draws):
    n_domains = len(prevalence)
    return Intervals(
        prevalence=prevalence,
        low=prevalence,
        high=prevalence,
        level=0.9,
        draws=draws,
        co_assignment=np.empty(0),
        domains=np.array([f"d{i}" for i in range(n_domains)]),
        class_names=["c0", "c1"],
        n_rows=np.full(n_domains, 500),
    )


def test_random_state_decides_alone():
    counts = pd.DataFrame(np.arange(5, 25).reshape(10, 2) ** 2 % 97, columns=["a", "b"])
    one, same, other = (
        ask(counts, drug(10), "~ drug", random_state=seed).p_value for seed in (1, 1, 2)
    )
    assert (one == same).all()
    assert (one != other).any()


def test_effects_that_so_few_domains_cannot_tell_are_named():
    counts = pd.DataFrame({"a": [5, 8, 9, 3], "b": [20, 30, 40, 50]})
    assert ask(counts, drug(4), "~ drug").too_few == ["drug: yes vs no"]
    many = pd.DataFrame({"a": range(1, 13), "b": range(20, 32)})
    assert ask(many, drug(12), "~ drug").too_few == []


# ---- what comes back -----------------------------------------------------------------


def test_everything_is_told_as_a_table_and_as_json():

    rng = np.random.default_rng(16)
    counts = pd.DataFrame(rng.integers(5, 80, (9, 3)), columns=list("abc"))
    table = pd.DataFrame({"site": list("xyz") * 3})
    found = ask(counts, table, "~ site")
    frame = found.to_pandas()
    assert list(frame["class_name"]) == list("abcabc")
    assert_allclose(frame["odds_ratio"], np.exp(frame["log_odds"]))
    assert_allclose(frame["log_odds"], found.estimate.ravel())
    told = json.loads(json.dumps(found.to_dict()))
    assert told["effects"] == frame.to_dict("records")
    assert set(told["joint"]["site"]) == set("abc")


def test_the_forest_shows_estimates_and_intervals():
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib.figure import Figure

    rng = np.random.default_rng(17)
    counts = pd.DataFrame(rng.integers(5, 80, (10, 3)), columns=list("abc"))
    found = ask(counts, drug(10).assign(age=rng.normal(50, 9, 10)), "~ drug + age")
    axes = plot_comparison(found, figure=Figure())
    assert [one.get_title(loc="left") for one in axes] == found.effects
    for effect, one in enumerate(axes):
        points = [line.get_xdata()[0] for line in one.lines[1:]]
        assert_allclose(points, np.exp(found.estimate[effect]))
        bars = [bar.get_segments()[0][:, 0] for bar in one.collections]
        assert_allclose(
            np.array(bars).T, np.exp([found.low[effect], found.high[effect]])
        )
    with pytest.raises(ValueError, match="one axes for each of 2 effects, got 1"):
        plot_comparison(found, ax=axes[0])


# ---- formulas ------------------------------------------------------------------------


def test_names_are_protected_by_quotes():
    found = parse_formula("""~ `a b` + "c+d" + C('e|f', "no drug") | 'the pair'""")
    assert found.names == ["a b", "c+d", "e|f", "the pair"]
    assert found.terms[2].reference == "no drug"
    assert [one.is_category for one in found.terms] == [False, False, True]


def test_numbers_as_categories_and_truths():
    table = {"year": [1, 2, 3, 1], "ill": [True, False, True, True]}
    design = make_design(parse_formula("~ C(year)"), table, list("abcd"))
    assert [one.name for one in design.effects] == ["year: 2 vs 1", "year: 3 vs 1"]
    assert_allclose(design.columns, [[0, 0], [1, 0], [0, 1], [0, 0]])
    (ill,) = make_design(parse_formula("~ ill"), table, list("abcd")).effects
    assert ill.name == "ill: True vs False"


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("drug", "formula must have one ~, got 'drug'"),
        (3, "formula must have one ~, got 3"),
        ("share ~ drug", "'share' before ~"),
        ("~ ", "'nothing' where a column should be"),
        ("~ drug * age", "'drug * age' where a column should be"),
        ("~ drug + 0", "the number 0; an intercept is always there"),
        ("~ drug + drug", "'drug' twice"),
        ("~ drug | ", "needs one column after |"),
        ("~ drug | a | b", "needs one column after |"),
        ("~ dose", 'no column "dose"; it has drug, age'),
        ("~ drug | dose", 'no column "dose"'),
        ("~ gaps", '"gaps" has no value for 1 domains, such as "2"'),
        ("~ words", '"words" has no value for 2 domains, such as "0"'),
        ("~ same", '"same" is 7 in every domain'),
        ("~ C(same)", '"same" has 1 distinct values'),
        ("~ names", '"names" has 24 distinct values, and is no number'),
        ("~ C(drug, maybe)", '"drug" has no level "maybe"; it has no, yes'),
        ("~ endless", "an infinite number"),
        ("~ age + twice", '"twice" cannot be told from the other covariates'),
        (
            "~ drug | drugs",
            '"drug: yes vs no" cannot be told from the pairs of "drugs"',
        ),
        ("~ drug | names", '"names" pairs nothing'),
        ("~ C(ring) + C(chain) + age", "24 domains cannot tell 24 coefficients"),
    ],
)
def test_a_formula_that_cannot_be_answered_is_refused(formula, told):
    n = 24
    rng = np.random.default_rng(SEED)
    table = drug(n).assign(
        age=rng.normal(size=n), same=7, gaps=np.arange(n, dtype=float)
    )
    table["twice"] = 2 * table["age"] + 1
    table.loc[2, "gaps"] = np.nan
    table["words"] = [None, "", *"xyzw" * 5, "x", "y"]
    table["names"] = [f"n{i}" for i in range(n)]
    table["drugs"] = table["drug"]
    table["endless"] = [np.inf, *range(n - 1)]
    table["ring"], table["chain"] = np.arange(n) // 2, np.arange(1, n + 1) // 2 % 12
    counts = pd.DataFrame(rng.integers(5, 80, (n, 2)), columns=["a", "b"])
    with pytest.raises(InputError, match=re.escape(told)) as error:
        ask(counts, table, formula)
    assert error.value.code == "E170"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.assign(a=-1), "counts must be numbers from 0"),
        (lambda c: c.assign(a="many"), "counts must be numbers from 0"),
        (lambda c: c[["a"]], "counts have 1 class"),
        (lambda c: c.assign(b=0), 'class "a" has no row, or all of them'),
        (lambda c: c.assign(a=[0, 1, 2, 3], b=[0, 1, 2, 3]), 'domain "0" has no row'),
    ],
)
def test_counts_that_cannot_be_compared_are_refused(change, told):
    counts = pd.DataFrame({"a": [5, 8, 9, 3], "b": [20, 30, 40, 50]})
    with pytest.raises(InputError, match=re.escape(told)):
        ask(change(counts), drug(4), "~ drug")


def test_a_table_of_other_domains_is_refused():
    counts = pd.DataFrame({"a": [5, 8, 9], "b": [20, 30, 40]}, index=["x", "y", "z"])
    table = pd.DataFrame({"site": ["x", "y", "w"], "age": [1, 2, 4]})
    with pytest.raises(InputError, match='no row for "z"; it has "x"'):
        ask(counts, table, "~ age", on="site")
    with pytest.raises(InputError, match='no row for "x" and 2 more'):
        ask(counts, table, "~ age")
    with pytest.raises(InputError, match='no column "place"; it has site, age'):
        ask(counts, table, "~ age", on="place")
    with pytest.raises(
        InputError, match='has "x" 2 times; it needs one row per domain'
    ):
        ask(counts, table.replace("w", "x"), "~ age", on="site")


def test_arguments_are_checked():
    counts = pd.DataFrame({"a": [5, 8, 9, 3], "b": [20, 30, 40, 50]})
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 90"):
        ask(counts, drug(4), "~ drug", level=90)
    with pytest.raises(ValueError, match="n_permutations"):
        ask(counts, drug(4), "~ drug", n_permutations=0)
    with pytest.raises(TypeError, match="found must be the intervals .* got ndarray"):
        ask(counts.to_numpy(), drug(4), "~ drug")
    with pytest.raises(TypeError, match="table must be a DataFrame, got dict"):
        ask(counts, {"drug": [0, 1]}, "~ drug")
