"""SimCLR: features in which two views of an image meet and other images do not.

Chen T, Kornblith S, Norouzi M, Hinton G (2020). A simple framework for contrastive
learning of visual representations. ICML.
"""

from typing import Any

import torch
from torch import Tensor, nn

from shoal.validation import check_real
from shoal.vision.augment import Augmentation, simclr_view
from shoal.vision.contrast import nt_xent
from shoal.vision.data import ImageSet
from shoal.vision.devices import pick_device
from shoal.vision.loop import Step
from shoal.vision.nets import Backbone
from shoal.vision.parallel import join_processes, world_size
from shoal.vision.parts import draw_views, part, view_part
from shoal.vision.pretext import Pretext, Pretrained, default_net, mlp

__all__ = ["simclr", "simclr_pretext"]


def simclr(
    images: Any,
    *,
    net: Backbone | None = None,
    epochs: int = 500,
    batch_size: int = 512,
    temperature: float = 0.1,
    lr: float | None = None,
    weight_decay: float | None = None,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
    **options: Any,
) -> Pretrained:
    """Train a backbone without labels.

    Parameters
    ----------
    images : ImageSet or array-like of shape (n, h, w, 3) or (n, h, w), dtype uint8
        The images; nothing else is used.
    net : Backbone or None, default=None
        Trained in place; None: a
        ResNet-18 with random weights, its stem chosen by the size of the images.
    epochs : int, default=500
        Passes over the images.
    batch_size : int, default=512
        Images per step; each gives two views.
    temperature : float, default=0.1
        Of the loss; see :func:`shoal.vision.contrast.nt_xent`.
    lr : float or None, default=None
        Learning rate of SGD; None: 0.4 for each 512 images of the batch.
    weight_decay : float or None, default=None
        Of the matrices; None: 1e-4.
    view : Augmentation or None, default=None
        None: :func:`shoal.vision.augment.simclr_view`.
    width : int, default=128
        Width of the projection, which has a hidden layer as wide as the features.
    seed : int, default=0
        Seed of weights, order and views.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    **options
        ``warmup``: epochs of linear rise before the cosine (default a fiftieth, at most
        10). ``monitor``: a callable such as :func:`shoal.vision.knn.knn_monitor` makes,
        whose numbers go into the history every ``monitor_every`` epochs. ``compile``:
        True on a single GPU records views, network and loss once and replays them. All
        others are those of :func:`shoal.vision.loop.fit`: ``checkpoint``,
        ``on_epoch``, ...

    Returns
    -------
    Pretrained

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((8, 8, 8, 3), dtype=np.uint8)
    >>> result = simclr(images, epochs=1, device="cpu", progress=False)
    >>> len(result.history)
    1
    """
    place = pick_device(device)
    join_processes(place)
    task = simclr_pretext(
        images,
        net=net,
        temperature=temperature,
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


def simclr_pretext(
    images: Any,
    *,
    net: Backbone | None = None,
    temperature: float = 0.1,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Pretext:
    """The task that :func:`simclr` trains, for those who drive it themselves."""
    place = pick_device(device)
    if not isinstance(images, ImageSet):
        images = ImageSet(images, place)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = default_net(images) if net is None else net
        head = mlp(net.n_features, net.n_features, width)
    view = view or simclr_view(max(images.size))
    check_real(0, above=True, temperature=temperature)
    step = _step(images, net, head, view, temperature)
    facts = {"temperature": temperature, "view": repr(view)}
    return Pretext(
        "SimCLR", images, step, net, head, 0.4, 1e-4, facts=facts, replayed=True
    )


def _step(
    images: ImageSet,
    net: Backbone,
    head: nn.Module,
    view: Augmentation,
    temperature: float,
) -> Step:
    """Loss of a batch: gather, draws, and three parts that can be compiled."""
    make_views = view_part(view)

    @part
    def project(views: Tensor) -> Tensor:
        return head(net.features(views))

    def contrast(projected: Tensor) -> Tensor:
        first, second = projected.chunk(2)
        return nt_xent(first, second, temperature)

    if world_size() == 1:  # several processes exchange rows in it
        contrast = part(contrast)

    def step(indices: Tensor, generator: torch.Generator) -> Tensor:
        pixels = images.bytes_batch(indices)
        draws = draw_views(view, 2 * len(indices), images.device, generator, 2)
        return contrast(project(make_views(pixels.repeat(2, 1, 1, 1), draws)))

    return step
