"""Rows on the device in two parts: one to fit, one to judge every epoch by."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from shoal.vision.data import ImageSet, normalize
from shoal.vision.devices import autocast_to
from shoal.vision.norms import settle_norms
from shoal.vision.parallel import own_rows, world_size

__all__ = [
    "BestEpoch",
    "SplitRows",
    "check_share",
    "draw_column",
    "hold_out",
    "outputs",
    "settle",
]

Array = np.ndarray[Any, Any]

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
    rows: Tensor,
    view: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """What a network says of images, in evaluation mode; float32, on the device.

    The images are clean ones without a ``view``. The network is left in evaluation
    mode.
    """
    net.eval()
    parts = []
    for numbers in rows.split(EVALUATION_ROWS):
        pixels = images.batch(numbers)
        pixels = pixels if view is None else view(pixels)
        with autocast_to(images.device):
            parts.append(net(normalize(pixels)).float())
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
