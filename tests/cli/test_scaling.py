"""The commands on data that are read in parts: the same answers as in memory."""

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from shoal.datasets import make_latent_shift

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A folder of two files, and the same rows in one file."""
    X, domains, labels = make_latent_shift(
        2_400,
        n_classes=2,
        n_domains=3,
        n_features=3,
        separation=2.0,
        alpha=0.5,
        random_state=0,
    )
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["site"] = np.array(["north", "south", "west"])[domains]
    frame["kind"] = labels
    folder = tmp_path_factory.mktemp("rows")
    (folder / "parts").mkdir()
    frame.iloc[:1_500].to_parquet(folder / "parts" / "0.parquet", row_group_size=500)
    frame.iloc[1_500:].to_parquet(folder / "parts" / "1.parquet", row_group_size=500)
    frame.to_parquet(folder / "whole.parquet")
    return folder


FIT = ["--domain", "site", "--label", "kind", "--k", "2", "--bootstrap", "3"]


def read_json(ended):
    assert ended.code == 0, ended.stderr + ended.stdout
    return json.loads(ended.stdout)


def test_a_folder_is_fitted_in_parts_as_the_file_in_memory(cli, rows, tmp_path):
    """Few rows are all in the sample: the very same model, by shift as in parts."""
    parts = read_json(cli("fit", rows / "parts", *FIT, "--out", "parts", "--json"))
    told = ("--by", "shift", "--out", "whole", "--json")
    whole = read_json(cli("fit", rows / "whole.parquet", *FIT, *told))
    assert parts["data"]["prevalence"] == whole["data"]["prevalence"]
    assert parts["data"]["score"] == whole["data"]["score"]
    assert parts["data"]["scale"]["rows"] == 2_400
    assert whole["data"]["scale"] is None
    one, other = (
        pd.read_parquet(tmp_path / name / "assignments.parquet")
        for name in ("parts", "whole")
    )
    pd.testing.assert_frame_equal(one, other)
    page = (tmp_path / "parts" / "report.html").read_text()
    assert "Rows sampled" in page
    assert "Rows sampled" not in (tmp_path / "whole" / "report.html").read_text()


def test_all_rows_are_counted_and_a_sample_is_looked_at(cli, rows, tmp_path):
    ended = cli(
        "fit", rows / "whole.parquet", *FIT, "--engine", "local", "--sample", "600",
        "--workers", "1", "--out", "run",
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    assert "2,400 rows in 1 parts; learned from a sample of 600" in ended.stdout
    assert "count domains" in ended.stdout
    written = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    assert written["row_id"].tolist() == list(range(1, 2_401))
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["size"]["rows"], summary["size"]["sampled"]) == (2_400, 600)
    assert sum(one["rows"] for one in summary["domains"]) == 2_400
    shown = pd.read_csv(tmp_path / "run" / "prevalence.csv")
    assert shown["n_rows"].unique().tolist() == [800]
    counts = pd.read_csv(tmp_path / "run" / "class_counts.csv", index_col="domain")
    expected = pd.crosstab(written["domain"], written["class"])
    assert (counts == expected).all(axis=None)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "600, spread evenly over the domains" in page
    assert "Cost of “learn”" in page
    diagnosis = json.loads((tmp_path / "run" / "diagnostics.json").read_text())
    assert diagnosis["numbers"]["n_rows"] == 2_400


@pytest.fixture
def model(cli, rows):
    options = ["--engine", "local", "--sample", "900", "--workers", "1", "--no-report"]
    assert cli("fit", rows / "parts", *FIT, *options, "--out", "run").code == 0
    return "run"


def test_predict_adapt_and_diagnose_take_a_folder(cli, rows, model, tmp_path):
    parts = read_json(
        cli("predict", model, rows / "parts", "--out", "p.parquet", "--json")
    )
    whole = read_json(
        cli("predict", model, rows / "whole.parquet", "--out", "w.parquet", "--json")
    )
    assert parts["data"] == whole["data"]
    one, other = (
        pd.read_parquet(tmp_path / name) for name in ("p.parquet", "w.parquet")
    )
    pd.testing.assert_frame_equal(one, other)
    again = cli("predict", model, rows / "parts", "--out", "p.parquet")
    assert again.code == 2
    assert "E136" in again.stderr
    forced = cli("predict", model, rows / "parts", "--out", "p.parquet", "--force")
    assert forced.code == 0, forced.stderr

    name = ["--domain-name", "new", "--json"]
    parts = read_json(cli("adapt", model, rows / "parts", *name, "--out", "a"))
    whole = read_json(cli("adapt", model, rows / "whole.parquet", *name, "--out", "b"))
    assert parts["data"] == whole["data"]

    asked = ["--model", model, "--permutations", "2", "--json"]
    parts = read_json(cli("diagnose", rows / "parts", *asked))
    assert parts["data"]["numbers"]["n_rows"] == 2_400
    fresh = ["--domain", "site", "--drop", "kind", "--k", "2", "--permutations", "2"]
    options = ["--sample", "600", "--engine", "local", "--json"]
    found = read_json(cli("diagnose", rows / "parts", *fresh, *options))
    assert found["data"]["numbers"]["n_rows"] == 2_400


def test_finished_parts_are_kept_where_asked(cli, rows, tmp_path):
    options = [*FIT, "--engine", "local", "--sample", "600", "--checkpoint", "kept"]
    first = read_json(cli("fit", rows / "parts", *options, "--out", "a", "--json"))
    again = read_json(cli("fit", rows / "parts", *options, "--out", "b", "--json"))
    assert first["data"]["prevalence"] == again["data"]["prevalence"]
    stages = again["data"]["scale"]["stages"]
    assert stages[-1]["stage"] == "predict"
    assert all(one["resumed"] for one in stages)


KILLED = """
import os, signal, sys
from shoal.cli import main
from shoal.scale._running import Running

