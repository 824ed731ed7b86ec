"""`shoal predict --explain`: why rows are of their class, in a file beside them."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import shoal


def test_the_most_doubtful_rows_are_explained(cli, fitted, tmp_path):
    asked = ["predict", "run", "penguins.csv", "--explain", "3", "--json"]
    ended = cli(*asked)
    assert ended.code == 0, ended.stderr
    files = json.loads(ended.stdout)["files"]
    assert files == ["penguins-assignments.parquet", "penguins-assignments-why.csv"]
    rows = pd.read_parquet(tmp_path / files[0])
    why = pd.read_csv(tmp_path / files[1])
    doubtful = rows.sort_values("margin", kind="stable")["row_id"].astype(str)[:3]
    assert list(why["row_id"].astype(str).unique()) == list(doubtful)
    model = shoal.load(fitted)
    table = pd.read_csv(tmp_path / "penguins.csv").set_index("bird")
    for name, own in why.groupby("row_id"):
        assert_allclose(own["nats"].sum(), np.log(own["p"] / own["p_other"]).iloc[0])
        line = rows[rows["row_id"].astype(str) == str(name)].iloc[0]
        assert own["class"].iloc[0] == line["class"]
        columns = [part for part in own["part"] if not part.startswith("(")]
        shown = own["value"][own["part"].isin(columns)].astype(float)
        assert_allclose(shown, table.loc[name, columns].to_numpy(dtype=float))
        x = table.loc[name].drop(["island", "species"]).to_numpy(dtype=float)
        found = model.explain(x, line["domain"])
        assert_allclose(own["nats"], found.to_frame()["nats"])
    assert cli(*asked).code == 2  # both files are there
    assert cli(*asked, "--force").code == 0


def test_rows_are_chosen_by_id(cli, fitted, tmp_path):
    table = pd.read_csv(tmp_path / "penguins.csv")
    some = table["bird"].astype(str)[[7, 2]].tolist()
    chosen = [part for one in some for part in ("--explain-id", one)]
    ended = cli("predict", "run", "penguins.csv", *chosen, "--out", "rows.csv")
    assert ended.code == 0, ended.stderr
    assert f"Row {some[1]}: c" in ended.stdout
    why = pd.read_csv(tmp_path / "rows-why.csv")
    assert set(why["row_id"].astype(str)) == set(some)
    pooled = cli(
        *("predict", "run", "penguins.csv", "--pooled", *chosen, "--out", "all.csv")
    )
    assert pooled.code == 0, pooled.stderr
    mix = shoal.load(fitted).prevalence_.mean(axis=0)
    told = pd.read_csv(tmp_path / "all-why.csv")
    first = told[told["part"] == "(domain)"].iloc[0]
    classes = [int(first[name][1:]) for name in ("class", "other")]
    assert_allclose(first["nats"], np.log(mix[classes[0]] / mix[classes[1]]))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--explain-id nobody", 'no row has the id "nobody" of --explain-id'),
        ("--explain 2 --redact", "and --redact hides single rows"),
        ("--explain 2 --out -", "and --out - prints one table"),
        ("--explain 2 --engine local", "and these rows are read in parts"),
    ],
)
def test_what_cannot_be_explained_leaves_nothing(cli, fitted, tmp_path, options, told):
    source = "penguins.csv"
    if "engine" in options:
        pd.read_csv(tmp_path / source).to_parquet(tmp_path / "penguins.parquet")
        source = "penguins.parquet"
    before = sorted(one.name for one in tmp_path.iterdir())
    ended = cli("predict", "run", source, *options.split())
    assert ended.code == 2
    assert f"error[E002]: {told}" in ended.stderr or told in ended.stderr
    assert sorted(one.name for one in tmp_path.iterdir()) == before
