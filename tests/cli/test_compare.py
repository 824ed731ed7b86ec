"""`shoal compare`: a run and a table of its domains in, effects and a forest out."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import shoal
from shoal.cli._current import drawn_intervals

ISLANDS = (
    "island,ice,coast,note\nDream,1.5,north,x\nBiscoe,3,south,\nTorgersen,2,south,y\n"
)


def write(path: Path, text: str = ISLANDS) -> Path:
    path.write_text(text)
    return path


def test_it_is_the_comparison_of_the_intervals_of_the_run(cli, fitted, tmp_path):
    write(tmp_path / "islands.csv")
    asked = ["--formula", "~ ice", "--domains", "islands.csv", "--seed", "4"]
    ended = cli("compare", "run", *asked, "--out", "why", "--json")
    assert ended.code == 0, ended.stderr
    document = json.loads(ended.stdout)
    assert [one["code"] for one in document["messages"]] == ["W171"]
    model = shoal.load(fitted)
    table = pd.read_csv(tmp_path / "islands.csv")
    found = shoal.compare(
        drawn_intervals(fitted, model), table, "~ ice", on="island", random_state=4
    )
    assert document["data"] == json.loads(json.dumps(found.to_dict()))
    written = pd.read_csv(tmp_path / "why" / "comparison.csv")
    assert_allclose(written["log_odds"], found.estimate.ravel())
    assert (
        json.loads((tmp_path / "why" / "comparison.json").read_text())
        == document["data"]
    )
    assert (tmp_path / "why" / "comparison.png").read_bytes()[:4] == b"\x89PNG"
    again = cli("compare", "run", *asked, "--out", "why")
    assert (again.code, "error[E136]" in again.stderr) == (2, True)


def test_draws_of_a_run_make_the_intervals_of_its_table(fitted):
    model = shoal.load(fitted)
    found = drawn_intervals(fitted, model)
    table = pd.read_csv(fitted / "prevalence.csv")
    assert_allclose(table["lo"], found.low.ravel(), atol=1e-6)
    assert_allclose(table["hi"], found.high.ravel(), atol=1e-6)
    whole = drawn_intervals(fitted, model.merge(1, 2)).draws
    # what two classes hold together, the third does not
    spread = np.sort(whole.var(axis=0), axis=1)
    assert_allclose(spread[:, 0], spread[:, 1], rtol=1e-9, atol=1e-15)
    assert_allclose(spread[:, 0], found.draws[..., 0].var(axis=0), atol=1e-15)


def test_it_says_what_is_shown(cli, fitted, tmp_path):
    write(
        tmp_path / "islands.tsv", ISLANDS.replace(",", "\t").replace("island", "place")
    )
    asked = ["--formula", "~ C(coast, south)", "--domains", "islands.tsv"]
    ended = cli("compare", "run", *asked, "--level", "0.8")
    assert ended.code == 0, ended.stderr
    assert "coast: north vs south" in ended.stdout
    assert "odds, times (80% interval)" in ended.stdout
    assert "warning[W171] 3 domains can be arranged in 3 ways only" in ended.stderr
    quiet = cli("compare", "run", *asked, "--quiet")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert cli("compare", "run", *asked, "--strict", "--quiet").code == 7


@pytest.mark.parametrize(
    ("options", "exit_code", "told"),
    [
        ("--formula ice --domains islands.csv", 3, r"E170\] formula must have one ~"),
        (
            "--formula ~note --domains islands.csv",
            3,
            r'E170\] "note" has no value for 1',
        ),
        ("--formula ~ice --domains island.csv", 3, r'E101\] no file .* "island.csv"'),
        ("--formula ~ice --domains islands.csv --on isle", 3, r'E107\] .*"isle"'),
        (
            "--formula ~ice --domains islands.csv --on coast",
            3,
            r'E170\] .*"south" 2 times',
        ),
        (
            "--formula ~ice --domains islands.csv --level 90",
            2,
            r"E002\] --level must be",
        ),
        ("--formula ~ice", 2, r"E002\].*--domains"),
    ],
)
def test_it_refuses_in_one_line(cli, fitted, tmp_path, options, exit_code, told):
    write(tmp_path / "islands.csv")
    ended = cli("compare", "run", *options.split())
    assert ended.code == exit_code, ended.stderr
    assert re.search(told, ended.stderr)


def test_a_run_without_draws_is_refused(cli, fitted, tmp_path):
    write(tmp_path / "islands.csv")
    (fitted / "draws.npz").unlink()
    ended = cli("compare", "run", "--formula", "~ ice", "--domains", "islands.csv")
    assert ended.code == 6
    assert 'error[E135] "run" has no draws.npz and prevalence.csv' in ended.stderr
