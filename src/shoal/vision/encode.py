"""Features of images from a network."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import Bunch
from torch import nn
from torch.nn import functional

from shoal.datasets.images_folder import (
    check_readable,
    describe_rows,
    find_images,
    warn,
)
from shoal.io.atomic import whole_file
from shoal.io.images import ImageList, decode
from shoal.vision.data import ImageSet
from shoal.vision.data import normalize as scale
from shoal.vision.devices import autocast_to, pick_device, place_module
from shoal.vision.nets import load_backbone

__all__ = ["embed_folder", "encode", "encode_files", "write_features"]

Array = np.ndarray[Any, Any]


@torch.no_grad()
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
        images = ImageSet(images, pick_device(device))
    place = images.device
    features = getattr(net, "features", net)
    training = net.training
    place_module(net, place).eval()
    parts = []
    try:
        for rows in torch.arange(len(images), device=place).split(batch_size):
            with autocast_to(place, autocast):
                part = features(scale(images.batch(rows))).float()
            parts.append(functional.normalize(part) if normalize else part)
    except torch.cuda.OutOfMemoryError as error:
        raise MemoryError(
            f"batch_size={batch_size} does not fit into the memory of {place}; try "
            f"batch_size={max(batch_size // 2, 1)}"
        ) from error
    finally:
        net.train(training)
    return torch.cat(parts).cpu().numpy()


def embed_folder(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    size: int = 32,
    depth: int = 18,
    stem: str = "cifar",
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
    weights : path
        Backbone; see :func:`shoal.vision.nets.load_backbone`.
    out : path or None, default=None
        ``.npz`` file to write, with arrays ``X``, ``domain``, ``id`` and, where there
        are class folders, ``label``: ``shoal.io.read`` takes it as it is.
    size : int, default=32
        Height and width that images are cut and resized to.
    depth, stem
        Of the backbone.
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
    net = load_backbone(weights, depth=depth, stem=stem)
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


def encode_files(
    net: nn.Module,
    listed: ImageList,
    *,
    size: int = 32,
    skip_bad: bool = False,
    batch_size: int = 1024,
    device: str | torch.device | None = None,
    normalize: bool = True,
    on_batch: Callable[[int], None] | None = None,
) -> Bunch:
    """Features of listed images, as :func:`embed_folder` returns them.

    What is odd about the images is not warned of: it is in ``messages``.
    ``on_batch`` is told after every batch how many files have been read.
    """
    place, paths = pick_device(device), listed.paths
    parts, readable = [], np.zeros(len(paths), dtype=bool)
    for start in range(0, len(paths), batch_size):
        chunk = slice(start, start + batch_size)
        pixels, readable[chunk] = decode(paths[chunk], size)
        if len(pixels):
            parts.append(
                encode(
                    net,
                    pixels,
                    batch_size=batch_size,
                    device=place,
                    normalize=normalize,
                )
            )
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
