"""Data sets that ship with the package, are read from a file, or are generated.

Every loader returns a bunch with ``X``, ``domains``, ``labels`` (true classes, for
scoring only), ``feature_names``, ``description`` and ``licence``. Files that do not
ship with the package are given by ``path`` or lie in the folder that the environment
variable ``SHOAL_DATA_DIR`` names; the commands in ``scripts/data`` put them there.

Labelled data become a problem of several domains in three steps:
:func:`draw_prevalence`, :func:`plan_domains`, :func:`take`.
"""

from shoal.datasets._files import load_image_folder
from shoal.datasets._generated import make_latent_shift
from shoal.datasets._shift import draw_prevalence, plan_domains, take
from shoal.datasets._tables import (
    load_activities,
    load_asteroids,
    load_hawks,
    load_penguins,
    load_portal_rodents,
    load_thyroid,
)

__all__ = [
    "draw_prevalence",
    "load_activities",
    "load_asteroids",
    "load_hawks",
    "load_image_folder",
    "load_penguins",
    "load_portal_rodents",
    "load_thyroid",
    "make_latent_shift",
    "plan_domains",
    "take",
]
