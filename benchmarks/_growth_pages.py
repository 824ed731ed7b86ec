"""The growth suite's record as a Markdown table and as plots."""

from pathlib import Path
from typing import Any

FACTORS = {
    "rows": "30 domains, 10 classes, 30 features",
    "domains": "20,000 rows, 3 classes, 30 features",
    "classes": "20,000 rows, 100 domains, 30 features",
    "features": "20,000 rows, 30 domains, 10 classes",
}


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
            text += ["", *slope_table(record["slopes"].get(factor, {}))]
    (folder / "growth.md").write_text("\n".join(text) + "\n")
    plot(record, folder / "growth.svg")
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


def slope_table(slopes: dict) -> list[str]:
    """Exponents of the time."""
    if not slopes:
        return []
    lines = ["| exponent of the time | all points | last three |", "|---|---|---|"]
    lines += [
        f"| {name} | {found['all']:.2f} | {found['last three']:.2f} |"
        for name, found in slopes.items()
    ]
    return lines


def plot(record: dict[str, Any], path: Path) -> None:
    """Seconds against each factor, one panel each, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "shoal"  # the same record gives the same file
    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    names = list(record["points"][0]["tasks"])
    for axis, factor in zip(axes.ravel(), FACTORS, strict=True):
        points = scan_of(record, factor)
        for index, name in enumerate(names):
            known = [
                (p["value"], p["tasks"][name]["ours"]["seconds"])
                for p in points
                if "seconds" in p["tasks"][name]["ours"]
            ]
            if known:
                axis.loglog(*zip(*known, strict=True), marker="o", ms=3,
                            color=f"C{index}", label=name)  # fmt: skip
        axis.set(xlabel=factor, ylabel="processor seconds", title=FACTORS[factor])
        axis.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
