"""The demo as a user meets it: tables, files, JSON, silence, Ctrl-C."""

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner, Result

from shoal.cli.app import EXAMPLES, app
from shoal.cli.demo import FILES, NEXT, demo, percent, share_with_interval
from shoal.datasets import load_penguins
from shoal.metrics import matched_accuracy, prevalence_error, true_prevalence


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def run(folder: Path) -> Iterator[Result]:
    """The example that the help shows, run once."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield CliRunner().invoke(app, EXAMPLES[demo].split()[1:])
    finally:
        os.chdir(before)


@pytest.fixture(scope="module")
def written(run: Result, folder: Path) -> Path:
    assert run.exit_code == 0, run.output
    return folder / "penguins"


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def as_numbers(record: dict[str, str]) -> dict[str, float]:
    return {name: float(record[name]) for name in ("estimate", "lo", "hi", "level")}


def table_rows(text: str) -> dict[str, list[str]]:
    """Cells of the printed tables by their first cell."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]
        if cells:
            found[cells[0]] = cells[1:]
    return found


# ---- what it finds ---------------------------------------------------------------


def test_species_are_found_from_islands_alone(written: Path):
    penguins = load_penguins()
    rows = read_csv(written / "assignments.csv")
    classes = [row["class_id"] for row in rows]
    assert [row["domain"] for row in rows] == penguins.domains.tolist()
    accuracy = matched_accuracy(penguins.labels, classes)
    assert accuracy >= 0.985
    summary = json.loads((written / "summary.json").read_text())["data"]
    ours = summary["agreement"][0]
    assert_allclose(ours["accuracy"], accuracy)
    assert ours["prevalence_error"] <= 0.02


def test_prevalence_error_follows_from_the_csv(written: Path):
    penguins = load_penguins()
    truth, species, islands = true_prevalence(penguins.labels, penguins.domains)
    rows = read_csv(written / "prevalence.csv")
    assert [row["domain"] for row in rows[::3]] == islands
    table = np.array([float(row["estimate"]) for row in rows]).reshape(3, -1)
    summary = json.loads((written / "summary.json").read_text())["data"]
    ours = summary["agreement"][0]
    matching = [ours["species"][f"c{index}"] for index in range(table.shape[1])]
    error = prevalence_error(truth, table, matching=matching, label_names=species)
    assert_allclose(error, ours["prevalence_error"])


def test_intervals_hold_the_truth(written: Path):
    """Nine intervals of 90%; the true shares are in every one of them."""
    penguins = load_penguins()
    truth, species, islands = true_prevalence(penguins.labels, penguins.domains)
    summary = json.loads((written / "summary.json").read_text())["data"]
    for record in read_csv(written / "prevalence.csv"):
        name = summary["agreement"][0]["species"][record["class_id"]]
        share = truth[islands.index(record["domain"]), species.index(name)]
        numbers = as_numbers(record)
        assert numbers["lo"] <= numbers["estimate"] <= numbers["hi"]
        assert numbers["lo"] <= share <= numbers["hi"]


def test_prevalence_is_the_mean_of_the_assignments(written: Path):
    rows = read_csv(written / "assignments.csv")
    for record in read_csv(written / "prevalence.csv"):
        here = [row for row in rows if row["domain"] == record["domain"]]
        assert len(here) == int(record["n_rows"])
        mean = np.mean([float(row[f"p_{record['class_id']}"]) for row in here])
        # exactly so at the optimum, of which the climb stops a little short
        assert_allclose(mean, float(record["estimate"]), atol=1e-3)


def test_other_methods_stand_beside_it(written: Path):
    summary = json.loads((written / "summary.json").read_text())["data"]
    accuracy = {row["method"]: row["accuracy"] for row in summary["agreement"]}
    assert set(accuracy) == {
        "shoal",
        "k-means",
        "Gaussian mixture",
        "DDFA as published",
        "most common species of each island",
    }
    assert max(accuracy, key=lambda method: accuracy[method]) == "shoal"


# ---- what it prints --------------------------------------------------------------


def test_tables_and_csv_agree(run: Result, written: Path):
    shown = table_rows(run.stdout)
    records = read_csv(written / "prevalence.csv")
    for domain in ("Biscoe", "Dream", "Torgersen"):
        here = [record for record in records if record["domain"] == domain]
        shares = [share_with_interval(as_numbers(record)) for record in here]
        assert shown[domain] == [here[0]["n_rows"], *shares]


