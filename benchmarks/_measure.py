"""Timing, memory and record keeping shared by the benchmark scripts.

Speed is stated as ratios within one run: the candidates take turns, and the best turn
of each counts. Process time stands beside wall time, because on a shared machine wall
time measures the neighbours.
"""

import json
import os
import platform
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

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
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        json.dump(record, file, indent=2)
        file.write("\n")
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
    return path
