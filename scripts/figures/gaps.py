"""Draw docs/images/gaps.png: accuracy by the share of empty cells.

Run from the root of the repository; reads results/tabular/gaps.json:

    python scripts/figures/gaps.py
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

RECORD = Path("results/tabular/gaps.json")
IMAGE = Path("docs/images/gaps.png")
LINES = {
    "default": ("DomainMixture", "#0072B2", "-"),
    "looks": ("DensityMixture", "#D55E00", "-"),
    "expected": ("by shift, expected", "#009E73", "--"),
    "masked": ("by shift, masked", "#009E73", ":"),
    "median": ("median first", "#777777", "-."),
}


def draw() -> None:
    """One panel for each table and kind of gaps."""
    mpl.use("agg")
    lines = json.loads(RECORD.read_text())["summary"]
    kinds = sorted(
        {(line["data"], line["gaps"]) for line in lines if line["data"] == "penguins"}
    )
    figure, panels = plt.subplots(1, len(kinds), figsize=(8, 3.4), sharey=True)
    for panel, (data, gaps) in zip(panels, kinds, strict=True):
        mine = [line for line in lines if (line["data"], line["gaps"]) == (data, gaps)]
        shares = [100 * line["share"] for line in mine]
        for method, (name, color, style) in LINES.items():
            values = [line[method][0] for line in mine]
            panel.plot(shares, values, style, color=color, marker="o", markersize=4,
                       label=name)  # fmt: skip
        panel.set_title(f"{data}, {gaps}", fontsize=10)
        panel.set_xlabel("empty cells, %")
        panel.set_xticks(shares)
    panels[0].set_ylabel("accuracy")
    panels[0].legend(fontsize=7, loc="lower left")
    figure.tight_layout()
    figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
