"""Draw docs/images/known.png: accuracy by the number of known rows of each class.

Run from the root of the repository; reads results/tabular/known.json:

    python scripts/figures/known.py
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

RECORD = Path("results/tabular/known.json")
IMAGE = Path("docs/images/known.png")
KNOWN = (0, 1, 5, 20)
# The better of the two variants of a peer is drawn: its columns alone, or with domains.
LINES = {
    "DomainMixture": ("#0072B2", "-"),
    "DensityMixture": ("#D55E00", "-"),
    "self-training": ("#777777", "--"),
    "label spreading": ("#777777", ":"),
    "known rows alone": ("#777777", "-."),
}


def draw() -> None:
    """One panel for each table."""
    mpl.use("agg")
    record = json.loads(RECORD.read_text())
    found, tables = record["summary"], record["settings"]["tables"]
    figure, panels = plt.subplots(1, len(tables), figsize=(10, 3.4), sharey=True)
    for panel, table in zip(panels, tables, strict=True):
        for method, (color, style) in LINES.items():
            points = {}
            for place, count in enumerate(KNOWN):
                scores = found[f"{table}, {count} known"]["accuracy"]
                variants = (method, f"{method} + domain")
                known = [scores[name][0] for name in variants if name in scores]
                if known:
                    points[place] = max(known)
            panel.plot(*zip(*points.items(), strict=True), style, color=color,
                       marker="o", markersize=4, label=method)  # fmt: skip
        panel.set_title(table)
        panel.set_xticks(range(len(KNOWN)), map(str, KNOWN))
        panel.set_xlabel("known rows of each class")
    panels[0].set_ylabel("accuracy of the other rows")
    panels[-1].legend(fontsize=7, loc="lower right")
    figure.tight_layout()
    figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
