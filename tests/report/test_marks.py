"""The heat map of what tells classes apart."""

import re

import numpy as np
import pytest

from shoal import CountMixture
from shoal.report import render, summarize


@pytest.fixture(scope="module")
def cells():
    rng = np.random.default_rng(0)
    donors = np.repeat(["a", "b", "c"], 60)
    types = (rng.random(180) < np.repeat([0.1, 0.5, 0.9], 60)).astype(int)
    rate = np.ones((2, 40))
    rate[0, :6], rate[1, 6:12] = 8.0, 8.0
    X = rng.poisson(rate[types]).astype(float)
    return CountMixture(2, random_state=0).fit(X, donors), X, donors


def described(cells, kind="counts", **options):
    model, X, donors = cells
    names = [f"gene{index}" for index in range(X.shape[1])]
    return summarize(model, X, donors, kind=kind, feature_names=names, **options)


def test_each_class_brings_its_marks_and_what_the_others_have_of_them(cells):
    model, X, donors = cells
    marks = described(cells)["marks"]
    own = {
        mark["name"]: int(mark["of"][1:]) for mark in marks["marks"]
    }  # genes 0 to 5 mark one type, 6 to 11 the other
    assert len(own) == 10
    for half in (range(6), range(6, 12)):
        assert len({own[f"gene{g}"] for g in half if f"gene{g}" in own}) == 1
    weights = model.predict_proba(X, donors).T @ np.log1p(X)
    shares = weights / weights.sum(axis=1, keepdims=True)
    columns = [int(name[4:]) for name in own]
    np.testing.assert_allclose(marks["levels"], shares[:, columns])


def test_normalized_columns_are_marked_by_their_means(cells):
    model, X, donors = cells
    summary = described(cells, kind="table")
    marks, proba = summary["marks"], model.predict_proba(X, donors)
    assert marks["unit"] == "mean"
    means = proba.T @ X / proba.sum(axis=0)[:, None]
    columns = [int(mark["name"][4:]) for mark in marks["marks"]]
    np.testing.assert_allclose(marks["levels"], means[:, columns], atol=1e-6)


def test_the_class_with_most_is_darkest(cells):
    summary = described(cells)
    page = render(summary)
    (drawn,) = re.findall(r'<svg[^>]*class="picture heat">.*?</svg>', page, re.S)
    opacity = [float(one) for one in re.findall(r'fill-opacity="([\d.]+)"', drawn)]
    shade = np.array(opacity).reshape(2, -1)
    levels = np.array(summary["marks"]["levels"])
    assert shade.shape == levels.shape
    np.testing.assert_array_equal(shade.argmax(axis=0), levels.argmax(axis=0))
    assert (shade.max(axis=0) == 1).all()
    assert "Telling columns" in page
    assert "Telling words" in render(described(cells, kind="text"))


def test_few_columns_and_hidden_rows_have_none(cells):
    assert described(cells, redact=True)["marks"] is None
    model, X, donors = cells
    few = CountMixture(2, random_state=0).fit(X[:, :20], donors)
    assert summarize(few, X[:, :20], donors, kind="counts")["marks"] is None
