"""Features of images from a network, and nearest neighbours as their monitor."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.utils import Bunch
from torch import Tensor, nn
from torch.nn import functional

from shoal.datasets._files import check_readable, describe_rows, find_images, warn
from shoal.io._files import whole_file
from shoal.io._images import ImageList, decode
from shoal.io._ready import ready_encoder, weights_file
from shoal.vision._backbone import find_size, load_backbone
from shoal.vision._devices import pick_device
from shoal.vision._images import ImageSet
from shoal.vision._rows import outputs
from shoal.vision._settings import SETTINGS

# ---- Features of images from a network -----------------------------------------------

Array = np.ndarray[Any, Any]


def encode(
    net: nn.Module,
    images: Any,
    *,
    batch_size: int = 1024,
    device: str | torch.device | None = None,
    normalize: bool = True,
    autocast: torch.dtype | None = None,
) -> Array:
    """Features of clean images.

    Parameters
    ----------
    net : ResNet or Module
        Its ``features`` method is used, or the module itself. It is moved to the
        device, and its training mode comes back afterwards.
    images : ImageSet or array-like of shape (n, h, w, 3) or (n, h, w), dtype uint8
        The images.
    batch_size : int, default=1024
        Images at a time.
    device : str, torch.device or None, default=None
        None: that of an ImageSet, else the GPU when there is one.
    normalize : bool, default=True
        Divide each row by its Euclidean norm.
    autocast : torch.dtype or None, default=None
        Precision; None: bf16 on CUDA, float32 on the CPU.

    Returns
    -------
    ndarray of shape (n, n_features), dtype float32
    """
    if not isinstance(images, ImageSet):
        images = ImageSet(images, device)
    training = net.training
    try:
        found = outputs(
            net,
            images,
            ask=getattr(net, "features", net),
            batch_size=batch_size,
            autocast=autocast,
        )
    finally:
        net.train(training)
    return (functional.normalize(found) if normalize else found).cpu().numpy()


def embed_folder(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | nn.Module,
    out: str | os.PathLike[str] | None = None,
    *,
    size: int | None = None,
    domain_from: str | None = None,
    skip_bad: bool = False,
    batch_size: int = 1024,
    device: str | torch.device | None = None,
    normalize: bool = True,
) -> Bunch:
    """Features of a folder of images, for use with the estimators on tables.

    Images are read, encoded and let go a batch at a time.

    Parameters
    ----------
    path : path
        ``path/domain/*.jpg`` or ``path/domain/class/*.jpg``.
    weights : path or Module
        ``"efficientnet-lite0"`` (of the extra ``shoal[encoders]``), the folder that
        ``shoal pretrain`` wrote, a file of weights (see
        :func:`shoal.vision.load_backbone`), or a network as for :func:`encode`.
    out : path or None, default=None
        ``.npz`` file to write, with arrays ``X``, ``domain``, ``id`` and, where there
        are class folders, ``label``: ``shoal.io.read`` takes it as it is.
    size : int or None, default=None
        Height and width that images are cut and resized to; None: as in the training,
        or 32 where the weights do not tell.
    domain_from, skip_bad
        As :func:`shoal.datasets.load_image_folder`.
    batch_size, device, normalize
        As :func:`encode`.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, n_features) float32, ``domains``, ``labels`` (or None), ``files``,
        ``skipped``.
    """
    if out is not None and Path(out).suffix != ".npz":
        raise ValueError(f"out must end in .npz, got {os.fspath(out)!r}")
    net, size = _open_encoder(weights, size)
    listed = find_images(path, domain_from=domain_from, skip_bad=skip_bad)
    bunch = encode_files(
        net,
        listed,
        size=size,
        skip_bad=skip_bad,
        batch_size=batch_size,
        device=device,
        normalize=normalize,
    )
    warn(bunch.pop("messages"))
    if out is not None:
        write_features(Path(out), bunch)
    return bunch


def _open_encoder(weights: Any, size: int | None) -> tuple[nn.Module, int]:
    """A network, given or read, and the size of the images for it."""
    if isinstance(weights, nn.Module):
        return weights, SETTINGS.usual_size if size is None else size
    if not isinstance(weights, (str, os.PathLike)):
        raise TypeError(
            "weights must be a path to weights, or a network such as "
            f"shoal.vision.resnet(18), got {type(weights).__name__}"
        )
    file, ready = weights_file(weights), ready_encoder(weights)
    net = load_backbone(file)
    if size is None:
        size = find_size(file) if ready is None else ready.size
    return net, size


def encode_files(
    net: nn.Module,
    listed: ImageList,
    *,
    size: int = SETTINGS.usual_size,
    skip_bad: bool = False,
    batch_size: int = 1024,
    on_batch: Callable[[int], None] | None = None,
    **options: Any,
) -> Bunch:
    """Features of listed images, as :func:`embed_folder` returns them.

    What is odd about the images is not warned of: it is in ``messages``.
    ``on_batch`` is told after every batch how many files have been read; ``options``
    are those of :func:`encode`.
    """
    paths = listed.paths
    parts, readable = [], np.zeros(len(paths), dtype=bool)
    for start in range(0, len(paths), batch_size):
        chunk = slice(start, start + batch_size)
        pixels, readable[chunk] = decode(paths[chunk], size)
        if len(pixels):
            parts.append(encode(net, pixels, batch_size=batch_size, **options))
        if on_batch is not None:
            on_batch(min(start + batch_size, len(paths)))
    messages = check_readable(listed, readable, skip_bad=skip_bad)
    rows = describe_rows(listed, readable)
    return Bunch(X=np.concatenate(parts), **rows, messages=messages)


def write_features(path: Path, bunch: Bunch) -> None:
    """Write features as an ``.npz`` file that :func:`shoal.io.read` takes."""
    columns = {"X": bunch.X, "domain": bunch.domains, "id": bunch.files}
    if bunch.labels is not None:
        columns["label"] = bunch.labels
    with whole_file(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **columns)


# ---- nearest neighbours, and how often they share a label ----------------------------


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
    k: int = 20,
    **options: Any,
) -> float:
    """Share of test rows whose label wins the vote of the k nearest training rows.

    Every neighbour has one vote; among equal counts the larger sum of cosines wins.
    ``options`` are those of :func:`nearest`.
    """
    names, codes = np.unique(np.asarray(labels), return_inverse=True)
    indices, cosines = nearest(features, k, queries=test_features, **options)
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
        As :func:`shoal.vision.encode`.
    """
    train, test = (
        images if isinstance(images, ImageSet) else ImageSet(images, device)
        for images in (train_images, test_images)
    )

    def monitor(net: nn.Module) -> dict[str, float]:
        features, test_features = (
            encode(net, images, batch_size=batch_size) for images in (train, test)
        )
        accuracy = knn_accuracy(
            features, train_labels, test_features, test_labels, k=k, device=device
        )
        return {"knn_accuracy": accuracy}

    return monitor


def _unit_rows(features: ArrayLike, device: torch.device) -> Tensor:
    rows = torch.as_tensor(np.asarray(features, dtype=np.float32), device=device)
    if rows.ndim != 2:
        raise ValueError(f"features must have two axes, got shape {tuple(rows.shape)}")
    return functional.normalize(rows)
