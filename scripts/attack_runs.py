"""Kill what writes models and runs at every step, and write down what was left.

python -m scripts.attack_runs [--seed 0]

Writes results/attack/runs.json: kills at every step and at random, races, and a disk
that is full after ever more bytes. After each, what is there must be one whole model or
run, the old one or the new one; the next command must clear up.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack.forging import fit
from tests.attack.kills import DONE, all_kills, in_child, without_exchange
from tests.attack.test_swaps import race

import shoal
from shoal.cli import main as command
from shoal.cli._runs import FILES, RUN, digests, filled_folder, load_settled
from shoal.exceptions import CodedError

OUT = Path(__file__).parents[1] / "results" / "attack" / "runs.json"
PAGE = 4096


def whole_run(folder: Path) -> str:
    """The title of a run; an error unless every file is of that run."""
    load_settled(folder)
    recorded = json.loads((folder / RUN).read_text())["files"]
    present = digests(folder)
    if {name: present.get(name) for name in recorded} != recorded:
        raise AssertionError(f"{folder} is a mixture")
    return str(json.loads((folder / "summary.json").read_text())["made"]["seed"])


def copy_run(source: Path, folder: Path) -> None:
    """Write the files of a run as `shoal fit --force` does."""
    with filled_folder(folder, instead_of=FILES) as place:
        shutil.copytree(source, place, dirs_exist_ok=True)


def make_runs(root: Path) -> dict[str, Path]:
    """Two runs of `shoal fit` that differ, by their seeds."""
    found = {}
    with chdir(root):
        _end(["demo", "--out", "demo", "--quiet"])
        for seed in ("1", "2"):
            words = (
                f"fit demo/penguins.csv --domain island --label species --seed {seed}"
            )
            _end(
                [
                    *words.split(),
                    "--k",
                    "3",
                    "--bootstrap",
                    "5",
                    "--quiet",
                    "--out",
                    f"run{seed}",
                ]
            )
            found[seed] = root / f"run{seed}"
    return found


def _end(words: list[str]) -> None:
    try:
        command(words)
    except SystemExit as end:
        if end.code not in (0, None):
            raise RuntimeError(
                f"shoal {' '.join(words)} ended with {end.code}"
            ) from end


# ---- kills ---------------------------------------------------------------------------


def kills_at_every_step(root: Path, runs: dict[str, Path]) -> dict[str, Any]:
    """Runs by exchange and without, and a model, each killed at every step."""
    told: dict[str, Any] = {}
    folder, seen = root / "killed" / "run", Counter[str]()

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        copy_run(runs["1"], folder)

    def check(_: int) -> None:
        seen[whole_run(folder)] += 1

    for way in ("exchange", "journal"):

        def body(way: str = way) -> None:
            if way == "journal":
                without_exchange()
            copy_run(runs["2"], folder)

        seen.clear()
        n_kills = all_kills(body, folder.parent, prepare, check)
        told[f"run by {way}"] = {"kills": n_kills, "old": seen["1"], "new": seen["2"]}
    told["model"] = kill_saves(root / "models" / "model")
    return told


def kill_saves(path: Path) -> dict[str, int]:
    """A model that is saved over another."""
    first = fit("mixture").model
    second, seen = first.set_names({"c0": "second"}), Counter[bool]()

    def prepare() -> None:
        shutil.rmtree(path, ignore_errors=True)
        shoal.save(first, path)

    def check(_: int) -> None:
        seen[shoal.load(path).class_names_[0] == "second"] += 1

    body = lambda: shoal.save(second, path, force=True)  # noqa: E731
    n_kills = all_kills(body, path.parent, prepare, check)
    return {"kills": n_kills, "old": seen[False], "new": seen[True]}


def kills_at_random(root: Path, runs: dict[str, Path], seed: int) -> dict[str, int]:
    """A hundred kills at any moment of a copy, which needs some time by itself."""
    folder, rng = root / "random" / "run", np.random.default_rng(seed)
    copy_run(runs["1"], folder)
    begun = time.perf_counter()
    copy_run(runs["1"], folder)
    usual, counts = time.perf_counter() - begun, Counter[str]()

    for share in rng.random(100).tolist():
        # its clock ends the process, which knows nothing of it
        clock = (signal.ITIMER_REAL, max(share * 1.5 * usual, 1e-4))
        later = lambda clock=clock: signal.setitimer(*clock)  # noqa: E731
        code = in_child(lambda: copy_run(runs["2"], folder), later)
        counts["ended" if code == DONE else "killed"] += 1
        counts[f"seed {whole_run(folder)}"] += 1
        copy_run(runs["1"], folder)
    return dict(counts)


# ---- races and full disks ------------------------------------------------------------


def races(root: Path) -> dict[str, int]:
    """Twenty times four processes that write to one place."""
    folder = root / "races" / "run"
    folder.parent.mkdir()
    return dict(Counter(end for _ in range(20) for end in race(folder, 4)))


def full_disks(root: Path, runs: dict[str, Path]) -> dict[str, Any]:
    """A run written over another on a disk with room for ever one page more."""
    disk = root / "disk"
    disk.mkdir()
    counts: Counter[str] = Counter()
    pages = 0
    while not counts["written"]:
        with mounted(disk):
            copy_run(runs["1"], disk / "run")
            used = shutil.disk_usage(disk).used
            _mount(disk, f"remount,size={used + pages * PAGE}")
            code = in_child(lambda: _told(lambda: copy_run(runs["2"], disk / "run")))
            counts["written" if code == DONE else "refused in one line"] += 1
            if code not in (DONE, 4) or whole_run(disk / "run") != (
                "2" if code == DONE else "1"
            ):
                raise AssertionError(f"{pages} pages: {code}")
        pages += 1 + pages // 8
    return dict(counts) | {"pages": pages}


def _told(body: Callable[[], Any]) -> None:
    try:
        body()
    except CodedError as error:
        os._exit(4 if error.code == "E140" else 5)


class mounted:  # noqa: N801
    """A small disk in memory for a while."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "shoal", self.path], check=True)

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.path], check=True)


def _mount(path: Path, options: str) -> None:
    subprocess.run(["mount", "-o", options, path], check=True)


def main() -> None:
    """All of it, in a folder of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        runs = make_runs(root)
        record: dict[str, Any] = {
            "command": f"python -m scripts.attack_runs --seed {seed}",
            "kills at every step": kills_at_every_step(root, runs),
            "kills at random": kills_at_random(root, runs, seed),
            "races": races(root),
        }
        try:
            record["full disk"] = full_disks(root, runs)
        except (OSError, subprocess.CalledProcessError) as error:
            record["full disk"] = f"not tried, no disk could be mounted: {error}"
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
