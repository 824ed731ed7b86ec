"""Commands on a disk that is full from a chosen write on, each write in turn.

python -m tests.attack.full_disk

writes results/attack/full_disk.json; with ``--case NAME [--every N] [--once]`` it
prints what came of one case. ``full_disk.c`` stands between the process and its
system, so that the writes of Arrow, HDF5 and Rust fail like those of Python; the
command runs once undisturbed, which tells how many calls need room, and then in a fork
of the process for each of them. What is left must be what was there before or all that
the command writes, and the command must have said so in one line.
"""

import argparse
import contextlib
import ctypes
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tests.attack.kills import in_child

from shoal.cli import _fit, main
from shoal.cli._messages import write_json
from shoal.cli._runs import RUN, digests, settled
from shoal.io._swap import is_unfinished

RECORD = Path(__file__).parents[2] / "results" / "attack" / "full_disk.json"
SHIM = Path(__file__).with_suffix(".c")
MOST_SECONDS = 60
ENDED_WELL, ENDED_BADLY = 10, 11  # of the command; FAILED is a fault of the test
FIT = "--domain site --k 2 --by shift --bootstrap 2 --quiet"
#: Commands by name; where there is a run already, it is that of "fit".
CASES = {
    "fit": f"fit rows.csv {FIT} --force --out run",
    "fit anew": f"fit rows.csv {FIT} --out deep/new",
    "fit cells": f"fit cells.h5ad --use-rep X_pca {FIT} --out cells".replace(
        "site", "donor"
    ),
    "fit parts": f"fit rows.parquet {FIT} --engine local --checkpoint kept --out parts",
    "name": "name run --set c0=first --quiet",
    "predict": "predict run rows.csv --out classes.csv --force --quiet",
    "predict parquet": "predict run rows.csv --out classes.parquet --quiet",
    "adapt": "adapt run new.csv --domain-name there --out adapted --quiet",
    "report": "report run --title other --force --quiet",
    "sign": "sign run --key key.txt --quiet",
    "choose": "choose rows.csv --domain site --by shift --quiet --out curve",
    "diagnose": "diagnose rows.csv --model run --quiet --out asked",
    "check": "check rows.csv --domain site --quiet --out seen",
}


# ---- around the process --------------------------------------------------------------


