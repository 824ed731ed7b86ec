"""`shoal tree` and `shoal fit --tree`: splits, the cut model, the figure."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import shoal
from shoal.io import Schema


def test_it_is_the_tree_of_the_library_and_writes_the_cut(cli, fitted, tmp_path):
    ended = cli("tree", "run", "penguins.csv", "--cut", 2, "--out", "coarse", "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)["data"]
    model, frame = shoal.load(fitted), pd.read_csv("penguins.csv")
    X = Schema.from_dict(model.schema_).encode(frame)
    found = shoal.class_tree(model, X, frame["island"].to_numpy())
    kept = json.loads(json.dumps(found.to_dict()))
    for one, other in zip(document["splits"], kept["splits"], strict=True):
        assert (one["parts"], one["rows"]) == (other["parts"], other["rows"])
    # the species of one genus part last
    assert [len(one) for one in document["splits"][0]["parts"]] == [2, 1]
    assert document["splits"][0]["columns"][0][0] == "flipper_length_mm"
    assert document["splits"][1]["columns"][0][0] == "bill_length_mm"
    assert pd.read_csv("coarse/tree.csv")["n_classes"].tolist() == [2, 3]
    assert json.loads((tmp_path / "coarse" / "tree.json").read_text()) == document
    assert (tmp_path / "coarse" / "tree.png").read_bytes()[:4] == b"\x89PNG"
    cut = shoal.load(tmp_path / "coarse")
    assert_allclose(cut.prevalence_, found.cut(2).prevalence_)
    assert cli("predict", "coarse", "penguins.csv", "--out", "-").code == 0
    again = cli("tree", "run", "penguins.csv", "--out", "coarse")
    assert (again.code, "error[E136]" in again.stderr) == (2, True)


def test_splits_are_shown(cli, fitted):
    ended = cli("tree", "run", "penguins.csv")
    assert ended.code == 0, ended.stderr
    assert re.search(r"│ +3 │ c\d \| c\d", ended.stdout)
    assert "Columns: the first part less the second" in ended.stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--cut 4 --out coarse", r"E002\] --cut 4 is more than the 3 classes"),
        ("--cut 1 --out coarse", r"E002\] --cut must be"),
        ("--cut 2", r"E002\] --cut writes a model, and --out does not say where"),
    ],
)
def test_it_refuses_in_one_line(cli, fitted, options, told):
    ended = cli("tree", "run", "penguins.csv", *options.split())
    assert ended.code == 2, ended.stderr
    assert re.search(told, ended.stderr)


def test_the_report_of_a_fit_has_the_tree(cli, fitted, tmp_path):
    asked = "fit penguins.csv --domain island --label species --id bird --k 3 --tree"
    ended = cli(*asked.split(), "--bootstrap", 5, "--out", "with-tree", "--quiet")
    assert ended.code == 0, ended.stderr
    summary = json.loads((tmp_path / "with-tree" / "summary.json").read_text())
    tree = summary["tree"]
    assert [one["n_classes"] for one in tree["splits"]] == [2, 3]
    assert sum(tree["splits"][0]["rows"]) == summary["size"]["rows"]
    page = (tmp_path / "with-tree" / "report.html").read_text()
    figure = page[page.index('id="tree-title"') :]
    figure = figure[: figure.index("</svg>")]
    assert set(re.findall(r'class="flow (\w+)"', figure)) == {"k0", "k1", "k2", "grey"}
    shown = re.findall(r"([\d,]+) rows</title>", figure)
    sizes = {size for one in tree["splits"] for size in one["rows"]}
    assert {int(one.replace(",", "")) for one in shown} >= sizes
    assert "From two classes to all" not in (fitted / "report.html").read_text()
    assert np.isclose(tree["splits"][1]["agreement"], 1.0)
