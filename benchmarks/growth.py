"""What grows with what: time and memory against rows, domains, classes and features.

    OMP_NUM_THREADS=1 python benchmarks/growth.py            # all points not yet there
    python benchmarks/growth.py --check                      # a few points, by ratio
    python benchmarks/growth.py --pages                      # table and plots only

One factor at a time, from a middle point; each point in a process of its own, where
ours and what a user would write by hand take turns. Times are processor times, the
smallest of the turns; memory is the peak beyond what was there before the task. A task
that would take longer than ``--limit`` seconds, judged by the point before it, is left
out, and the record says so. ``--check`` measures some points anew and compares ratios
to the library calls with the record: seconds are another machine's business.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _growth_pages import DERIVED, write_pages
from _measure import ROOT, environment, slope, write_json

RECORD = "results/performance/growth.json"
# Fewer domains than classes cannot be told apart: each factor has a middle of its own.
SCANS: dict[str, tuple[dict[str, int], list[int]]] = {
    "rows": (
        {"domains": 30, "classes": 10, "features": 30},
        [10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000],
    ),
    "domains": (
        {"rows": 20_000, "classes": 3, "features": 30},
        [3, 10, 30, 100, 300],
    ),
    "classes": (
        {"rows": 20_000, "domains": 100, "features": 30},
        [2, 5, 10, 30, 100],
    ),
    "features": (
        {"rows": 20_000, "domains": 30, "classes": 10},
        [2, 10, 30, 100, 300, 2_000],
    ),
}
CHECKED = {"rows": [30_000, 100_000], "classes": [10], "features": [30]}
# A ratio this much above the recorded one is a regression; neighbours on the machine
# move it by less.
TOLERANCE = 1.5
# Tasks longer than this need no second turn.
LONG = 5.0
# Tasks shorter than this say more about the clock than about the code.
SHORTEST = 0.005


def main() -> int:
    """Measure, check or draw; the exit code of --check is 1 after a regression."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SCANS, default=list(SCANS))
    parser.add_argument("--values", nargs="+", type=int, help="only these points")
    parser.add_argument("--limit", type=float, default=40.0)
    parser.add_argument("--record", type=Path, default=ROOT / RECORD)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.point:
        print(json.dumps(run_point(**json.loads(args.point))))
        return 0
    record = read(args.record)
    if args.check:
        return check(record, args.limit)
    if not args.pages:
        measure(record, args)
    print(write_pages(record, args.record.parent))
    return 0


def read(path: Path) -> dict[str, Any]:
    """Return the record as it is, or an empty one."""
    record: dict[str, Any] = {"points": []}
    if path.exists():
        record = json.loads(path.read_text())
    return record


# ---- measuring -----------------------------------------------------------------------


def measure(record: dict, args: argparse.Namespace) -> None:
    """Run the points that the record lacks, in processes of their own."""
    record |= {
        "command": "OMP_NUM_THREADS=1 python benchmarks/growth.py",
        "environment": environment(),
    }
    for factor in args.only:
        for size in sizes_of(factor):
            value = size[factor]
            if args.values and value not in args.values:
                continue
            point = known_point(record, factor, size)
            skip = too_long(record, factor, value, args.limit) | measured(point)
            if point["tasks"] and not still_wanted(point, skip):
                continue
            merge(point, in_own_process(size, skip))
            record["points"] = [p for p in record["points"] if p is not point] + [point]
            record["slopes"] = slopes(record["points"])
            write_json(args.record, record)
            print(factor, value, summary(point), flush=True)


def known_point(record: dict, factor: str, size: dict[str, int]) -> dict:
    """Find the point in the record, or begin one without tasks."""
    for point in record["points"]:
        if (point["factor"], point["value"]) == (factor, size[factor]):
            return point
    return {"factor": factor, "value": size[factor], "size": size, "tasks": {}}


def measured(point: dict) -> dict[str, str]:
    """Sides that need not be measured again."""
    return {
        f"{name}/{side}": "measured"
        for name, sides in point["tasks"].items()
        for side, result in sides.items()
        if "seconds" in result
    }


def still_wanted(point: dict, skip: dict[str, str]) -> bool:
    """Whether a side was left out that would not be today."""
    return any(
        f"{name}/{side}" not in skip
        for name, sides in point["tasks"].items()
        for side in sides
    )


def merge(point: dict, found: dict) -> None:
    """Put what was found into a point; what it has stays."""
    for name, sides in found["tasks"].items():
        mine = point["tasks"].setdefault(name, {})
        for side, result in sides.items():
            if "seconds" not in mine.get(side, {}):
                mine[side] = result


def sizes_of(factor: str, values: list[int] | None = None) -> list[dict[str, int]]:
    """Points of a scan, smallest first."""
    middle, every = SCANS[factor]
    return [middle | {factor: value} for value in values or every]


