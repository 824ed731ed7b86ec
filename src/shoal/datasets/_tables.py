"""Tables with domains of their own: one that ships, others from a file.

Penguins come with the package, the rodents of Portal from the project that counts them.
Each of the other files is written by a script in ``scripts/data`` from public packages.
They were chosen to differ: asteroids keep p(x|y) across decades and move a lot, hawks
keep it and hardly move, thyroid patients are in between, and the activities of phone
users break every assumption.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from shoal.datasets._files import (
    describe,
    find_file,
    read_table,
    table_bunch,
    to_numbers,
)
from shoal.validation._arguments import is_whole

Array = np.ndarray[Any, Any]
Place = str | os.PathLike[str] | None

# ---- penguins ------------------------------------------------------------------------

MEASUREMENTS = (
    "bill_length_mm",
    "bill_depth_mm",
    "flipper_length_mm",
    "body_mass_g",
)


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
        **describe("penguins"),
        as_frame=as_frame,
    )


# ---- Trapped rodents of the Portal Project: plots or years as domains ----------------

FILE = "portal_rodent_2016-03-10.csv.xz"
HOW = (
    f"place {FILE} (the Portal Project's rodent table, CC0) there, or pass path= the "
    "file or its folder"
)
DOMAINS = {"plot": "plot", "year": "yr"}
#: Trapping began in July 1977, and the table ends in March 2016.
PARTIAL_YEARS = ("1977", "2016")


def load_portal_rodents(
    path: Place = None,
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
        **describe(
            "portal_rodents",
            domain=domains,
            species=", ".join(species),
            partial=", the incomplete years 1977 and 2016" * (domains == "year"),
            sampling=sampling,
        ),
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


# ---- Tables that scripts/data makes --------------------------------------------------

ORBIT = ("a", "e", "i")
POPULATIONS = ("main belt", "Jupiter trojan", "centaur", "trans-Neptunian")
#: Fewer than sixty were found in any decade before the 1870s; they are pooled.
FIRST_DECADE = 1860

HORMONES = ("TSH", "T3", "TT4", "T4U", "FTI")
DIAGNOSES = (
    "negative",
    "binding protein",
    "other illness",
    "hypothyroid",
    "hyperthyroid",
)
#: Smallest value that the assays tell from zero, so that logarithms mean something.
ASSAY_FLOOR = 0.05

BODY = ("wing", "weight", "culmen", "hallux", "tail")

SIGNALS = ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
ACTIVITY_FEATURES = tuple(
    f"{kind}_{name}" for kind in ("mean", "log_sd") for name in SIGNALS
)


def load_asteroids(
    path: Place = None,
    populations: Sequence[str] = ("main belt", "Jupiter trojan", "trans-Neptunian"),
    *,
    as_frame: bool = False,
) -> Bunch:
    """Load asteroids by decade of discovery; the hidden classes are populations.

    Parameters
    ----------
    path : path or None, default=None
        ``asteroids.csv.xz`` or its folder; None looks in ``SHOAL_DATA_DIR``.
        ``scripts/data/make_asteroids.py`` makes the file.
    populations : sequence of str
        Labels to keep, of "main belt", "Jupiter trojan", "centaur",
        "trans-Neptunian"; all but the centaurs by default.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 3) float64, ``domains`` (decades, int), ``labels`` (for
        scoring only), ``feature_names``, ``domain_name``, ``label_name``,
        ``description``, ``licence``.
    """
    table = _read_made("asteroids", path, ("year", "population", *ORBIT))
    keep = _is_one_of(table["population"], populations, "populations", POPULATIONS)
    axis, eccentricity, inclination = (to_numbers(table[name])[keep] for name in ORBIT)
    decade = table["year"][keep].astype(int) // 10 * 10
    return table_bunch(
        {
            "log_semi_major_axis": np.log(axis),
            "eccentricity": eccentricity,
            "inclination": inclination,
        },
        ("decade", np.maximum(decade, FIRST_DECADE)),
        ("population", table["population"][keep]),
        **describe("asteroids", labels=", ".join(populations)),
        as_frame=as_frame,
    )


def load_thyroid(
    path: Place = None,
    diagnoses: Sequence[str] = ("negative", "binding protein", "other illness"),
    *,
    as_frame: bool = False,
) -> Bunch:
    """Load thyroid patients by referring clinic; the hidden classes are diagnoses.

    Parameters
    ----------
    path : path or None, default=None
        ``thyroid.csv.xz`` or its folder; None looks in ``SHOAL_DATA_DIR``.
        ``scripts/data/make_thyroid.py`` makes the file.
    diagnoses : sequence of str
        Labels to keep, of "negative", "binding protein", "other illness",
        "hypothyroid", "hyperthyroid"; the first three by default, because the share
        of the others hardly differs between clinics.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 5) float64, ``domains`` (referral sources), ``labels`` (for
        scoring only), ``feature_names``, ``domain_name``, ``label_name``,
        ``description``, ``licence``.
    """
    table = _read_made("thyroid", path, ("source", "diagnosis", *HORMONES))
    keep = _is_one_of(table["diagnosis"], diagnoses, "diagnoses", DIAGNOSES)
    values = np.column_stack([to_numbers(table[name]) for name in HORMONES])
    keep &= np.isfinite(values).all(axis=1) & (table["source"] != "WEST")
    logs = np.log(np.maximum(values[keep], ASSAY_FLOOR))
    return table_bunch(
        {f"log_{name}": column for name, column in zip(HORMONES, logs.T, strict=True)},
        ("source", table["source"][keep]),
        ("diagnosis", table["diagnosis"][keep]),
        **describe("thyroid", labels=", ".join(diagnoses)),
        as_frame=as_frame,
    )


def load_hawks(path: Place = None, *, as_frame: bool = False) -> Bunch:
    """Load banded hawks by year; the hidden classes are the species.

    Parameters
    ----------
    path : path or None, default=None
        ``hawks.csv.xz`` or its folder; None looks in ``SHOAL_DATA_DIR``.
        ``scripts/data/make_hawks.py`` makes the file.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 5) float64, ``domains`` (years, int), ``labels`` (for scoring
        only), ``feature_names``, ``domain_name``, ``label_name``, ``description``,
        ``licence``.
    """
    table = _read_made("hawks", path, ("year", "species", *BODY))
    values = np.column_stack([to_numbers(table[name]) for name in BODY])
    keep = (values > 0).all(axis=1)  # NaN is not above zero either
    logs = np.log(values[keep])
    return table_bunch(
        {f"log_{name}": column for name, column in zip(BODY, logs.T, strict=True)},
        ("year", table["year"][keep].astype(int)),
        ("species", table["species"][keep]),
        **describe("hawks"),
        as_frame=as_frame,
    )


def load_activities(path: Place = None, *, as_frame: bool = False) -> Bunch:
    """Load activities by phone user, a case where latent label shift must not be used.

    Parameters
    ----------
    path : path or None, default=None
        ``activities.csv.xz`` or its folder; None looks in ``SHOAL_DATA_DIR``.
        ``scripts/data/make_activities.py`` makes the file.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as Series.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n_samples, 12) float64, ``domains`` (users, int), ``labels`` (for scoring
        only), ``feature_names``, ``domain_name``, ``label_name``, ``description``,
        ``licence``.
    """
    table = _read_made("activities", path, ("user", "activity", *ACTIVITY_FEATURES))
    return table_bunch(
        {name: to_numbers(table[name]) for name in ACTIVITY_FEATURES},
        ("user", table["user"].astype(int)),
        ("activity", table["activity"]),
        **describe("activities"),
        as_frame=as_frame,
    )


def _read_made(name: str, path: Place, columns: Sequence[str]) -> dict[str, Array]:
    """Table that ``scripts/data/make_<name>.py`` has written."""
    how = (
        f"make it with python scripts/data/make_{name}.py --out FOLDER, then pass "
        "path=FOLDER or set SHOAL_DATA_DIR"
    )
    found = find_file((f"{name}.csv.xz",), path, what=f"load_{name}", how=how)
    return read_table(found, columns)


def _is_one_of(
    values: Array, wanted: Sequence[str], argument: str, known: Sequence[str]
) -> Array:
    """Mask of the rows whose label is wanted; an unknown label is an error."""
    unknown = [label for label in wanted if label not in known]
    if isinstance(wanted, str) or unknown or len(wanted) == 0:
        raise ValueError(
            f"{argument} must be a sequence of labels from {', '.join(known)}, got "
            f"{wanted!r}"
        )
    return np.isin(values, list(wanted))
