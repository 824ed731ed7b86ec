"""Draw docs/images/plot-update.png: penguins of more islands and years join a model.

Run from the root of the repository:

    python scripts/figures/update.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

import shoal
from shoal.datasets import load_penguins
from shoal.plots import plot_update

IMAGE = Path("docs/images/plot-update.png")


def draw() -> None:
    """Two halves of Palmer Station: one is fitted, the other joins, moved a little."""
    mpl.use("agg")
    data = load_penguins(as_frame=True)
    rng = np.random.default_rng(0)
    first, half = rng.random((2, len(data.X))) < [[0.6], [0.5]]
    before = data.X[first], data.domains[first]
    model = shoal.DomainMixture(3, random_state=0).fit(*before)
    model = model.set_names(["Adelie", "Gentoo", "Chinstrap"])
    # of Dream only birds with short bills came, and half of the others are of Anvers
    short = data.X["bill_length_mm"].to_numpy() < 45
    new = ~first & ((data.domains != "Dream") | short)
    domains = np.where(half, data.domains, "Anvers")
    domains = np.where(data.domains == "Dream", data.domains, domains)
    found = shoal.update(model, data.X[new], domains[new], before=before)
    print(found)
    plot_update(found).figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
