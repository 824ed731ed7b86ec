"""Blocks of the pages on load and on attacks, from their records."""

import json
from pathlib import Path
from typing import Any

from bench_blocks import table

RESULTS = Path(__file__).parents[1] / "results"


def load() -> str:
    """Bare fits of large tables, and ``shoal fit`` of a folder of Parquet files."""
    points = dict(read("performance/load.json")["points"])
    parts = points.pop("parquet-2000000")
    rows = [
        [
            *(f"{one[key]:,}" for key in ("rows", "domains", "classes", "columns")),
            f"{one['seconds']:.0f} s",
            f"{1e6 * one['seconds'] / (one['rows'] * one['classes']):.0f} µs",
            f"{one['peak_mib']:,} MiB",
            f"{one['accuracy']:.3f}",
        ]
        for one in points.values()
    ]
    head = ["rows", "domains", "classes", "columns", "processor time",
            "a row and class", "peak memory", "rows in the right class"]  # fmt: skip
    stages = ", ".join(f"{name} {one:.1f} s" for name, one in parts["stages"].items())
    seconds, bare = f"{parts['seconds']:.1f} s", f"{parts['bare_fit_seconds']:.1f} s"
    return (
        f"{table(head, rows)}\n"
        f"`shoal fit` on {parts['rows']:,} rows in a folder of Parquet files, "
        "30 domains and 3 classes, with its checks, 200 resamples and the class of "
        f"every row: **{seconds}** ({stages}), {parts['ratio']:.2f} times the {bare} "
        "that `DomainMixture.fit` alone takes on the "
        f"{parts['sample']:,} rows it learns from."
    )


def attacks() -> str:
    """What was tried, how often, and how often it went wrong."""
    files, models = read("attack/files.json"), read("attack/models.json")
    runs, disk = read("attack/runs.json"), read("attack/full_disk.json")
    steps = sum(one["kills"] for one in runs["kills at every step"].values())
    writes = [
        one
        for way in ("full from a write on", "one write fails")
        for one in disk[way].values()
    ]
    told = runs["races"]
    rows = [
        ["bad files", files["command"], files["files"], files["faults"]],
        ["forged models", models["command"], models["models"], len(models["bad"])],
        ["kills at every step", runs["command"], steps, 0],
        ["kills at random", runs["command"], runs["kills at random"]["killed"], 0],
        ["two commands, one folder", runs["command"], sum(told.values()), 0],
        ["disk full at a write", disk["command"], sum(one["writes"] for one in writes),
         sum(len(one["faults"]) for one in writes)],
    ]  # fmt: skip
    head = ["what was tried", "command", "how often", "faults"]
    return table(
        head, [[a, f"`{b}`", f"{tried:,}", f"{bad:,}"] for a, b, tried, bad in rows]
    )


def read(name: str) -> dict[str, Any]:
    """A record."""
    found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
    return found
