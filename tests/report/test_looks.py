"""How features are spread: counts that add up, and the shapes drawn from them."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal import DomainMixture
from shoal.report import render, summarize
from shoal.report._described import bin_edges


def test_curves_hold_every_row_once(summary, penguins):
    data, model = penguins.data, penguins.model
    proba = model.predict_proba(data.X, data.domains)
    looks = summary["looks"]
    assert looks["domains"] == [0, 1, 2]
    inside = [np.ones(len(data.X), bool), *(data.domains == d for d in model.domains_)]
    for feature in looks["features"]:
        column = data.X[:, data.feature_names.index(feature["feature"])]
        for own, slot in zip(inside, feature["slots"], strict=True):
            for index, one in enumerate(slot):
                weight = proba[own, index]
                assert one["rows"] == pytest.approx(weight.sum())
                if one["counts"] is None:
                    assert weight.sum() < 5
                    continue
                assert sum(one["counts"]) == pytest.approx(weight.sum(), abs=0.15)
                mean = np.average(column[own], weights=weight)
                assert one["mean"] == pytest.approx(mean)
                for share, value in zip(
                    (0.25, 0.5, 0.75), one["quarters"], strict=True
                ):
                    below = weight[column[own] < value].sum() / weight.sum()
                    upto = weight[column[own] <= value].sum() / weight.sum()
                    assert below <= share <= upto + 1e-9


def test_features_are_the_most_telling(summary):
    top = [card["features"][0]["feature"] for card in summary["cards"]]
    assert set(top) <= {one["feature"] for one in summary["looks"]["features"]}


def test_words_redacted_rows_and_encoders_have_no_curves(penguins, texts):
    model, counts, towns, _ = texts
    assert summarize(model, counts, towns, kind="text")["looks"] is None
    assert penguins.summarize(redact=True)["looks"] is None


def test_a_property_is_drawn_as_a_share(penguins, parse):
    data, names = penguins.data, ["length", "depth", "heavy"]
    heavy = (data.X[:, 3] > 4500).astype(float)
    X = np.column_stack([data.X[:, :2], heavy])
    model = DomainMixture(2, search=False, random_state=0).fit(X, data.domains)
    summary = summarize(model, X, data.domains, feature_names=names)
    (feature,) = [f for f in summary["looks"]["features"] if f["feature"] == "heavy"]
    assert feature["indicator"]
    proba = model.predict_proba(X, data.domains)
    shares = [heavy @ proba[:, y] / proba[:, y].sum() for y in range(2)]
    assert_allclose([one["mean"] for one in feature["slots"][0]], shares)
    assert summary["maps"][0]["columns_left_out"] == 1
    assert "1 column with few values" in parse(render(summary)).one(id="map").text


def test_heights_are_shares_of_the_class(summary, parse):
    panel = parse(render(summary)).one(id="features").all("svg", class_="look")[0]
    feature = summary["looks"]["features"][0]
    rows = panel.one("g", class_="s0").all("g", class_="row")
    drawn = []
    for row, one in zip(rows, feature["slots"][0], strict=True):
        path = row.one("path", class_="fill")["d"]
        floor = float(re.match(r"M[\d.]+ ([\d.]+)", path)[1])
        tops = [float(v) for v in re.findall(r"V([\d.]+)H", path)]
        shares = np.array(one["counts"]) / one["rows"]
        drawn += [(floor - top, share) for top, share in zip(tops, shares, strict=True)]
    heights, shares = np.array(drawn).T
    assert_allclose(heights, shares * heights.max() / shares.max(), atol=0.02)


def test_steps():
    assert_allclose(bin_edges(np.array([2007.0, 2008, 2009])), np.arange(2006.5, 2010))
    assert len(bin_edges(np.linspace(0, 1, 100))) == 25
    assert (np.diff(bin_edges(np.full(5, 0.5))) > 0).all()
    far = np.append(np.linspace(0, 1, 999), 1e6)
    assert bin_edges(far)[-1] < 2
