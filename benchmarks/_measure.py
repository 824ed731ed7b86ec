"""Timing, memory and record keeping shared by the benchmark scripts.

Speed is stated as ratios within one run: the candidates take turns, and the best turn
of each counts. Process time stands beside wall time, because on a shared machine wall
time measures the neighbours.
"""

import ctypes
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from shoal.io.extend import write_whole

ROOT = Path(__file__).resolve().parent.parent


class Seconds(NamedTuple):
    """Best wall and process time of a candidate."""

    wall: float
    process: float


def take_turns(
    candidates: Mapping[str, Callable[[], Any]], repeats: int = 3
) -> dict[str, Seconds]:
    """Run all candidates ``repeats`` times in turn; keep the best time of each."""
    best = dict.fromkeys(candidates, Seconds(float("inf"), float("inf")))
    for _ in range(repeats):
        for name, run in candidates.items():
            wall, process = time.perf_counter(), time.process_time()
            run()
            took = time.perf_counter() - wall, time.process_time() - process
            best[name] = Seconds(*map(min, best[name], took))
    return best


class Clock:
    """Smallest times of a task's runs, and the memory that the first of them took."""

    #: Seconds of one run after which no second is needed, and of several together.
    LONG, ENOUGH = 5.0, 0.6

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run, self.turns, self.spent = run, 0, 0.0
        self.best = Seconds(float("inf"), float("inf"))
        self.peak: float | None = None
        self.iterations: int | None = None

    @property
    def done(self) -> bool:
        """Whether it has run long enough; the first turn also warms up."""
        return self.spent > (self.ENOUGH if self.turns > 1 else self.LONG)

    def turn(self) -> None:
        """Run once."""
        before = None if self.turns else _reset_peak()
        wall, process = time.perf_counter(), time.process_time()
        made = self.run()
        took = Seconds(time.perf_counter() - wall, time.process_time() - process)
        self.iterations = getattr(made, "n_iter_", None)
        if before is not None:
            self.peak = memory_mib("VmHWM") - before
        self.best = Seconds(*map(min, self.best, took))
        self.turns, self.spent = self.turns + 1, self.spent + took.process

    def result(self) -> dict[str, float | int | None]:
        """What to keep of it: seconds are of the processor, memory in MiB."""
        found: dict[str, float | int | None] = {
            "seconds": self.best.process,
            "wall": self.best.wall,
            "peak_mib": self.peak,
            "turns": self.turns,
        }
        if self.iterations is not None:
            found["iterations"] = self.iterations
        return found


def race(runs: Mapping[str, Callable[[], Any]], turns: int = 9) -> dict[str, dict]:
    """Let tasks take turns, each until it has run long enough."""
    clocks = {name: Clock(run) for name, run in runs.items()}
    for _ in range(turns):
        for clock in clocks.values():
            if not clock.done:
                clock.turn()
    return {name: clock.result() for name, clock in clocks.items()}


def _reset_peak() -> float | None:
    """Begin a new high-water mark (Linux); the memory held now, in MiB."""
    try:
        ctypes.CDLL(None).malloc_trim(0)  # free but still held, it would hide a peak
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return None
    return memory_mib("VmRSS")


def memory_mib(name: str) -> float:
    """One entry of the process's own accounts, in MiB.

    Not getrusage: its peak counts what the parent held when it started a child.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise KeyError(name)


def timed(run: Callable[[], Any]) -> float:
    """Process seconds: a shared machine's clock measures the neighbours."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def peak_bytes(run: Callable[[], Any]) -> int:
    """Most memory that one call holds beyond what was there before (tracemalloc)."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Exponent of the time as a power of the size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def environment(*packages: str) -> dict[str, Any]:
    """Versions and machine, to be stored with every measured number."""
    names = ("shoal", "numpy", "scipy", "scikit-learn", *packages)
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in names},
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def write_json(path: str | Path, record: Mapping[str, Any]) -> Path:
    """Write a record so that a reader never sees half of it."""
    path = ROOT / path
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(record, indent=2) + "\n")
    return path
