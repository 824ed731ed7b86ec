"""What Ray ends is told in one line; what Ray says stays out of sight."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from shoal.datasets import make_latent_shift

pytest.importorskip("pyarrow")

FIT = ("fit", "rows", "--domain", "site", "--k", "2", "--bootstrap", "3",
       "--engine", "ray", "--out", "run")  # fmt: skip

# What Ray does when its node is lost: words to both streams, from threads and from
# below Python, then the end of the process without a word to Python.
ENDING_RAY = """
import logging, os, sys, threading

def is_initialized():
    return False

def words():
    print("Traceback of an agent")
    print("Traceback of an agent", file=sys.stderr)
    raise RuntimeError("Traceback of a thread")

def init(**_):
    os.write(1, b"Traceback of a raylet\\n")
    os.write(2, b"Traceback of a raylet\\n")
    logging.getLogger("ray").error("Traceback of a node")
    thread = threading.Thread(target=words, name="ray_listen_error_messages")
    thread.start()
    thread.join()
    END
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A folder with one file of rows, and a place for modules of the test's own."""
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=3, n_features=3, separation=2.0, random_state=0
    )
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["site"] = np.array(["north", "south", "west"])[domains]
    (tmp_path / "rows").mkdir()
    frame.to_parquet(tmp_path / "rows" / "0.parquet", row_group_size=100)
    (tmp_path / "modules").mkdir()
    return tmp_path


@contextmanager
def begun(rows: Path, end: str, *more: str) -> Iterator["subprocess.Popen[str]"]:
    """The command, on a Ray that ends as is told."""
    (rows / "modules" / "ray.py").write_text(ENDING_RAY.replace("END", end))
    paths = os.pathsep.join([str(rows / "modules"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        [sys.executable, "-m", "shoal", *FIT, *more],
        cwd=rows,
        env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(rows / "modules")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert condition()


@pytest.mark.parametrize(
    ("end", "how"),
    [("os._exit(1)", "exit code 1"), ("os.kill(os.getpid(), 9)", "signal 9")],
)
def test_a_process_that_ray_ends_is_one_coded_line(rows: Path, end: str, how: str):
    with begun(rows, end) as process:
        out, told = process.communicate()
    assert process.returncode == 3
    assert out == ""
    stage, error, hint = told.splitlines()
    assert stage == "[1/5] reading rows"
    assert error == (
        f"error[E145] Ray ended the command ({how}): its node, or the cluster, was lost"
    )
    assert hint.startswith("hint: run it again; with --checkpoint")
    # neither the folder that both share, nor what the second one kept there
    assert [one.name for one in (rows / "modules").iterdir()] == ["ray.py"]


def test_the_line_is_a_document_where_that_was_asked_for(rows: Path):
    with begun(rows, "os._exit(1)", "--json") as process:
        out, _ = process.communicate()
    document = json.loads(out)
    assert document["status"] == "error"
    assert [one["code"] for one in document["messages"]] == ["E145"]


def test_debug_shows_what_ray_said(rows: Path):
    with begun(rows, "os._exit(1)", "--debug") as process:
        out, told = process.communicate()
    assert process.returncode == 3
    for name in ("an agent", "a raylet"):
        assert f"Traceback of {name}" in out
        assert f"Traceback of {name}" in told
    for name in ("a thread", "a node"):
        assert f"Traceback of {name}" in told
    assert "error[E145]" in told


def test_what_goes_wrong_at_the_start_has_a_code(rows: Path):
    with begun(rows, 'raise Exception("no room\\nand more")') as process:
        _, told = process.communicate()
    assert process.returncode == 3
    assert "error[E145] Ray did not start: no room\n" in told
    assert "Traceback" not in told


SLEEPING = """
    from pathlib import Path
    import time
    Path("pid.part").write_text(str(os.getpid()))
    Path("pid.part").rename("pid")
    time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_both_processes_end_with_the_first(rows: Path, number: int):
    with begun(rows, SLEEPING) as process:
        wait_for((rows / "pid").exists)
        second = int((rows / "pid").read_text())
        assert second != process.pid
        assert is_alive(second)
        process.send_signal(number)
        _, told = process.communicate()
    wait_for(lambda: not is_alive(second))
    assert process.returncode == (130 if number != signal.SIGKILL else -number)
    assert "error[E003] interrupted" in told
    assert not (rows / "run").exists()


def test_no_module_is_taken_from_the_folder_of_the_data(rows: Path):
    for name in ("shoal", "typer", "numpy", "ray"):
        (rows / f"{name}.py").write_text("open('owned', 'w')")
    command = [str(Path(sys.executable).with_name("shoal")), *FIT]
    ended = subprocess.run(
        [*command, "--address", "127.0.0.1:1"],
        cwd=rows,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (3, 5)  # nobody listens there; or there is no Ray
    assert not (rows / "owned").exists()


# ---- the real one --------------------------------------------------------------------


def descendants(pid: int) -> dict[int, str]:
    """Processes below one, with their command lines."""
    parents, words = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
            words[int(folder.name)] = (folder / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found = {pid}
    for _ in range(9):  # deeper than any
        found |= {one for one, parent in parents.items() if parent in found}
    return {one: words[one] for one in found if one in words}


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["/raylet/raylet", "ray::DashboardAgent"])
def test_a_killed_agent_is_one_coded_line(rows: Path, victim: str):
    """kill -9 for the raylet, or for an agent of it, which ends the raylet."""
    pytest.importorskip("ray")
    command = [sys.executable, "-m", "shoal", *FIT]
    with subprocess.Popen(
        command, cwd=rows, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        found: dict[int, str] = {}

        def works() -> bool:
            found.update(descendants(process.pid))
            return any("ray::" in one and "Agent" not in one for one in found.values())

        wait_for(works, 300)
        pids = [pid for pid, words in found.items() if victim in words]
        assert len(pids) == 1
        os.kill(pids[0], signal.SIGKILL)
        out, told = process.communicate()
    assert process.returncode == 3
    assert out == ""
    assert "error[E145] Ray ended the command" in told
    said = [one for one in told.splitlines() if not one.startswith("[1/5]")]
    assert len(said) == 2  # the line and its hint
