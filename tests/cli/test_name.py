"""What `shoal name` leaves in a folder, and how it refuses."""

import json
from pathlib import Path

import pandas as pd
import pytest

import shoal as package
from shoal.cli._name import split_merge
from shoal.datasets._generated import make_latent_shift

# ---- intervals where there are no draws ------------------------------------------


@pytest.fixture
def adapted(cli, fitted: Path, tmp_path: Path) -> Path:
    """A copy of the run that knows one more domain, and no draws."""
    new = ("penguins.csv", "--domain-name", "New", "--level", "0.8", "--out", "v1")
    assert cli("adapt", "run", *new).code == 0
    return tmp_path / "v1"


def test_names_leave_the_intervals_of_an_adapted_model(cli, adapted: Path, tmp_path):
    first = (adapted / "prevalence.csv").read_bytes()
    before = pd.read_csv(adapted / "prevalence.csv")
    assert cli("name", "v1", "--set", "c0=Cold").code == 0
    after = pd.read_csv(adapted / "prevalence.csv")
    assert after["class_name"].unique().tolist() == ["Cold", "c1", "c2"]
    rest = before.columns.drop("class_name")
    pd.testing.assert_frame_equal(after[rest], before[rest])
    assert after["level"].unique().tolist() == [0.9, 0.8]

    assert cli("adapt", "v1", "penguins.csv", "--domain-name", "B").code == 0
    chained = pd.read_csv(tmp_path / "v1-B" / "prevalence.csv")
    pd.testing.assert_frame_equal(chained[:12], after)
    assert cli("name", "v1", "--undo").code == 0
    assert (adapted / "prevalence.csv").read_bytes() == first


def test_a_merge_leaves_only_its_own_class_without_interval(
    cli, adapted: Path, tmp_path: Path
):
    first = (adapted / "prevalence.csv").read_bytes()
    before = pd.read_csv(adapted / "prevalence.csv")
    assert cli("name", "v1", "--merge", "c0,c2=Small").code == 0
    after = pd.read_csv(adapted / "prevalence.csv")
    small = after["class_name"] == "Small"
    interval = ["lo", "hi", "level"]
    assert after.loc[small, interval].isna().all(axis=None)
    kept = before[before["class_id"] == "c1"]
    assert (after.loc[~small, interval].to_numpy() == kept[interval].to_numpy()).all()

    assert cli("name", "v1", "--set", "Small=Tiny").code == 0
    assert cli("adapt", "v1", "penguins.csv", "--domain-name", "B").code == 0
    for _ in range(2):
        assert cli("name", "v1-B", "--undo").code == 0
        assert cli("name", "v1", "--undo").code == 0
    assert (adapted / "prevalence.csv").read_bytes() == first
    table = pd.read_csv(tmp_path / "v1-B" / "prevalence.csv")
    pd.testing.assert_frame_equal(table[:12], before)
    # c1 of B was seen by itself, its other classes only as one
    assert table[12:]["lo"].notna().tolist() == [False, True, False]


def test_a_table_that_somebody_changed_gives_no_interval(cli, adapted: Path, tmp_path):
    table = pd.read_csv(adapted / "prevalence.csv")
    table.loc[0, "estimate"] = 0.123
    table.to_csv(adapted / "prevalence.csv", index=False)
    assert cli("adapt", "v1", "penguins.csv", "--domain-name", "B").code == 0
    found = pd.read_csv(tmp_path / "v1-B" / "prevalence.csv")["lo"]
    assert found.isna().tolist() == [True] + [False] * 14
    (adapted / "prevalence.csv").write_text("mine\n1\n")
    assert cli("adapt", "v1", "penguins.csv", "--domain-name", "C").code == 0


# ---- class_counts.csv ------------------------------------------------------------


def test_counts_follow_names_and_merges(cli, fitted: Path):
    path = fitted / "class_counts.csv"
    first, before = path.read_bytes(), pd.read_csv(path)
    ended = cli("name", "run", "--set", "c1=Gentoo", "--json")
    assert "run/class_counts.csv" in json.loads(ended.stdout)["files"]
    assert pd.read_csv(path).columns.tolist() == ["domain", "c0", "Gentoo", "c2"]
    second = path.read_bytes()
    ended = cli("name", "run", "--merge", "c0,c2=Small", "--json")
    assert list(json.loads(ended.stdout)["data"]["history"][1]) == [
        "step", "groups", "before", "after",
    ]  # fmt: skip
    merged = pd.read_csv(path)
    assert merged.columns.tolist() == ["domain", "Small", "Gentoo"]
    assert (merged["Small"] == before["c0"] + before["c2"]).all()
    assert (merged["Gentoo"] == before["c1"]).all()
    assert cli("name", "run", "--undo").code == 0
    assert path.read_bytes() == second
    assert cli("name", "run", "--undo").code == 0
    assert path.read_bytes() == first


