"""Nearest neighbours on the device, and kNN accuracy as a monitor of features.

Labels come in here to be looked at, never to choose: nothing that trains reads the
monitor's numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision.data import ImageSet
from shoal.vision.devices import pick_device
from shoal.vision.encode import encode

__all__ = ["knn_accuracy", "knn_monitor", "nearest"]

Array = np.ndarray[Any, Any]


@torch.no_grad()
def nearest(
    features: ArrayLike,
    k: int = 20,
    *,
    queries: ArrayLike | None = None,
    device: str | torch.device | None = None,
    batch_size: int = 4096,
) -> tuple[Array, Array]:
    """Row numbers and cosines of the k nearest rows by cosine, nearest first.

    Parameters
    ----------
    features : array-like of shape (n, width)
        Rows to search.
    k : int, default=20
        Neighbours wanted.
    queries : array-like of shape (m, width) or None, default=None
        Rows whose neighbours are wanted; None: those of ``features``, a row not being
        its own neighbour.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    batch_size : int, default=4096
        Queries at a time.

    Returns
    -------
    indices : ndarray of shape (m, k)
    cosines : ndarray of shape (m, k), dtype float32
    """
    place = pick_device(device)
    base = _unit_rows(features, place)
    asked = base if queries is None else _unit_rows(queries, place)
    available = len(base) - (queries is None)
    if not 1 <= k <= available:
        raise ValueError(f"k must lie in 1..{available}, the rows to search, got {k}")
    cosines, indices = [], []
    for rows in torch.arange(len(asked), device=place).split(batch_size):
        cosine = asked[rows] @ base.T
        if queries is None:
            cosine.scatter_(1, rows[:, None], -torch.inf)
        top = cosine.topk(k, dim=1)
        cosines.append(top.values)
        indices.append(top.indices)
    return torch.cat(indices).cpu().numpy(), torch.cat(cosines).cpu().numpy()


def knn_accuracy(
    features: ArrayLike,
    labels: ArrayLike,
    test_features: ArrayLike,
    test_labels: ArrayLike,
    *,
    k: int = 20,
    device: str | torch.device | None = None,
) -> float:
    """Share of test rows whose label wins the vote of the k nearest training rows.

    Every neighbour has one vote; among equal counts the larger sum of cosines wins.
    """
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    indices, cosines = nearest(features, k, queries=test_features, device=device)
    rows = np.arange(len(indices))[:, None]
    votes = np.zeros((len(indices), len(names)))
    # A cosine is at most 1: k votes of 1 + cosine / (4 k) cannot overturn a count.
    np.add.at(votes, (rows, codes[indices]), 1 + cosines / (4 * k))
    return float(np.mean(names[votes.argmax(axis=1)] == np.asarray(test_labels)))


def knn_monitor(
    train_images: Any,
    train_labels: ArrayLike,
    test_images: Any,
    test_labels: ArrayLike,
    *,
    k: int = 20,
    device: str | torch.device | None = None,
    batch_size: int = 1024,
) -> Callable[[nn.Module], dict[str, float]]:
    """A monitor for pretraining: ``monitor(net)`` gives ``{"knn_accuracy": ...}``.

    Parameters
    ----------
    train_images, test_images : ImageSet or array-like, dtype uint8
        Images whose neighbours vote, and images that are judged.
    train_labels, test_labels : array-like
        True labels, for looking only.
    k : int, default=20
        Neighbours that vote.
    device, batch_size
        As :func:`shoal.vision.encode.encode`.
    """
    place = pick_device(device)
    train, test = (
        images if isinstance(images, ImageSet) else ImageSet(images, place)
        for images in (train_images, test_images)
    )

    def monitor(net: nn.Module) -> dict[str, float]:
        features, test_features = (
            encode(net, images, batch_size=batch_size) for images in (train, test)
        )
        accuracy = knn_accuracy(
            features, train_labels, test_features, test_labels, k=k, device=place
        )
        return {"knn_accuracy": accuracy}

    return monitor


def _unit_rows(features: ArrayLike, device: torch.device) -> Tensor:
    rows = torch.as_tensor(np.asarray(features, dtype=np.float32), device=device)
    if rows.ndim != 2:
        raise ValueError(f"features must have two axes, got shape {tuple(rows.shape)}")
    return functional.normalize(rows)
