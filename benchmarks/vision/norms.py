"""What dropout does to a network's batch norms, epoch by epoch.

    python benchmarks/vision/norms.py --data DIR --cell cifar10-10-0.5 \
        --record results/vision/norms.json

A network is trained to tell the domains of an image cell apart, as DDFA (RI) does: from
a random start, with dropout three times in every block. After every epoch, the
cross-entropy of held-out images by the same weights, three times: with dropout on, with
the statistics that the norms gathered while dropout was on, and with statistics taken
anew without it. Guessing gives log r. ``DIR`` is that of ``cells.py``; ``--size`` and
``--rows`` make it fit for a CPU. With ``--starts`` also what the two kinds of
statistics mean for DDFA (RI): its accuracy as published on the held-out images, mean
over so many starts of the stages after the network. Labels are read for this score
alone. Needs torch, numpy, scikit-learn, and faiss for the published k-means.
"""

import argparse
import copy
import json
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from shoal.exceptions import ShoalWarning
from shoal.metrics import matched_accuracy
from shoal.vision._devices import autocast_to, pick_device
from shoal.vision._images import ImageSet, normalize
from shoal.vision._loop import exponential, fit
from shoal.vision._nets import resnet
from shoal.vision._rows import SplitRows, hold_out, settle
from shoal.vision.augment import weak_view
from shoal_bench import paper
from shoal_bench.image_problems import image_problem
from shoal_bench.meter import provenance
from shoal_bench.spec import Spec

BATCH = 1024

Array = np.ndarray[Any, Any]


def main(arguments: list[str] | None = None) -> None:
    args = parse(arguments)
    rows, labels = read_cell(args)
    curve = watch(args, rows, labels)
    on_gpu = rows.images.device.type == "cuda"
    record = {
        "cell": args.cell,
        "depth": args.depth,
        "dropout": args.dropout,
        "size": args.size,
        "batch_size": args.batch_size,
        "seed": args.seed,
        "starts": args.starts,
        "rows": len(rows.train),
        "held_out_rows": len(rows.valid),
        "guessing": float(np.log(n_domains(rows))),
        "curve": curve,
        "device": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        **provenance(),
    }
    if args.record:
        args.record.write_text(json.dumps(record, indent=2) + "\n")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--data", type=Path, required=True)
    cli.add_argument("--cell", default="cifar10-10-0.5", help="data set, r, alpha")
    cli.add_argument("--depth", type=int, choices=[18, 34], default=34)
    cli.add_argument("--dropout", type=float, default=0.5)
    cli.add_argument("--epochs", type=int, default=60)
    cli.add_argument("--batch-size", type=int, default=256)
    cli.add_argument("--rows", type=int, help="a random sample; default: all")
    cli.add_argument("--size", type=int, choices=[8, 16, 32], default=32)
    cli.add_argument("--seed", type=int, default=0)
    cli.add_argument("--starts", type=int, default=0, help="of DDFA, to be scored")
    cli.add_argument("--device")
    cli.add_argument("--record", type=Path, help="JSON to write")
    return cli.parse_args(arguments)


def read_cell(args: argparse.Namespace) -> tuple[SplitRows, Array]:
    """Images of a cell, each pixel the mean of a square of the original's; labels."""
    dataset, r, alpha = args.cell.split("-")
    problem = image_problem(
        Spec(dataset, int(r), float(alpha), 0, "ddfa_ri"), args.data
    )
    _, codes = np.unique(problem.domains, return_inverse=True)
    rng = np.random.default_rng(args.seed)
    chosen = rng.permutation(len(codes))[: args.rows]
    pixels = np.asarray(problem.X)[chosen]
    side = pixels.shape[1] // args.size
    parts = pixels.reshape(len(pixels), args.size, side, args.size, side, 3)
    small = parts.mean(axis=(2, 4)).round().astype(np.uint8)
    images = ImageSet(small, pick_device(args.device))
    split = hold_out(codes[chosen], 0.1, np.random.default_rng(args.seed))
    rows = SplitRows.of(images, codes[chosen], None, *split)
    return rows, np.asarray(problem.truth.labels)[chosen]


def n_domains(rows: SplitRows) -> int:
    return int(rows.codes.max()) + 1


def watch(
    args: argparse.Namespace, rows: SplitRows, labels: Array
) -> list[dict[str, float]]:
    """Train, and judge the network in three ways after every epoch."""
    torch.manual_seed(args.seed)
    net = resnet(args.depth, n_outputs=n_domains(rows), dropout=args.dropout)
    view, images = weak_view(args.size), rows.images
    curve: list[dict[str, float]] = []

    def step(indices: Tensor, generator: Generator) -> Tensor:
        numbers = rows.train[indices]
        views = normalize(view(images.batch(numbers), generator))
        return functional.cross_entropy(net(views).float(), rows.codes[numbers])

    def judge(judged: nn.Module) -> float:
        found = answers(judged, images, rows.valid)
        return float(functional.cross_entropy(found, rows.codes[rows.valid]))

    def on_epoch(record: dict[str, Any]) -> None:
        trained, settled = copy.deepcopy(net).eval(), copy.deepcopy(net)
        settle(settled, rows, args.seed)
        found = {
            "epoch": record["epoch"],
            "training": record["loss"],
            "dropout_on": judge(copy.deepcopy(net).train()),
            "statistics_of_training": judge(trained),
            "statistics_taken_anew": judge(settled.eval()),
        }
        if args.starts:
            for name, judged in (("of_training", trained), ("taken_anew", settled)):
                scores = ddfa_accuracies(judged, rows, labels, args.starts)
                found[f"accuracy_{name}"] = float(np.mean(scores))
                found[f"accuracy_std_{name}"] = float(np.std(scores, ddof=1))
        curve.append(found)
        print(json.dumps({k: round(v, 4) for k, v in found.items()}), flush=True)

    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    fit(
        step,
        {"net": net},
        optimizer,
        exponential(0.97),
        len(rows.train),
        batch_size=args.batch_size,
        epochs=args.epochs,
        seed=args.seed,
        device=images.device,
        on_epoch=on_epoch,
        progress=False,
    )
    return curve


@torch.no_grad()
def answers(net: nn.Module, images: ImageSet, numbers: Tensor) -> Tensor:
    """What a network says of the domains of some images."""
    with autocast_to(images.device):
        parts = [net(normalize(images.batch(part))) for part in numbers.split(BATCH)]
    return torch.cat(parts).float()


def ddfa_accuracies(
    net: nn.Module, rows: SplitRows, labels: Array, n_starts: int
) -> list[float]:
    """Accuracy on the held-out rows from several starts, stages as published."""
    codes, k = rows.codes.cpu().numpy(), len(np.unique(labels))
    parts = []
    for numbers in (rows.train, rows.valid):
        q = torch.softmax(answers(net, rows.images, numbers), dim=1)
        parts.append((q.double().cpu().numpy(), codes[numbers.cpu()]))
    found = []
    for seed in range(n_starts):
        model = paper.ddfa(
            k, n_clusters=3 * k, discriminator=lambda q: q, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            classes = model.fit(*parts[0]).predict(*parts[1])
        found.append(matched_accuracy(labels[rows.valid.cpu()], classes))
    return found


if __name__ == "__main__":
    main()
