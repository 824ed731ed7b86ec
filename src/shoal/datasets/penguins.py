"""Penguins of three islands, in the package itself: the first thing to try."""

from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from shoal.datasets._io import read_table, table_bunch, to_numbers

__all__ = ["load_penguins"]

MEASUREMENTS = (
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
)

DESCRIPTION = """\
Palmer Archipelago penguins: bill, flipper and body mass of 342 adults of three species
(labels), measured on three islands (domains) in 2007 to 2009. The islands differ in
which species breed there: Torgersen has Adelie only, Dream Adelie and Chinstrap, Biscoe
Adelie and Gentoo. The two of the 344 birds without measurements are left out.

Gorman KB, Williams TD, Fraser WR (2014). Ecological sexual dimorphism and environmental
variability within a community of Antarctic penguins (genus Pygoscelis). PLoS ONE 9(3):
e90081. Horst AM, Hill AP, Gorman KB (2020). palmerpenguins.
"""


def load_penguins(*, as_frame: bool = False) -> Bunch:
    """Load penguins of three islands; the hidden classes are the species.

    Parameters
    ----------
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (342, 4) float64, ``domains`` (islands), ``labels`` (species, for scoring
        only), ``feature_names``, ``domain_name``, ``label_name``, ``description``,
        ``licence``.

    Examples
    --------
    >>> from shoal.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> penguins.X.shape
    (342, 4)
    >>> sorted(set(penguins.domains.tolist()))
    ['Biscoe', 'Dream', 'Torgersen']
    """
    path = Path(__file__).parent / "data" / "penguins.csv"
    table = read_table(path, ("species", "island", *MEASUREMENTS))
    measured = np.column_stack([to_numbers(table[name]) for name in MEASUREMENTS])
    whole = np.isfinite(measured).all(axis=1)
    return table_bunch(
        dict(zip(MEASUREMENTS, measured[whole].T, strict=True)),
        ("island", table["island"][whole]),
        ("species", table["species"][whole]),
        description=DESCRIPTION,
        licence="CC0-1.0 (palmerpenguins)",
        as_frame=as_frame,
    )
