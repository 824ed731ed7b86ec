"""Image data sets of the paper and of its kin, read from their official files.

Every loader returns a bunch as those of :mod:`shoal.datasets` do.
"""

from shoal_bench.datasets.cifar import load_cifar10, load_cifar20, load_cifar100
from shoal_bench.datasets.idx import load_fashion_mnist, load_mnist
from shoal_bench.datasets.known import (
    load_cinic10,
    load_fieldguide,
    load_imagenet50,
    load_waterbirds,
)

__all__ = [
    "load_cifar10",
    "load_cifar20",
    "load_cifar100",
    "load_cinic10",
    "load_fashion_mnist",
    "load_fieldguide",
    "load_imagenet50",
    "load_mnist",
    "load_waterbirds",
]
