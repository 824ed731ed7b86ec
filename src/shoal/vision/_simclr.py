"""SimCLR: features in which two views of an image meet and other images do not."""

import copy
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from shoal.validation import check_real, check_whole
from shoal.vision._backbone import build_backbone, default_backbone, save_backbone
from shoal.vision._devices import (
    join_processes,
    own_gpu,
    pick_device,
    seeded,
    world_size,
)
from shoal.vision._images import ImageSet
from shoal.vision._loop import History, cosine, fit
from shoal.vision._nets import Backbone
from shoal.vision._settings import SETTINGS
from shoal.vision._steps import CompileSetting, nt_xent, part, random_views
from shoal.vision.augment import Augmentation, simclr_view

#: Looks at a network after an epoch and returns numbers for the history.
Monitor = Callable[[nn.Module], Mapping[str, Any]]
#: Is shown the record of an epoch and may add numbers to it.
OnEpoch = Callable[[dict[str, Any]], Mapping[str, Any] | None]
#: Mode of torch.compile that records kernels once and replays them: on an H200 SimCLR
#: is then 1.8 times as fast as with compiled kernels that Python starts one by one.
REPLAYED = "reduce-overhead"


def simclr(
    images: Any,
    *,
    net: Backbone | None = None,
    epochs: int = 500,
    batch_size: int = 512,
    temperature: float = 0.1,
    view: Augmentation | None = None,
    width: int = 128,
    seed: int = 0,
    device: str | torch.device | None = None,
    **options: Any,
) -> "Pretrained":
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
        Smaller values look harder at the nearest of the other images.
    view : Augmentation or None, default=None
        None: :func:`shoal.vision.augment.simclr_view`.
    width : int, default=128
        Width of the projection, which has a hidden layer as wide as the features.
    seed : int, default=0
        Seed of weights, order and views.
    device : str, torch.device or None, default=None
        None: the GPU when there is one.
    **options
        ``lr``: learning rate of SGD (default 0.4 for each 512 images of the batch).
        ``weight_decay``: of the matrices (default 1e-4). ``warmup``: epochs of linear
        rise before the cosine (default a fiftieth, at most 10). ``monitor``: a callable
        such as :func:`shoal.vision.knn_monitor` makes, whose numbers go into the
        history every ``monitor_every`` epochs. ``compile``: True on a single GPU
        records views, network and loss once and replays them. All others are those of
        :func:`shoal.vision.fit`: ``checkpoint``, ``on_epoch``, ...

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
    task = SimCLR(
        images,
        net=net,
        temperature=temperature,
        view=view,
        width=width,
        seed=seed,
        device=device,
    )
    return task.train(epochs=epochs, batch_size=batch_size, seed=seed, **options)


