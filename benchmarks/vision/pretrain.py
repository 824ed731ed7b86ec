"""Train a backbone without labels, within a number of minutes.

    python benchmarks/vision/pretrain.py --data DIR --minutes 10 --out net.safetensors

``DIR`` holds CIFAR in its official binary layout (``cifar-10-batches-bin`` or
``cifar-100-binary``, or one of these itself), or ``train.npy`` (uint8, n x h x w x 3)
with, for the monitor, ``train_labels.npy``, ``test.npy`` and ``test_labels.npy``.
Labels are for the monitor's kNN accuracy alone.

The number of epochs is what fits: a few epochs are timed, their weights thrown away,
and the cosine runs over the epochs that the rest of the minutes allows. The first of
them also compiles; what it took beyond the others is the record's warm-up. A run
resumed from its checkpoint keeps its number of epochs, so that it ends with the weights
of an uninterrupted one, however long compiling took.

The learning rate is proportional to the batch (SimCLR 0.4 and MoCo 0.06 for 512
images) and rises over the first fiftieth of the epochs, at most 10. Needs torch, numpy,
scikit-learn and safetensors.
"""

import argparse
import copy
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from shoal.vision import ImageSet, knn_monitor
from shoal.vision._backbone import default_backbone
from shoal.vision._checkpoint import CheckpointFile
from shoal.vision._devices import pick_device
from shoal.vision._simclr import (
    Monitor,
    Pretext,
    Pretrained,
    SimCLR,
    default_net,
)
from shoal.vision.augment import simclr_view
from shoal_bench.datasets.cifar import load_cifar10, load_cifar20
from shoal_bench.meter import provenance
from shoal_bench.moco import MoCo

METHODS = {"simclr": SimCLR, "moco": MoCo}
TIMED_EPOCHS = 4
SPARE = 0.02  # of the minutes, for what was not foreseen


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    started = time.perf_counter()
    parts = read_data(args.data)
    device = pick_device(args.device)
    if args.compile is None:
        args.compile = "on" if device.type == "cuda" else "off"
    images = ImageSet(parts["train"], device)
    task = make_task(args, images)
    monitor = None
    if "train_labels" in parts and "test" in parts:
        monitor = knn_monitor(
            images,
            parts["train_labels"],
            parts["test"],
            parts["test_labels"],
            device=device,
        )
    plan = choose_epochs(args, task, monitor, started)
    print(f"{len(images)} images: {plan}", file=sys.stderr)
    result = train(args, task, plan.epochs, monitor=monitor, checkpoint=args.checkpoint)
    seconds = time.perf_counter() - started
    if args.out:
        stem = default_backbone(max(images.size), args.depth).partition("-")[2]
        result.save(
            args.out,
            data=args.data.name,
            seed=args.seed,
            batch=args.batch_size,
            depth=args.depth,
            stem=stem,
            size=max(images.size),
            view_size=args.view_size or max(images.size),
        )
    record = make_record(args, result, device, seconds, plan)
    text = json.dumps(record, indent=2)
    if args.record:
        args.record.write_text(text + "\n")
    print(json.dumps({k: v for k, v in record.items() if k != "curve"}, indent=2))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--data", type=Path, required=True)
    length = cli.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float, help="all of it: set-up to last epoch")
    length.add_argument("--epochs", type=int)
    cli.add_argument("--method", choices=[*METHODS], default="simclr")
    cli.add_argument("--depth", type=int, choices=[18, 34, 50], default=18)
    cli.add_argument("--batch-size", type=int, default=512)
    cli.add_argument("--view-size", type=int, help="pixels; default: of the images")
    cli.add_argument("--temperature", type=float, default=0.1)
    cli.add_argument("--lr", type=float, help="default: proportional to the batch")
    cli.add_argument("--weight-decay", type=float)
    cli.add_argument("--seed", type=int, default=0)
    cli.add_argument("--device")
    cli.add_argument("--compile", help="off (on a CPU), on (on a GPU), or a mode")
    cli.add_argument("--monitor-every", type=int, default=25, metavar="EPOCHS")
    cli.add_argument("--checkpoint", type=Path, help="kept every 20 epochs")
    cli.add_argument("--out", type=Path, help="backbone to write, .safetensors")
    cli.add_argument("--record", type=Path, help="JSON to write")
    return cli.parse_args(arguments)


