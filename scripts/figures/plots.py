"""Draw docs/images/plot-*.png: the figures of a fit, as its methods make them.

Run from the root of the repository:

    python scripts/figures/plots.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl

from shoal import DomainMixture
from shoal.datasets import load_penguins

IMAGES = Path("docs/images")


def draw() -> None:
    """Fit the penguins and save each figure."""
    mpl.use("agg")
    data = load_penguins(as_frame=True)
    rows = data.X, data.domains
    model = DomainMixture(3, random_state=0).fit(*rows)
    model = model.set_names(["Adelie", "Gentoo", "Chinstrap"])
    figures = {
        "prevalence": model.plot_prevalence(model.bootstrap(*rows, random_state=0)),
        "map": model.plot_map(*rows),
        "classes": model.plot_classes(*rows),
        "choice": model.plot_choice(*rows, range(2, 6)),
    }
    for name, ax in figures.items():
        ax.figure.savefig(IMAGES / f"plot-{name}.png", dpi=110)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