def test_counts_of_groups_and_of_a_class_called_group(cli, fitted: Path, tmp_path):
    rows = pd.read_csv(tmp_path / "penguins.csv").drop(columns=["bird", "species"])
    rows["sea"] = rows["island"].map(lambda name: "far" if name == "Dream" else "near")
    rows.to_csv(tmp_path / "g.csv", index=False)
    fit = ("fit", "g.csv", "--domain", "island", "--group", "sea", "--k", "3")
    assert cli(*fit, "--bootstrap", "2", "--no-report", "--out", "g").code == 0
    before = pd.read_csv(tmp_path / "g" / "class_counts.csv", header=None)
    assert cli("name", "g", "--set", "c0=group").code == 0
    after = pd.read_csv(tmp_path / "g" / "class_counts.csv", header=None)
    assert after.loc[0].tolist() == ["domain", "group", "group", "c1", "c2"]
    assert after[1:].equals(before[1:])


def test_shares_are_of_the_average_domain(cli, fitted: Path):
    """Domains count alike in them, however many rows each has."""
    ended = cli("name", "run", "--list")
    assert "share of the average domain" in ended.stdout


def test_the_command_says_what_keeps_the_old_classes(cli, fitted: Path):
    shown = cli("name", "run", "--set", "c0=Adelie").stdout
    kept = "summary.json, diagnostics.json, assignments.parquet"
    assert f"These keep the classes of the fit: {kept}." in shown


# ---- ids and names ---------------------------------------------------------------


def test_ids_and_names_are_not_crossed_by_a_merge(cli, tmp_path: Path):
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=4, separation=4.0, random_state=1
    )
    pd.DataFrame(X).assign(site=domains).to_csv(tmp_path / "x.csv", index=False)
    fit = ("fit", "x.csv", "--domain", "site", "--k", "3", "--bootstrap", "2")
    assert cli(*fit, "--out", "mg").code == 0
    assert cli("name", "mg", "--merge", "c1,c2=Sick").code == 0
    table = pd.read_csv(tmp_path / "mg" / "prevalence.csv").head(2)
    assert table["class_id"].tolist() == ["c0", "c1"]
    assert table["class_name"].tolist() == ["Sick", "c1"]
    counts = pd.read_csv(tmp_path / "mg" / "class_counts.csv")
    assert counts.columns.tolist() == ["domain", "Sick", "c1"]
    assert cli("name", "mg", "--set", "c0=Foo").code == 0
    assert package.load(tmp_path / "mg").class_names_ == ["Foo", "c1"]

    again = cli(*fit, "--names", "mg", "--no-report", "--out", "again")
    assert again.code == 0, again.stderr
    assert package.load(tmp_path / "again").class_names_ == ["c0", "c1", "c2"]


# ---- what is refused -------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--undo"], "nothing to undo", "--list` shows the classes as they are"),
        (["--set", "c9=x"], "no class 'c9'; classes are c0, c1, c2", "its id or its"),
        (["--merge", "c0,c9=x"], "no class 'c9'; classes are c0, c1, c2", "its id or"),
        (["--merge", "c0,c1,c2=x"], "would leave one class", "merge fewer classes"),
        (["--merge", "c0,c0=x"], "two different classes, got c0, c0", "that differ"),
        (["--merge", "c0,c1=c2"], "got name='c2'", "choose another name"),
        (["--merge", ""], '"" names fewer than two', "c2,c5=Gentoo"),
        (["--set", "c0=c1"], "c0 'c1', the id of another class", "no two alike"),
        (["--set", "c0=x", "--set", "c1=x"], "got 'x' twice", "no two alike"),
        (["--from", "empty.json"], 'all names in "empty.json" are empty', '{"c0":'),
    ],
)
def test_each_refusal_has_its_own_hint(
    cli, fitted: Path, tmp_path: Path, arguments, message, hint
):
    (tmp_path / "empty.json").write_text('{"c0": ""}')
    ended = cli("name", "run", *arguments)
    assert ended.code == 2
    error, advice = ended.stderr.splitlines()
    assert error.startswith("error[E002]")
    assert message in error
    assert hint in advice


@pytest.mark.parametrize("other", [["--undo"], ["--list"], ["--merge", "c0,c1=B"]])
def test_steps_exclude_each_other(cli, fitted: Path, other):
    ended = cli("name", "run", "--set", "c0=A", *other)
    assert ended.code == 2
    assert f"E002] --set and {other[0]} exclude each other" in ended.stderr
    assert package.load(fitted).class_names_[0] == "c0"


def test_quotes_protect_a_comma_in_a_name(cli, fitted: Path):
    assert cli("name", "run", "--set", "c2=Flu, A").code == 0
    assert cli("name", "run", "--merge", 'c0,"Flu, A"=Ill, mostly').code == 0
    assert package.load(fitted).class_names_ == ["Ill, mostly", "c1"]


@pytest.mark.parametrize(
    ("given", "classes", "name"),
    [
        ("c0,c1", ["c0", "c1"], None),
        ("c0, c1 = x=y", ["c0", "c1"], "x=y"),
        ('"a=b","c, d"=x', ["a=b", "c, d"], "x"),
        ('c0,5"=x', ["c0", '5"'], "x"),
        ('"say ""no""",c1=x', ['say "no"', "c1"], "x"),
    ],
)
def test_merges_are_split_as_written(given, classes, name):
    assert split_merge(given) == (classes, name)


def test_a_merge_says_how_to_draw_it_as_one(cli, fitted: Path):
    ended = cli("name", "run", "--merge", "c0,c2=Small")
    assert "warning[W162] merged classes are drawn apart" in ended.stderr
    assert "`shoal report RUN DATA`" in ended.stderr
