"""Draw the README's picture from a real fit of the penguins.

    python scripts/figures/overview.py

Writes docs/images/overview.png: what goes in (measurements and islands), the geometry
that finds the classes (every row in the triangle of islands, classes at the corners),
and what comes out (a class for every row, and the mix of classes on every island).
"""

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from shoal import DomainMixture
from shoal.datasets import load_penguins

FIGURE = Path(__file__).parents[2] / "docs" / "images" / "overview.png"
# Okabe and Ito: told apart by colour-blind readers too
CLASS_COLOURS = ("#0072B2", "#E69F00", "#009E73")
MARKERS = ("o", "s", "^")
GREYS = ("#1A1A1A", "#7A7A7A", "#B5B5B5")
TRIANGLE = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def main() -> None:
    """Fit once, draw four panels."""
    data = load_penguins()
    model = DomainMixture(random_state=0).fit(data.X, data.domains)
    intervals = model.bootstrap(data.X, data.domains, random_state=0)
    figure, panels = plt.subplots(2, 2, figsize=(9.6, 7.6), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)
    draw_rows(panels[0, 0], data, data.domains, model.domains_, GREYS, "island")
    title(panels[0, 0], "1  In: rows, and where each came from")
    draw_geometry(panels[0, 1], data, model)
    classes = [f"c{label}" for label in range(model.n_classes_)]
    found = np.array(classes)[model.labels_]
    draw_rows(panels[1, 0], data, found, classes, CLASS_COLOURS, "class")
    title(panels[1, 0], "3  Out: a class for every row")
    draw_prevalence(panels[1, 1], intervals)
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})


def draw_rows(
    panel: Any, data: Any, groups: Any, names: Any, colours: Any, what: str
) -> None:
    """Two of the four measurements, coloured by group."""
    length = data.X[:, data.feature_names.index("bill_length_mm")]
    depth = data.X[:, data.feature_names.index("bill_depth_mm")]
    for name, colour, marker in zip(names, colours, MARKERS, strict=True):
        rows = groups == name
        panel.scatter(
            length[rows],
            depth[rows],
            s=20,
            color=colour,
            marker=marker,
            edgecolor="white",
            linewidth=0.4,
            label=name,
        )
    panel.set(xlabel="bill length (mm)", ylabel="bill depth (mm)")
    panel.legend(title=what, frameon=False, loc="lower left", fontsize=9)


def draw_geometry(panel: Any, data: Any, model: Any) -> None:
    """Every row at its q(d|x) among the islands; the classes are the corners."""
    T = model.domain_given_class_
    # Most rows lie on a corner and would hide one another: scatter shows how many.
    rng = np.random.default_rng(0)
    points = model.predict_proba(data.X) @ T @ TRIANGLE
    points += rng.normal(scale=0.022, size=points.shape)
    panel.add_patch(plt.Polygon(TRIANGLE, fill=False, edgecolor=GREYS[2]))
    panel.add_patch(plt.Polygon(T @ TRIANGLE, color="#F2EBDD", zorder=0))
    for label, corner in enumerate(T @ TRIANGLE):
        rows = model.labels_ == label
        style = {"color": CLASS_COLOURS[label], "marker": MARKERS[label]}
        panel.scatter(*points[rows].T, s=12, alpha=0.6, linewidth=0, **style)
        outwards = corner - points.mean(axis=0)
        panel.annotate(
            f"c{label}",
            corner,
            xytext=22 * outwards / np.linalg.norm(outwards),
            textcoords="offset points",
            ha="center",
            va="center",
            fontweight="bold",
            color=CLASS_COLOURS[label],
        )
    places = {"ha": "center", "color": GREYS[0], "fontsize": 10}
    below = {"va": "top", **places}
    panel.annotate(model.domains_[0], TRIANGLE[0] - (0, 0.07), **below)
    panel.annotate(model.domains_[1], TRIANGLE[1] - (0, 0.07), **below)
    panel.annotate(model.domains_[2], TRIANGLE[2] + (0, 0.03), **places)
    panel.margins(0.15)
    panel.set_aspect("equal", adjustable="datalim")
    panel.axis("off")
    title(panel, "2  Guessing the island: classes are the corners")


def draw_prevalence(panel: Any, intervals: Any) -> None:
    """Mix of classes on every island, dots with intervals."""
    n_domains, n_classes = intervals.prevalence.shape
    for label in range(n_classes):
        height = np.arange(n_domains) + 0.22 * (label - (n_classes - 1) / 2)
        middle = intervals.prevalence[:, label]
        reach = np.abs([middle - intervals.low[:, label],
                        intervals.high[:, label] - middle])  # fmt: skip
        panel.errorbar(
            middle,
            height,
            xerr=reach,
            fmt=MARKERS[label],
            color=CLASS_COLOURS[label],
            markersize=7,
            capsize=3,
            clip_on=False,
            label=f"c{label}",
        )
    names = [
        f"{domain}\n({rows} rows)"
        for domain, rows in zip(intervals.domains, intervals.n_rows, strict=True)
    ]
    panel.set_yticks(range(n_domains), names)
    panel.invert_yaxis()
    panel.set_xlim(0, 1)
    panel.xaxis.set_major_formatter("{x:.0%}")
    panel.set_xlabel(f"share of the island's rows, {intervals.level:.0%} intervals")
    panel.grid(axis="x", color="#EEEEEE")
    panel.set_axisbelow(True)
    title(panel, "4  Out: the mix of classes in every domain")


def title(panel: Any, text: str, x: float = 0.0) -> None:
    """Left-aligned title, no frame on top and right."""
    panel.set_title(text, loc="left", fontsize=11, x=x)
    panel.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    plt.rcParams.update({"font.size": 10})
    main()
