"""Penguins of three islands and the rodents of Portal: tables to try first."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from shoal.datasets._files import find_file, read_table, table_bunch, to_numbers
from shoal.validation import is_whole

# ---- penguins ------------------------------------------------------------------------

MEASUREMENTS = (
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
)

PENGUINS = """\
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
        description=PENGUINS,
        licence="CC0-1.0 (palmerpenguins)",
        as_frame=as_frame,
    )


# ---- Trapped rodents of the Portal Project: plots or years as domains ----------------

Array = np.ndarray[Any, Any]

FILE = "portal_rodent_2016-03-10.csv.xz"
HOW = (
    f"place {FILE} (the Portal Project's rodent table, CC0) there, or pass path= the "
    "file or its folder"
)
DOMAINS = {"plot": "plot", "year": "yr"}
#: Trapping began in July 1977, and the table ends in March 2016.
PARTIAL_YEARS = ("1977", "2016")

RODENTS = """\
Portal Project, Arizona, 1977 to 2016: log hind foot length (mm) and log weight (g) of
rodents trapped on 24 plots of an experiment that keeps some species out of some plots.
Domains are the {domain}s, labels the species codes ({species}).

Rows of one animal recur: of the 39,128 rows of DM, PP, PB and OT, 36,409 carry a tag,
of 11,478 animals, so rows are not independent and intervals come out too narrow. The
plots are treatments of one site and p(x|y) is stable across them; across years it
drifts a little. Left out: rows of other species, without a plot, without hind foot
length or weight{partial}. {sampling}

Ernest SKM, Yenni GM, Allington G, et al. The Portal Project: a long-term study of a
Chihuahuan desert ecosystem.
"""


def load_portal_rodents(
    path: str | os.PathLike[str] | None = None,
    species: Sequence[str] = ("DM", "PP", "PB", "OT"),
    *,
    domains: str = "plot",
    max_rows: int | None = 12_000,
    random_state: Any = 0,
    as_frame: bool = False,
) -> Bunch:
    """Load trapped rodents; the hidden classes are the species.

    Parameters
    ----------
    path : path or None, default=None
        The file ``portal_rodent_2016-03-10.csv.xz`` or its folder. With None it is
        looked for in the folder that the environment variable ``SHOAL_DATA_DIR``
        names.
    species : sequence of str, default=("DM", "PP", "PB", "OT")
        Codes of the species to keep. With RM and DS added it is a harder problem of
        six; DM and DO overlap almost fully in these features.
    domains : {"plot", "year"}, default="plot"
        24 plots, or the 38 complete years 1978 to 2015.
    max_rows : int or None, default=12000
        Size of a random subsample (in the order of the table); None keeps all rows.
    random_state : int, RandomState or None, default=0
        Draws the subsample.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 2) float64, ``domains`` (int), ``labels`` (species codes, for
        scoring only), ``feature_names``, ``domain_name``, ``label_name``,
        ``description``, ``licence``.
    """
    if domains not in DOMAINS:
        raise ValueError(f"domains must be 'plot' or 'year', got {domains!r}")
    if max_rows is not None and (not is_whole(max_rows) or max_rows < 1):
        raise ValueError(f"max_rows must be a positive int or None, got {max_rows!r}")
    found = find_file((FILE,), path, what="load_portal_rodents", how=HOW)
    table = read_table(found, ("species", "plot", "yr", "hfl", "wgt"))
    foot, weight = to_numbers(table["hfl"]), to_numbers(table["wgt"])
    keep = _is_species(table["species"], species) & (table["plot"] != "")
    keep &= (foot > 0) & (weight > 0)
    if domains == "year":
        keep &= ~np.isin(table["yr"], PARTIAL_YEARS)
    rows, sampling = _subsample(np.flatnonzero(keep), max_rows, random_state)
    return table_bunch(
        {
            "log_hind_foot_length": np.log(foot[rows]),
            "log_weight": np.log(weight[rows]),
        },
        (domains, table[DOMAINS[domains]][rows].astype(int)),
        ("species", table["species"][rows]),
        description=RODENTS.format(
            domain=domains,
            species=", ".join(species),
            partial=", the incomplete years 1977 and 2016" * (domains == "year"),
            sampling=sampling,
        ),
        licence="CC0-1.0 (Portal Project)",
        as_frame=as_frame,
    )


def _is_species(codes: Array, species: Sequence[str]) -> Array:
    """Mask of the rows to keep; an unknown code is an error that names it."""
    if isinstance(species, str):
        raise TypeError(f"species must be a sequence of codes, e.g. ({species!r},)")
    unknown = [code for code in species if code not in codes]
    if unknown or len(species) == 0:
        raise ValueError(
            "species must hold codes of the table such as 'DM', got "
            f"{unknown or species}"
        )
    return np.isin(codes, list(species))


def _subsample(
    rows: Array, max_rows: int | None, random_state: Any
) -> tuple[Array, str]:
    """At most ``max_rows`` of the rows, in their order, and a sentence about it."""
    if max_rows is None or max_rows >= len(rows):
        return rows, f"All {len(rows)} rows."
    drawn = check_random_state(random_state).permutation(rows)[:max_rows]
    return np.sort(drawn), f"A random {max_rows} of {len(rows)} rows."
