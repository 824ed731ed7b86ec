"""SCAN on a data set's own test images, several seeds, one record.

    python benchmarks/vision/scan.py --data DIR --datasets cifar20 cifar10 \
        --seeds 0 1 2 --record results/vision/scan.jsonl

``DIR`` is that of ``cells.py``; the networks are kept in ``DIR/scan``, where SCAN and
DDFA (SI) of the image cells find them. One line of JSON per run: settings, SCAN's loss,
training rows of each class, accuracy and agreement on the test images (labels are read
for these alone). Lines that are there are not run again. ``--set name=value`` changes a
setting of ``shoal_bench.scan.SCAN``. Needs torch, numpy, scikit-learn, safetensors.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from cells import read_value

from shoal.metrics import adjusted_rand, matched_accuracy
from shoal_bench.datasets.cifar import load_cifar10, load_cifar20
from shoal_bench.image_kept import trained_scan
from shoal_bench.image_problems import image_problem
from shoal_bench.meter import Meter, provenance
from shoal_bench.published import PAPER_DATASETS
from shoal_bench.spec import Spec

LOADERS = {"cifar20": load_cifar20, "cifar10": load_cifar10}


def main(arguments: list[str] | None = None) -> None:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--data", type=Path, required=True)
    cli.add_argument("--datasets", nargs="+", choices=[*LOADERS], default=[*LOADERS])
    cli.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    cli.add_argument("--record", type=Path, default=Path("results/vision/scan.jsonl"))
    cli.add_argument("--set", nargs="+", default=[], metavar="NAME=VALUE")
    args = cli.parse_args(arguments)
    pairs = [pair.partition("=") for pair in args.set]
    settings = {name: read_value(value) for name, _, value in pairs}
    args.record.parent.mkdir(parents=True, exist_ok=True)
    known = args.record.read_text().splitlines() if args.record.exists() else []
    done = [json.loads(line)["run"] for line in known]
    for dataset in args.datasets:
        for seed in args.seeds:
            run = {"dataset": dataset, "seed": seed, "settings": settings}
            if run in done:
                continue
            record = {"run": run, **train(args.data, dataset, seed, settings)}
            with args.record.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)


def train(
    data: Path, dataset: str, seed: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """Train or read one SCAN, and score it on the test images as they are."""
    n_domains = PAPER_DATASETS[dataset].n_domains[0]  # any: SCAN sees the pool alone
    spec = Spec(dataset, n_domains, 3, seed, "scan")
    problem = image_problem(spec, data)
    test = LOADERS[dataset](data, split="test")
    begun = time.perf_counter()
    with Meter(gpu=True) as meter:
        scan = trained_scan(problem, seed, **settings)
    classes = scan.predict(test.X)
    return {
        "accuracy": matched_accuracy(test.labels, classes),
        "adjusted_rand": adjusted_rand(test.labels, classes),
        "loss": float(scan.loss_),
        "head_losses": np.asarray(scan.head_losses_).tolist(),
        "class_counts": np.asarray(scan.class_counts_).tolist(),
        "seconds": round(time.perf_counter() - begun, 1),
        "gpu_mib": meter.gpu_mib,
        "device": meter.device,
        **provenance(),
    }


if __name__ == "__main__":
    main()
