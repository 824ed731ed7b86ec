"""What grows with what: time and memory against rows, domains, classes and features.

    OMP_NUM_THREADS=1 python benchmarks/growth.py            # all points not yet there
    python benchmarks/growth.py --check                      # a few points, by ratio
    python benchmarks/growth.py --pages                      # table and plots only

One factor at a time, from a middle point; each point in a process of its own, where
ours and what a user would write by hand take turns. Times are processor times, the
smallest of the turns; memory is the peak beyond what was there before the task. A task
that would take longer than ``--limit`` seconds, or more than ``--memory`` GiB beyond
the rows, judged by the points before it, is left out, and the record says so.
``--check`` measures some points anew and compares ratios to the library calls with the
record: seconds are another machine's business. What is worse is measured once more,
because a neighbour on the machine can slow one side down.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from _arithmetic import scan_of
from _growth_pages import DERIVED, write_pages
from _measure import ROOT, environment, race, slope, write_json

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
SIDES = ("ours", "by_hand")
# A ratio this much above the recorded one is a regression; neighbours on the machine
# move it by less.
TOLERANCE = 1.5
# Tasks shorter than this say more about the clock than about the code.
SHORTEST = 0.005
# Memory below this many MiB is the interpreter's.
SMALLEST = 4.0


def main() -> int:
    """Measure, check or draw; the exit code of --check is 1 after a regression."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=SCANS, default=list(SCANS))
    parser.add_argument("--values", nargs="+", type=int, help="only these points")
    parser.add_argument("--limit", type=float, default=40.0)
    parser.add_argument("--memory", type=float, default=14.0)
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
        return check(record, args.limit, args.memory)
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
            skip = too_much(record, factor, value, args.limit, args.memory)
            skip |= measured(point)
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


def too_much(
    record: dict, factor: str, value: int, limit: float, memory: float
) -> dict[str, str]:
    """Sides that the points before say would be too slow or too large, with why."""
    before = [p for p in scan_of(record, factor) if p["value"] < value]
    reasons: dict[str, str] = {}
    for name in before[0]["tasks"] if before else []:
        for side in SIDES:
            runs = {p["value"]: p["tasks"][name][side] for p in before}
            seconds = known(runs, "seconds")
            expected = expect(seconds, value, DERIVED[name][factor])
            gib = linearly(known(runs, "peak_mib"), value) / 1024
            if expected > limit:
                reasons[f"{name}/{side}"] = f"left out: about {expected:.0f} s"
            elif factor == "rows" and gib > memory:
                reasons[f"{name}/{side}"] = f"left out: about {gib:.0f} GiB"
    return reasons


def known(runs: dict[int, dict], quantity: str) -> list[tuple[int, float]]:
    """Values and what was measured there, where it was."""
    return [(value, run[quantity]) for value, run in runs.items() if run.get(quantity)]


def expect(known: list[tuple[int, float]], value: int, derived: float) -> float:
    """Extrapolate the last two points; one, three quarters as steep as derived."""
    if not known:
        return 0.0
    exponent = 0.75 * derived
    if len(known) > 1:
        exponent = slope(*zip(*known[-2:], strict=True))
    last, measured = known[-1]
    return float(measured * (value / last) ** exponent)


def linearly(known: list[tuple[int, float]], value: int) -> float:
    """Extrapolate the last point in proportion."""
    last, measured = known[-1] if known else (1, 0.0)
    return measured * value / last


def run_point(size: dict[str, int], skip: dict[str, str]) -> dict:
    """All tasks of a point, in this process."""
    from _tasks import Point, Size

    warnings.simplefilter("ignore")
    point = Point(Size(**size))
    tasks: dict[str, dict] = {}
    for name, ours, by_hand in point.tasks():
        sides = dict(zip(SIDES, (ours, by_hand), strict=True))
        reasons = {side: skip.get(f"{name}/{side}") for side in sides}
        found = race({side: run for side, run in sides.items() if not reasons[side]})
        tasks[name] = {
            side: found.get(side, {"reason": reason})
            for side, reason in reasons.items()
        }
    return {"size": asdict(point.size), "tasks": tasks}


# ---- slopes and ratios ---------------------------------------------------------------


def slopes(points: list[dict]) -> dict:
    """Exponents of each task in each factor: of its time and of its memory."""
    result: dict[str, dict] = {}
    for factor in dict.fromkeys(point["factor"] for point in points):
        scan = scan_of({"points": points}, factor)
        result[factor] = {}
        for name in scan[0]["tasks"]:
            runs = {p["value"]: p["tasks"][name]["ours"] for p in scan}
            seconds = known(runs, "seconds")
            memory = [one for one in known(runs, "peak_mib") if one[1] > SMALLEST]
            if len(seconds) >= 3:
                result[factor][name] = {
                    "all": slope(*zip(*seconds, strict=True)),
                    "last three": slope(*zip(*seconds[-3:], strict=True)),
                    "memory": slope(*zip(*memory, strict=True))
                    if len(memory) >= 3
                    else None,
                }
            ends = [runs[value] for value, _ in seconds[-3:]]
            if len(seconds) >= 3 and all("iterations" in run for run in ends):
                result[factor][name]["one iteration"] = slope(
                    [value for value, _ in seconds[-3:]],
                    [run["seconds"] / run["iterations"] for run in ends],
                )
    return result


def ratios(point: dict) -> dict[str, float]:
    """Ours over by hand, for tasks that both sides ran long enough to be timed."""
    result = {}
    for name, sides in point["tasks"].items():
        times = [sides[side].get("seconds", 0.0) for side in SIDES]
        if min(times) > SHORTEST:
            result[name] = times[0] / times[1]
    return result


def summary(point: dict) -> str:
    """One line: the ratio of each task."""
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios(point).items())


def check(record: dict, limit: float, memory: float) -> int:
    """Measure some points anew; 1 where a ratio has become worse."""
    worse = []
    for factor, values in CHECKED.items():
        for size in sizes_of(factor, values):
            for point in (p for p in record["points"] if p["size"] == size):
                skip = too_much(record, factor, size[factor], limit, memory)
                worse += grown(point, skip)
    for line in worse:
        print(line)
    print(f"{len(worse)} ratios worse than the record's by {TOLERANCE} or more")
    return 1 if worse else 0


def grown(point: dict, skip: dict[str, str]) -> list[str]:
    """Ratios worse than the point's own: now, and when measured once more."""
    now = in_own_process(point["size"], skip)
    print(f"{point['size']}: {summary(now)}", flush=True)
    first = regressions(point, now)
    if not first:
        return []
    again = regressions(point, in_own_process(point["size"], skip))
    return [line for name, line in again.items() if name in first]


def regressions(known: dict, now: dict) -> dict[str, str]:
    """Tasks whose ratio to the library has grown by more than the tolerance."""
    before, after = ratios(known), ratios(now)
    return {
        name: f"{known['size']}: {name} took {before[name]:.2f} x by hand, now "
        f"{ratio:.2f} x"
        for name, ratio in after.items()
        if name in before and ratio > TOLERANCE * max(before[name], 1 / TOLERANCE)
    }


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
