"""``shoal pretrain``: a network trained on images without labels."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.cli import _networks
from shoal.cli._messages import CommandError, write_json
from shoal.cli._options import NUMBERS, Results, Speech, Work, with_groups, working
from shoal.cli._output import Output, running
from shoal.cli._runs import filled_folder, refuse_existing
from shoal.cli._stages import Stages
from shoal.exceptions import CodedError

if TYPE_CHECKING:
    from shoal.vision._simclr import Pretrained


HISTORY = "history.json"
# What a run keeps while it trains, in this process and on a Ray cluster.
KEPT = ("checkpoint.pt", "checkpoints")
LEAST = NUMBERS.least_images

# Pretext tasks of other packages: entry points with the signature of simclr.
OTHERS = {point.name: point for point in entry_points(group="shoal.pretraining")}
Method = StrEnum("Method", ["simclr", *OTHERS])  # type: ignore[misc]
OWN: Any = Method("simclr")


class Engine(StrEnum):
    """Where to train."""

    local = "local"
    ray = "ray"


class Depth(StrEnum):
    """Layers: of a plain network, or of a residual one."""

    plain = "4"
    small = "18"
    middle = "34"
    large = "50"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Where the network is trained."""

    engine: Engine = working(Engine.local, "In this process, or on a Ray cluster.")
    address: str | None = working(None, "Of the Ray cluster; else one on this machine.")
    workers: int = working(1, "Of the cluster; they share --batch.", min=1)

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


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the network is trained."""

    method: Method = working(OWN, "How to learn without labels.")
    epochs: int = working(100, "Passes over the images.", min=1)
    batch: int | None = working(
        None, "Images at a time; 128 on a CPU, else 512.", min=1
    )
    depth: Depth | None = working(
        None, "Layers of a ResNet, or 4: a plain network. 4 on a CPU, else 18."
    )
    learning_rate: float | None = working(
        None, "In proportion to --batch if not given.", min=0
    )
    view_size: int | None = working(
        None,
        "Height and width of a view; those of the images if not given, three quarters "
        "of them for --depth 4.",
        min=8,
    )
    compile: bool = working(
        False, "A minute first, then faster; for long runs on a GPU."
    )
    device: str = working("auto", "auto, cpu, cuda or cuda:1.")
    resume: bool = working(False, "Go on from the checkpoint in --out, if any.")

    def refuse_one(self) -> None:
        """Raise E002 for a batch in which nothing is told apart."""
        if self.batch is not None and self.batch < LEAST:
            text = f"--batch must be at least {LEAST}, got {self.batch}"
            hint = "training tells each image apart from the others of its batch"
            raise CommandError("E002", text, hint)

    def fitting(self, device: Any, *, on_ray: bool) -> "Training":
        """With what suits the machine where nothing is said."""
        depth, batch = Depth.small, NUMBERS.images_a_step
        if device.type == "cpu" and not on_ray:
            depth, batch = Depth.plain, NUMBERS.images_a_step_on_cpu
        return replace(self, batch=self.batch or batch, depth=self.depth or depth)

    def view_of(self, side: int) -> int:
        """Height and width of the views of images of a size."""
        if self.view_size is None and self.depth is Depth.plain:
            return max(round(NUMBERS.view_on_cpu * side), min(side, 8))
        return self.view_size or side

    def begun(self, pixels: Any, device: Any, seed: int) -> tuple[Any, Any, Any]:
        """Images, network and views to begin with."""
        import torch

        from shoal.vision._images import ImageSet
        from shoal.vision._simclr import default_net
        from shoal.vision.augment import simclr_view

        images = ImageSet(pixels, device)
        side = max(images.size)
        with torch.random.fork_rng([]):
            torch.manual_seed(seed)
            net = default_net(images, int(self.depth or Depth.small))
        return images, net, simclr_view(side, view_size=self.view_of(side))

    def seconds(self, pixels: Any, device: Any) -> float:
        """How long it will take, from a few images."""
        from shoal.vision._simclr import seconds_an_image

        each = seconds_an_image(*self.begun(pixels, device, 0), self.batch or LEAST)
        return each * len(pixels) * self.epochs

    def run(self, pixels: Any, device: Any, seed: int, **options: Any) -> "Pretrained":
        """The network trained; see :func:`shoal.vision.simclr` for the options."""
        from shoal.vision._simclr import simclr

        images, net, view = self.begun(pixels, device, seed)
        method = OTHERS[self.method].load() if self.method in OTHERS else simclr
        # whole epochs from one checkpoint to the next
        batch = self.batch or NUMBERS.images_a_step
        steps = max(len(images) // batch, 1)
        return method(
            images,
            net=net,
            view=view,
            # of a view its size alone can differ here: nothing else need be told
            facts={"view": "simclr_view", "view_size": self.view_of(max(images.size))},
            epochs=self.epochs,
            batch_size=batch,
            lr=self.learning_rate,
            compile=self.compile,
            seed=seed,
            device=device,
            checkpoint_every=steps * max(self.epochs // NUMBERS.checkpoints, 1),
            progress=False,
            **options,
        )


@with_groups
def pretrain(
    images: _networks.Images,
    pictures: _networks.Pictures,
    work: Work,
    cluster: Cluster,
    training: Training,
    results: Results,
    speech: Speech,
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
    folder = results.out or Path(f"{images.absolute().name}-encoder")
    plan = {"read": f"reading {images}", "train": "training"}
    with running("pretrain", speech) as output:
        training.refuse_one()
        place = _networks.start_torch(training.device, work.threads)
        training = training.fitting(place, on_ray=cluster.on_ray)
        kept = folder / cluster.kept
        refuse_trained(folder, resume=training.resume, force=results.force)
        with (
            output.stages(plan) as stages,
            _networks.network_errors(training.batch or LEAST, LEAST),
        ):
            output.begin("read")
            pixels = read(output, images, pictures)
            text = f"training on {cluster.name(place)}; checkpoint {kept}"
            if place.type == "cpu" and not cluster.on_ray and not training.resume:
                text = f"{text}; {in_words(training.seconds(pixels, place))}"
            plan["train"] = text
            output.begin("train")
            with training_errors(kept):
                trained = train(
                    cluster,
                    training,
                    pixels,
                    place,
                    work.seed,
                    checkpoint=kept,
                    on_epoch=showing(stages, plan, training.epochs),
                )
        save(output, folder, trained, pixels, work.seed, training)
        warn_of_no_progress(output)
        output.data["device"] = cluster.name(place)
        show(output, images, folder)


def train(
    cluster: Cluster,
    training: Training,
    pixels: Any,
    device: Any,
    seed: int,
    *,
    checkpoint: Path,
    on_epoch: Callable[[dict[str, Any]], None],
) -> "Pretrained":
    """The network trained, in this process or on a Ray cluster."""
    if not cluster.on_ray:
        kept = {"checkpoint": checkpoint, "resume": training.resume}
        return training.run(pixels, device, seed, on_epoch=on_epoch, **kept)
    from shoal.vision._ray import train_on_ray

    # Workers look for a device of their own, unless it is the CPU that is wanted.
    there = "cpu" if device.type == "cpu" else None

    def run_worker(store: Any) -> "Pretrained":
        return training.run(pixels, there, seed, checkpoint=store).cpu()

    return train_on_ray(
        run_worker,
        checkpoint,
        workers=cluster.workers,
        address=cluster.address,
        gpu=False if there else None,
        resume=training.resume,
        on_checkpoint=on_epoch,
    )


def refuse_trained(folder: Path, *, resume: bool, force: bool) -> None:
    """Raise E136 if an encoder, or a checkpoint that is not asked for, is there."""
    from shoal.io._ready import ENCODER

    refuse_existing(folder, [ENCODER, HISTORY], force=force)
    begun = any((folder / name).exists() for name in KEPT)
    if begun and not (resume or force):
        text = f'"{folder}" holds the checkpoint of a run that was stopped'
        hint = "add --resume to go on, or --force to start afresh"
        raise CommandError("E136", text, hint)


def read(output: Output, images: Path, pictures: _networks.Pictures) -> Any:
    """All images as bytes, of one size."""
    from shoal.datasets._files import check_readable, common_size
    from shoal.io._images import decode

    listed = _networks.list_folder(output, images, pictures, need_domains=False)
    check_count(images, len(listed.names))
    size = pictures.size or common_size(listed)
    _networks.check_room(len(listed.names), size)
    pixels, readable = decode(listed.paths, size)
    output.warn_all(check_readable(listed, readable, skip_bad=pictures.skip_bad))
    check_count(images, len(pixels))
    return pixels


def check_count(images: Path, n_images: int) -> None:
    """Raise E101 if there are too few images to tell one from another."""
    if n_images < LEAST:
        text = f'"{images}" must hold at least {LEAST} images, got {n_images}'
        hint = "add images: training tells each apart from the others"
        raise CommandError("E101", text, hint)


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
    stages: Stages, plan: dict[str, str], epochs: int
) -> Callable[[dict[str, Any]], None]:
    """Shows epoch and loss; the time left is judged by the epochs trained here."""
    begun: list[int] = []

    def show_epoch(record: dict[str, Any]) -> None:
        epoch, loss = record["epoch"], record["loss"]
        begun.append(epoch - 1)
        text = f"training, epoch {epoch} of {epochs}, loss {loss:.4g}"
        plan["train"] = text
        stages.advance((epoch - begun[0]) / (epochs - begun[0]))

    return show_epoch


def save(
    output: Output,
    folder: Path,
    trained: "Pretrained",
    pixels: Any,
    seed: int,
    training: Training,
) -> None:
    """Write the encoder and its history; the checkpoint has done its work."""
    import numpy as np

    from shoal.io._ready import ENCODER

    net: Any = trained.net
    size, history = pixels.shape[1], trained.history
    with filled_folder(folder, instead_of=KEPT) as place:
        facts = {"depth": net.depth, "stem": net.stem, "size": size, "seed": seed}
        facts["view_size"] = training.view_of(size)
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


def in_words(seconds: float) -> str:
    """About how long, as people say it."""
    from shoal.io._files import n_of

    minutes = seconds / 60
    if minutes < 1:
        return "less than a minute"
    unit, amount = ("minute", minutes) if minutes < 90 else ("hour", minutes / 60)
    return f"about {n_of(round(amount), unit)}"


def warn_of_no_progress(output: Output) -> None:
    """Say that a network has learned nothing, if its loss has not fallen."""
    first, last, epochs = (output.data[one] for one in ("first_loss", "loss", "epochs"))
    if epochs >= NUMBERS.epochs_to_judge and last > NUMBERS.loss_left * first:
        text = f"the loss has hardly fallen: {first:.4g} to {last:.4g}"
        hint = "more --epochs or images, a smaller --batch, or a ready encoder: "
        output.warn("W129", text, hint + "`shoal fit --encoder efficientnet-lite0`")


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