def read_data(folder: Path) -> dict[str, Any]:
    """Images and labels by name: train, train_labels, test, test_labels."""
    if (folder / "train.npy").is_file():
        names = ("train", "train_labels", "test", "test_labels")
        found = [name for name in names if (folder / f"{name}.npy").is_file()]
        return {name: np.load(folder / f"{name}.npy") for name in found}
    small = (folder / "data_batch_1.bin").is_file()
    load = (
        load_cifar10 if small or folder.name.startswith("cifar-10-") else load_cifar20
    )
    train, test = (load(folder, split=split) for split in ("train", "test"))
    return {
        "train": train.X,
        "train_labels": train.labels,
        "test": test.X,
        "test_labels": test.labels,
    }


def make_task(args: argparse.Namespace, images: ImageSet) -> Pretext:
    torch.manual_seed(args.seed)
    return METHODS[args.method](
        images,
        net=default_net(images, args.depth),
        temperature=args.temperature,
        view=simclr_view(max(images.size), view_size=args.view_size),
        seed=args.seed,
        device=images.device,
    )


def train(
    args: argparse.Namespace, task: Pretext, epochs: int, **options: Any
) -> Pretrained:
    mode: bool | str = {"off": False, "on": True}.get(args.compile, args.compile)
    return task.train(
        epochs=epochs,
        batch_size=args.batch_size,
        lr=args.lr,
        weight_decay=args.weight_decay,
        seed=args.seed,
        monitor_every=args.monitor_every,
        checkpoint_every=20 * max(len(task.images) // args.batch_size, 1),
        compile=mode,
        **options,
    )


@dataclass(frozen=True)
class Plan:
    """Epochs to train, how they were found, and seconds that compiling took."""

    epochs: int
    reason: str
    warm_up_seconds: float | None = None
    epoch_seconds: float | None = None


def choose_epochs(
    args: argparse.Namespace, task: Pretext, monitor: Monitor | None, started: float
) -> Plan:
    """As many as fit into the minutes; a resumed run keeps its number."""
    kept = CheckpointFile(args.checkpoint).read() if args.checkpoint else None
    if kept is not None:
        return Plan(int(kept["plan"]["epochs"]), "resumed")
    if args.epochs:
        return Plan(args.epochs, "as asked")
    before = {name: copy.deepcopy(m.state_dict()) for name, m in task.modules.items()}
    history = train(args, task, TIMED_EPOCHS, progress=False).history
    for name, module in task.modules.items():
        module.load_state_dict(before[name])
    first, *others = history["seconds"]
    seconds = min(others)
    looking = time.perf_counter()
    if monitor is not None:
        monitor(task.net)
    now = time.perf_counter()
    each = seconds + (now - looking) / args.monitor_every
    left = (1 - SPARE) * args.minutes * 60 - (now - started)
    return Plan(max(int(left / each), 1), "timed", first - seconds, seconds)


def make_record(
    args: argparse.Namespace,
    result: Pretrained,
    device: torch.device,
    seconds: float,
    plan: Plan,
) -> dict[str, Any]:
    history = result.history
    on_gpu = device.type == "cuda"
    name = torch.cuda.get_device_name(device) if on_gpu else platform.processor()
    looked = [r for r in history.records if "knn_accuracy" in r]
    return {
        "method": result.method,
        "data": args.data.name,
        "device": name or platform.machine(),
        "torch": torch.__version__,
        "settings": {
            name: value.name if isinstance(value, Path) else value
            for name, value in vars(args).items()
            if value is not None
        },
        "epochs": len(history),
        "views_per_second": 2 * float(np.median(history["rows_per_second"])),
        "training_seconds": sum(history["seconds"]),
        "seconds": seconds,
        "plan": asdict(plan),
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30 if on_gpu else None,
        "knn_accuracy": looked[-1]["knn_accuracy"] if looked else None,
        "loss": history["loss"][-1],
        "curve": history.records,
        "cores": os.cpu_count(),
        **provenance(),
    }


if __name__ == "__main__":
    main()
