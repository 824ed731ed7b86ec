"""The growth suite's record as Markdown tables, as sentences and as plots."""

import json
from pathlib import Path
from typing import Any

from _arithmetic import arithmetic, scan_of

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
FIT_SLOPE = 1.05
# Exponents closer to the derived ones than this agree with them.
ABOVE = 0.1


def write_pages(record: dict[str, Any], folder: Path) -> str:
    """Write tables, plots, sentences and arithmetic beside the record; say where."""
    page = [
        "# What grows with what, measured",
        "",
        f"Command: `{record['command']}`. Processor time of one thread, smallest of "
        "the turns; peak memory beyond the rows; ratio to what a user would write by "
        "hand with the library.",
    ]
    for factor, middle in FACTORS.items():
        points = scan_of(record, factor)
        if points:
            page += ["", f"## {factor} ({middle})", "", *table(points)]
            page += ["", *slope_table(record["slopes"].get(factor, {}), factor)]
    (folder / "growth.md").write_text("\n".join(page) + "\n")
    plot(record, folder / "growth.svg")
    for name, lines in (("reading", reading), ("arithmetic", arithmetic)):
        text = "\n".join(lines(record, folder))
        (folder / f"{name}.md").write_text(text + "\n")
    return f"{folder / 'growth.md'}, {folder / 'growth.svg'}"


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


# ---- what it says --------------------------------------------------------------------


def reading(record: dict[str, Any], folder: Path) -> list[str]:
    """Sentences whose numbers are the record's."""
    lines = [
        f"- {name}: exponent {found['all']:.2f} in rows, from {span(record, name)} "
        f"rows; {found['last three']:.2f} over the last three sizes"
        f"{one_iteration(record, name, found)} (wanted of a fit: at most "
        f"{FIT_SLOPE})."
        for name, found in record["slopes"].get("rows", {}).items()
        if name.endswith(".fit")
    ]
    if (folder / "mixture.json").exists():
        rows = json.loads((folder / "mixture.json").read_text())["rows"]
        lines.append(
            f"- A searched `DomainMixture` fit: exponent "
            f"{rows['slope']['searched']['all']:.2f} from {rows['rows'][0]:,} to "
            f"{rows['rows'][-1]:,} rows (`benchmarks/mixture.py`)."
        )
    above = [
        f"{name} {found['last three']:.2f} in {factor} ({DERIVED[name][factor]})"
        for factor, tasks in record["slopes"].items()
        for name, found in tasks.items()
        if found["last three"] > DERIVED[name][factor] + ABOVE
    ]
    lines.append(
        f"- Steeper than derived by more than {ABOVE} over the last three sizes "
        f"(derived): {', '.join(above) or 'nothing'}."
    )
    return lines + repairs(record) + by_hand(record)


def one_iteration(record: dict[str, Any], name: str, found: dict[str, Any]) -> str:
    """What is left of an exponent when a fit's iterations are counted."""
    if "one iteration" not in found:
        return ""
    runs = [p["tasks"][name]["ours"] for p in scan_of(record, "rows")]
    counts = [str(run["iterations"]) for run in runs if "seconds" in run][-3:]
    return (
        f", {found['one iteration']:.2f} for one iteration ({', '.join(counts)} "
        "of them)"
    )


def repairs(record: dict[str, Any]) -> list[str]:
    """Tasks that were made faster after they had been measured here."""
    return [
        f"- {name} at {point['value']:,} {point['factor']}: {seconds(earlier)} when "
        f"first measured, {seconds(point['tasks'][name]['ours']['seconds'])} now."
        for point in record["points"]
        for name, earlier in point.get("before", {}).items()
    ]


def span(record: dict[str, Any], name: str) -> str:
    """Smallest and largest number of rows a task has seen."""
    scan = scan_of(record, "rows")
    seen = [p["value"] for p in scan if "seconds" in p["tasks"][name]["ours"]]
    return f"{seen[0]:,} to {seen[-1]:,}"


def by_hand(record: dict[str, Any]) -> list[str]:
    """DDFA.fit against the dozen lines of a pipeline, k-means and NMF."""
    ratios = {
        (p["factor"], p["value"]): sides["ours"]["seconds"]
        / sides["by_hand"]["seconds"]
        for p in record["points"]
        for sides in [p["tasks"]["DDFA.fit"]]
        if all("seconds" in side for side in sides.values())
    }
    if not ratios:
        return []
    low, high = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return [
        f"- `DDFA.fit` against scikit-learn's pipeline, k-means and NMF by hand: "
        f"{ratios[low]:.1f} times as long ({low[1]:,} {low[0]}) to {ratios[high]:.1f} "
        f"times ({high[1]:,} {high[0]}), at {len(ratios)} points. By hand, the "
        "discriminator is fitted once and on the rows it then judges, and k-means runs "
        "for one number of clusters; here it is fitted six times (five folds, then all "
        "rows) and three numbers of clusters compete."
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
