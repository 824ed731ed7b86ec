"""Draw docs/images/plot-comparison.png: cells of COVID-19 patients by state of disease.

Run from the root of the repository, with the table of counts (covid_cells.csv.xz):

    python scripts/figures/comparison.py FILE
"""

import argparse
from pathlib import Path

import matplotlib as mpl
import pandas as pd

import shoal
from shoal.plots import plot_comparison

IMAGE = Path("docs/images/plot-comparison.png")
FORMULA = "~ C(state, control) + age + sex + sample_type"
N_TYPES = 10


def draw(path: Path) -> None:
    """Compare the counts of cell types, and save the forest."""
    mpl.use("agg")
    table = pd.read_csv(path).set_index("sample")
    counts = table.iloc[:, :N_TYPES]
    panels = plot_comparison(shoal.compare(counts, table, FORMULA, random_state=0))
    panels[0].figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    draw(parser.parse_args().file)
