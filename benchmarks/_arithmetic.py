"""A billion rows, a million images: arithmetic from the rates that were measured.

Every rate is that of the largest size in its record.
"""

import json
from pathlib import Path
from typing import Any

BILLION, MILLION = 1_000_000_000, 1_000_000
CORES, GPUS, EPOCHS = 64, 8, 500


def arithmetic(record: dict[str, Any], folder: Path) -> list[str]:
    """Tables for rows in memory, rows in parts, and images."""
    lines = head("a billion rows x 30 in memory, 30 domains, 10 classes")
    scan = scan_of(record, "rows")
    for name in scan[-1]["tasks"] if scan else []:
        known = [p for p in scan if "seconds" in p["tasks"][name]["ours"]]
        largest = known[-1]
        rate = largest["tasks"][name]["ours"]["seconds"] / largest["value"]
        lines.append(billion(name, largest["value"], rate * BILLION))
    return lines + in_parts(folder) + images(folder)


def scan_of(record: dict[str, Any], factor: str) -> list[dict]:
    """Points of one factor, smallest first."""
    points = [p for p in record["points"] if p["factor"] == factor]
    return sorted(points, key=lambda p: p["value"])


def in_parts(folder: Path) -> list[str]:
    """Steps that read Parquet in parts; learning sees a sample, whose size stays."""
    scale, io = read(folder / "scale.json"), read(folder / "io.json")
    lines = head("a billion rows x 20 from Parquet, 50 domains, 10 classes")
    if scale is not None:
        rows = max(map(int, scale["sizes"]))
        largest = scale["sizes"][str(rows)]
        costs = {
            "DomainMixture": passes(largest["scale"]),
            "DDFA": passes(scale["DDFA"]["scale"]),
            "predict, DomainMixture": largest["predict_seconds"],
        }
        for name, seconds in costs.items():
            core_seconds = scale["workers"] * seconds / rows * BILLION
            what = name if "predict" in name else f"fit, {name}: passes over all rows"
            lines.append(billion(what, rows, core_seconds))
    if io is not None:
        cost = BILLION / io["rows_per_second"]
        lines.append(billion("read, assign and write, one process", io["rows"], cost))
    return ["", *lines] if scale or io else []


def passes(found: dict[str, Any]) -> float:
    """Seconds of the steps of a fit that see all rows."""
    return float(sum(s["seconds"] for s in found["stages"] if s["stage"] != "learn"))


def images(folder: Path) -> list[str]:
    """Contrastive training at the best rate of the profile."""
    pretrain = read(folder / "pretrain_h200.json")
    if pretrain is None:
        return []
    views = max(variant["views_per_second"] for variant in pretrain["variants"])
    hours = 2 * MILLION * EPOCHS / views / 3600
    size = MILLION * 32 * 32 * 3 / 2**30
    return [
        "",
        f"| a million images of 32 x 32, {pretrain['device']} | one | {GPUS} |",
        "|---|---|---|",
        f"| SimCLR, {EPOCHS} epochs, {views:,.0f} views a second | {hours:.1f} h "
        f"| {hours / GPUS:.1f} h |",
        f"| the images themselves, as bytes on the device | {size:.1f} GiB "
        f"| {size / GPUS:.1f} GiB |",
    ]


def head(title: str) -> list[str]:
    """Two lines that begin a table."""
    columns = f"| {title} | measured at | core hours | on {CORES} cores |"
    return [columns, "|---|---|---|---|"]


def billion(name: str, rows: int, core_seconds: float) -> str:
    """One line: the whole on one core, and divided by many."""
    spread = core_seconds / CORES
    shown = f"{spread / 60:.0f} min" if spread > 120 else f"{spread:.0f} s"
    return f"| {name} | {rows:,} rows | {core_seconds / 3600:.2f} | {shown} |"


def read(path: Path) -> dict[str, Any] | None:
    """Return a record, if it is there."""
    return dict(json.loads(path.read_text())) if path.exists() else None
