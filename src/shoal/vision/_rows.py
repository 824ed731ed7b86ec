"""Rows in two parts, to fit and to judge epochs by, and what a network says of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from shoal.vision._devices import (
    autocast_to,
    fitting_into_memory,
    own_rows,
    place_module,
    world_size,
)
from shoal.vision._images import ImageSet, normalize
from shoal.vision._settings import SETTINGS

Array = np.ndarray[Any, Any]


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
    batch_size: int = SETTINGS.evaluation_rows,
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
    order = torch.randperm(len(rows.train), generator=generator)
    chosen = rows.train[order[: SETTINGS.settling_rows].to(rows.train.device)]
    batches = chosen.chunk(-(-len(chosen) // SETTINGS.evaluation_rows))
    with autocast_to(rows.images.device):
        settle_norms(net, (normalize(rows.images.batch(batch)) for batch in batches))


@torch.no_grad()
def settle_norms(net: nn.Module, batches: Iterable[Tensor]) -> None:
    """Take the statistics of batch norms anew, from the network as it is used.

    While a network trains, dropout makes its values vary more than they do afterwards.
    With the statistics of the training, the answers of a network of many such blocks
    can be worse than guessing, however well it has learned.

    Parameters
    ----------
    net : Module
        The modes of all its modules come back afterwards; if a batch fails, its
        statistics too.
    batches : iterable of Tensor
        Input like that of its use, at least one batch; all batches count alike.

    References
    ----------
    Li X, Chen S, Hu X, Yang J (2019). Understanding the disharmony between dropout and
    batch normalization by variance shift. CVPR.
    """
    norms = [
        module
        for module in net.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats
    ]
    modes = {module: module.training for module in net.modules()}
    momenta = [norm.momentum for norm in norms]
    before = [{k: v.clone() for k, v in norm.named_buffers()} for norm in norms]
    n_batches = 0
    try:
        net.eval()
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None  # the plain mean over batches
            norm.train()
        for batch in batches:
            net(batch)
            n_batches += 1
        if not n_batches:
            raise ValueError("batches must hold at least one batch, got none")
    except BaseException:
        for norm, buffers in zip(norms, before, strict=True):
            norm.load_state_dict(buffers, strict=False)
        raise
    finally:
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
        for module, mode in modes.items():
            module.training = mode


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
