"""Draw docs/images/plot-tree.png: penguins, from two classes to three.

Run from the root of the repository:

    python scripts/figures/tree.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl

import shoal
from shoal.datasets import load_penguins

IMAGE = Path("docs/images/plot-tree.png")


def draw() -> None:
    """Fit, grow the tree, save the figure."""
    mpl.use("agg")
    birds = load_penguins()
    model = shoal.DomainMixture(3, random_state=0).fit(birds.X, birds.domains)
    tree = model.tree(birds.X, birds.domains, feature_names=birds.feature_names)
    print(tree.to_pandas().T)
    tree.plot().figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
