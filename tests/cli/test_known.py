"""``shoal fit --known``: what is known of some rows, from a column to the report."""

import json

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.io import read


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 240)
    site = np.array(["north", "south"])[(rng.random(240) < 0.2 + 0.6 * labels) * 1]
    seen = np.where(np.arange(240) < 40, np.array(["oak", "elm"])[labels], "")
    frame = pd.DataFrame(
        {
            "site": site,
            "seen": seen,
            "width": rng.normal(size=240) + 4 * labels,
            "height": rng.normal(size=240) - 4 * labels,
        }
    )
    frame.to_csv(tmp_path / "trees.csv", index=False)
    return frame, np.array(["oak", "elm"])[labels]


ASK = ("--domain", "site", "--known", "seen", "--k", "2", "--bootstrap", "5")


def test_known_rows_name_the_classes_and_are_told_of(cli, table, tmp_path):
    frame, truth = table
    ended = cli("fit", "trees.csv", *ASK, "--out", "run", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert "The class of 40 rows was known. Left out in turn, " in found["evidence"]
    model = shoal.load(tmp_path / "run")
    assert set(model.class_names_) == {"oak", "elm"}
    X = frame[["width", "height"]].to_numpy()
    classes = model.predict(X, frame["site"].to_numpy())
    assert (np.asarray(model.class_names_)[classes] == truth).mean() > 0.98
    assert model.known_.n_rows == 40
    assert "was known. Left out" in (tmp_path / "run" / "report.html").read_text()


def test_the_column_of_known_classes_is_no_feature(table):
    frame, _ = table
    told = read(frame, domain="site", known="seen")
    assert told.feature_names == ["width", "height"]
    assert told.known[:40].tolist() == frame["seen"][:40].tolist()
    assert set(told.known[40:]) == {None}
    role = {column.name: column.role for column in told.columns}
    assert role["seen"] == "known"
    numbers = frame.assign(seen=np.where(frame["seen"] == "", -1, 3))
    assert set(read(numbers, domain="site", known="seen").known) == {"3", None}


@pytest.mark.parametrize(
    ("code", "options", "message"),
    [
        (2, ["--label", "seen"], '"seen" is named by --known and by --label'),
        (2, ["--features", "seen"], '"seen" is named by --known and by --features'),
        (2, ["--engine", "local"], "--known is for rows in memory"),
        (3, ["--known", "sen"], 'no column "sen" (known)'),
    ],
)
def test_what_known_cannot_be_is_refused(cli, table, tmp_path, code, options, message):
    table[0].to_parquet(tmp_path / "trees.parquet")
    ended = cli("fit", "trees.parquet", *ASK, *options)
    assert ended.code == code
    assert message in ended.stderr.replace("\n", " ")


def test_known_is_not_for_words(cli, tmp_path):
    words = ["ash birch cedar", "birch cedar fir", "ash fir oak", "oak elm fir"] * 10
    table = pd.DataFrame({"site": ["a", "b"] * 20, "said": words, "seen": ["x"] * 40})
    table.to_csv(tmp_path / "words.csv", index=False)
    ended = cli("fit", "words.csv", *ASK, "--text", "said")
    assert ended.code == 2
    assert "--known is for columns of numbers and categories" in ended.stderr
