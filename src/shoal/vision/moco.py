"""MoCo: views find their partner among a queue of keys from a slower network.

He K, Fan H, Wu Y, Xie S, Girshick R (2020). Momentum contrast for unsupervised visual
representation learning. CVPR. With the projection and views of its second version
(Chen X, Fan H, Girshick R, He K, 2020), and with norms whose statistics are averaged as
the weights are (Cai Z et al., 2021, Exponential moving average normalization): a key
then depends on its own image only, and nothing need be shuffled.
"""

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision.augment import Augmentation, simclr_view
from shoal.vision.contrast import info_nce
from shoal.vision.data import ImageSet
from shoal.vision.devices import pick_device
from shoal.vision.loop import Step
from shoal.vision.nets import Backbone
from shoal.vision.parallel import gather_rows, process_group, world_size
from shoal.vision.parts import network_part, part, view_part
from shoal.vision.pretext import Pretext, Pretrained, default_net, mlp, share_norms

__all__ = ["Keys", "moco", "moco_pretext"]


class Keys(nn.Module):
    """A slow copy of a network and its head, and a queue of what it last saw.

    Parameters
    ----------
    net, head : Module
        The network that learns.
    width : int
        Width of the projection.
    n_queue : int
        Keys remembered.
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
        """Move weights and statistics a little towards those of the learner."""
        for slow, fast in ((self.net, net), (self.head, head)):
            current = fast.state_dict()
            for name, value in slow.state_dict().items():
                if value.is_floating_point():
                    value.lerp_(current[name], 1 - momentum)

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
    temperature: float = 0.1,
    momentum: float = 0.99,
    n_queue: int = 4096,
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
    momentum : float, default=0.99
        Share of the slow network kept at every step.
    n_queue : int, default=4096
        Keys of earlier images to choose among.
    lr : float or None, default=None
        Learning rate of SGD; None: 0.06 for each 512 images of the batch.
    weight_decay : float or None, default=None
        Of the matrices; None: 5e-4.
    images, net, epochs, batch_size, temperature, view, width, seed
        As :func:`shoal.vision.simclr.simclr`.
    device, **options
        As :func:`shoal.vision.simclr.simclr`.

    Returns
    -------
    Pretrained
    """
    with process_group(pick_device(device)) as place:
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
    temperature: float = 0.1,
    momentum: float = 0.99,
    n_queue: int = 4096,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Pretext:
    """The task that :func:`moco` trains, for those who drive it themselves."""
    if not 0 <= momentum < 1:
        raise ValueError(f"momentum must lie in [0, 1); got {momentum}")
    place = pick_device(device)
    if not isinstance(images, ImageSet):
        images = ImageSet(images, place)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = share_norms(default_net(images) if net is None else net, place)
        head = mlp(net.n_features, net.n_features, width)
        keys = Keys(net, head, width, n_queue)
    view = view or simclr_view(max(images.size))
    step = _step(images, net, head, keys, view, temperature, momentum)
    return Pretext("MoCo", images, step, net, head, 0.06, 5e-4, {"keys": keys})


def _step(
    images: ImageSet,
    net: Backbone,
    head: nn.Module,
    keys: Keys,
    view: Augmentation,
    temperature: float,
    momentum: float,
) -> Step:
    """Loss of a batch, both views taking both parts; the queue moves on."""
    make_views = view_part(view)

    @part
    def project(views: Tensor) -> Tensor:
        return head(net.features(views))

    find_keys = network_part(keys)

    def step(indices: Tensor, generator: torch.Generator) -> Tensor:
        pixels = images.bytes_batch(indices)
        draws = view.draw(2 * len(indices), images.device, generator)
        views = make_views(pixels.repeat(2, 1, 1, 1), draws)
        keys.follow(net, head, momentum)
        found = find_keys(views)
        swapped = found.roll(len(indices), 0)  # each query meets the other view's key
        # A copy, as the queue moves on before the gradient is taken.
        loss = info_nce(project(views), swapped, keys.queue.clone(), temperature)
        keys.remember(gather_rows(found) if world_size() > 1 else found)
        return loss

    return step
