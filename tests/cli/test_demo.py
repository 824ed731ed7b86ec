"""The demo as a user meets it: tables, files, JSON, silence, Ctrl-C."""

import csv
import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner, Result

from shoal.cli._app import EXAMPLES, app
from shoal.cli._demo import DATASETS, demo
from shoal.cli._tables import percent, share_with_interval
from shoal.datasets import load_penguins
from shoal.metrics import matched_accuracy, true_prevalence

FILES = {
    "assignments.parquet",
    "class_counts.csv",
    "diagnostics.json",
    "draws.npz",
    "model",
    "new-place.csv",
    "penguins.csv",
    "prevalence.csv",
    "report.html",
    "run.json",
    "summary.json",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def run(folder: Path) -> Result:
    """The example that the help shows, run once."""
    with chdir(folder):
        return CliRunner().invoke(app, EXAMPLES[demo].split()[1:])


@pytest.fixture(scope="module")
def written(run: Result, folder: Path) -> Path:
    assert run.exit_code == 0, run.output
    return folder / "shoal-demo"


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
    rows = pd.read_parquet(written / "assignments.parquet")
    assert rows["domain"].tolist() == penguins.domains.tolist()
    accuracy = matched_accuracy(penguins.labels, rows["class"])
    assert accuracy >= 0.985
    score = json.loads((written / "summary.json").read_text())["score"]
    assert_allclose(score["accuracy"], accuracy)
    assert score["prevalence_error"] <= 0.02


def test_intervals_hold_the_truth(written: Path):
    """Nine intervals of 90%; the true shares are in every one of them."""
    penguins = load_penguins()
    truth, species, islands = true_prevalence(penguins.labels, penguins.domains)
    score = json.loads((written / "summary.json").read_text())["score"]
    for record in read_csv(written / "prevalence.csv"):
        name = score["matching"][record["class_id"]]
        share = truth[islands.index(record["domain"]), species.index(name)]
        numbers = as_numbers(record)
        assert numbers["lo"] <= numbers["estimate"] <= numbers["hi"]
        assert numbers["lo"] <= share <= numbers["hi"]


def test_prevalence_is_the_mean_of_the_assignments(written: Path):
    rows = pd.read_parquet(written / "assignments.parquet")
    for record in read_csv(written / "prevalence.csv"):
        here = rows[rows["domain"] == record["domain"]]
        assert len(here) == int(record["n_rows"])
        mean = here[f"p_{record['class_name']}"].mean()
        # exactly so at the optimum, of which the climb stops a little short
        assert_allclose(mean, float(record["estimate"]), atol=1e-3)


def test_data_are_those_of_the_package(written: Path):
    penguins = load_penguins()
    frame = pd.read_csv(written / "penguins.csv")
    assert_allclose(frame[penguins.feature_names], penguins.X)
    assert frame["island"].tolist() == penguins.domains.tolist()
    new = pd.read_csv(written / "new-place.csv")
    assert len(new) == (penguins.domains == "Dream").sum()
    assert not {"island", "species"} & set(new.columns)


# ---- what it prints --------------------------------------------------------------


def test_tables_and_csv_agree(run: Result, written: Path):
    shown = table_rows(run.stdout)
    records = read_csv(written / "prevalence.csv")
    for domain in ("Biscoe", "Dream", "Torgersen"):
        here = [record for record in records if record["domain"] == domain]
        shares = [share_with_interval(as_numbers(record)) for record in here]
        assert shown[domain] == [here[0]["n_rows"], *shares]


def test_other_methods_stand_beside_it(run: Result, written: Path):
    shown = table_rows(run.stdout)
    accuracy = {
        method: float(shown[method][0].removesuffix("%"))
        for method in (
            "shoal",
            "k-means",
            "Gaussian mixture",
            "DDFA as published",
            "most common label of each domain",
        )
    }
    assert max(accuracy, key=lambda method: accuracy[method]) == "shoal"
    score = json.loads((written / "summary.json").read_text())["score"]
    assert shown["shoal"] == [
        percent(score["accuracy"]),
        percent(score["prevalence_error"]),
    ]


def test_progress_and_warnings_go_to_stderr(run: Result):
    assert "[1/" in run.stderr
    assert "[1/" not in run.stdout
    assert "warning[W139]" in run.stderr
    assert "W139" not in run.stdout


def test_says_what_it_wrote(run: Result, written: Path):
    assert {path.name for path in written.iterdir()} == FILES
    for name in FILES:
        assert f"shoal-demo/{name}" in run.stdout
    assert "Open the report: shoal-demo/report.html" in run.stdout


def test_next_commands_work_as_printed(run: Result, written: Path, cli):
    lines = run.stdout.partition("Next:")[2].split("\n")
    commands = [line.strip() for line in lines if line.strip()]
    assert [command.split()[1] for command in commands] == ["fit", "predict", "adapt"]
    with chdir(written.parent):
        for command in commands:
            ended = cli(*shlex.split(command)[1:])
            assert ended.code == 0, ended.stderr
        again = Path("shoal-penguins") / "prevalence.csv"
        assert again.read_bytes() == (written / "prevalence.csv").read_bytes()


def test_json_is_one_document_and_the_bar_is_elsewhere(tmp_path: Path, written: Path):
    """And an earlier demo that nobody changed is replaced without asking."""
    shutil.copytree(written, tmp_path / "shoal-demo")
    (tmp_path / "shoal-demo" / "notes.txt").write_text("mine\n")
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
    assert {Path(name).name for name in document["files"]} == FILES
    assert document["seconds"] > 0
    # the same seed in another process gives the same shares; files hold 15 digits
    records = read_csv(written / "prevalence.csv")
    found = [record["estimate"] for record in document["data"]["prevalence"]]
    told = [float(record["estimate"]) for record in records]
    assert found == pytest.approx(told, rel=1e-14)
    assert "finding the classes" in seen
    assert "\x1b[" in seen  # a bar that redraws itself
    assert (tmp_path / "shoal-demo" / "notes.txt").read_text() == "mine\n"


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


def test_a_changed_demo_is_only_replaced_by_force(cli, written: Path, tmp_path: Path):
    shutil.copytree(written, tmp_path / "shoal-demo")
    changed = tmp_path / "shoal-demo" / "prevalence.csv"
    changed.write_text("mine\n")
    refused = cli("demo", "--quiet")
    assert refused.code == 2
    assert "error[E136]" in refused.stderr
    assert "prevalence.csv" in refused.stderr
    assert changed.read_text() == "mine\n"
    done = cli("demo", "--quiet", "--force")
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    assert changed.read_bytes() == (written / "prevalence.csv").read_bytes()


# ---- what stops it ---------------------------------------------------------------


def test_ctrl_c_leaves_nothing(tmp_path: Path):
    """While it works; test_fit.py presses it while files are written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "demo", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a job in the background of a script ignores Ctrl-C, and so would its children
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "[3/" in line:
            process.send_signal(signal.SIGINT)
            break
    out, _ = process.communicate()
    assert process.returncode == 130
    document = json.loads(out)
    assert document["status"] == "error"
    assert document["messages"][0]["code"] == "E003"
    assert list(tmp_path.iterdir()) == []


def test_unknown_data_are_named(cli):
    ended = cli("demo", "flowers")
    assert ended.code == 2
    assert 'no demo "flowers"' in ended.stderr
    assert "penguins and digits" in ended.stderr


def test_digits_are_dealt_to_sites():
    data = DATASETS["digits"]()
    mixes = pd.crosstab(data.frame["site"], data.frame["digit"], normalize="index")
    assert mixes.shape == (12, 10)
    assert np.linalg.cond(mixes) < 15
    assert data.images(0).dtype == np.uint8
    assert data.images(0).shape == (8, 8)
    assert np.isfinite(data.frame.filter(like="pixel").to_numpy()).all()


@pytest.mark.slow
def test_digits(cli, tmp_path: Path):
    """Ten digits on twelve sites, pictures in the report."""
    ended = cli("demo", "digits", "--json")
    assert ended.code == 0, ended.stderr
    found = json.loads(ended.stdout)["data"]
    assert found["n_classes"] == 10
    assert found["score"]["accuracy"] > 0.9
    assert found["score"]["accuracy"] > found["agreement"][1]["accuracy"]
    assert "data:image" in (tmp_path / "shoal-demo" / "report.html").read_text()