def test_agreement_table_and_summary_agree(run: Result, written: Path):
    shown = table_rows(run.stdout)
    summary = json.loads((written / "summary.json").read_text())["data"]
    for record in summary["agreement"]:
        error = record["prevalence_error"]
        expected = [
            percent(record["accuracy"]),
            "" if error is None else percent(error),
        ]
        assert shown[record["method"]] == expected


def test_progress_and_warnings_go_to_stderr(run: Result):
    assert "[1/" in run.stderr
    assert "[1/" not in run.stdout
    assert "warning[W139]" in run.stderr
    assert "W139" not in run.stdout


def test_says_what_it_wrote(run: Result, written: Path):
    assert sorted(path.name for path in written.iterdir()) == sorted(FILES)
    for name in FILES:
        assert f"penguins/{name}" in run.stdout


def test_next_lines_run(run: Result):
    scope: dict[str, object] = {}
    for line in NEXT:
        assert line in run.stdout
        exec(line, scope)
    assert scope["model"].prevalence_.shape == (3, 3)


def test_json_is_one_document_and_the_bar_is_elsewhere(tmp_path: Path, written: Path):
    keyboard, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "demo", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=terminal,
        text=True,
    )
    os.close(terminal)
    seen = read_terminal(keyboard)
    out, _ = process.communicate()
    assert process.returncode == 0
    document = json.loads(out)
    assert document["schema"] == "shoal/1"
    assert (document["command"], document["status"]) == ("demo", "warning")
    assert [message["code"] for message in document["messages"]] == ["W139"]
    assert document["data"]["verdict"] == "caution"
    assert document["files"] == [f"shoal-demo/{name}" for name in FILES]
    assert document["seconds"] > 0
    # the same seed in another process gives the same bits of ours; scikit-learn's own
    # models may differ in the last digit
    before = json.loads((written / "summary.json").read_text())["data"]
    found = document["data"]
    for ours, theirs in zip(
        found.pop("agreement"), before.pop("agreement"), strict=True
    ):
        assert_allclose(ours["accuracy"], theirs["accuracy"])
    assert found == before
    assert "DomainMixture" in seen
    assert "\x1b[" in seen  # a bar that redraws itself


def read_terminal(keyboard: int) -> str:
    """All that was written to a terminal until its last writer left."""
    seen = b""
    try:
        while part := os.read(keyboard, 4096):
            seen += part
    except OSError:  # Linux says so when nobody holds the other end any more
        pass
    finally:
        os.close(keyboard)
    return seen.decode()


def test_quiet_and_force(shoal, tmp_path: Path, written: Path):
    target = tmp_path / "shoal-demo"
    target.mkdir()
    (target / "prevalence.csv").write_text("mine\n")
    (target / "notes.txt").write_text("mine\n")
    refused = shoal("demo", "--quiet")
    assert refused.returncode == 2
    assert "error[E136]" in refused.stderr
    assert "hint: add --force" in refused.stderr
    assert (target / "prevalence.csv").read_text() == "mine\n"
    done = shoal("demo", "--quiet", "--force")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (target / "notes.txt").read_text() == "mine\n"
    for name in ("prevalence.csv", "assignments.csv"):
        assert (target / name).read_bytes() == (written / name).read_bytes()


# ---- what stops it ---------------------------------------------------------------


def test_ctrl_c_leaves_nothing(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "demo", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "[2/" in line:
            process.send_signal(signal.SIGINT)
            break
    out, _ = process.communicate()
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == "error"
    assert document["messages"][0]["code"] == "E003"
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way(shoal, tmp_path: Path):
    (tmp_path / "results").write_text("a file\n")
    for target in ("results", "results/deeper"):
        failed = shoal("demo", "--out", target)
        assert failed.returncode == 3
        assert "error[E140]" in failed.stderr
        assert failed.stdout == ""
    assert (tmp_path / "results").read_text() == "a file\n"


def test_a_negative_seed_is_wrong_usage(shoal):
    failed = shoal("demo", "--seed", "-1")
    assert failed.returncode == 2
    assert "error[E002]" in failed.stderr
    assert "--seed" in failed.stderr
