"""Problems on pixels: every data set of the paper, and the pairs of CIFAR-100.

Importing this module registers them as the view ``"images"``.
"""

from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shoal.datasets.extend import find_file
from shoal.vision import Backbone, load_backbone, resnet
from shoal_bench.datasets.cifar import load_cifar10, load_cifar20, load_cifar100
from shoal_bench.datasets.known import load_fieldguide, load_imagenet50
from shoal_bench.problems import (
    DATASETS,
    Problem,
    Source,
    pair_labels,
    register_view,
    shifted,
)
from shoal_bench.spec import Spec

Array = NDArray[Any]

#: Whose self-supervised weights a data set uses, where they are another's.
TRAINED_ON = {"cifar20": "cifar100", "pairs2": "cifar100", "pairs28": "cifar100"}
#: Data sets in folders of files, and the name of their folder.
FOLDERS = {
    "imagenet50": "imagenet",
    "fieldguide2": "fieldguide",
    "fieldguide28": "fieldguide",
}
#: Side to which pictures of files are resized, and of the window that networks see.
RESIZED, WINDOW = 256, 224


class Windowed(Backbone):
    """A network that sees the middle of larger images, as that of the paper does."""

    def __init__(self, net: Backbone, side: int) -> None:
        super().__init__()
        self.net, self.side, self.n_features = net, side, net.n_features

    def features(self, x: Tensor) -> Tensor:
        """Features of the middle, normalized as the whole image is."""
        top, left = ((length - self.side) // 2 for length in x.shape[2:])
        middle = x[..., top : top + self.side, left : left + self.side]
        return self.net.features(middle)


@dataclass(frozen=True)
class ImageProblem(Problem):
    """A problem on pixels, with what lies beside it.

    Attributes
    ----------
    dataset : str
    pool : ndarray of shape (n, h, w, 3)
        All training images of the data set's classes, whether or not the problem uses
        them: what SCAN sees.
    folder : path or None
        Of the data.
    """

    dataset: str
    pool: Any
    folder: Path | None


def image_problem(spec: Spec, data_dir: Path | None) -> ImageProblem:
    """The pixels of a data set, shifted like its features."""
    images, fine, coarse, n_train = _load_images(spec.dataset, data_dir)
    labels = coarse
    if spec.dataset.startswith("pairs"):
        labels = pair_labels(fine, coarse, DATASETS[spec.dataset].n_classes)
    return with_pool(spec, Source(images, labels, n_train), data_dir)


def with_pool(spec: Spec, source: Source, folder: Path | None) -> ImageProblem:
    """The problem of a source of images."""
    problem = shifted(spec, source)
    known = {field.name: getattr(problem, field.name) for field in fields(problem)}
    pool, labels = source.X[: source.n_train], source.labels[: source.n_train]
    if labels.min() < 0:  # of no class of this data set
        pool = pool[labels >= 0]
    return ImageProblem(**known, dataset=spec.dataset, pool=pool, folder=folder)


@lru_cache(maxsize=2)
def _load_images(
    dataset: str, data_dir: Path | None
) -> tuple[Array, Array, Array, int]:
    if dataset in FOLDERS:
        return _load_folders(dataset, data_dir)
    load = load_cifar10 if dataset == "cifar10" else load_cifar20
    data = load(data_dir, split="all")
    fine = data.labels
    if dataset.startswith("pairs"):
        fine = load_cifar100(data_dir, split="all").labels
    return data.X, fine, data.labels, int(np.sum(data.split == "train"))


def _load_folders(
    dataset: str, data_dir: Path | None
) -> tuple[Array, Array, Array, int]:
    """Images of a data set that lies in folders, training rows first."""
    path = None if data_dir is None else data_dir / FOLDERS[dataset]
    if dataset == "imagenet50":
        train, test = (
            load_imagenet50(path, split, size=RESIZED) for split in ("train", "val")
        )
    else:
        n_classes = DATASETS[dataset].n_classes
        train, test = (
            load_fieldguide(path, split, n_classes=n_classes, size=RESIZED)
            for split in ("train", "test")
        )
    images = np.concatenate([train.X, test.X])
    labels = np.concatenate([train.labels, test.labels])
    return images, labels, labels, len(train.labels)


def open_weights(problem: ImageProblem, name: str) -> Backbone:
    """A backbone, by path or as ``weights/<name>_<data set>.safetensors``.

    Which network it is, the weights tell.
    """
    return in_window(problem, load_backbone(_find_weights(problem, name)))


def in_window(problem: ImageProblem, net: Backbone) -> Backbone:
    """The network, for pictures of files one that sees their middle."""
    return Windowed(net, WINDOW) if problem.dataset in FOLDERS else net


def random_weights(depth: int, seed: int, kind: str = "torch") -> Backbone:
    """A network with random weights: ours (``"he"``), or as torch's own layers draw."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = resnet(depth)
        for module in net.modules():
            if kind == "torch" and isinstance(module, nn.Conv2d):
                module.reset_parameters()
    return net


def _find_weights(problem: ImageProblem, name: str) -> Path:
    if name.endswith(".safetensors"):
        return Path(name)
    stem = TRAINED_ON.get(problem.dataset, problem.dataset)
    return find_file(
        [f"{name}_{stem}.safetensors"],
        problem.folder / "weights" if problem.folder else None,
        what="weights",
        how="train them: python benchmarks/vision/pretrain.py",
        folders=("weights",),
    )


for _name in ("cifar10", "cifar20", "pairs2", "pairs28", *FOLDERS):
    register_view(_name, "images", image_problem)
