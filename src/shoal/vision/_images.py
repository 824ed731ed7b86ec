"""Images: the door through which they enter, and how they lie on the device."""

import warnings
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from shoal.datasets._files import lone_images
from shoal.exceptions import DomainMissingError, IdentifiabilityWarning
from shoal.io._files import digest
from shoal.validation import check_domains
from shoal.validation._arguments import is_whole
from shoal.validation._domains import encode_domains, is_scalar
from shoal.vision._devices import pick_device
from shoal.vision._settings import SETTINGS

Array = np.ndarray[Any, Any]

#: What a network sees of values in [0, 1]; files of weights tell it too.
MEAN, SCALE = 0.5, 0.25
SCALE_THEM = (
    "scale and round them, e.g. (255 * images).round().astype('uint8') for values from "
    "0 to 1"
)


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
    return SCALE_THEM


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
    return images.nbytes < SETTINGS.image_memory * free


# ---- images as rows of an estimator --------------------------------------------------

ROWS_OF_FIT = "pass the rows of fit, and the domain of each"


def as_images(X: Any, image_shape: tuple[int, ...] | None = None) -> Array:
    """Images of shape (n, height, width, 3) from images or flattened rows.

    Parameters
    ----------
    X : array-like of shape (n, h, w), (n, h, w, 3) or (n, h * w * channels)
        uint8. Flattened rows may be whole floats from 0 to 255, as tables make them.
    image_shape : tuple of int, default=None
        (h, w) or (h, w, 3) of flattened rows.

    Returns
    -------
    ndarray of shape (n, h, w, 3), dtype uint8
    """
    # numpy refuses lists of images of several sizes; check_images says what they are
    n_axes = np.ndim(X[0]) + 1 if isinstance(X, list) and X else np.ndim(X)
    if n_axes != 2:
        return check_images(X)
    rows = np.asarray(X)
    if image_shape is None:
        raise ValueError(
            f"X has shape {rows.shape}; pass images of shape (n, height, width, 3), or "
            "say image_shape=(height, width, 3) of flattened rows"
        )
    _check_shape(image_shape)
    if rows.shape[1] != np.prod(image_shape):
        raise ValueError(
            f"X has {rows.shape[1]} columns, image_shape={tuple(image_shape)} needs "
            f"{np.prod(image_shape)}; pass every pixel of every channel"
        )
    return check_images(_as_bytes(rows).reshape(-1, *image_shape))


def _check_shape(image_shape: Any) -> None:
    sizes = image_shape if isinstance(image_shape, (tuple, list)) else ()
    if len(sizes) not in (2, 3) or not all(is_whole(n) and n > 0 for n in sizes):
        raise ValueError(
            "image_shape must be (height, width) or (height, width, 3), got "
            f"{image_shape!r}"
        )


def _as_bytes(rows: Array) -> Array:
    if rows.dtype == np.uint8:
        return rows
    values = rows.astype(float)
    if not (np.isfinite(values).all() and 0 <= values.min() <= values.max() <= 255):
        raise ValueError(
            "X must hold pixels from 0 to 255, all finite, got "
            f"{np.min(values):g} to {np.max(values):g}"
        )
    whole = np.rint(values)
    broken = np.abs(values - whole) > SETTINGS.pixel_rounding
    if broken.any():
        # rounded in silence, pixels from 0 to 1 would be black or white
        raise ValueError(
            f"X must hold whole pixels from 0 to 255, got {values[broken][0]:g}; "
            f"{SCALE_THEM}"
        )
    return whole.astype(np.uint8)


class ImageInput:
    """For estimators whose rows are images, flattened where ``image_shape`` says so."""

    image_shape: tuple[int, ...] | None
    # Rows of each domain in fit; a model from a file or from parts does not know them.
    _counts: Array | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = self.image_shape is not None
        tags.input_tags.three_d_array = True
        return tags


def check_image_rows(estimator: Any, X: Any, *, reset: bool = False) -> Array:
    """Images of an estimator, of one size in fit and in predict.

    At fit (``reset=True``), ``image_shape_`` and ``n_features_in_`` are set.
    """
    images = as_images(X, getattr(estimator, "image_shape", None))
    if reset:
        if len(images) < 2:
            raise ValueError(f"X has {len(images)} image; fit needs more")
        estimator.image_shape_ = images.shape[1:]
        estimator.n_features_in_ = int(np.prod(np.shape(X)[1:]))
    elif images.shape[1:] != tuple(estimator.image_shape_):
        got, seen = ("{} x {}".format(*shape[:2]) for shape in
                     (images.shape[1:], estimator.image_shape_))  # fmt: skip
        raise ValueError(f"X has images of {got} pixels, fit has seen {seen}; resize")
    return images


def check_images_domains(
    estimator: Any, X: Any, domains: Any
) -> tuple[Array, Array, Array]:
    """Images of a fit, the code of each one's domain, and the domains' names."""
    if domains is None:
        raise DomainMissingError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None: pass domains=..., one entry per image, that says "
            "where each image comes from"
        )
    images = check_image_rows(estimator, X, reset=True)
    codes, names = check_domains(domains, n_samples=len(images))
    text, hint = lone_images(names[codes])
    if text:
        warnings.warn(f"{text}; {hint}", IdentifiabilityWarning, stacklevel=3)
    return images, codes, names


def check_rows_of_fit(estimator: Any, X: Any, domains: Any) -> tuple[Array, Array]:
    """The images of a fitted estimator's own fit, and the code of each one's domain.

    ``estimator._counts`` are the rows of each domain in fit; where it is None, all that
    is known is that there were some of each.
    """
    images = check_image_rows(estimator, X)
    if len(images) != len(estimator.labels_):
        raise ValueError(
            f"X has {len(images)} rows, fit had {len(estimator.labels_)}; {ROWS_OF_FIT}"
        )
    if is_scalar(domains):
        raise ValueError(
            f"domains must have one entry per row, got the single value {domains!r}; "
            f"{ROWS_OF_FIT}"
        )
    names, counts = estimator.domains_, estimator._counts
    codes = cast(Array, encode_domains(domains, names, n_samples=len(images)))
    found = np.bincount(codes, minlength=len(names))
    wanted = np.maximum(found, 1) if counts is None else counts
    for name, got, had in zip(names.tolist(), found, wanted, strict=False):
        if got != had:
            raise ValueError(
                f"domains has {got} rows of {name!r}, fit had "
                f"{'some' if counts is None else had}; {ROWS_OF_FIT}"
            )
    return images, codes


def digest_rows(*parts: Array | str) -> str:
    """A name that these arrays and texts have and no others."""
    arrays = [np.asarray(part) for part in parts]
    return digest(
        piece
        for array in arrays
        for piece in (f"{array.dtype.str}{array.shape}", array.tobytes())
    )
