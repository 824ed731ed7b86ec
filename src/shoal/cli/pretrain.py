"""``shoal pretrain``: a network trained on images without labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli.groups import with_groups
from shoal.cli.messages import CommandError
from shoal.cli.networks import (
    Batch,
    Device,
    Images,
    Pictures,
    list_folder,
    network_errors,
    start_torch,
    warn,
)
from shoal.cli.options import Force, Out, Speech, Work, working
from shoal.cli.output import Output, running
from shoal.cli.places import filled_folder, refuse_existing
from shoal.cli.plain import write_json
from shoal.cli.progress import Stage, Stages
from shoal.cli.training import KEPT, Cluster, Method, train
from shoal.exceptions import CodedError

if TYPE_CHECKING:
    from shoal.vision.pretext import Pretrained

__all__ = ["pretrain"]

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
    from shoal.datasets.images_folder import check_readable, common_size
    from shoal.io.images import decode

    listed = list_folder(output, images, pictures, need_domains=False)
    check_count(images, len(listed.names))
    size = pictures.size or common_size(listed)
    check_room(len(listed.names), size)
    pixels, readable = decode(listed.paths, size)
    warn(output, check_readable(listed, readable, skip_bad=pictures.skip_bad))
    check_count(images, len(pixels))
    return pixels


def check_count(images: Path, n_images: int) -> None:
    """Raise E127 if there are too few images to tell one from another."""
    if n_images < LEAST:
        raise CommandError(
            "E127",
            f'"{images}" must hold at least {LEAST} images, got {n_images}',
            "add images: training tells each apart from the others",
        )


def check_room(n_images: int, size: int) -> None:
    """Raise E137 if so many images would not fit into the free memory as bytes."""
    from shoal.io.capacity import GIB, ROOM, available_memory

    need, free = 3.0 * n_images * size**2, available_memory()
    if free is not None and need > ROOM * free:
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
        raise CommandError("E165", text, hint) from error
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
    from shoal.io.names import n_of

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
