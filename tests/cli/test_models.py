"""What is done with a fitted model: predict, adapt, name, report, diagnose."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.testing import assert_allclose
from PIL import Image

import shoal as package
from shoal.cli._options import Numbers
from shoal.datasets import load_penguins
from shoal.io.model._models import read_manifest

# ---- predict ---------------------------------------------------------------------


def test_predict_is_the_model_s_own(cli, fitted: Path, tmp_path: Path):
    ended = cli("predict", "run", "penguins.csv", "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["files"] == ["penguins-assignments.parquet"]
    rows = pd.read_parquet(tmp_path / "penguins-assignments.parquet")
    penguins = load_penguins()
    proba = package.load(fitted).predict_proba(penguins.X, penguins.domains)
    assert_allclose(rows.filter(like="p_"), proba, atol=1e-12)
    ranked = np.sort(proba, axis=1)
    assert_allclose(rows["margin"], ranked[:, -1] - ranked[:, -2], atol=1e-12)
    data = document["data"]
    assert data["n_rows"] == 342
    assert data["unsure"] == int((proba.max(axis=1) < 0.8).sum())
    assert sum(sum(one.values()) for one in data["counts"].values()) == 342
    again = pd.read_parquet(fitted / "assignments.parquet")
    pd.testing.assert_frame_equal(rows, again)


def test_batches_do_not_matter(cli, fitted: Path, tmp_path: Path, monkeypatch):
    assert cli("predict", "run", "penguins.csv", "--out", "one.csv").code == 0
    batches = package.io.batches

    def small(*arguments, **options):
        return batches(*arguments, **options, batch_rows=50)

    monkeypatch.setattr(package.io, "batches", small)
    assert cli("predict", "run/model", "penguins.csv", "--out", "many.csv").code == 0
    one, many = (tmp_path / name for name in ("one.csv", "many.csv"))
    assert one.read_bytes() == many.read_bytes()


def test_pooled_and_prevalence(cli, fitted: Path, tmp_path: Path):
    penguins, model = load_penguins(), package.load(fitted)
    frame = pd.read_csv(tmp_path / "penguins.csv").drop(columns=["island", "species"])
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert cli("predict", "run", "new.csv", "--pooled", "--out", "a.csv").code == 0
    rows = pd.read_csv(tmp_path / "a.csv")
    assert_allclose(rows.filter(like="p_"), model.predict_proba(penguins.X))
    assert rows["domain"].isna().all()
    mix = [0.2, 0.3, 0.5]
    (tmp_path / "mix.json").write_text('{"c0": 0.2, "c2": 0.5, "c1": 0.3}')
    arguments = ["predict", "run", "new.csv", "--prevalence"]
    assert cli(*arguments, "mix.json", "--out", "b.csv").code == 0
    rows = pd.read_csv(tmp_path / "b.csv")
    expected = model.predict_proba(penguins.X, prevalence=mix)
    assert_allclose(rows.filter(like="p_"), expected)
    mixes = pd.read_csv(fitted / "prevalence.csv")
    mixes[mixes["domain"] == "Dream"].to_csv(tmp_path / "dream.csv", index=False)
    assert cli(*arguments, "dream.csv", "--out", "c.csv").code == 0
    rows = pd.read_csv(tmp_path / "c.csv")
    expected = model.predict_proba(penguins.X, "Dream")
    assert_allclose(rows.filter(like="p_"), expected, atol=1e-9)


def test_domains_that_are_numbers_count_up(cli, tmp_path: Path):
    penguins = load_penguins()
    frame = pd.DataFrame(penguins.X, columns=penguins.feature_names)
    frame["site"] = pd.factorize(penguins.domains)[0] * 5
    frame.to_csv(tmp_path / "x.csv", index=False)
    fit = ("fit", "x.csv", "--domain", "site", "--k", "3", "--bootstrap", "2")
    assert cli(*fit, "--out", "run", "--no-report").code == 0
    ended = cli("predict", "run", "x.csv", "--json")
    assert list(json.loads(ended.stdout)["data"]["counts"]) == ["0", "5", "10"]


def test_rows_without_a_domain(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv")
    frame.loc[[3, 7], "island"] = None
    frame.to_csv(tmp_path / "new.csv", index=False)
    predict = ("predict", "run", "new.csv", "--out")
    ended = cli(*predict, "a.parquet", "--drop-missing-domain", "--no-color")
    assert ended.code == 0, ended.stderr
    assert "W144" in ended.stderr
    kept = pd.read_parquet(tmp_path / "a.parquet")
    whole = pd.read_parquet(fitted / "assignments.parquet").drop(index=[3, 7])
    pd.testing.assert_frame_equal(kept, whole.reset_index(drop=True))

    ended = cli(*predict, "b.parquet", "--pooled")
    assert ended.code == 0, ended.stderr
    pooled = pd.read_parquet(tmp_path / "b.parquet")
    assert pooled["domain"].isna().sum() == 2
    assert len(pooled) == len(frame)
    ended = cli("adapt", "run", "new.csv", "--domain-name", "Anvers", "--out", "c")
    assert ended.code == 0, ended.stderr

    frame.assign(island=None).to_csv(tmp_path / "new.csv", index=False)
    assert cli(*predict, "d.csv", "--drop-missing-domain").code == 3
    assert not (tmp_path / "d.csv").exists()


def test_min_confidence_marks_and_never_changes_a_class(
    cli, fitted: Path, tmp_path: Path
):
    for least, name in (("0", "sure.csv"), ("1", "unsure.csv")):
        arguments = ["predict", "run", "penguins.csv", "--min-confidence", least]
        assert cli(*arguments, "--out", name).code == 0
    sure, unsure = (pd.read_csv(tmp_path / f"{n}.csv") for n in ("sure", "unsure"))
    assert not sure["unsure"].any()
    assert unsure["unsure"].all()
    assert (sure["class"] == unsure["class"]).all()


def test_rows_unlike_training_are_told(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv")
    frame["bill_length_mm"] *= 10
    frame.to_csv(tmp_path / "odd.csv", index=False)
    ended = cli("predict", "run", "odd.csv", "--strict")
    assert ended.code == 7
    assert "warning[W163] 100.0% of the rows are unlike" in ended.stderr
    assert "100.0% unlike the training rows" in ended.stdout


def test_progress_of_a_long_prediction(cli, fitted: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("shoal.cli._stages.NUMBERS", Numbers(plain_every=0.0))
    ended = cli("predict", "run", "penguins.csv")
    assert "% of it done" in ended.stderr


# ---- adapt -----------------------------------------------------------------------


def test_adapt_learns_a_place_and_leaves_the_model_alone(
    cli, fitted: Path, tmp_path: Path
):
    frame = pd.read_csv(tmp_path / "penguins.csv")
    dream = frame[frame["island"] == "Dream"].drop(columns=["island", "species"])
    dream.to_csv(tmp_path / "dream.csv", index=False)
    before = {p: p.read_bytes() for p in fitted.rglob("*") if p.is_file()}
    ended = cli("adapt", "run", "dream.csv", "--domain-name", "Anvers", "--json")
    assert ended.code == 0, ended.stderr
    assert {p: p.read_bytes() for p in fitted.rglob("*") if p.is_file()} == before
    document = json.loads(ended.stdout)
    assert document["files"][0] == "run-Anvers/model"
    model = package.load(fitted)
    X = dream[load_penguins().feature_names].to_numpy()
    expected = model.adapt(X, random_state=0)
    found = [one["estimate"] for one in document["data"]["prevalence"]]
    assert_allclose(found, expected.prevalence)
    assert_allclose(document["data"]["fit_score"], expected.fit_score)
    unknown = document["data"]["unknown"]
    assert unknown["sentence"] == str(expected.unknown)
    assert (unknown["lo"], unknown["hi"]) == (
        expected.unknown.low,
        expected.unknown.high,
    )
    table = pd.read_csv(tmp_path / "run-Anvers" / "prevalence.csv")
    assert table["domain"].unique().tolist() == [*model.domains_, "Anvers"]
    old = pd.read_csv(fitted / "prevalence.csv")
    assert_allclose(table[["estimate", "lo", "hi"]][:9], old[["estimate", "lo", "hi"]])
    mix = ["--prevalence", "run-Anvers/prevalence.csv", "--out", "m.csv"]
    assert cli("predict", "run", "dream.csv", *mix).code == 0
    rows = pd.read_csv(tmp_path / "m.csv")
    assert_allclose(rows.filter(like="p_"), expected.predict_proba(X), atol=1e-7)
    dream.assign(island="Anvers").to_csv(tmp_path / "anvers.csv", index=False)
    assert cli("predict", "run-Anvers", "anvers.csv", "--out", "p.csv").code == 0
    rows = pd.read_csv(tmp_path / "p.csv")
    assert_allclose(rows.filter(like="p_"), expected.predict_proba(X), atol=1e-7)


def test_adapt_of_rows_unlike_training_warns(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv").head(40)
    frame["body_mass_g"] *= 100
    frame.to_csv(tmp_path / "elephants.csv", index=False)
    ended = cli("adapt", "run", "elephants.csv", "--domain-name", "Zoo")
    assert ended.code == 0
    assert "warning[W163]" in ended.stderr


def test_adapt_says_that_some_rows_are_of_no_class(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv").head(100)
    frame.loc[frame.index[:30], "bill_depth_mm"] += 15  # a bird nobody has seen
    frame.to_csv(tmp_path / "toucans.csv", index=False)
    ended = cli("adapt", "run", "toucans.csv", "--domain-name", "Zoo", "--json")
    unknown = json.loads(ended.stdout)["data"]["unknown"]
    assert unknown["verdict"] == "present"
    assert 0.1 < unknown["lo"] <= 0.3 <= unknown["hi"]
    said = f"at least {unknown['lo']:.1%} of the rows belong to no class of the model"
    assert f"warning[W163] {said}" in ended.stderr
    record = json.loads((tmp_path / "run-Zoo" / "run.json").read_text())
    assert unknown in record.values() or unknown in record.get("data", {}).values()


def test_adapt_twice_and_after_a_merge(cli, fitted: Path, tmp_path: Path):
    assert cli("name", "run", "--merge", "c0,c2=Small").code == 0
    for model, name in (("run", "A"), ("run-A", "B")):
        assert cli("adapt", model, "penguins.csv", "--domain-name", name).code == 0
    model = package.load(tmp_path / "run-A-B")
    assert model.domains_.tolist() == ["Biscoe", "Dream", "Torgersen", "A", "B"]
    assert model.class_names_ == ["Small", "c1"]
    manifest = read_manifest(tmp_path / "run-A-B")
    assert manifest["summary"]["adapted"] == {"A": 342, "B": 342}
    mix = ["--prevalence", "run-A-B/prevalence.csv", "--out", "m.csv"]
    assert cli("predict", "run", "penguins.csv", *mix).code == 0  # that of B
    assert cli("name", "run-A-B", "--undo").code == 0
    assert package.load(tmp_path / "run-A-B").n_classes_ == 3


# ---- name ------------------------------------------------------------------------


def names_in(csv: Path) -> list[str]:
    return pd.read_csv(csv)["class_name"].unique().tolist()


def test_names_appear_everywhere(cli, fitted: Path, tmp_path: Path):
    ended = cli("name", "run", "--set", "c0=Adelie", "--set", "c1=Gentoo", "--json")
    assert ended.code == 0, ended.stderr
    data = json.loads(ended.stdout)["data"]
    assert data["before"] == ["c0", "c1", "c2"]
    assert data["after"] == ["Adelie", "Gentoo", "c2"]
    assert package.load(fitted).class_names_ == data["after"]
    assert names_in(fitted / "prevalence.csv") == data["after"]
    assert "Adelie" in (fitted / "report.html").read_text()
    (tmp_path / "names.json").write_text('{"c2": "Chinstrap", "c1": ""}')
    assert cli("name", "run", "--from", "names.json").code == 0
    assert cli("name", "run", "--set", "Gentoo=Papua").code == 0
    assert package.load(fitted).class_names_ == ["Adelie", "Papua", "Chinstrap"]
    shown = cli("name", "run", "--list").stdout
    assert "Papua" in shown
    assert "3 steps" in shown
    assert cli("predict", "run", "penguins.csv", "--out", "rows.csv").code == 0
    rows = pd.read_csv(tmp_path / "rows.csv")
    assert set(rows["class"]) == {"Adelie", "Papua", "Chinstrap"}


def test_a_merge_adds_up_and_can_be_undone(cli, fitted: Path, tmp_path: Path):
    before = (fitted / "prevalence.csv").read_bytes()
    model = package.load(fitted)
    ended = cli("name", "run", "--merge", "c0,c2=Small")
    assert ended.code == 0, ended.stderr
    assert "warning[W162]" in ended.stderr
    table = pd.read_csv(fitted / "prevalence.csv")
    small = table[table["class_name"] == "Small"]
    assert_allclose(small["estimate"], model.prevalence_[:, [0, 2]].sum(axis=1))
    assert (small["lo"] <= small["estimate"]).all()
    assert (small["estimate"] <= small["hi"]).all()
    # on Torgersen all are Small: the interval of a sum is not the sum of intervals
    assert small["hi"].max() <= 1
    history = json.loads((fitted / "model" / "classes.json").read_text())["history"]
    assert [step["step"] for step in history] == ["merge"]
    assert cli("name", "run", "--undo").code == 0
    assert (fitted / "prevalence.csv").read_bytes() == before
    penguins = load_penguins()
    again = package.load(fitted)
    assert_allclose(again.predict_proba(penguins.X), model.predict_proba(penguins.X))
    refused = cli("name", "run", "--undo")
    assert refused.code == 2
    assert "nothing to undo" in refused.stderr


def test_edited_files_are_left_alone(cli, fitted: Path):
    names = ("prevalence.csv", "class_counts.csv", "report.html")
    for name in names:
        (fitted / name).write_text("mine")
    ended = cli("name", "run", "--set", "c0=Adelie", "--json")
    assert json.loads(ended.stdout)["files"] == ["run/model"]
    assert {(fitted / name).read_text() for name in names} == {"mine"}


def test_a_model_alone_can_be_named(cli, fitted: Path, tmp_path: Path):
    shutil.copytree(fitted / "model", tmp_path / "alone")
    assert cli("name", "alone", "--set", "c0=Adelie").code == 0
    assert package.load(tmp_path / "alone").class_names_[0] == "Adelie"
    assert package.load(fitted).class_names_[0] == "c0"


# ---- report ----------------------------------------------------------------------


def test_report_needs_no_data(cli, fitted: Path, tmp_path: Path):
    (tmp_path / "penguins.csv").unlink()
    ended = cli("report", "run", "--title", "Birds of Palmer", "--json")
    assert ended.code == 0, ended.stderr
    page = (fitted / "report.html").read_text()
    assert "<title>Birds of Palmer" in page
    data = json.loads(ended.stdout)["data"]
    assert data["bytes"] == (fitted / "report.html").stat().st_size
    # what shoal wrote it may replace, here and in another place only by force
    assert cli("report", "run", "--sections", "where,trust").code == 0
    assert (fitted / "report.html").stat().st_size < data["bytes"]
    assert cli("report", "run", "--out", "page.html").code == 0
    refused = cli("report", "run", "--out", "page.html")
    assert refused.code == 2
    assert "error[E136]" in refused.stderr
    assert cli("report", "run", "--out", "page.html", "--force").code == 0
    (fitted / "report.html").write_text("mine")
    assert cli("report", "run").code == 2
    assert (fitted / "report.html").read_text() == "mine"


def test_report_from_data_draws_merged_classes_as_one(
    cli, fitted: Path, tmp_path: Path
):
    assert cli("name", "run", "--merge", "c0,c2=Small").code == 0
    apart = cli("report", "run", "--out", "apart.html")
    assert "warning[W162]" in apart.stderr
    ended = cli("report", "run", "penguins.csv", "--out", "one.html")
    assert ended.code == 0, ended.stderr
    assert "W162" not in ended.stderr
    apart_page, one_page = (
        (tmp_path / name).read_text() for name in ("apart.html", "one.html")
    )
    assert '"c2"' in apart_page
    assert '"c2"' not in one_page
    assert "Small" in one_page


def test_open_shows_the_page(cli, fitted: Path, monkeypatch):
    shown = []
    monkeypatch.setattr("typer.launch", shown.append)
    assert cli("report", "run", "--open").code == 0
    assert shown == [(fitted / "report.html").as_uri()]


# ---- diagnose, check, choose -----------------------------------------------------


def test_diagnose_of_a_model_and_of_data(cli, fitted: Path, tmp_path: Path):
    few = ["--permutations", "10", "--json"]
    ended = cli("diagnose", "penguins.csv", "--model", "run", "--out", "d", *few)
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert document["status"] == "warning"
    assert [message["code"] for message in document["messages"]] == ["W139"]
    again = json.loads((tmp_path / "d" / "diagnostics.json").read_text())
    of_fit = json.loads((fitted / "diagnostics.json").read_text())
    assert again == document["data"]
    assert again["verdict"] == of_fit["verdict"] == "caution"
    assert len(again["findings"]) == len(of_fit["findings"])
    columns = ["--domain", "island", "--label", "species", "--id", "bird"]
    shown = cli("diagnose", "penguins.csv", *columns, "--k", "3", *few[:2])
    assert shown.code == 0
    assert "! caution" in shown.stdout
    assert "Verdict: ! use with caution" in shown.stdout


def test_what_a_file_says_of_a_fit_is_no_word_about_a_model(
    cli, fitted: Path, tmp_path
):
    """One file of options serves fit, and diagnose of what was fitted."""
    (tmp_path / "shoal.toml").write_text('domain = "island"\nlabel = "species"\n')
    given = ["--model", "run", "--config", "shoal.toml", "--permutations", "2"]
    ended = cli("diagnose", "penguins.csv", *given, "--json")
    assert ended.code == 0, ended.stderr
    assert "of the average domain" in ended.stdout


def test_check_tells_all_it_saw(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv")
    frame["latitude"] = frame["island"].map({"Biscoe": 1.0, "Dream": 2.0}).fillna(3.0)
    frame.to_csv(tmp_path / "leak.csv", index=False)
    columns = ["--domain", "island", "--label", "species", "--id", "bird"]
    ended = cli("check", "leak.csv", *columns, "--out", "checked", "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    data = document["data"]
    assert data["domains"] == {"Biscoe": 167, "Dream": 124, "Torgersen": 51}
    roles = {column["name"]: column["role"] for column in data["columns"]}
    assert roles["species"] == "label"
    assert roles["latitude"] == "feature"
    assert data["largest_k"] == 3
    assert max(data["leaks"], key=data["leaks"].__getitem__) == "latitude"
    assert [message["code"] for message in document["messages"]] == ["W121"]
    assert "latitude" in document["messages"][0]["hint"]
    assert json.loads((tmp_path / "checked" / "check.json").read_text()) == data


def test_check_names_a_column_in_another_unit(cli, tmp_path: Path):
    rng = np.random.default_rng(0)
    sites = np.repeat([f"site {number}" for number in range(6)], 60)
    ill = rng.random(360) < np.repeat([0.1, 0.3, 0.5, 0.7, 0.9, 0.4], 60)
    temp = 37 + 2 * ill + rng.normal(0, 0.5, 360)
    pulse = 70 + 30 * ill + rng.normal(0, 8, 360)
    temp = np.where(sites == "site 5", 1.8 * temp + 32, temp)
    frame = pd.DataFrame({"site": sites, "temp_c": temp, "pulse": pulse})
    frame.to_csv(tmp_path / "wards.csv", index=False)
    ended = cli("check", "wards.csv", "--domain", "site", "--json")
    assert ended.code == 0, ended.stderr
    messages = {m["code"]: m for m in json.loads(ended.stdout)["messages"]}
    assert messages["W124"]["text"].startswith('"temp_c" at site 5 is ')
    assert "elsewhere 3" in messages["W124"]["text"]
    ended = cli("check", "wards.csv", "--domain", "site")
    assert "warning[W124]" in ended.stderr


def test_check_notices_copies(cli, fitted: Path, tmp_path: Path):
    frame = pd.read_csv(tmp_path / "penguins.csv")
    copies = frame.tail(30).assign(island="Torgersen")
    pd.concat([frame, copies]).to_csv(tmp_path / "copies.csv", index=False)
    columns = ["--domain", "island", "--label", "species", "--drop", "bird"]
    ended = cli("check", "copies.csv", *columns)
    assert "warning[W122]" in ended.stderr


def test_check_of_images(cli, tmp_path: Path):
    for site in ("north", "south"):
        (tmp_path / "photos" / site).mkdir(parents=True)
        for number in range(40):
            pixels = Image.new("RGB", (8, 8), (number * 5, 0, 0))
            pixels.save(tmp_path / "photos" / site / f"{number}.png")
    ended = cli("check", "photos", "--json")
    assert ended.code == 0, ended.stderr
    data = json.loads(ended.stdout)["data"]
    assert (data["kind"], data["n_features"]) == ("images", 0)
    assert data["domains"] == {"north": 40, "south": 40}
    assert "Columns" in cli("check", "photos").stdout


def test_choose_writes_its_curve(cli, fitted: Path, tmp_path: Path):
    columns = ["--domain", "island", "--label", "species", "--id", "bird"]
    ended = cli(
        "choose", "penguins.csv", *columns, "--k", "2:4", "--out", "c", "--json"
    )
    assert ended.code == 0, ended.stderr
    data = json.loads(ended.stdout)["data"]
    assert data["n_classes"] == 3
    assert [record["n_classes"] for record in data["curve"]] == [2, 3, 4]
    assert [record["identifiable"] for record in data["curve"]] == [True, True, False]
    assert (tmp_path / "c" / "choose.png").read_bytes()[:4] == b"\x89PNG"
    shown = cli("choose", "penguins.csv", *columns).stdout
    assert "chosen" in shown
    assert data["sentence"] in shown


# ---- from a table of one's own to the mix of a new place -------------------------


def test_three_commands(cli, tmp_path: Path):
    """Fit two islands; class half of the third by its own mix, learned by adapt."""
    penguins = load_penguins(as_frame=True)
    frame = penguins.X.assign(island=penguins.domains)
    is_new = (frame["island"] == "Biscoe") & (np.arange(len(frame)) % 2 == 1)
    frame[~is_new].to_csv(tmp_path / "own.csv", index=False)
    frame[is_new].assign(island="Deception").to_csv(tmp_path / "new.csv", index=False)
    base = ["--domain", "island", "--seed", "1", "--bootstrap", "20"]
    first = cli("fit", "own.csv", *base, "--out", "fitted")
    assert first.code == 0, first.stderr
    assert (tmp_path / "fitted" / "report.html").exists()
    unknown = cli("predict", "fitted", "new.csv")
    assert unknown.code == 6
    assert 'has not seen the domain "Deception"' in unknown.stderr
    adapted = ["fitted", "new.csv", "--domain-name", "Deception", "--out", "adapted"]
    assert cli("adapt", *adapted).code == 0
    assert cli("predict", "adapted", "new.csv", "--out", "rows.csv").code == 0
    species = penguins.labels[is_new].to_numpy()
    classes = pd.read_csv(tmp_path / "rows.csv")["class"].to_numpy()
    assert pd.crosstab(species, classes).max().sum() >= 0.97 * len(species)
    table = pd.read_csv(tmp_path / "adapted" / "prevalence.csv")
    new = table[table["domain"] == "Deception"]
    shares = np.sort(pd.Series(species).value_counts(normalize=True).to_numpy())
    assert_allclose(np.sort(new["estimate"])[-2:], shares, atol=0.03)


def test_predictions_never_take_the_place_of_the_rows(cli, fitted: Path, tmp_path):
    rows = (tmp_path / "penguins.csv").read_bytes()
    predict = ["predict", "run", "penguins.csv", "--out", "./penguins.csv", "--force"]
    ended = cli(*predict)
    assert ended.code == 2
    assert "error[E136]" in ended.stderr
    assert (tmp_path / "penguins.csv").read_bytes() == rows


def test_a_model_is_judged_by_rows_of_all_its_domains(cli, fitted: Path, tmp_path):
    rows = pd.read_csv(tmp_path / "penguins.csv")
    rows[rows["island"] != "Dream"].to_csv(tmp_path / "two.csv", index=False)
    for command in (["diagnose", "two.csv", "--model", "run"],
                    ["report", "run", "two.csv", "--out", "two.html"]):  # fmt: skip
        ended = cli(*command)
        assert ended.code == 6
        assert 'error[E134] no row is from "Dream", which' in ended.stderr
    assert not (tmp_path / "two.html").exists()
