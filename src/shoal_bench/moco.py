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

from shoal.validation import check_real
from shoal.vision import Backbone, ImageSet, part
from shoal.vision.augment import Augmentation, simclr_view
from shoal.vision.extend import (
    Pretext,
    Pretrained,
    Step,
    default_net,
    draw_views,
    gather_rows,
    info_nce,
    join_processes,
    mlp,
    network_part,
    pick_device,
    view_part,
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
    net: Backbone | None = None,
    epochs: int = 500,
    batch_size: int = 512,
    temperature: float = 0.2,
    momentum: float = 0.99,
    n_queue: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
    **options: Any,
) -> Pretrained:
    """Train a backbone without labels, with a queue in place of a large batch.

    Parameters
    ----------
    temperature : float, default=0.2
        Smaller values look harder at the nearest of the others.
    momentum : float, default=0.99
        Share of the slow network kept at every step.
    n_queue : int or None, default=None
        Keys of earlier batches to choose among, besides those of the same batch; None:
        4096, or a quarter of the images if that is less: a queue as long as an epoch
        holds an image's own keys, which a view would have to be told from.
    lr : float or None, default=None
        Learning rate of SGD; None: 0.4 for each 512 images of the batch.
    weight_decay : float or None, default=None
        Of the matrices; None: 5e-4.
    images, net, epochs, batch_size, view, width, seed
        As :func:`shoal.vision.simclr`.
    device, **options
        As :func:`shoal.vision.simclr`.

    Returns
    -------
    Pretrained
    """
    place = pick_device(device)
    join_processes(place)
    task = moco_pretext(
        images,
        net=net,
        temperature=temperature,
        momentum=momentum,
        n_queue=n_queue,
        view=view,
        width=width,
        seed=seed,
        device=place,
    )
    return task.train(
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        weight_decay=weight_decay,
        seed=seed,
        **options,
    )


def moco_pretext(
    images: Any,
    *,
    net: Backbone | None = None,
    temperature: float = 0.2,
    momentum: float = 0.99,
    n_queue: int | None = None,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Pretext:
    """The task that :func:`moco` trains, for those who drive it themselves."""
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must lie in [0, 1), got {momentum}")
    place = pick_device(device)
    if not isinstance(images, ImageSet):
        images = ImageSet(images, place)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = default_net(images) if net is None else net
        head = mlp(net.n_features, net.n_features, width)
        if n_queue is None:
            n_queue = min(LONGEST_QUEUE, len(images) // 4)
        keys = Keys(net, head, width, n_queue)
    view = view or simclr_view(max(images.size))
    check_real(0, above=True, temperature=temperature)
    check_real(0, 1, momentum=momentum)
    step = _step(images, net, head, keys, view, temperature, momentum)
    facts = {"temperature": temperature, "momentum": momentum, "view": repr(view)}
    return Pretext("MoCo", images, step, net, head, 0.4, 5e-4, {"keys": keys}, facts)


def _step(
    images: ImageSet,
    net: Backbone,
    head: nn.Module,
    keys: Keys,
    view: Augmentation,
    temperature: float,
    momentum: float,
) -> Step:
    """Loss of a batch: views of the learner, keys of both views; the queue moves on."""
    make_views = view_part(view)

    @part
    def project(views: Tensor) -> Tensor:
        projection: Tensor = head(net.features(views))
        return projection

    find_keys = network_part(keys)

    def step(indices: Tensor, generator: torch.Generator) -> Tensor:
        pixels = images.bytes_batch(indices)
        draws = draw_views(view, 2 * len(indices), images.device, generator, 2)
        views = make_views(pixels.repeat(2, 1, 1, 1), draws)
        keys.follow(net, head, momentum)
        found = torch.cat([gather_rows(part) for part in find_keys(views).chunk(2)])
        choices = torch.cat([found, keys.queue])
        keys.remember(found)
        return info_nce(project(views), choices, temperature)

    return step
