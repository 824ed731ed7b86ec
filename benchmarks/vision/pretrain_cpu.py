"""Pretraining on a CPU: images a second, and classes from what was learned.

    OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/vision/pretrain_cpu.py

The plain network of `shoal pretrain` (four convolutions, views of three quarters of the
side, 128 images a step) learns for 20 epochs from the first 3,000 test images of
Fashion-MNIST, without labels; then they are dealt to twelve domains and fitted as in
`ready.py`. Speeds are per second of processor time, on images of 32 pixels, of one
epoch of the plain network and of one of a ResNet-18 on images of its own size.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from ready import run_once

from shoal.vision import encode, simclr
from shoal.vision._backbone import build_backbone
from shoal.vision.augment import simclr_view
from shoal_bench.datasets import load_fashion_mnist

RECORD = Path(__file__).parents[2] / "results" / "vision" / "pretrain_cpu.json"
COMMAND = (
    "OMP_NUM_THREADS=1 SHOAL_DATA_DIR=... python benchmarks/vision/pretrain_cpu.py"
)
SETTINGS = {"n_images": 3000, "epochs": 20, "batch": 128, "share": 0.75}
NETS = {"plain4": (1024, SETTINGS["share"]), "resnet18-cifar": (64, 1.0)}


def main() -> None:
    """Speeds, one training, and a fit for every seed."""
    cli = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    cli.add_argument("--seeds", type=int, default=3)
    cli.add_argument("--record", type=Path, default=RECORD)
    args = cli.parse_args()
    speeds = {name: images_a_second(name, *how) for name, how in NETS.items()}
    print(speeds, flush=True)
    data = load_fashion_mnist(split="test")
    n_images = SETTINGS["n_images"]
    pixels = data.X[:n_images].reshape(-1, 28, 28).astype(np.uint8)
    labels = np.asarray(data.labels[:n_images])
    begun = time.process_time()
    trained = train("plain4", pixels, SETTINGS["epochs"], SETTINGS["share"])
    seconds = time.process_time() - begun
    print(trained.history["loss"], round(seconds), flush=True)
    features = np.asarray(encode(trained.net, pixels, device="cpu"))
    runs = [run_once(features, pixels, labels, seed) for seed in range(args.seeds)]
    methods = runs[0]["accuracy"]
    found = {one: [run["accuracy"][one] for run in runs] for one in methods}
    record = {
        "command": COMMAND,
        "settings": SETTINGS,
        "images_a_cpu_second": speeds,
        "training_cpu_seconds": round(seconds),
        "loss": [trained.history["loss"][place] for place in (0, -1)],
        "summary": {
            name: [round(float(f(one)), 4) for f in (np.mean, spread)]
            for name, one in found.items()
        },
        "runs": runs,
    }
    args.record.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record["summary"]))


def spread(values: list[float]) -> float:
    """Standard deviation, n - 1."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def train(name: str, pixels: np.ndarray, epochs: int, share: float) -> object:
    """SimCLR as `shoal pretrain` calls it."""
    side = pixels.shape[1]
    return simclr(
        pixels,
        net=build_backbone(name),
        view=simclr_view(side, view_size=round(share * side)),
        epochs=epochs,
        batch_size=min(SETTINGS["batch"], len(pixels)),
        device="cpu",
        progress=False,
    )


def images_a_second(name: str, n_images: int, share: float) -> int:
    """Of one epoch on made-up images of 32 pixels."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (n_images, 32, 32, 3), dtype=np.uint8)
    begun = time.process_time()
    train(name, pixels, 1, share)
    return round(n_images / (time.process_time() - begun))


if __name__ == "__main__":
    main()
