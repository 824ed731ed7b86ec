"""Features of images from a network."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from shoal.vision.data import ImageSet
from shoal.vision.data import normalize as scale
from shoal.vision.devices import autocast_to, pick_device, place_module

__all__ = ["encode"]

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
