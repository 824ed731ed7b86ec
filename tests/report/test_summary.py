"""The summary: what it says is what model, intervals and diagnosis say."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from shoal import DDFA, DiscreteMixture, DomainMixture
from shoal.analysis._resample import prevalence_interval
from shoal.datasets import make_latent_shift
from shoal.metrics import matched_accuracy
from shoal.report import render, summarize
from shoal.report._described import describe_differences
from shoal.report._settings import SETTINGS
from shoal.report._view import SCHEMA, looked_at, prevalence_records, rename


def test_json_gives_the_same_dict_back(summary):
    text = json.dumps(summary, allow_nan=False)
    assert json.loads(text) == summary
    assert summary["schema"] == SCHEMA == "shoal-report/1"


def test_prevalences_and_intervals(summary, penguins):
    table, intervals = summary["prevalence"], penguins.intervals
    assert_allclose(table["estimate"], penguins.model.prevalence_, rtol=0)
    assert_allclose(table["low"], intervals.low, rtol=0)
    assert_allclose(table["high"], intervals.high, rtol=0)
    inner = prevalence_interval(
        intervals.prevalence,
        intervals.draws.var(axis=0, ddof=1),
        intervals.n_rows[:, None],
        0.5,
    )
    assert_allclose([table["low50"], table["high50"]], inner, rtol=0)


def test_records_have_the_columns_of_the_csv(summary, penguins):
    records = prevalence_records(summary)
    frame = pd.DataFrame(records)
    assert list(frame) == [
        "domain", "class_id", "class_name", "estimate", "lo", "hi", "level", "n_rows",
        "flag",
    ]  # fmt: skip
    same = penguins.intervals.to_pandas()
    assert_allclose(frame[["estimate", "lo", "hi"]], same[["estimate", "low", "high"]])
    assert frame["class_name"].tolist() == same["class_name"].tolist()
    assert frame["domain"].tolist() == same["domain"].tolist()
    assert_allclose(frame.groupby("domain")["estimate"].sum(), 1)


def test_pairs_are_of_domains_that_are_looked_at():
    """All of a few domains; of many, those that are not thin."""
    assert looked_at([True] * 50) == list(range(50))
    assert looked_at([True, False, False] * 20) == [
        d for d in range(60) if d % 3 in (1, 2)
    ]
    share = np.array([0.0, 0.2, 0.7, 1.0])
    model = SimpleNamespace(prevalence_=np.column_stack([share, 1 - share]))
    found = describe_differences(model, None, [1, 2])
    assert [(one["domain_a"], one["domain_b"]) for one in found] == [(2, 1)]
    assert found[0]["estimate"] == pytest.approx(0.5)
    assert describe_differences(model, None, [3]) == []


def test_differences_are_the_largest_and_have_the_paired_intervals(summary, penguins):
    model, found = penguins.model, summary["differences"]
    sizes = [record["estimate"] for record in found]
    assert sizes == sorted(sizes, reverse=True)
    spread = model.prevalence_.max(axis=0) - model.prevalence_.min(axis=0)
    assert sizes[0] == pytest.approx(spread.max())
    for record in found:
        a, b = (model.domains_[record[key]] for key in ("domain_a", "domain_b"))
        y = int(record["class_id"][1:])
        between = penguins.intervals.difference(a, b)
        assert record["estimate"] == pytest.approx(between.estimate[y])
        assert record["low"] == pytest.approx(between.low[y])
        assert record["high"] == pytest.approx(between.high[y])


def test_two_classes_are_compared_once(penguins):
    data, two = penguins.data, penguins.refits[1]
    found = summarize(two, data.X, data.domains)["differences"]
    assert {record["class_id"] for record in found} == {"c0"}


def test_sentences_follow_the_names_of_classes(summary, penguins):
    reason = next(
        f["reason"] for f in summary["checks"]["findings"] if f["code"] == "W139"
    )
    assert "{c1} only in Biscoe" in reason
    # what is no sign of a problem does not sound like one
    told = [f["reason"] for f in summary["checks"]["findings"] if f["code"] == "drift"]
    assert "2 of 3 domains may have classes of their own" in told[0]
    assert "{c" in summary["verdict"]["sentences"][0]
    renamed = rename(summary, {"c1": "Papua"})
    assert [group["name"] for group in renamed["classes"]][1] == "Papua"
    assert summary["classes"][1]["name"] == "Gentoo"  # a copy
    with pytest.raises(ValueError, match="names has 'c7'; classes are c0, c1, c2"):
        rename(summary, {"c7": "?"})


def test_verdict_is_that_of_the_diagnosis(summary, penguins):
    assert summary["verdict"]["word"] == penguins.diagnosis.verdict
    worst = next(f for f in penguins.diagnosis.findings if f.status != "ok")
    assert summary["verdict"]["weakest"] == worst.code
    unchecked = penguins.summarize(diagnosis=None)
    assert unchecked["verdict"]["word"] == "not checked"
    assert unchecked["checks"] is None


def test_columns_are_named_in_findings(summary):
    leak = next(f for f in summary["checks"]["findings"] if f["code"] == "W121")
    assert "flipper_length_mm" in leak["reason"] or "bill" in leak["reason"]


def test_cards_count_the_rows_of_the_model(summary, penguins):
    proba = penguins.model.predict_proba(penguins.data.X, penguins.data.domains)
    classes = proba.argmax(axis=1)
    for y, card in enumerate(summary["cards"]):
        own = classes == y
        assert card["rows"] == own.sum() == sum(card["rows_by_domain"])
        assert sum(card["histogram"]) == own.sum()
        assert card["sure"] == pytest.approx((proba[own, y] >= 0.95).mean())
        assert card["kept"] == pytest.approx(
            penguins.intervals.co_assignment[own].mean()
        )


def test_exemplars_are_sure_rows_of_their_domain(summary, penguins):
    data, model = penguins.data, penguins.model
    proba = model.predict_proba(data.X, data.domains)
    for y, card in enumerate(summary["cards"]):
        for home in card["exemplars"]:
            name = model.domains_[home["domain"]]
            numbers = [record["row"] for record in home["rows"]]
            assert len(numbers) <= 4
            assert all(data.domains[row] == name for row in numbers)
            best = np.sort(proba[data.domains == name, y])[::-1][: len(numbers)]
            assert_allclose(proba[numbers, y], best, atol=1e-3)
            for record in home["rows"]:
                assert_allclose(record["values"], data.X[record["row"]])


def test_borderline_rows_have_the_smallest_margins(summary, penguins):
    proba = penguins.model.predict_proba(penguins.data.X, penguins.data.domains)
    ranked = np.sort(proba, axis=1)
    margin = ranked[:, -1] - ranked[:, -2]
    for y, card in enumerate(summary["cards"]):
        own = np.flatnonzero(proba.argmax(axis=1) == y)
        smallest = np.sort(margin[own])[:6]
        found = [margin[record["row"]] for record in card["borderline"]]
        assert_allclose(found, smallest)
        for record in card["borderline"]:
            second = int(record["other"]["class_id"][1:])
            assert record["other"]["p"] == pytest.approx(proba[record["row"], second])
            assert second == np.argsort(proba[record["row"]])[-2]


def test_borderline_rows_say_why(summary, penguins):
    data = penguins.data
    for card in summary["cards"]:
        for record in card["borderline"]:
            row = record["row"]
            found = penguins.model.explain(data.X[row], data.domains[row])
            nats = np.array([one["nats"] for one in found.to_records()])
            most = nats[np.argsort(-np.abs(nats), kind="stable")][:4]
            assert_allclose([one["nats"] for one in record["why"]], most)
            named = {one["part"] for one in record["why"]}
            assert named <= {*data.feature_names, "(domain)", "(usual row)"}


@pytest.mark.filterwarnings("ignore::shoal.exceptions.CollapseWarning")
def test_disputed_rows_are_the_surest_that_looks_and_shift_class_otherwise(seed):
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=5, n_features=3, separation=1.5, random_state=seed
    )
    model = DomainMixture(3, random_state=seed).fit(X, domains)
    other, proba = model.route_.other_labels, model.predict_proba(X, domains)
    cards = summarize(model, X, domains)["cards"]
    assert any(card["disputed"] for card in cards)
    for y, card in enumerate(cards):
        numbers = [record["row"] for record in card["disputed"]]
        own = np.flatnonzero((model.labels_ == y) & (other != y))
        assert len(numbers) == min(len(own), 6)
        assert_allclose(proba[numbers, y], np.sort(proba[own, y])[::-1][: len(numbers)])
        for record in card["disputed"]:
            row = record["row"]
            assert record["other"]["class_id"] == f"c{other[row]}"
            assert record["other"]["p"] == pytest.approx(proba[row, other[row]])
    # other rows than those of fit have no other class
    fewer = summarize(model, X[:-1], domains[:-1])["cards"]
    assert not any(card["disputed"] for card in fewer)


def test_score_is_that_of_the_metrics(summary, penguins):
    score, labels = summary["score"], penguins.data.labels
    classes = penguins.model.predict(penguins.data.X, penguins.data.domains)
    assert score["accuracy"] == pytest.approx(matched_accuracy(labels, classes))
    assert sum(map(sum, score["confusion"])) == score["n_rows"] == len(labels)
    errors = [entry["prevalence_error"] for entry in score["by_domain"]]
    assert score["prevalence_error"] == pytest.approx(np.mean(errors))
    for y, label in enumerate(score["labels"]):
        assert sum(row[y] for row in score["confusion"]) == (labels == label).sum()


def test_labels_change_nothing_but_the_score(penguins, seed):
    shuffled = np.random.default_rng(seed).permutation(penguins.data.labels)
    with_labels, other = penguins.summarize(), penguins.summarize(labels=shuffled)
    without = penguins.summarize(labels=None)
    assert with_labels.pop("score") != other.pop("score")
    assert without.pop("score") is None
    assert with_labels == other == without


def test_rows_without_a_label_do_not_count(penguins):
    labels = penguins.data.labels.astype(object)
    labels[::2] = None
    labels[1] = np.nan
    score = penguins.summarize(labels=labels)["score"]
    assert score["n_rows"] == len(labels) // 2 - 1


def test_reruns_are_matched_before_they_are_compared(penguins):
    data, model = penguins.data, penguins.model
    swapped = model.merge(0, 1, name="both")  # other classes: not a re-run
    summary = penguins.summarize(refits=[model, swapped])
    assert summary["reruns"]["n_fits"] == 2
    assert_allclose(summary["reruns"]["low"], model.prevalence_)
    assert_allclose(summary["reruns"]["high"], model.prevalence_)
    (other,) = summary["neighbours"]
    assert other["n_classes"] == 2
    assert other["merges"][0]["class_ids"] == ["c0", "c1"]
    rows = np.isin(model.predict(data.X, data.domains), [0, 1]).sum()
    assert other["merges"][0]["rows"] == rows
    assert other["splits"] == []


def test_groups_hold_the_mean_of_their_domains(summary, penguins):
    west = next(group for group in summary["groups"] if group["group"] == "west")
    assert_allclose(west["mean"], penguins.model.prevalence_[:2].mean(axis=0))
    with pytest.raises(ValueError, match="groups has no group for domain 'Dream'"):
        penguins.summarize(groups={"Biscoe": "west"})


def test_maps_hold_no_more_rows_than_they_may(summary, penguins, monkeypatch):
    views = {record["view"]: record for record in summary["maps"]}
    assert set(views) == {"features", "domains"}
    assert len(views["features"]["x"]) == len(penguins.data.X)
    assert len(views["domains"]["corners"]) == 3
    few = replace(SETTINGS, map_rows=60)
    monkeypatch.setattr("shoal.report._summary.SETTINGS", few)
    few = penguins.summarize()["maps"][0]
    assert np.bincount(few["domain"]).tolist() == [20, 20, 20]


def test_model_path_comes_from_the_command(penguins):
    assert penguins.summarize()["made"]["model_path"] == "my run"
    given = penguins.summarize(model_path="elsewhere", command=None)
    assert given["made"]["model_path"] == "elsewhere"
    other = penguins.summarize(command="shoal fit a.csv --out=here")
    assert other["made"]["model_path"] == "here"
    assert penguins.summarize(command="broken 'quote")["made"]["model_path"] is None


def test_frame_and_ids_are_what_people_see(penguins):
    data = penguins.data
    frame = pd.DataFrame({"island": data.domains, "note": ["x" * 99] * len(data.X)})
    ids = [f"bird {row}" for row in range(len(data.X))]
    summary = penguins.summarize(frame=frame, ids=ids)
    assert summary["shown_columns"] == ["island", "note"]
    record = summary["cards"][0]["exemplars"][0]["rows"][0]
    assert record["id"] == f"bird {record['row']}"
    assert record["values"][0] == data.domains[record["row"]]
    assert len(record["values"][1]) == 60


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "tables"}, "kind must be one of table, counts, .*, got 'tables'"),
        ({"feature_names": ["a"]}, "feature_names has 1 entries, X has 4 columns"),
        ({"ids": [1, 2]}, "ids has 2 rows, X has 342"),
        ({"frame": pd.DataFrame({"a": [1]})}, "frame has 1 rows, X has 342"),
    ],
)
def test_bad_arguments(penguins, changes, message):
    with pytest.raises(ValueError, match=message):
        penguins.summarize(**changes)


def test_what_belongs_to_another_model_is_refused(penguins):
    two = penguins.refits[1]
    data = penguins.data
    with pytest.raises(ValueError, match="diagnose this model"):
        summarize(two, data.X, data.domains, diagnosis=penguins.diagnosis)
    with pytest.raises(ValueError, match="bootstrap this model"):
        summarize(two, data.X, data.domains, intervals=penguins.intervals)
    with pytest.raises(ValueError, match="domains must be passed"):
        summarize(two, data.X, None)


# ---- other estimators and kinds ------------------------------------------------------


def test_merged_classes_have_a_report(penguins):
    data = penguins.data
    merged = penguins.model.merge("Adelie", "Chinstrap", name="brush")
    summary = summarize(merged, data.X, data.domains)
    assert [group["name"] for group in summary["classes"]] == ["brush", "Gentoo"]
    assert_allclose(summary["prevalence"]["estimate"], merged.prevalence_)


def test_ddfa_has_a_report(penguins):
    data = penguins.data
    model = DDFA(3, random_state=0).fit(data.X, data.domains)
    summary = summarize(model, data.X, data.domains)
    assert summary["made"]["estimator"] == "DDFA"
    json.dumps(summary, allow_nan=False)


def test_categories_become_levels():
    rng = np.random.default_rng(0)
    domains = np.repeat(["a", "b"], 60)
    red = rng.random(120) < np.repeat([0.9, 0.2], 60)
    X = np.column_stack([np.where(red, "red", "blue"), np.where(red, "round", "flat")])
    model = DiscreteMixture(2, random_state=0).fit(X, domains)
    summary = summarize(model, X, domains, feature_names=["color", "shape"])
    names = {entry["feature"] for entry in summary["cards"][0]["features"]}
    assert {"color = red", "color = blue"} <= names
    assert summary["maps"][0]["view"] == "features"


def test_words_of_a_topic(texts):
    model, counts, towns, frame = texts
    names = ["boat", "fish", "net", "engine", "wheel", "brake", "the", "and", "rare"]
    summary = summarize(
        model, counts, towns, feature_names=names, frame=frame, kind="text"
    )
    found = [
        [entry["word"] for entry in card["words"][:3]] for card in summary["cards"]
    ]
    assert sorted(map(sorted, found)) == [
        ["boat", "fish", "net"],
        ["brake", "engine", "wheel"],
    ]
    assert summary["size"]["unit"] == "rows"  # several texts a town
    assert summary["shown_columns"] == ["year"]
    record = summary["cards"][0]["exemplars"][0]["rows"][0]
    assert record["text"] == frame["text"][record["row"]]
    assert summary["classes"][0]["suggestion"] == ", ".join(found[0])


def test_documents_may_be_their_own_domains(texts):
    _, counts, _, _ = texts
    few = counts[::10].toarray()
    model = DiscreteMixture(2, input="counts", random_state=0).fit(few)
    summary = summarize(model, few, None, kind="counts")
    assert len(summary["domains"]) == len(few)
    assert "×" in summary["cards"][0]["exemplars"][0]["rows"][0]["text"]


def test_a_class_is_not_named_after_a_label_that_no_row_of_it_has(penguins):
    """A matching is filled up with such pairs; the numbers stay those of all of it."""
    classes = penguins.model.predict(penguins.data.X, penguins.data.domains)
    labels = np.where(classes == 0, "large", "small").astype(object)
    labels[np.flatnonzero(classes == 0)[:2]] = "odd"
    score = penguins.summarize(labels=labels)["score"]
    assert score["matching"]["c0"] == "large"
    assert sorted(score["matching"].values()) == ["large", "small"]
    assert score["accuracy"] == matched_accuracy(labels, classes)


def test_genes_stand_for_an_embedding():
    rng = np.random.default_rng(0)
    sites = np.arange(200) % 4
    types = rng.random(200) < np.array([0.1, 0.3, 0.7, 0.9])[sites]
    points = rng.normal(size=(200, 2)) + 6 * types[:, None]
    genes = rng.poisson(1 + 8 * types[:, None] * np.array([0, 1, 0]))
    model = DomainMixture(2, search=False, random_state=0).fit(points, sites)
    found = summarize(
        model,
        points,
        sites,
        kind="embedding",
        described=(genes.astype(float), ["CD3", "CD19", "ACTB"]),
    )
    assert found["size"]["features"] == 3
    for card in found["cards"]:
        assert card["features"][0]["feature"] == "CD19"
    assert {group["suggestion"] for group in found["classes"]} == {
        "high CD19",
        "low CD19",
    }
    assert "CD19" in render(found)
