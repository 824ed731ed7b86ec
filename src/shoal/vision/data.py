"""Images on the device, ready to be batched without the host waiting.

A data set of small images fits into a GPU's memory as bytes: it is copied there once,
and a batch is one gather. What does not fit stays in host memory; a thread then
gathers the next batch while the device works on the present one.
"""

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shoal.vision.devices import pick_device

__all__ = ["ImageSet", "check_images", "normalize", "to_float"]

Array = np.ndarray[Any, Any]

#: Share of a GPU's free memory that the images may take.
MEMORY_SHARE = 0.4
MEAN, SCALE = 0.5, 0.25


def normalize(x: Tensor) -> Tensor:
    """Values in [0, 1] as a network sees them: ``(x - 0.5) / 0.25``."""
    return (x - MEAN) * (1 / SCALE)


def check_images(images: Any) -> Array:
    """Images as uint8 of shape (n, height, width, 3).

    Parameters
    ----------
    images : array-like
        uint8, of shape (n, h, w), (n, h, w, 1) or (n, h, w, 3); grey is repeated.

    Returns
    -------
    ndarray of shape (n, h, w, 3), dtype uint8
    """
    if isinstance(images, np.ndarray) and images.dtype == object and images.ndim == 1:
        images = list(images)  # how numpy keeps images of several sizes
    if isinstance(images, Sequence) and not isinstance(images, str):
        shapes = sorted({np.shape(image) for image in images})
        if len(shapes) > 1:
            raise ValueError(
                f"images have several sizes, such as {shapes[0]} and {shapes[-1]}; "
                "resize them to one, e.g. load_image_folder(path, size=64)"
            )
    if isinstance(images, Tensor):
        images = images.cpu().numpy()
    images = images if isinstance(images, np.ndarray) else np.asarray(images)
    if images.ndim and len(images) == 0:
        raise ValueError(
            f"images must hold at least one image, got shape {images.shape}"
        )
    if images.dtype != np.uint8:
        raise TypeError(
            f"images must be uint8, 0 to 255, got {images.dtype}; {_to_bytes(images)}"
        )
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3) or 0 in images.shape:
        raise ValueError(
            "images must have shape (n, height, width, 3), or no last axis for grey, "
            f"got {images.shape}"
        )
    if images.shape[3] == 1:
        images = np.repeat(images, 3, axis=3)
    return images


def _to_bytes(images: Array) -> str:
    """What to do about pixels that are no bytes, in words."""
    kind = images.dtype.kind
    if kind in "iuf" and images.size:
        low, high = images.min(), images.max()
        # whole numbers of 0 and 1 may be black and white: nobody knows
        if low >= 0 and 1 < high <= 255:
            rounded = ".round()" if kind == "f" else ""
            return f"as they lie in that range, use images{rounded}.astype('uint8')"
    return (
        "scale and round them, e.g. (255 * images).round().astype('uint8') for values "
        "from 0 to 1"
    )


class ImageSet:
    """Images that hand out float batches on a device.

    Parameters
    ----------
    images : array-like of shape (n, h, w, 3) or (n, h, w), dtype uint8
        A memory-mapped array is read batch by batch when it does not fit.
    device : str, torch.device or None, default=None
        Where batches are wanted; None: the GPU when there is one.
    on_device : bool or None, default=None
        Keep all images on the device; None: when they take less than 40% of its
        free memory.
    """

    def __init__(
        self,
        images: Any,
        device: str | torch.device | None = None,
        *,
        on_device: bool | None = None,
    ) -> None:
        images = check_images(images)
        self.device = pick_device(device)
        self.on_device = _fits(images, self.device) if on_device is None else on_device
        self._host = images
        self._stored: Tensor | None = None
        if self.on_device:
            self._stored = _as_tensor(images).to(self.device)
        self._worker: ThreadPoolExecutor | None = None
        self._pending: tuple[Tensor, Future[Tensor]] | None = None

    def __len__(self) -> int:
        return len(self._host)

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self._host.shape[1], self._host.shape[2]

    @torch.compiler.disable
    def bytes_batch(self, indices: Tensor) -> Tensor:
        """Images (n, h, w, 3) as uint8 on the device."""
        if self._stored is not None:
            return self._stored[indices]
        pending, self._pending = self._pending, None
        if pending is not None and pending[0] is indices:
            gathered = pending[1].result()
        else:
            gathered = self._gather(indices.cpu())
        return gathered.to(self.device, non_blocking=True)

    def batch(self, indices: Tensor) -> Tensor:
        """Images as float NCHW in [0, 1] on the device, channels last in memory."""
        return to_float(self.bytes_batch(indices))

    def prefetch(self, indices: Tensor, host_indices: Tensor | None = None) -> None:
        """Begin to gather the next batch; does nothing when all is on the device.

        The batch is then had by ``batch`` with the very same ``indices``.
        ``host_indices`` are the same numbers on the CPU: reading them there does not
        wait for the device.
        """
        if self._stored is not None:
            return
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "shoal-prefetch")
        rows = indices.cpu() if host_indices is None else host_indices
        self._pending = (indices, self._worker.submit(self._gather, rows))

    def _gather(self, rows: Tensor) -> Tensor:
        taken = _as_tensor(self._host[rows.numpy()])
        return taken.pin_memory() if self.device.type == "cuda" else taken


def to_float(images: Tensor) -> Tensor:
    """Bytes (n, h, w, 3) as float NCHW in [0, 1]; a view's strides: channels last."""
    return images.permute(0, 3, 1, 2).float() / 255


def _as_tensor(images: Array) -> Tensor:
    if not images.flags.writeable:  # torch warns of arrays that it could not write
        images = images.copy()
    return torch.from_numpy(np.ascontiguousarray(images))


def _fits(images: Array, device: torch.device) -> bool:
    if device.type != "cuda":
        return not isinstance(images, np.memmap)
    free, _ = torch.cuda.mem_get_info(device)
    return images.nbytes < MEMORY_SHARE * free