def attack(case: str, *, every: int = 1, once: bool = False) -> dict[str, Any]:
    """What came of a case, in a process of its own; its faults are listed."""
    with tempfile.TemporaryDirectory() as folder:
        shim = Path(folder, "full_disk.so")
        build = ["cc", "-shared", "-fPIC", "-O1", "-o", shim, SHIM, "-ldl"]
        subprocess.run(build, check=True, capture_output=True)
        words = ["--case", case, "--every", str(every), *["--once"] * once]
        command = [sys.executable, "-m", "tests.attack.full_disk", *words]
        done = subprocess.run(
            command,
            env=os.environ
            | {
                "LD_PRELOAD": str(shim),
                "OMP_NUM_THREADS": "1",
                # that of the tests, with their helpers
                "PYTHONPATH": os.pathsep.join([str(SHIM.parents[1]), *sys.path]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


# ---- inside it -----------------------------------------------------------------------


def make_rows(root: Path) -> None:
    """Small tables of two classes that every command can read, and a run of them."""
    from support.cells import write_cells

    rng = np.random.default_rng(0)
    label = rng.integers(2, size=90)
    site = np.where(rng.random(90) < 0.2, rng.integers(3, size=90), label)
    rows = rng.normal(size=(90, 3)) + 4 * label[:, None]
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(site=site)
    frame["site"] = "s" + frame["site"].astype(str)
    frame.to_csv(root / "rows.csv", index=False)
    pd.concat([frame] * 2).to_parquet(root / "rows.parquet", row_group_size=60)
    frame[:20].drop(columns="site").to_csv(root / "new.csv", index=False)
    write_cells(root / "cells.h5ad", 0)
    (root / "key.txt").write_text("k" * 40)
    with contextlib.chdir(root):
        if run(f"fit rows.csv {FIT} --out run") != 0:
            raise RuntimeError("the run of before was not made")


def run(command: str) -> int:
    """Run a command line in this process; its exit code."""
    try:
        main(command.split())
    except SystemExit as end:
        return int(end.code or 0)


def remember_fits() -> None:
    """Fit once: what is written is asked for here, and that is done anew each time."""
    found: dict[int, Any] = {}
    fit = _fit.find_classes

    def find_classes(output: Any, table: Any, *more: Any) -> Any:
        if len(table.X) not in found:  # each case fits one table, and the run another
            found[len(table.X)] = fit(output, table, *more)
        return found[len(table.X)]

    _fit.find_classes = find_classes


def state_of(root: Path) -> dict[str, str]:
    """Digest of every file, but the checkpoints and rows that a later run may use."""
    own = digests(root)
    return {name: one for name, one in own.items() if not name.startswith("kept/")}


def is_hidden(path: Path) -> bool:
    """Whether it begins with a dot, or a folder on its way does."""
    return any(part.startswith(".") for part in path.parts)


def is_whole(state: dict[str, str], done: dict[str, str], root: Path) -> bool:
    """Whether all that a command writes is there, and every run is as it records."""
    if set(state) != set(done):
        return False
    if any(state[name] != done[name] for name in state if "/" not in name):
        return False  # a single file, in which nothing tells of the time
    for record in root.rglob(RUN):
        if is_hidden(record.relative_to(root)):
            continue  # of a folder that is being filled, or goes
        recorded = json.loads(record.read_text())["files"]
        present = digests(record.parent)
        if {name: present.get(name) for name in recorded} != recorded:
            return False
    return True


def fault_of(
    code: int, said: str, before: dict[str, str], done: dict[str, str], root: Path
) -> str:
    """What may not be after a command whose disk was full; empty if all is well."""
    for folder in filter(is_unfinished, root.iterdir()):
        settled(folder)  # as the next command that reads it does
    state = state_of(root)
    hidden = [str(path) for path in root.rglob(".*")]
    errors = [line for line in said.splitlines() if not line.startswith("hint: ")]
    if code not in (ENDED_WELL, ENDED_BADLY):
        return f"ended with {code}: {said[-600:]}"
    if code == ENDED_BADLY and (len(errors) != 1 or "error[E140]" not in said):
        return f"said {said[-600:]!r}"
    if hidden:
        return f"left {hidden}"
    if code == ENDED_BADLY and state == before:
        return ""
    return "" if is_whole(state, done, root) else f"half: {sorted(state)} ({code})"


def each_write(case: str, every: int, once: bool, shim: Any) -> dict[str, Any]:
    """Run a case undisturbed, then on a disk that is full at each of its writes."""
    with tempfile.TemporaryDirectory() as folder:
        start, root = Path(folder, "start").resolve(), Path(folder, "root").resolve()
        start.mkdir()
        remember_fits()
        make_rows(start)
        tempfile.tempdir = str(root)  # it is on the same disk

        def disturbed(calls: int) -> tuple[int, str]:
            shutil.rmtree(root, ignore_errors=True)
            shutil.copytree(start, root)
            with tempfile.TemporaryFile(dir=folder) as words:
                body = _command(CASES[case], root, words.fileno())
                disk = str(root).encode()
                code = in_child(body, lambda: shim.full_after(disk, calls, once))
                words.seek(0)
                return code, words.read().decode(errors="replace")

        with contextlib.chdir(start):  # all is imported, and what is fitted remembered
            if run(CASES[case].replace(" --out ", " --out ../first-")) != 0:
                raise RuntimeError(f"{case} fails on a disk with room")
        shutil.rmtree(start)
        start.mkdir()
        make_rows(start)
        before = state_of(start)
        code, said = disturbed(-1)
        done = state_of(root)
        if code != ENDED_WELL:
            raise RuntimeError(f"{case}: {code}: {said}")
        n_writes = int(Path(root.parent, "seen").read_text())
        ends: Counter[str] = Counter()
        faults = []
        for calls in range(0, n_writes, every):
            code, said = disturbed(calls)
            ends["E140" if code == ENDED_BADLY else "ended well"] += 1
            fault = fault_of(code, said, before, done, root)
            if fault:
                faults.append(f"{case}, write {calls} of {n_writes}: {fault}")
    return {"writes": n_writes, "ends": dict(ends), "faults": faults}


def _command(words: str, root: Path, said: int) -> Callable[[], None]:
    """What runs in the fork: a command, its words in a file, its end as our own."""

    def body() -> None:
        signal.alarm(MOST_SECONDS)
        os.chdir(root)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdout = io.TextIOWrapper(os.fdopen(1, "wb", closefd=False))
        sys.stderr = io.TextIOWrapper(os.fdopen(2, "wb", closefd=False))
        code = run(words)
        sys.stdout.flush()
        sys.stderr.flush()
        seen = ctypes.CDLL(None).full_seen()
        Path(root.parent, "seen").write_text(str(seen))
        os._exit(ENDED_WELL if code == 0 else ENDED_BADLY)

    return body


def campaign() -> None:
    """One case, or the record of them all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--once", action="store_true")
    args = parser.parse_args()
    if args.case:
        shim = ctypes.CDLL(None)
        print(json.dumps(each_write(args.case, args.every, args.once, shim)))
        return
    ways = {"full from a write on": False, "one write fails": True}
    found = {
        way: {case: attack(case, once=once) for case in CASES}
        for way, once in ways.items()
    }
    write_json(RECORD, {"command": "python -m tests.attack.full_disk", **found})


if __name__ == "__main__":
    campaign()
