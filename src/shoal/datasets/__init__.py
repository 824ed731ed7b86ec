"""Data sets that ship with the package, are read from a file, or are generated.

Every loader returns a bunch with ``X``, ``domains``, ``labels`` (true classes, for
scoring only), ``feature_names``, ``description`` and ``licence``. Files that do not
ship with the package are given by ``path`` or lie in the folder that the environment
variable ``SHOAL_DATA_DIR`` names; the commands in ``scripts/data`` put them there.
"""

from shoal.datasets.generated import make_latent_shift
from shoal.datasets.idx import load_fashion_mnist, load_mnist
from shoal.datasets.images_cifar import load_cifar10, load_cifar20, load_cifar100
from shoal.datasets.images_folder import load_image_folder
from shoal.datasets.images_known import (
    load_cinic10,
    load_fieldguide,
    load_imagenet50,
    load_waterbirds,
)
from shoal.datasets.organic import (
    load_activities,
    load_asteroids,
    load_hawks,
    load_thyroid,
)
from shoal.datasets.penguins import load_penguins
from shoal.datasets.rodents import load_portal_rodents

__all__ = [
    "load_activities",
    "load_asteroids",
    "load_cifar10",
    "load_cifar100",
    "load_cifar20",
    "load_cinic10",
    "load_fashion_mnist",
    "load_fieldguide",
    "load_hawks",
    "load_image_folder",
    "load_imagenet50",
    "load_mnist",
    "load_penguins",
    "load_portal_rodents",
    "load_thyroid",
    "load_waterbirds",
    "make_latent_shift",
]
