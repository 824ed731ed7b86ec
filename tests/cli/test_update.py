"""`shoal update` and `shoal diff`: a run lives on, and says what has changed."""

import json
import shutil
import signal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from tests.attack.kills import DONE, in_child, killed_at

import shoal
from shoal.cli import main
from shoal.cli._runs import MODEL, RUN, digests, settled

KEPT = {"assignments.parquet", "model", "prevalence.csv", "run.json", "update.json"}


def quietly(*arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--quiet"])
    assert end.value.code == 0


@pytest.fixture
def anvers(fitted, tmp_path):
    """Rows of a place that the run does not know: those of Dream once more."""
    table = pd.read_csv(tmp_path / "penguins.csv")
    rows = table[table["island"] == "Dream"].assign(island="Anvers")
    rows["bird"] = rows["bird"] + 1000
    rows.drop(columns="species").to_csv(tmp_path / "anvers.csv", index=False)
    return rows


def test_a_new_domain_joins_the_run_itself(cli, fitted, anvers, tmp_path):
    before = shoal.load(fitted)
    ended = cli("update", "run", "anvers.csv", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert found["findings"] == [f"New domain Anvers, with {len(anvers)} rows."]
    assert found["looks_known"]  # penguins.csv is where the run found it
    assert {path.name for path in fitted.iterdir()} == KEPT
    after = shoal.load(fitted)
    assert after.domains_.tolist() == [*before.domains_.tolist(), "Anvers"]
    assert_array_equal(after.prevalence_[:-1], before.prevalence_)
    dream = before.prevalence_[before.domains_.tolist().index("Dream")]
    assert_allclose(after.prevalence_[-1], dream, atol=0.02)
    table = pd.read_csv(fitted / "prevalence.csv")
    assert_allclose(table["estimate"], after.prevalence_.ravel())
    assert table["lo"].notna().all()
    assert_array_equal(table["flag"].fillna(""), [""] * 9 + ["new"] * 3)
    rows = pd.read_parquet(fitted / "assignments.parquet")
    assert len(rows) == 342 + len(anvers)
    record = json.loads((fitted / RUN).read_text())
    assert record["files"] == digests(fitted)
    assert [one["path"] for one in record["learned_from"]] == [
        "penguins.csv",
        "anvers.csv",
    ]
    assert cli("predict", "run", "anvers.csv", "--out", "rows.csv").code == 0
    # and again: now all four domains are known, and nothing is new
    again = cli("update", "run", "anvers.csv", "--json")
    assert again.code == 0, again.stderr
    found = json.loads(again.stdout)["data"]
    assert found["findings"] == []
    assert found["domains"][0]["n_rows"] == len(anvers)
    record = json.loads((fitted / RUN).read_text())
    assert len(record["updates"]) == 2


def test_classes_of_then_follow_the_mix_of_now(cli, fitted, tmp_path):
    """Rows of then are classed as the updated model classes them."""
    table = pd.read_csv(tmp_path / "penguins.csv")
    new = table[(table["island"] == "Dream") & (table["species"] == "Adelie")]
    new.drop(columns="species").to_csv(tmp_path / "new.csv", index=False)
    quietly("update", "run", "new.csv", "--out", "after", "--before", "penguins.csv")
    model = shoal.load(tmp_path / "after")
    old = shoal.load(fitted)
    assert np.abs(model.prevalence_ - old.prevalence_).max() > 0.05
    rows = pd.read_parquet(tmp_path / "after" / "assignments.parquet")[:342]
    columns = [one["name"] for one in model.schema_["features"]]
    ids = rows["row_id"].astype(int)
    X = table.set_index("bird").loc[ids, columns].to_numpy()
    expected = model.predict_proba(X, rows["domain"].to_numpy())
    written = rows[[f"p_{name}" for name in model.class_names_]]
    assert_allclose(written, expected, atol=1e-5)
    ended = cli("diff", "run", "after", "--json", "--out", "diff")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    classes = expected.argmax(axis=1)
    was = old.predict(X, rows["domain"].to_numpy())
    assert found["n_moved"] == int((classes != was).sum())
    sure = [one for one in found["shares"] if one["sure"]]
    assert {one["domain"] for one in sure} <= {"Dream"}
    moved = pd.read_csv(tmp_path / "diff" / "moved.csv")
    assert len(moved.dropna()) == found["n_moved"]
    back = json.loads(cli("diff", "after", "run", "--json").stdout)["data"]
    there = {(one["domain"], one["after_class"]): one for one in found["shares"]}
    for one in back["shares"]:
        other = there[one["domain"], one["before_class"]]
        assert_allclose(one["difference"], -other["difference"])
        assert_allclose([one["low"], one["high"]], [-other["high"], -other["low"]])


def test_a_run_does_not_differ_from_itself(cli, fitted):
    ended = cli("diff", "run", "run", "--json")
    found = json.loads(ended.stdout)["data"]
    assert (ended.code, found["findings"], found["n_moved"]) == (0, [], 0)
    assert "Nothing differs." in cli("diff", "run", "run").stdout
    assert cli("name", "run", "--set", "c0=Adelie", "--quiet").code == 0
    named = json.loads(cli("diff", "run", "run", "--json").stdout)["data"]
    assert named["classes"][0] == {"before": "Adelie", "after": "Adelie", "alike": 1.0}


def test_names_survive_and_renamed_classes_are_told(cli, fitted, anvers, tmp_path):
    shutil.copytree(fitted, tmp_path / "first")
    quietly("name", "run", "--set", "c0=Adelie")
    quietly("update", "run", "anvers.csv")
    assert shoal.load(fitted).class_names_ == ["Adelie", "c1", "c2"]
    ended = cli("diff", "first", "run")
    assert ended.code == 0, ended.stderr
    assert "Class c0 is called Adelie." in ended.stdout
    assert "Domain Anvers is new." in ended.stdout


def test_all_rows_may_be_of_one_domain(cli, fitted, anvers, tmp_path):
    table = anvers.drop(columns=["species", "island"])
    table.to_csv(tmp_path / "place.csv", index=False)
    ended = cli("update", "run", "place.csv", "--domain-name", "Anvers")
    assert ended.code == 0, ended.stderr
    assert "New domain Anvers" in ended.stdout
    assert cli("update", "run", "place.csv", "--domain-name", "Anvers").code == 0
    record = json.loads((fitted / RUN).read_text())
    assert record["learned_from"][1]["domain"] == "Anvers"


def test_without_the_rows_of_then(cli, fitted, anvers, tmp_path):
    """What needs them is said to be missing; shares still add up, by the draws."""
    table = pd.read_csv(tmp_path / "penguins.csv")
    (tmp_path / "penguins.csv").unlink()
    ended = cli("update", "run", "anvers.csv", "--out", "after")
    assert ended.code == 0, ended.stderr
    assert "What classes look like was not compared" in ended.stdout
    table[table["island"] == "Biscoe"].to_csv(tmp_path / "biscoe.csv", index=False)
    ended = cli("update", "run", "biscoe.csv", "--out", "more")
    assert ended.code == 0, ended.stderr
    shares = pd.read_csv(tmp_path / "more" / "prevalence.csv")
    n_rows = shares[shares["domain"] == "Biscoe"]["n_rows"]
    assert set(n_rows) == {2 * int((table["island"] == "Biscoe").sum())}
    (fitted / "draws.npz").unlink()
    ended = cli("update", "run", "biscoe.csv", "--out", "again")
    assert (ended.code, "--before FILE" in ended.stderr) == (4, True)
    assert not (tmp_path / "again").exists()


@pytest.mark.slow
def test_a_class_joins_a_run(cli, tmp_path):
    """Penguins without Gentoos, then the Gentoos."""
    from shoal.datasets import load_penguins

    data = load_penguins(as_frame=True)
    frame = data.X.assign(island=data.domains)
    gentoo = data.labels == "Gentoo"
    # two halves of each island: as many domains as classes, and one more
    half = np.where(np.arange(len(frame)) % 2, "a", "b")
    frame["island"] = frame["island"].astype(str) + half
    frame[~gentoo].to_csv(tmp_path / "old.csv", index_label="bird")
    new = frame[gentoo | (data.domains == "Biscoe")].assign(island="Goudier")
    new.index += 1000
    new.to_csv(tmp_path / "new.csv", index_label="bird")
    quietly(*"fit old.csv --domain island --id bird --k 2 --bootstrap 5".split(),
            "--no-report", "--out", "run")  # fmt: skip
    ended = cli("update", "run", "new.csv", "--out", "after")
    assert ended.code == 0, ended.stderr
    assert 'New class "c2": ' in ended.stdout
    model = shoal.load(tmp_path / "after")
    assert model.class_names_ == ["c0", "c1", "c2"]
    rows = pd.read_parquet(tmp_path / "after" / "assignments.parquet")
    assert len(rows) == int((~gentoo).sum()) + len(new)
    there = rows[rows["domain"] == "Goudier"]
    assert (there["class"] == "c2").mean() > 0.6
    assert (rows[rows["domain"] != "Goudier"]["class"] != "c2").mean() > 0.97
    differs = cli("diff", "run", "after")
    assert "Class c2 is new." in differs.stdout


def test_killed_at_many_steps(fitted, anvers, tmp_path, monkeypatch):
    """The run is the old one or the new one, whole; the next command finds it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(fitted, tmp_path / "kept")
    seen, number, code = set(), 0, None

    def body():
        with pytest.raises(SystemExit) as end:
            main(["update", "run", "anvers.csv", "--quiet"])
        assert end.value.code == 0

    while code != DONE:
        shutil.rmtree(fitted)
        shutil.copytree(tmp_path / "kept", fitted)
        code = in_child(body, killed_at(number, tmp_path))
        assert code in (DONE, -signal.SIGKILL)
        run = settled(fitted)
        record = json.loads((run / RUN).read_text())
        assert record["files"] == digests(run)
        model = shoal.load(run / MODEL)
        assert len(model.domains_) == {"fit": 3, "update": 4}[record["command"]]
        seen.add(record["command"])
        number += 12
    assert seen == {"fit", "update"}
    assert number > 60


@pytest.mark.parametrize(
    ("arguments", "exit_code", "told"),
    [
        ("update run nowhere.csv", 3, "error[E101]"),
        (
            "update run anvers.csv --before nowhere.csv",
            3,
            'error[E101] no file "nowhere',
        ),
        ("update run/model anvers.csv --out run", 2, "error[E136]"),
        ("update alone anvers.csv", 2, 'error[E002] "alone" is a model without a run'),
        ("update run anvers.csv --domain-name ", 2, "--domain-name is empty"),
        ("diff run nowhere", 6, "error[E135]"),
        ("diff run alone", 6, "has no assignments of its model"),
        ("diff run other", 6, "have no row in common"),
        ("diff run run --out run --level 2", 2, "level"),
    ],
)
def test_bad_input_is_one_line(
    cli, fitted, anvers, tmp_path, arguments, exit_code, told
):
    shutil.copytree(fitted / "model", tmp_path / "alone")
    shutil.copytree(fitted, tmp_path / "other")
    rows = pd.read_parquet(fitted / "assignments.parquet")
    rows.assign(domain="X").to_parquet(tmp_path / "other" / "assignments.parquet")
    given = arguments.split(" ")
    ended = cli(*given)
    assert ended.code == exit_code, ended.stderr
    assert told in ended.stderr
