"""The growth suite's record as Markdown tables, as plots, and as arithmetic."""

import json
from pathlib import Path
from typing import Any

import numpy as np

FACTORS = {
    "rows": "30 domains, 10 classes, 30 features",
    "domains": "20,000 rows, 3 classes, 30 features",
    "classes": "20,000 rows, 100 domains, 30 features",
    "features": "20,000 rows, 30 domains, 10 classes",
}
# Exponents that follow from the operations of one iteration; docs/scale_measured.md
# derives them. Iterations may grow too, and then a fit grows faster.
DERIVED = {
    "discriminate": {"rows": 1, "domains": 1, "classes": 0, "features": 1},
    "discretize": {"rows": 1, "domains": 1, "classes": 1, "features": 0},
    "factorize": {"rows": 1, "domains": 1, "classes": 2, "features": 0},
    "adjust": {"rows": 1, "domains": 1, "classes": 1, "features": 0},
    "DDFA.predict": {"rows": 1, "domains": 1, "classes": 1, "features": 1},
    "DomainMixture.predict": {"rows": 1, "domains": 0, "classes": 1, "features": 1},
    "DomainMixture.fit": {"rows": 1, "domains": 0, "classes": 1, "features": 1},
    "DDFA.fit": {"rows": 1, "domains": 1, "classes": 1, "features": 1},
}
BILLION, MILLION = 1_000_000_000, 1_000_000
CORES, GPUS, EPOCHS = 64, 8, 500


def write_pages(record: dict[str, Any], folder: Path) -> str:
    """Write growth.md and growth.svg beside the record; say where."""
    text = [
        "# What grows with what, measured",
        "",
        f"Command: `{record['command']}`. Processor time of one thread, smallest of "
        "the turns; peak memory beyond the rows; ratio to what a user would write by "
        "hand with the library.",
    ]
    for factor, middle in FACTORS.items():
        points = scan_of(record, factor)
        if points:
            text += ["", f"## {factor} ({middle})", "", *table(points)]
            text += ["", *slope_table(record["slopes"].get(factor, {}), factor)]
    (folder / "growth.md").write_text("\n".join(text) + "\n")
    plot(record, folder / "growth.svg")
    (folder / "arithmetic.md").write_text("\n".join(arithmetic(record, folder)) + "\n")
    return f"{folder / 'growth.md'}, {folder / 'growth.svg'}"


def scan_of(record: dict[str, Any], factor: str) -> list[dict]:
    """Points of one factor, smallest first."""
    points = [p for p in record["points"] if p["factor"] == factor]
    return sorted(points, key=lambda p: p["value"])


def table(points: list[dict]) -> list[str]:
    """One row per task: seconds, memory and ratio at each value."""
    values = [f"{p['value']:,}" for p in points]
    lines = ["| | " + " | ".join(values) + " |", "|---" * (len(values) + 1) + "|"]
    for name in points[0]["tasks"]:
        cells = [cell(p["tasks"][name]) for p in points]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def cell(sides: dict) -> str:
    """Seconds, MiB and ratio; or why there are none."""
    ours, by_hand = sides["ours"], sides["by_hand"]
    if "seconds" not in ours:
        return str(ours["reason"])
    shown = f"{seconds(ours['seconds'])}, {ours['peak_mib'] or 0:,.0f} MiB"
    if "seconds" in by_hand:
        shown += f" ({ours['seconds'] / by_hand['seconds']:.2f} x)"
    return shown


def seconds(value: float) -> str:
    """Seconds with two digits that count."""
    return f"{value * 1000:.1f} ms" if value < 0.1 else f"{value:.2f} s"


def slope_table(slopes: dict, factor: str) -> list[str]:
    """Exponents of the time and of the memory."""
    if not slopes:
        return []
    lines = [
        f"| exponent in {factor} | time, all points | last three | derived | memory |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {found['all']:.2f} | {found['last three']:.2f} "
        f"| {DERIVED[name][factor]} "
        f"| {'' if found['memory'] is None else format(found['memory'], '.2f')} |"
        for name, found in slopes.items()
    ]
    return lines


# ---- arithmetic ----------------------------------------------------------------------


def arithmetic(record: dict[str, Any], folder: Path) -> list[str]:
    """A billion rows and a million images from the rates that were measured."""
    lines = [
        f"| a billion rows x 30, 30 domains, 10 classes | measured at | core hours "
        f"| on {CORES} cores |",
        "|---|---|---|---|",
    ]
    scan = scan_of(record, "rows")
    for name in scan[-1]["tasks"] if scan else []:
        known = [p for p in scan if "seconds" in p["tasks"][name]["ours"]]
        largest = known[-1]
        rate = largest["tasks"][name]["ours"]["seconds"] / largest["value"]
        lines.append(_billion(name, f"{largest['value']:,} rows", rate * BILLION))
    if (folder / "io.json").exists():
        io = json.loads((folder / "io.json").read_text())
        cost = BILLION / io["rows_per_second"]
        where = f"{io['rows']:,} rows x {io['columns']}"
        lines.append(_billion("read, assign and write Parquet", where, cost))
    return lines + _images(folder)


def _billion(name: str, where: str, core_seconds: float) -> str:
    spread = core_seconds / CORES
    shown = f"{spread / 60:.0f} min" if spread > 120 else f"{spread:.0f} s"
    return f"| {name} | {where} | {core_seconds / 3600:.2f} | {shown} |"


def _images(folder: Path) -> list[str]:
    path = folder / "pretrain_h200.json"
    if not path.exists():
        return []
    pretrain = json.loads(path.read_text())
    views = float(np.max([v["views_per_second"] for v in pretrain["variants"]]))
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


# ---- plots ---------------------------------------------------------------------------


def plot(record: dict[str, Any], path: Path) -> None:
    """Seconds and memory against each factor, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "shoal"  # the same record gives the same file
    figure, axes = plt.subplots(4, 2, figsize=(10, 15), layout="constrained")
    quantities = {"seconds": "processor seconds", "peak_mib": "MiB beyond the rows"}
    for row, factor in zip(axes, FACTORS, strict=True):
        for axis, (quantity, label) in zip(row, quantities.items(), strict=True):
            draw_scan(axis, scan_of(record, factor), quantity)
            axis.set(xlabel=factor, ylabel=label, title=FACTORS[factor])
            axis.grid(alpha=0.3)
    if axes[0, 0].lines:
        axes[0, 0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_scan(axis: Any, points: list[dict], quantity: str) -> None:
    """One line per task, in the same colours everywhere."""
    for index, name in enumerate(DERIVED):
        runs = [(p["value"], p["tasks"][name]["ours"].get(quantity)) for p in points]
        shown = [run for run in runs if run[1]]  # no memory has no logarithm
        if shown:
            values, measured = zip(*shown, strict=True)
            style = {"marker": "o", "ms": 3, "color": f"C{index}", "label": name}
            axis.loglog(values, measured, **style)
