"""The benchmark from the command line: a tiny grid run, resumed, tabulated, drawn."""

import csv
import json
import re

import pytest

from shoal_bench import running as benching
from shoal_bench.store import Store

FAST = ["--method", "kmeans", "--method", "majority"]


def data_of(ended) -> dict:
    return json.loads(ended.stdout)["data"]


def test_run_resume_table_plot(cli, tmp_path):
    first = cli("bench", "run", "tiny", *FAST, "--wave", "0", "--json")
    assert first.code == 0
    assert data_of(first)["done"] == 6
    assert "gauss2 r=3 alpha=3 wave=0 kmeans n_rows=300: accuracy 0." in first.stderr

    second = cli("bench", "run", "tiny", *FAST)
    assert second.stdout.startswith("6 done, 6 there already in ")
    assert cli("bench", "run", "tiny", *FAST, "--json").code == 0
    assert len(Store(tmp_path / "shoal-bench").records()) == 12

    table = cli("bench", "table", "tiny", "--out", "tables")
    assert (tmp_path / "tables" / "bench.md").read_text() in table.stdout
    assert re.search(r"\| k-means \| (\*\*)?0\.\d{3} ± 0", table.stdout)
    assert "shoal bench run tiny --dataset gauss2 --method ours_frozen" in table.stdout
    with (tmp_path / "tables" / "bench.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert {row["method"] for row in rows if row["accuracy"]} == {"kmeans", "majority"}

    plot = cli("bench", "plot", "tiny", "--json")
    files = json.loads(plot.stdout)["files"]
    assert files[0] == "shoal-bench/figures/alpha.png"
    assert all((tmp_path / file).stat().st_size > 1000 for file in files)
    assert len(files) == 2


def test_table_and_plot_overwrite_only_by_force(cli):
    cli("bench", "run", "tiny", *FAST, "--wave", "0", "--alpha", "3")
    for action, out in (("table", "t"), ("plot", "p")):
        assert cli("bench", action, "tiny", "--out", out).code == 0
        again = cli("bench", action, "tiny", "--out", out)
        assert (again.code, again.stdout) == (2, "")
        assert "error[E136]" in again.stderr
        assert cli("bench", action, "tiny", "--out", out, "--force").code == 0


def test_an_empty_store_has_nothing_to_draw(cli, tmp_path):
    ended = cli("bench", "plot", "tiny")
    assert (ended.code, ended.stdout) == (3, "")
    error, hint = ended.stderr.splitlines()
    assert error == "error[E101] shoal-bench has no record of tiny"
    assert hint == "hint: run `shoal bench run tiny --store shoal-bench` first"
    assert not list(tmp_path.glob("*/figures"))


def test_list_says_what_is_done(cli):
    cli("bench", "run", "tiny", *FAST, "--quiet")
    grids = {
        row["grid"]: row for row in data_of(cli("bench", "list", "--json"))["grids"]
    }
    assert grids["tiny"] == {
        "grid": "tiny",
        "runs": 30,
        "done": 12,
        "what": "two classes, 300 rows: seconds",
    }
    assert grids["paper"]["runs"] == 3510
    listed = data_of(cli("bench", "list", "tiny", "--json"))
    done = {row["method"]: row["done"] for row in listed["methods"]}
    assert done == {"majority": 6, "kmeans": 6, "ddfa_mlp": 0, "ours_frozen": 0,
                    "reference": 0}  # fmt: skip
    assert len(listed["runs"]) == 30
    assert "k-means" in cli("bench", "list", "tiny").stdout


def test_quiet_says_nothing(cli):
    ended = cli("bench", "run", "tiny", *FAST, "--quiet")
    assert (ended.code, ended.stdout, ended.stderr) == (0, "", "")


def test_runs_in_processes(cli):
    ended = cli("bench", "run", "tiny", *FAST, "--where", "processes", "--workers", "1",
                "--json")  # fmt: skip
    assert data_of(ended)["done"] == 12


def test_failed_runs_are_a_warning_and_tried_again_on_demand(cli, monkeypatch):
    from shoal_bench import methods

    monkeypatch.setattr(methods, "_REGISTERED", dict(methods._REGISTERED))

    @methods.register("kmeans")
    def broken(problem, seed):
        raise RuntimeError("no luck\ntoday")

    ended = cli(
        "bench", "run", "tiny", "--method", "kmeans", "--alpha", "3", "--strict"
    )
    assert ended.code == 7
    assert "warning[W150] 2 runs failed; the first: RuntimeError: no luck today" in (
        ended.stderr
    )
    again = cli("bench", "run", "tiny", "--method", "kmeans", "--alpha", "3")
    assert again.code == 0
    assert "2 failed before" in again.stdout
    monkeypatch.undo()
    retried = ["bench", "run", "tiny", "--method", "kmeans", "--alpha", "3"]
    assert "2 failed before" not in cli(*retried, "--retry-failed").stdout


# ---- what is not there -----------------------------------------------------------


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.delenv("SHOAL_DATA_DIR", raising=False)


@pytest.mark.usefixtures("no_data")
def test_data_that_are_not_there(cli):
    ended = cli("bench", "run", "cifar-c", "--wave", "0")
    assert ended.code == 3
    error, hint = ended.stderr.splitlines()
    assert error.startswith("error[E101] the benchmark needs cifar20_simclr_pca128.npz")
    assert hint.startswith("hint: place it in SHOAL_DATA_DIR/features")


@pytest.mark.usefixtures("no_data")
def test_what_can_be_run_is_run(cli, monkeypatch):
    """Without Fashion-MNIST the twin still has its Gaussians."""

    def missing(spec, view, folder):
        if spec.dataset == "fashion10":
            return benching.CodedError("E101", "no fashion", "place it")
        return None

    monkeypatch.setattr(benching, "data_missing", missing)
    ended = cli("bench", "run", "twin", "--method", "majority", "--wave", "0", "--json")
    document = json.loads(ended.stdout)
    assert document["status"] == "warning"
    assert document["messages"][0]["code"] == "W150"
    assert document["data"]["done"] == 6
    assert document["data"]["not_possible"] == 3


def test_a_package_that_is_not_there(cli, monkeypatch):
    from shoal_bench import methods

    monkeypatch.setattr(methods, "_REGISTERED", {})
    monkeypatch.setattr(methods, "find_spec", lambda name: None)
    ended = cli("bench", "run", "cifar-b")
    assert ended.code == 5
    assert 'hint: pip install "shoal[vision]"' in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["run"], "which grid?"),
        (["run", "tyni"], 'no grid is called "tyni"'),
        (["run", "tiny", "--method", "skan"], "got ['skan']"),
        (["run", "tiny", "--address", "auto", *FAST], "address='auto' needs"),
        (["run", "tiny", "--gpu-share", "0", *FAST], "gpu_share must be above 0"),
        (["jump", "tiny"], "jump"),
    ],
)
def test_wrong_usage(cli, arguments, text):
    ended = cli("bench", *arguments)
    assert ended.code == 2
    assert "error[E002]" in ended.stderr
    assert text in ended.stderr
