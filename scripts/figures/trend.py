"""Draw docs/images/plot-trend.png: rodents of Portal by year, classes as found.

Run from the root of the repository, with SHOAL_DATA_DIR:

    python scripts/figures/trend.py
"""

import argparse
from pathlib import Path

import matplotlib as mpl

import shoal
from shoal.datasets import load_portal_rodents

IMAGE = Path("docs/images/plot-trend.png")


def draw() -> None:
    """Fit by year, follow the mix, save the figure."""
    mpl.use("agg")
    table = load_portal_rodents(domains="year", max_rows=3000, random_state=0)
    model = shoal.DomainMixture(4, random_state=0).fit(table.X, table.domains)
    found = shoal.trend(model, table.X, table.domains, random_state=0)
    for one in found.changes:
        print(one.last, one.first, one.p_value)
    found.plot().figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    draw()
