"""Draw docs/images/unknown.png: what is said of a class that was left out of the fit.

Run from the root of the repository, after ``python benchmarks/tabular/unknown.py``:

    python scripts/figures/unknown.py
"""

import argparse
import json
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt

RECORD = Path("results/tabular/unknown.json")
IMAGE = Path("docs/images/unknown.png")
SHARES = (0, 5, 20, 50)


def draw() -> None:
    """Share that is new, and what new domains of 1,000 rows are said to hold."""
    mpl.use("agg")
    summary = json.loads(RECORD.read_text(encoding="utf-8"))["summary"]
    part = next(name for name in summary if name != "development")
    figure, axes = plt.subplots(
        1, 3, figsize=(9, 3.2), sharey=True, layout="constrained"
    )
    for axis, separation in zip(axes, (1, 2, 3), strict=True):
        lines = summary[part][f"DensityMixture, separation {separation}"]
        found = [lines[f"1000 rows, {share}%"] for share in SHARES]
        low, guess, high = (
            [one[key] for one in found] for key in ("low", "guess", "high")
        )
        truth = [share / 100 for share in SHARES]
        axis.plot([0, 0.5], [0, 0.5], color="0.6", linestyle=":", label="truth")
        axis.vlines(truth, low, high, color="#0072B2", alpha=0.5, linewidth=5)
        axis.plot(truth, guess, "o", color="#D55E00", label="best guess")
        axis.set_title(f"separation {separation}", fontsize=10)
        axis.set_xlabel("share of the class left out")
    axes[0].set_ylabel("said to be new")
    axes[2].legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
