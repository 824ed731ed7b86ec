"""``shoal pretrain``: a network trained on images without labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli._messages import CommandError, write_json
from shoal.cli._networks import (
    Batch,
    Device,
    Images,
    Pictures,
    list_folder,
    network_errors,
    start_torch,
    warn,
)
from shoal.cli._options import Force, Out, Speech, Work, with_groups, working
from shoal.cli._output import Output, Stage, Stages, running
from shoal.cli._places import filled_folder, refuse_existing
from shoal.exceptions import CodedError

if TYPE_CHECKING:
    from shoal.vision._images import ImageSet
    from shoal.vision._simclr import Pretrained


# ---- Where `shoal pretrain` trains: in this process, or on a Ray cluster -------------

# What a run keeps while it trains, in this process and on a Ray cluster.
KEPT = ("checkpoint.pt", "checkpoints")
# So many are written, so that a run that is killed loses a tenth of its work.
CHECKPOINTS = 10


# Pretext tasks of other packages: entry points with the signature of simclr.
OTHERS = {point.name: point for point in entry_points(group="shoal.pretraining")}
Method = StrEnum("Method", ["simclr", *OTHERS])


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
    """The network trained; see :func:`shoal.vision.simclr` for the options."""
    if not cluster.on_ray:
        options |= {"checkpoint": checkpoint, "resume": resume, "on_epoch": on_epoch}
        return _train(pixels, device, **options)
    from shoal.vision._ray import train_on_ray

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
    """The network trained; see :func:`shoal.vision.simclr` for the options."""
    import torch

    from shoal.vision._images import ImageSet
    from shoal.vision._simclr import default_net, simclr
    from shoal.vision.augment import simclr_view

    images = ImageSet(pixels, device)
    side = max(images.size)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        net = default_net(images, depth)
    pretrain = OTHERS[method].load() if method in OTHERS else simclr
    return pretrain(
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


# ---- ``shoal pretrain``: a network trained on images without labels ------------------

ENCODER, HISTORY = "encoder.safetensors", "history.json"
# An image is told apart from others: with one alone there is nothing to learn.
LEAST = 2


class Depth(StrEnum):
    """Layers of the residual network."""

    small = "18"
    middle = "34"
    large = "50"


Epochs = Annotated[int, working("--epochs", min=1, help="Passes over the images.")]
How = Annotated[Method, working("--method", help="How to learn without labels.")]
Layers = Annotated[Depth, working("--depth", help="Layers of the ResNet.")]
Rate = Annotated[
    float | None,
    working("--learning-rate", min=0, help="In proportion to --batch if not given."),
]
ViewSize = Annotated[
    int | None,
    working(
        "--view-size",
        min=8,
        help="Height and width of a view; those of the images if not given.",
    ),
]
Compile = Annotated[
    bool,
    working("--compile", help="A minute first, then faster; for long runs on a GPU."),
]
Resume = Annotated[
    bool, working("--resume", help="Go on from the checkpoint in --out, if any.")
]


@with_groups
def pretrain(
    images: Images,
    pictures: Pictures,
    work: Work,
    cluster: Cluster,
    speech: Speech,
    method: How = Method.simclr,
    epochs: Epochs = 100,
    batch: Batch = 512,
    depth: Layers = Depth.small,
    learning_rate: Rate = None,
    view_size: ViewSize = None,
    compile: Compile = False,
    device: Device = "auto",
    resume: Resume = False,
    out: Out = None,
    force: Force = False,
) -> None:
    """Train a network on images without labels, for `shoal embed`.

    The images may lie at any depth, in folders of domains or not. Images of several
    sizes need --size. While it trains, the folder --out (NAME-encoder) holds a
    checkpoint, from which --resume goes on; the same options then end with the same
    network as a run that was never stopped. At the end it holds encoder.safetensors
    and history.json, the loss of every epoch.

    With --engine ray, the --workers of a Ray cluster share every batch and end with the
    network of one process but for rounding; one that dies is replaced. All machines of
    the cluster must see the folder --out.
    """
    folder = out or Path(f"{images.absolute().name}-encoder")
    plan = {"read": Stage(f"reading {images}"), "train": Stage("training", 20)}
    with running("pretrain", **speech.options) as output:
        if batch < LEAST:
            text = f"--batch must be at least {LEAST}, got {batch}"
            hint = "training tells each image apart from the others of its batch"
            raise CommandError("E002", text, hint)
        place = start_torch(device, work.threads)
        kept = folder / cluster.kept
        refuse_trained(folder, resume=resume, force=force)
        with output.stages(plan) as stages, network_errors(batch, LEAST):
            stages.begin("read")
            pixels = read(output, images, pictures)
            text = f"training on {cluster.name(place)}; checkpoint {kept}"
            plan["train"] = plan["train"]._replace(text=text)
            stages.begin("train")
            with training_errors(kept):
                trained = train(
                    cluster,
                    pixels,
                    place,
                    method=method,
                    depth=int(depth),
                    epochs=epochs,
                    batch_size=batch,
                    lr=learning_rate,
                    seed=work.seed,
                    view_size=view_size,
                    compile=compile,
                    checkpoint=kept,
                    resume=resume,
                    on_epoch=showing(stages, plan, epochs),
                )
        save(output, folder, trained, pixels, work.seed, view_size)
        output.data["device"] = cluster.name(place)
        show(output, images, folder)


def refuse_trained(folder: Path, *, resume: bool, force: bool) -> None:
    """Raise E136 if an encoder, or a checkpoint that is not asked for, is there."""
    refuse_existing(folder, [ENCODER, HISTORY], force=force)
    begun = any((folder / name).exists() for name in KEPT)
    if begun and not (resume or force):
        raise CommandError(
            "E136",
            f'"{folder}" holds the checkpoint of a run that was stopped',
            "add --resume to go on, or --force to start afresh",
        )


def read(output: Output, images: Path, pictures: Pictures) -> Any:
    """All images as bytes, of one size."""
    from shoal.datasets._folders import check_readable, common_size
    from shoal.io._images import decode

    listed = list_folder(output, images, pictures, need_domains=False)
    check_count(images, len(listed.names))
    size = pictures.size or common_size(listed)
    check_room(len(listed.names), size)
    pixels, readable = decode(listed.paths, size)
    warn(output, check_readable(listed, readable, skip_bad=pictures.skip_bad))
    check_count(images, len(pixels))
    return pixels


def check_count(images: Path, n_images: int) -> None:
    """Raise E101 if there are too few images to tell one from another."""
    if n_images < LEAST:
        raise CommandError(
            "E101",
            f'"{images}" must hold at least {LEAST} images, got {n_images}',
            "add images: training tells each apart from the others",
        )


def check_room(n_images: int, size: int) -> None:
    """Raise E137 if so many images would not fit into the free memory as bytes."""
    from shoal.io._files import GIB, available_memory
    from shoal.io._settings import READING

    need, free = 3.0 * n_images * size**2, available_memory()
    if free is not None and need > READING.room * free:
        raise CommandError(
            "E137",
            f"{n_images:,} images of {size} x {size} pixels need {need / GIB:.3g} GiB, "
            f"{free / GIB:.3g} GiB free",
            "a smaller --size",
        )


@contextmanager
def training_errors(checkpoint: Path) -> Iterator[None]:
    """What stops a training, as coded errors that tell how to go on."""
    try:
        yield
    except KeyboardInterrupt as error:
        begun = checkpoint.exists()
        hint = "go on with --resume" if begun else "run the command again"
        text = "interrupted; no file is half-written"
        raise CommandError("E003", text, hint) from error
    except FloatingPointError as error:
        text = str(error).partition(";")[0]
        hint = "start afresh (--force) with a lower --learning-rate"
        raise CommandError("E164", text, hint) from error
    except OSError as error:
        reason = error.strerror or str(error)
        text = f'cannot write "{checkpoint}": {reason}'
        raise CommandError("E140", text, "free some space, then --resume") from error
    except CodedError:
        raise
    except ValueError as error:  # a checkpoint that is damaged or of other settings
        text = str(error).rpartition(";")[0]
        hint = "give the options it was begun with, or --force without --resume"
        raise CommandError("E135", text, hint) from error


def showing(
    stages: Stages, plan: dict[str, Stage], epochs: int
) -> Callable[[dict[str, Any]], None]:
    """Shows epoch and loss; the time left is judged by the epochs trained here."""
    begun: list[int] = []

    def show_epoch(record: dict[str, Any]) -> None:
        epoch, loss = record["epoch"], record["loss"]
        begun.append(epoch - 1)
        text = f"training, epoch {epoch} of {epochs}, loss {loss:.4g}"
        plan["train"] = plan["train"]._replace(text=text)
        stages.advance((epoch - begun[0]) / (epochs - begun[0]))

    return show_epoch


def save(
    output: Output,
    folder: Path,
    trained: "Pretrained",
    pixels: Any,
    seed: int,
    view_size: int | None,
) -> None:
    """Write the encoder and its history; the checkpoint has done its work."""
    import numpy as np

    net: Any = trained.net
    size, history = pixels.shape[1], trained.history
    with filled_folder(folder, instead_of=KEPT) as place:
        facts = {"depth": net.depth, "stem": net.stem, "size": size, "seed": seed}
        facts["view_size"] = view_size or size
        trained.save(place / ENCODER, **facts)
        write_json(place / HISTORY, history.records)
    output.files = [folder / ENCODER, folder / HISTORY]
    output.data = {
        "method": trained.method,
        "n_images": len(pixels),
        **facts,
        "epochs": len(history),
        "first_loss": history["loss"][0],
        "loss": history["loss"][-1],
        "images_per_second": float(np.median(history["rows_per_second"])),
    }


def show(output: Output, images: Path, folder: Path) -> None:
    """What was trained, how the loss fell, and what to do next."""
    from shoal.io._files import n_of

    found = output.data
    output.show(
        f"{found['method']} on {found['n_images']:,} images of {found['size']} x "
        f"{found['size']} pixels, {n_of(found['epochs'], 'epoch')} on "
        f"{found['device']}: loss "
        f"{found['first_loss']:.4g} to {found['loss']:.4g}, "
        f"{found['images_per_second']:,.0f} images/s.",
        f"Written: {output.files[0]}",
        f"Next: shoal embed {images} --weights {folder}",
    )
