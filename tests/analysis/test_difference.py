"""What differs between two fits: nothing for one fit, and the reverse in reverse."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal
from shoal.analysis._difference import Side, compare_sides
from shoal.datasets import load_penguins


@pytest.fixture(scope="module")
def data():
    return load_penguins()


@pytest.fixture(scope="module")
def model(data):
    model = shoal.DensityMixture(
        3, covariance="tied", tail=np.inf, drift=False, n_init=3, random_state=0
    )
    return model.fit(data.X, data.domains)


@pytest.fixture(scope="module")
def intervals(model, data):
    return model.bootstrap(data.X, data.domains, n_resamples=10, random_state=0)


def side(labels, names, shares, variance=1e-4, columns=("a", "b"), domains=("x", "y")):
    shares = np.array(shares)
    return Side(
        labels=np.array(labels),
        class_names=list(names),
        domains=list(domains),
        prevalence=shares,
        variance=np.full(shares.shape, variance),
        n_rows=np.full(len(shares), 1000),
        columns=list(columns),
    )


FIRST = side([0] * 6 + [1] * 4, ["A", "B"], [[0.6, 0.4], [0.5, 0.5]])


def test_a_fit_does_not_differ_from_itself(model, data, intervals):
    how = {"intervals": (intervals, intervals)}
    found = shoal.diff(model, model, data.X, data.domains, **how)
    assert str(found) == "Nothing differs."
    assert not found.moved.any()
    assert len(found.moved) == len(data.X)
    table = found.to_frame()
    assert_array_equal(table["difference"], 0)
    assert_allclose(table["low"], -table["high"])
    assert (table["high"] > 0).all()
    assert [one.alike for one in found.pairs] == [1, 1, 1]


def test_the_reverse_has_all_signs_turned():
    second = side(
        [1] * 5 + [2] + [0] * 4,
        ["b", "a", "C"],
        [[0.1, 0.8, 0.1], [0.5, 0.5, 0.0]],
        columns=("b", "c"),
        domains=("y", "z"),
    )
    there, back = compare_sides(FIRST, second), compare_sides(second, FIRST)
    assert_array_equal(there.moved, back.moved)
    assert there.classes_new == back.classes_lost == ["C"]
    assert there.classes_lost == back.classes_new == []
    assert sorted(there.renamed) == sorted((b, a) for a, b in back.renamed)
    assert (there.columns_lost, there.columns_new) == (["a"], ["c"])
    assert (back.columns_lost, back.columns_new) == (["c"], ["a"])
    assert (there.domains_lost, there.domains_new) == (["x"], ["z"])
    forward = {one.before_class: one for one in there.shares}
    for one in back.shares:
        other = forward[one.after_class]
        assert one.difference == -other.difference
        assert_allclose([one.low, one.high], [-other.high, -other.low])
        assert one.sure == other.sure


def test_what_was_planted_is_found():
    """B lost, C and D new, one row moved, one share changed beyond doubt."""
    second = side(
        [0] * 5 + [1] + [1, 1, 2, 2],
        ["A", "C", "D"],
        [[0.9, 0.05, 0.05], [0.5, 0.25, 0.25]],
    )
    found = compare_sides(FIRST, second)
    assert found.classes_lost == []
    pairs = {one.before: one.after for one in found.pairs if one.before}
    assert pairs["A"] == "A"
    assert pairs["B"] == "D"  # two of four rows: the larger cosine
    assert found.classes_new == ["C"]
    assert_array_equal(np.flatnonzero(found.moved), [5, 6, 7])
    (change,) = (one for one in found.shares if one.sure and one.before_class == "A")
    assert change.domain == "x"
    assert_allclose(change.difference, 0.3)
    assert change.low < 0.3 < change.high
    assert "x: the share of A changed from 60.0% to 90.0%" in str(found)
    assert "Class C is new." in found.findings
    assert "3 of 10 rows moved to another class (30.0%)." in found.findings


def test_classes_of_other_rows_are_lost_and_new():
    mixed = side([0, 1] * 5, ["A", "B"], FIRST.prevalence)
    odd = side([0] * 3 + [1] * 7, ["A", "B"], FIRST.prevalence)
    found = compare_sides(FIRST, mixed)
    assert (found.classes_lost, found.classes_new) == (["B"], ["B"])  # .45 alike
    assert_allclose(found.pairs[0].alike, 3 / np.sqrt(6 * 5))
    lost = compare_sides(
        side(np.repeat([0, 1, 2, 3], 4), "ABCD", np.full((2, 4), 0.25)),
        side(np.tile([0, 1, 2, 3], 4), "ABCD", np.full((2, 4), 0.25)),
    )
    assert lost.classes_lost == list("ABCD")  # each shares a quarter with each
    assert lost.classes_new == list("ABCD")
    assert lost.shares == []
    assert lost.moved.all()
    assert compare_sides(FIRST, odd).renamed == []


def test_nobody_knows_how_sure_without_intervals(model, data):
    first = shoal.diff(model, model.merge(0, 1), data.X, data.domains)
    assert first.to_frame()["low"].isna().all()
    assert not any(one.sure for one in first.shares)
    assert first.to_dict()["shares"][0]["low"] is None
    unknown = replace(FIRST, variance=None)
    assert not any(one.sure for one in compare_sides(unknown, FIRST).shares)


def test_merges_and_names_are_told(model, data):
    named = model.set_names({"c1": "Gentoo"})
    found = shoal.diff(model, named, data.X, data.domains)
    assert found.findings == ["Class c1 is called Gentoo."]
    merged = model.merge(0, 2, name="other")
    found = shoal.diff(model, merged, data.X, data.domains)
    assert len(found.classes_lost) == 1
    lost = found.classes_lost[0]
    expected = model.predict(data.X, data.domains) == int(lost[1:])
    assert_array_equal(found.moved, expected)


def test_rows_of_domains_that_both_know_are_compared(model, data):
    after = shoal.update(model, data.X[:20], "Anvers").model
    domains = np.where(np.arange(len(data.X)) < 20, "Anvers", data.domains)
    found = shoal.diff(model, after, data.X, domains)
    assert len(found.moved) == len(data.X) - 20
    assert found.findings == ["Domain Anvers is new."]
    with pytest.raises(ValueError, match="domains has no domain that both models know"):
        shoal.diff(model, after, data.X[:20], domains[:20])
    with pytest.raises(ValueError, match="intervals must be two, one of each, got 1"):
        shoal.diff(model, after, data.X, domains, intervals=[None])
    with pytest.raises(ValueError, match="level must lie between 0 and 1, got 0"):
        shoal.diff(model, model, data.X, data.domains, level=0)