def in_own_process(size: dict[str, int], skip: dict[str, str]) -> dict:
    """Measure a point where nothing else has used memory."""
    job = json.dumps({"size": size, "skip": skip})
    command = [sys.executable, __file__, "--point", job]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{size}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def too_long(record: dict, factor: str, value: int, limit: float) -> dict[str, str]:
    """Sides that the points before say would take too long, with the reason."""
    before = [p for p in record["points"] if p["factor"] == factor]
    before = sorted((p for p in before if p["value"] < value), key=lambda p: p["value"])
    reasons: dict[str, str] = {}
    for name in before[0]["tasks"] if before else []:
        for side in ("ours", "by_hand"):
            known = [
                (p["value"], p["tasks"][name][side]["seconds"])
                for p in before
                if "seconds" in p["tasks"][name][side]
            ]
            expected = expect(known, value, DERIVED[name][factor])
            if expected > limit:
                reasons[f"{name}/{side}"] = f"left out: about {expected:.0f} s"
    return reasons


def expect(known: list[tuple[int, float]], value: int, derived: float) -> float:
    """Seconds at a value, by the last two points; by one, three quarters as steep."""
    if not known:
        return 0.0
    exponent = 0.75 * derived
    if len(known) > 1:
        exponent = slope(*zip(*known[-2:], strict=True))
    last, seconds = known[-1]
    return float(seconds * (value / last) ** exponent)


def run_point(size: dict[str, int], skip: dict[str, str]) -> dict:
    """All tasks of a point, in this process."""
    from _tasks import Point, Size

    warnings.simplefilter("ignore")
    point = Point(Size(**size))
    tasks: dict[str, dict] = {}
    for name, ours, by_hand in point.tasks():
        tasks[name] = {}
        for side, run in (("ours", ours), ("by_hand", by_hand)):
            reason = skip.get(f"{name}/{side}")
            tasks[name][side] = {"reason": reason} if reason else clock(run)
    return {"size": asdict(point.size), "tasks": tasks}


def clock(run: Callable[[], Any], enough: float = 0.3, turns: int = 5) -> dict:
    """Smallest times of a few runs, and the memory the first one took."""
    seconds = wall = float("inf")
    spent, peak = 0.0, None
    for turn in range(turns):
        before = reset_peak() if turn == 0 else None
        begun = time.perf_counter(), time.process_time()
        run()
        took = time.perf_counter() - begun[0], time.process_time() - begun[1]
        wall, seconds = min(wall, took[0]), min(seconds, took[1])
        if before is not None:
            peak = status("VmHWM") - before
        spent += took[1]
        if spent > (enough if turn else LONG):  # the first turn also warms up
            break
    return {"seconds": seconds, "wall": wall, "peak_mib": peak}


def reset_peak() -> float | None:
    """Begin a new high-water mark (Linux); the memory held now, in MiB."""
    try:
        ctypes.CDLL(None).malloc_trim(
            0
        )  # what is free but still held would hide a peak
        Path("/proc/self/clear_refs").write_text("5")
    except (OSError, AttributeError):
        return None
    return status("VmRSS")


def status(name: str) -> float:
    """One entry of the process's own memory accounts, in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    raise KeyError(name)


# ---- slopes and ratios ---------------------------------------------------------------


def slopes(points: list[dict], quantity: str = "seconds") -> dict:
    """Exponent of each task's time in each factor: all points, and the last three."""
    result: dict[str, dict] = {}
    for factor in dict.fromkeys(point["factor"] for point in points):
        scan = sorted(
            (p for p in points if p["factor"] == factor), key=lambda p: p["value"]
        )
        result[factor] = {}
        for name in scan[0]["tasks"]:
            known = [
                (p["value"], p["tasks"][name]["ours"][quantity])
                for p in scan
                if quantity in p["tasks"][name]["ours"]
            ]
            if len(known) >= 3:
                values, seconds = map(list, zip(*known, strict=True))
                result[factor][name] = {
                    "all": slope(values, seconds),
                    "last three": slope(values[-3:], seconds[-3:]),
                }
    return result


def ratios(point: dict) -> dict[str, float]:
    """Ours over by hand, for tasks that both sides ran long enough to be timed."""
    result = {}
    for name, sides in point["tasks"].items():
        times = [sides[side].get("seconds", 0.0) for side in ("ours", "by_hand")]
        if min(times) > SHORTEST:
            result[name] = times[0] / times[1]
    return result


def summary(point: dict) -> str:
    """One line: the ratio of each task."""
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(point).items())


def check(record: dict, limit: float) -> int:
    """Measure some points anew; 1 where a ratio has become worse."""
    worse = []
    for factor, values in CHECKED.items():
        for size in sizes_of(factor, values):
            known = [p for p in record["points"] if p["size"] == size]
            if known:
                skip = too_long(record, factor, size[factor], limit)
                now = in_own_process(size, skip)
                worse += regressions(known[0], now)
    for line in worse:
        print(line)
    print(f"{len(worse)} ratios worse than the record's by {TOLERANCE} or more")
    return 1 if worse else 0


def regressions(known: dict, now: dict, tolerance: float = TOLERANCE) -> list[str]:
    """Tasks whose ratio to the library has grown by more than the tolerance."""
    before, after = ratios(known), ratios(now)
    return [
        f"{known['size']}: {name} took {before[name]:.2f} x by hand, now {ratio:.2f} x"
        for name, ratio in after.items()
        if name in before and ratio > tolerance * max(before[name], 1 / tolerance)
    ]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