tell = Running.tell
def kill(running, name, share):
    tell(running, name, share)
    if name == "predict" and share >= 0.5:
        os.kill(os.getpid(), signal.SIGKILL)

Running.tell = kill
main(sys.argv[1:])
"""


def test_a_fit_killed_while_it_classes_rows_goes_on(cli, rows, tmp_path):
    """kill -9 when half of the parts are classed; the second call does the others."""
    data = tmp_path / "data"
    data.mkdir()
    frame = pd.read_parquet(rows / "whole.parquet")
    for number in range(4):
        part = frame.iloc[600 * number : 600 * (number + 1)]
        part.to_parquet(data / f"{number}.parquet")
    options = [*FIT, "--sample", "600", "--workers", "1", "--no-report", "--json"]
    kept = ["--checkpoint", "kept", "--out", "run"]
    command = [sys.executable, "-c", KILLED, "fit", "data", *options, *kept]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300)
    assert done.returncode == -signal.SIGKILL, done.stderr.decode()
    assert not (tmp_path / "run").exists()
    resumed = read_json(cli("fit", "data", *options, *kept))
    stages = {one["stage"]: one for one in resumed["data"]["scale"]["stages"]}
    assert stages["predict"]["resumed"] == 2
    whole = read_json(cli("fit", "data", *options, "--out", "whole"))
    for name in ("prevalence", "classes", "findings", "score"):
        assert resumed["data"][name] == whole["data"][name]
    for name in ("prevalence.csv", "diagnostics.json"):
        one, other = (tmp_path / run / name for run in ("run", "whole"))
        assert one.read_text() == other.read_text()
    one, other = (
        pd.read_parquet(tmp_path / run / "assignments.parquet")
        for run in ("run", "whole")
    )
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert one["row_id"].tolist() == list(range(1, 2_401))


def test_redacted_rows_have_no_names(cli, rows, tmp_path):
    named = pd.read_parquet(rows / "whole.parquet")
    named["key"] = [f"secret{number}" for number in range(len(named))]
    (tmp_path / "data").mkdir()
    named.to_parquet(tmp_path / "data" / "rows.parquet")
    ended = cli(
        "fit",
        "data",
        *FIT,
        "--id",
        "key",
        "--redact",
        "--sample",
        "600",
        "--out",
        "run",
    )
    assert ended.code == 0, ended.stderr
    written = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    assert written["row_id"].tolist() == list(range(1, 2_401))
    for path in (tmp_path / "run").glob("*.*"):
        if path.is_file():
            assert b"secret" not in path.read_bytes()
    for number, more in enumerate(([], ["--pooled"])):
        out = tmp_path / f"rows{number}.parquet"
        predict = ["predict", "run", "data", "--out", out, *more]
        ended = cli(*predict, "--redact", "--json")
        assert ended.code == 0, ended.stderr
        found = pd.read_parquet(out)
        assert found["row_id"].tolist() == list(range(1, 2_401))
        domains = json.loads(ended.stdout)["data"]["counts"]
        assert set(domains) == ({"(not used)"} if more else {"north", "south", "west"})
        assert found["domain"].isna().all() == bool(more)


def test_a_file_too_large_for_memory_is_read_in_parts(cli, rows, monkeypatch):
    from shoal.io import _files as capacity

    monkeypatch.setattr(capacity, "available_memory", lambda: 50_000.0)
    found = read_json(
        cli("fit", rows / "whole.parquet", *FIT, "--out", "run", "--json")
    )
    assert found["data"]["scale"]["engine"] == "local"
    expanded = sorted((rows / "parts").iterdir())  # as the shell does with a *
    several = read_json(cli("fit", *expanded, *FIT, "--out", "several", "--json"))
    assert several["data"]["scale"]["parts"] == 2
    ended = cli("fit", rows / "whole.parquet", *FIT, "--engine", "memory")
    assert ended.code == 3
    assert "E137" in ended.stderr
    assert "--engine local" in ended.stderr


def test_rows_without_a_domain_are_left_out_to_the_end(cli, rows, tmp_path):
    frame = pd.read_parquet(rows / "whole.parquet")
    frame["site"] = frame["site"].where(frame.index > 99)
    frame.to_parquet(tmp_path / "gaps.parquet")
    found = cli(
        "fit", "gaps.parquet", *FIT, "--engine", "local", "--sample", "600",
        "--drop-missing-domain", "--no-report", "--out", "run",
    )  # fmt: skip
    assert found.code == 0, found.stderr
    assert "W144" in found.stderr
    written = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    assert written["row_id"].tolist() == list(range(101, 2_401))


def test_a_run_beside_its_data_and_passes_that_end_too_early(cli, rows, tmp_path):
    shutil.copytree(rows / "parts", tmp_path, dirs_exist_ok=True)
    options = ["--sample", "300", "--no-report", "--out", "run", "--json"]
    found = read_json(cli("fit", ".", *FIT, *options))
    assert "not converged, last move" in found["data"]["scale"]["exact"]
    told = [one["code"] for one in found["messages"] if "converged" in one["text"]]
    moved = found["data"]["scale"]["moved"][-1]
    assert told == (["W161"] if moved >= 0.002 else [])
    written = pd.read_parquet(tmp_path / "run" / "assignments.parquet")
    assert len(written) == 2_400


def test_diagnose_reads_a_sample_of_a_file_too_large(cli, rows, monkeypatch):
    from shoal.io import _files as capacity

    monkeypatch.setattr(capacity, "available_memory", lambda: 50_000.0)
    asked = ["--domain", "site", "--drop", "kind", "--k", "2", "--permutations", "2"]
    ended = cli("diagnose", rows / "whole.parquet", *asked, "--sample", "600", "--json")
    assert read_json(ended)["data"]["numbers"]["n_rows"] == 600


def test_predict_keeps_parts_beside_its_output(cli, rows):
    ended = cli("predict", "run", rows / "parts", "--checkpoint", "kept")
    assert ended.code == 2
    assert "error[E002] --checkpoint is not for predict" in ended.stderr


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--engine", "dask"], 2, "E002"),
        (["--address", "auto"], 2, "E002"),
        (["--engine", "local", "--domain-bins", "3"], 2, "E002"),
        (["--engine", "local", "--domain", "Site"], 3, "E107"),
    ],
    ids=["engine", "address", "bins", "domain"],
)
def test_what_cannot_be_is_said_in_one_line(cli, rows, options, code, said):
    ended = cli("fit", rows / "whole.parquet", *FIT, *options)
    assert ended.code == code, ended.stderr
    assert f"error[{said}]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_cluster_that_is_not_there_is_said_in_one_line(shoal, rows):
    pytest.importorskip("ray")
    options = [*FIT, "--engine", "ray", "--address", "127.0.0.1:1"]
    ended = shoal("fit", str(rows / "whole.parquet"), *options)
    assert ended.returncode == 3, ended.stderr
    assert "error[E101]" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_other_formats_are_not_read_in_parts(cli, rows, tmp_path):
    pd.read_parquet(rows / "whole.parquet").to_csv(tmp_path / "rows.csv")
    ended = cli("fit", "rows.csv", *FIT, "--engine", "local")
    assert ended.code == 2
    assert "E002" in ended.stderr


def test_help_needs_neither_pyarrow_nor_ray(shoal):
    code = (
        "import sys, shoal, shoal.scale, shoal.cli._app\n"
        "assert not {'ray', 'pyarrow', 'numpy'} & set(sys.modules), sys.modules.keys()"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert "--engine" in shoal("fit", "--help").stdout
