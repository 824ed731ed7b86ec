"""MoCo: views find their partner among keys of a slower network, old ones too.

He K, Fan H, Wu Y, Xie S, Girshick R (2020). Momentum contrast for unsupervised visual
representation learning. CVPR. With the projection and views of its second version
(Chen X, Fan H, Girshick R, He K, 2020).

Norms of the slower network go by its own batch, as averaged statistics lag behind the
weights: views and keys then do not meet, and short runs learn nothing. So that a batch
cannot be told by its statistics instead of its images, which shuffling between GPUs
prevents in the paper, keys of the same batch are among the choices, as in its third
version (Chen X, Xie S, He K, 2021).
"""

from copy import deepcopy
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision import Backbone
from shoal.vision.extend import (
    Pretext,
    Pretrained,
    gather_rows,
    info_nce,
    network_part,
)

LONGEST_QUEUE = 4096


class Keys(nn.Module):
    """A slow copy of a network and its head, and a queue of what it last saw.

    Parameters
    ----------
    net, head : Module
        The network that learns.
    width : int
        Width of the projection.
    n_queue : int
        Keys remembered, of earlier batches.
    """

    queue: Tensor

    def __init__(
        self, net: Backbone, head: nn.Module, width: int, n_queue: int
    ) -> None:
        super().__init__()
        self.net = deepcopy(net).requires_grad_(False)
        self.head = deepcopy(head).requires_grad_(False)
        self.register_buffer("queue", functional.normalize(torch.randn(n_queue, width)))

    @torch.no_grad()
    def follow(self, net: nn.Module, head: nn.Module, momentum: float) -> None:
        """Move weights a little towards those of the learner."""
        for slow, fast in ((self.net, net), (self.head, head)):
            for own, other in zip(slow.parameters(), fast.parameters(), strict=True):
                own.lerp_(other, 1 - momentum)

    def train(self, mode: bool = True) -> Self:
        """Stay in training mode, in which norms go by the batch."""
        return super().train(True)

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Keys of normalized images, of unit length."""
        return functional.normalize(self.head(self.net.features(x)).float())

    @torch.no_grad()
    def remember(self, keys: Tensor) -> None:
        """Put keys in front of the queue; the oldest drop out."""
        self.queue.copy_(torch.cat([keys, self.queue])[: len(self.queue)])


def moco(
    images: Any,
    *,
    epochs: int = 500,
    batch_size: int = 512,
    seed: int = 0,
    net: Backbone | None = None,
    temperature: float = 0.2,
    momentum: float = 0.99,
    n_queue: int | None = None,
    view: Any = None,
    width: int = 128,
    device: str | torch.device | None = None,
    **options: Any,
) -> Pretrained:
    """Train a backbone without labels, with a queue in place of a large batch.

    Parameters
    ----------
    temperature : float, default=0.2
        As in :func:`shoal.vision.simclr`.
    momentum : float, default=0.99
        Share of the slow network kept at every step.
    n_queue : int or None, default=None
        Keys of earlier batches to choose among, besides those of the same batch; None:
        4096, or a quarter of the images if that is less: a queue as long as an epoch
        holds an image's own keys, which a view would have to be told from.
    images, epochs, batch_size, seed, net, view, width, device, **options
        As :func:`shoal.vision.simclr`; ``weight_decay`` is 5e-4 if not given.

    Returns
    -------
    Pretrained
    """
    task = MoCo(
        images,
        momentum=momentum,
        n_queue=n_queue,
        net=net,
        temperature=temperature,
        view=view,
        width=width,
        seed=seed,
        device=device,
    )
    return task.train(epochs=epochs, batch_size=batch_size, seed=seed, **options)


class MoCo(Pretext):
    """The task that :func:`moco` trains, for those who drive it themselves."""

    method = "MoCo"
    weight_decay = 5e-4

    def __init__(
        self,
        images: Any,
        *,
        temperature: float = 0.2,
        momentum: float = 0.99,
        n_queue: int | None = None,
        **settings: Any,
    ) -> None:
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {momentum}")
        self.momentum, self.n_queue = momentum, n_queue
        super().__init__(images, temperature=temperature, **settings)
        self.facts["momentum"] = momentum
        self._find_keys = network_part(self.keys)

    def make_others(self) -> dict[str, nn.Module]:
        """The slow network with its queue."""
        n_queue = self.n_queue
        if n_queue is None:
            n_queue = min(LONGEST_QUEUE, len(self.images) // 4)
        self.keys = Keys(self.net, self.head, self.width, n_queue)
        return {"keys": self.keys}

    def loss(self, views: Tensor) -> Tensor:
        """Views of the learner against keys of both views; the queue moves on."""
        keys = self.keys
        keys.follow(self.net, self.head, self.momentum)
        found = torch.cat([gather_rows(k) for k in self._find_keys(views).chunk(2)])
        choices = torch.cat([found, keys.queue])
        keys.remember(found)
        return info_nce(self.project(views), choices, self.temperature)
