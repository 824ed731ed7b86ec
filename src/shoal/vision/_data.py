"""Images on the device, and rows in two parts: to fit, and to judge epochs by."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from shoal.vision._devices import (
    autocast_to,
    fitting_into_memory,
    own_rows,
    pick_device,
    place_module,
    world_size,
)
from shoal.vision._norms import settle_norms

# ---- Images on the device, ready to be batched without the host waiting --------------

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


# ---- split ---------------------------------------------------------------------------

EVALUATION_ROWS = 2048
# Plenty for means and variances, and a small share of an epoch's time.
SETTLING_ROWS = 8192


@dataclass(frozen=True)
class SplitRows:
    """Images and what is known of each, on one device.

    Attributes
    ----------
    images : ImageSet
    codes : Tensor of shape (n,)
        Domain of each row.
    weight : Tensor of shape (n,)
    train, valid : Tensor
        Row numbers to fit and to judge by.
    neighbours : Tensor of shape (n_train, n_neighbours) or None
        Row numbers near each row of ``train``.
    """

    images: ImageSet
    codes: Tensor
    weight: Tensor
    train: Tensor
    valid: Tensor
    neighbours: Tensor | None = None

    @classmethod
    def of(
        cls,
        images: ImageSet,
        codes: Array,
        weight: Array | None,
        train: Array,
        valid: Array,
        neighbours: Array | None = None,
    ) -> "SplitRows":
        """Put arrays on the device of the images; no weights are equal ones."""
        even = np.ones(len(codes)) if weight is None else weight

        def put(values: Array) -> Tensor:
            return torch.as_tensor(values, device=images.device)

        return cls(
            images,
            put(np.asarray(codes, dtype=np.int64)),
            put(even.astype(np.float32)),
            put(train),
            put(valid),
            None if neighbours is None else put(neighbours),
        )


def check_share(share: Any) -> None:
    """Raise a ValueError unless some rows can be held out, and others kept."""
    if not (isinstance(share, Real) and 0 < float(share) < 1):
        raise ValueError(f"valid_share must lie between 0 and 1, got {share!r}")


def hold_out(
    codes: Array, share: float, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Split rows in two, every domain in the same proportions; both parts sorted.

    A domain of one row keeps it in the first part.
    """
    check_share(share)
    held = np.zeros(len(codes), dtype=bool)
    for code in range(int(codes.max()) + 1):
        rows = rng.permutation(np.flatnonzero(codes == code))
        held[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


@torch.no_grad()
def outputs(
    net: nn.Module,
    images: ImageSet,
    rows: Tensor | None = None,
    *,
    view: Callable[[Tensor], Tensor] | None = None,
    ask: Callable[[Tensor], Tensor] | None = None,
    batch_size: int = EVALUATION_ROWS,
    autocast: torch.dtype | None = None,
) -> Tensor:
    """What a network says of images, in evaluation mode; float32, on the device.

    The images are clean ones without a ``view``, and all of them without ``rows``;
    ``ask`` is the method of the network that is called, if not the network itself. It
    is left on the device of the images, in evaluation mode.
    """
    place, ask = images.device, ask or net
    place_module(net, place).eval()
    rows = torch.arange(len(images), device=place) if rows is None else rows
    parts = []
    for numbers in rows.split(batch_size):
        with fitting_into_memory(batch_size, place):
            pixels = images.batch(numbers)
            pixels = pixels if view is None else view(pixels)
            with autocast_to(place, autocast):
                parts.append(ask(normalize(pixels)).float())
    return torch.cat(parts)


def settle(net: nn.Module, rows: SplitRows, seed: int) -> None:
    """Take the statistics of norms from clean training images, without dropout.

    The images are in random order, so that batches are alike.
    """
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(rows.train), generator=generator)[:SETTLING_ROWS]
    chosen = rows.train[order.to(rows.train.device)]
    batches = chosen.chunk(-(-len(chosen) // EVALUATION_ROWS))
    with autocast_to(rows.images.device):
        settle_norms(net, (normalize(rows.images.batch(batch)) for batch in batches))


def draw_column(rows: Tensor, generator: Generator) -> Tensor:
    """One random entry of each row of a table, such as one neighbour of each image."""
    n_rows = len(rows) * world_size()
    column = torch.randint(
        rows.shape[1], (n_rows, 1), device=rows.device, generator=generator
    )
    return rows.gather(1, own_rows(column))[:, 0]


class BestEpoch:
    """Weights of the epoch with the largest score so far.

    Attributes
    ----------
    score : float
    epoch : int
    found : Any
        What came with the score.
    """

    def __init__(self, score: float = -np.inf, found: Any = None) -> None:
        self.score, self.found, self.epoch = score, found, 0
        self.weights: dict[str, Tensor] | None = None

    def offer(
        self, net: nn.Module, score: float, epoch: int, found: Any = None
    ) -> None:
        """Keep a copy of the weights if the score is the largest yet."""
        if score > self.score:
            self.score, self.epoch, self.found = score, epoch, found
            self.weights = {name: w.clone() for name, w in net.state_dict().items()}

    def restore(self, net: nn.Module) -> None:
        """Put the best weights back, if any were kept."""
        if self.weights is not None:
            net.load_state_dict(self.weights)
