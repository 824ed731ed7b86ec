"""Draw docs/images/plot-explanation.png: why a doubtful penguin is what it is.

Run from the root of the repository:

    python scripts/figures/explanation.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

from shoal import DomainMixture
from shoal.datasets import load_penguins
from shoal.plots import plot_explanation

IMAGE = Path("docs/images/plot-explanation.png")


def draw() -> None:
    """Explain the row of the penguins that two classes want most."""
    mpl.use("agg")
    data = load_penguins(as_frame=True)
    model = DomainMixture(3, random_state=0).fit(data.X, data.domains)
    model = model.set_names(["Adelie", "Gentoo", "Chinstrap"])
    doubt = np.sort(model.predict_proba(data.X, data.domains), axis=1)[:, -1]
    row = int(doubt.argmin())
    found = model.explain(data.X.iloc[[row]], data.domains[row])
    print(found)
    plot_explanation(found, n_classes=3).figure.savefig(IMAGE, dpi=110)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
