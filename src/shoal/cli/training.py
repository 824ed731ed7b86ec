"""Where `shoal pretrain` trains: in this process, or on a Ray cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli.messages import CommandError
from shoal.cli.options import working

if TYPE_CHECKING:
    from shoal.vision.data import ImageSet
    from shoal.vision.pretext import Pretrained

__all__ = ["KEPT", "Cluster", "Method", "train"]

# What a run keeps while it trains, in this process and on a Ray cluster.
KEPT = ("checkpoint.pt", "checkpoints")
# So many are written, so that a run that is killed loses a tenth of its work.
CHECKPOINTS = 10


class Method(StrEnum):
    """How to learn without labels."""

    simclr = "simclr"
    moco = "moco"


class Engine(StrEnum):
    """Where to train."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where the network is trained."""

    engine: Annotated[
        Engine, working("--engine", help="In this process, or on a Ray cluster.")
    ] = Engine.local
    address: Annotated[
        str | None,
        working("--address", help="Of the Ray cluster; else one on this machine."),
    ] = None
    workers: Annotated[
        int, working("--workers", min=1, help="Of the cluster; they share --batch.")
    ] = 1

    @property
    def on_ray(self) -> bool:
        """Whether a cluster trains; E002 for options that only one has."""
        told = self.address is not None or self.workers > 1
        if told and self.engine is not Engine.ray:
            text = "--address and --workers are those of a Ray cluster"
            raise CommandError("E002", text, "add --engine ray")
        return self.engine is Engine.ray

    @property
    def kept(self) -> str:
        """Name of what a run keeps while it trains."""
        return KEPT[self.on_ray]

    def name(self, device: Any) -> str:
        """What trains, in words."""
        return f"Ray ({self.workers} workers)" if self.on_ray else str(device)


def train(
    cluster: Cluster,
    pixels: Any,
    device: Any,
    *,
    checkpoint: Path,
    resume: bool,
    on_epoch: Callable[[dict[str, Any]], None],
    **options: Any,
) -> "Pretrained":
    """The network trained; see :func:`shoal.vision.simclr.simclr` for the options."""
    if not cluster.on_ray:
        options |= {"checkpoint": checkpoint, "resume": resume, "on_epoch": on_epoch}
        return _train(pixels, device, **options)
    from shoal.vision.ray_train import train_on_ray

    # Workers look for a device of their own, unless it is the CPU that is wanted.
    there = "cpu" if device.type == "cpu" else None

    def run_worker(store: Any) -> "Pretrained":
        return _train(pixels, there, checkpoint=store, **options).cpu()

    return train_on_ray(
        run_worker,
        checkpoint,
        workers=cluster.workers,
        address=cluster.address,
        gpu=False if there else None,
        resume=resume,
        on_checkpoint=on_epoch,
    )


def _train(
    pixels: Any,
    device: Any,
    *,
    method: Method,
    depth: int,
    seed: int,
    view_size: int | None,
    **options: Any,
) -> "Pretrained":
    """The network trained; see :func:`shoal.vision.simclr.simclr` for the options."""
    import torch

    from shoal.vision.augment import simclr_view
    from shoal.vision.data import ImageSet
    from shoal.vision.moco import moco
    from shoal.vision.pretext import default_net
    from shoal.vision.simclr import simclr

    images = ImageSet(pixels, device)
    side = max(images.size)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = default_net(images, depth)
    return {Method.simclr: simclr, Method.moco: moco}[method](
        images,
        net=net,
        view=simclr_view(side, view_size=view_size),
        # of a view its size alone can differ here: nothing else need be told
        facts={"view": "simclr_view", "view_size": view_size or side},
        seed=seed,
        device=device,
        checkpoint_every=steps_between(images, options),
        progress=False,
        **options,
    )


def steps_between(images: "ImageSet", options: dict[str, Any]) -> int:
    """Steps from one checkpoint to the next: whole epochs, a share of the run."""
    steps = max(len(images) // options["batch_size"], 1)
    return steps * max(options["epochs"] // CHECKPOINTS, 1)