class Pretext:
    """A self-supervised task on two views of every image; a method says its loss.

    Parameters
    ----------
    images, net, temperature, view, width, seed, device
        As :func:`shoal.vision.simclr`.

    Attributes
    ----------
    images : ImageSet
        What it trains on.
    net : Backbone
        The network wanted.
    head : Module
        Its projection, which the loss sees.
    others : dict of str to Module
        What else the method keeps.
    facts : dict of str to number or str
        Settings that a resumed run must share.
    """

    method: str
    #: Of SGD, for a batch of 512 images; it grows in proportion to the batch.
    learning_rate = 0.4
    #: Of the matrices.
    weight_decay = 1e-4
    #: Whether ``compile=True`` records and replays its parts on a single GPU.
    replayed = False

    def __init__(
        self,
        images: Any,
        *,
        net: Backbone | None = None,
        temperature: float = 0.1,
        view: Augmentation | None = None,
        width: int = 128,
        seed: int = 0,
        device: str | torch.device | None = None,
    ) -> None:
        place = pick_device(device)
        join_processes(place)
        if not isinstance(images, ImageSet):
            images = ImageSet(images, place)
        check_real(0, above=True, temperature=temperature)
        view = view or simclr_view(max(images.size))
        with seeded(seed):
            net = default_net(images) if net is None else net
            head = mlp(net.n_features, net.n_features, width)
            self.images, self.net, self.head = images, net, head
            self.temperature, self.width = temperature, width
            self.others = self.make_others()
        self.facts: dict[str, Any] = {"temperature": temperature, "view": repr(view)}
        self._make_views = random_views(view)

        @part
        def project(views: Tensor) -> Tensor:
            return head(net.features(views))

        self.project = project

    def make_others(self) -> dict[str, nn.Module]:
        """Modules of the method besides network and head, made after them."""
        return {}

    def loss(self, views: Tensor) -> Tensor:
        """Mean loss of views: first those of every image, then the second ones."""
        raise NotImplementedError

    def step(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        """Loss of a batch of row numbers; see :func:`shoal.vision.fit`."""
        pixels = self.images.bytes_batch(indices).repeat(2, 1, 1, 1)
        return self.loss(self._make_views(pixels, generator, 2))

    @property
    def modules(self) -> dict[str, nn.Module]:
        """All that a checkpoint keeps."""
        return {"net": self.net, "head": self.head, **self.others}

    def train(
        self,
        *,
        epochs: int,
        batch_size: int,
        lr: float | None = None,
        weight_decay: float | None = None,
        warmup: float | None = None,
        seed: int = 0,
        monitor: Monitor | None = None,
        monitor_every: int = 25,
        on_epoch: OnEpoch | None = None,
        compile: CompileSetting = False,
        facts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> "Pretrained":
        """SGD with momentum and a cosine schedule; see :func:`shoal.vision.simclr`."""
        check_whole(2, batch_size=batch_size)  # else nothing to tell a view from
        check_whole(1, epochs=epochs, monitor_every=monitor_every)
        if len(self.images) < 2:
            raise ValueError(
                f"images must be at least 2 to be told apart, got {len(self.images)}"
            )
        batch_size = min(batch_size, len(self.images))
        lr = self.learning_rate * batch_size / 512 if lr is None else lr
        weight_decay = self.weight_decay if weight_decay is None else weight_decay
        warmup = min(epochs / 50, 10.0) if warmup is None else warmup
        check_real(0, lr=lr, weight_decay=weight_decay, warmup=warmup)
        settings = {"learning_rate": lr, "weight_decay": weight_decay, "warmup": warmup}

        def look(record: dict[str, Any]) -> Mapping[str, Any]:
            due = record["epoch"] % monitor_every == 0 or record["epoch"] == epochs
            seen = {**monitor(self.net)} if monitor is not None and due else {}
            more = None if on_epoch is None else on_epoch({**record, **seen})
            return {**seen, **(more or {})}

        modules = self.modules
        history = fit(
            self.step,
            modules,
            sgd(modules.values(), lr, weight_decay, self.images.device),
            cosine(epochs, warmup=warmup),
            len(self.images),
            batch_size=batch_size,
            epochs=epochs,
            seed=seed,
            device=self.images.device,
            on_epoch=look,
            compile=self.how_to_compile(compile),
            facts={**settings, **self.facts, **(facts or {})},
            prefetch=None if self.images.on_device else self.images.prefetch,
            **options,
        )
        return Pretrained(self.net.eval(), self.head.eval(), history, self.method)

    def how_to_compile(self, asked: CompileSetting) -> CompileSetting:
        """What ``compile=True`` means here; all else means itself."""
        alone_on_gpu = self.images.device.type == "cuda" and own_gpu() is None
        return REPLAYED if asked is True and self.replayed and alone_on_gpu else asked


class SimCLR(Pretext):
    """Every view looks for its partner among all others; see :func:`simclr`."""

    method = "SimCLR"
    replayed = True

    def __init__(self, images: Any, **settings: Any) -> None:
        super().__init__(images, **settings)
        temperature = self.temperature

        def contrast(projected: Tensor) -> Tensor:
            first, second = projected.chunk(2)
            return nt_xent(first, second, temperature)

        # several processes exchange rows in it
        self._contrast = part(contrast) if world_size() == 1 else contrast

    def loss(self, views: Tensor) -> Tensor:
        """Normalized temperature-scaled cross-entropy of the projections."""
        return self._contrast(self.project(views))


@dataclass
class Pretrained:
    """A backbone, the head it was trained with, and how it went.

    Attributes
    ----------
    net : Backbone
        Trained, in evaluation mode.
    head : Module
        Projection that the loss saw; features are better before it.
    history : History
        One record per epoch.
    method : str
        ``"SimCLR"`` or ``"MoCo"``.
    """

    net: Backbone
    head: nn.Module
    history: History
    method: str

    def cpu(self) -> Self:
        """The same, with weights that a machine without a GPU can read."""
        self.net.cpu()
        self.head.cpu()
        return self

    def save(self, path: str | os.PathLike[str], **facts: object) -> Path:
        """Write the backbone as safetensors, with the method and other facts."""
        facts = {"method": self.method, "epochs": len(self.history), **facts}
        return save_backbone(self.net, path, facts)


def default_net(images: ImageSet, depth: int = 18) -> Backbone:
    """ResNet whose stem fits the size of the images."""
    return build_backbone(default_backbone(max(images.size), depth))


def seconds_an_image(
    images: ImageSet, net: Backbone, view: Augmentation, batch_size: int
) -> float:
    """Time that one image takes in training, from a few of them; for a plan.

    Network and random numbers of the training are left as they are.
    """
    few = torch.arange(min(batch_size, len(images), SETTINGS.timed_images))
    with torch.random.fork_rng([]):
        task = SimCLR(images, net=copy.deepcopy(net), view=view, device=images.device)
        generator = torch.Generator(images.device).manual_seed(0)
        for _ in range(2):  # the first time much is set up
            begun = time.perf_counter()
            task.step(few, generator).backward()  # type: ignore[no-untyped-call]
            spent = time.perf_counter() - begun
    return spent / len(few)


def mlp(n_in: int, hidden: int, n_out: int) -> nn.Sequential:
    """Two linear layers with a ReLU between."""
    return nn.Sequential(
        nn.Linear(n_in, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, n_out)
    )


def sgd(
    modules: Iterable[nn.Module], lr: float, weight_decay: float, device: torch.device
) -> torch.optim.SGD:
    """SGD with momentum 0.9; only matrices decay, not biases and norms."""
    parameters = [p for m in modules for p in m.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr, momentum=0.9, fused=device.type == "cuda")
