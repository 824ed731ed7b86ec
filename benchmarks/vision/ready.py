"""Pictures without a GPU: a ready encoder, beside k-means on its features and pixels.

    SHOAL_DATA_DIR=... python benchmarks/vision/ready.py

The first 3,000 test images of Fashion-MNIST and of CIFAR-10, as files, go through the
encoder as `shoal fit --encoder efficientnet-lite0` does it, and are dealt to twelve
domains (Dirichlet, alpha 1) for every seed. The number of classes is given. Labels are
seen by the scores alone. The encoder was taught with the labels of ImageNet, whose
classes are close to those of CIFAR-10: nothing here enters the paper's tables.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.cluster import KMeans

from shoal import DomainMixture
from shoal.cli._options import NUMBERS
from shoal.datasets import draw_prevalence, plan_domains, take
from shoal.metrics import majority_accuracy, matched_accuracy
from shoal.vision import embed_folder
from shoal.vision._mixture_net import project_features
from shoal_bench.datasets import load_cifar10, load_fashion_mnist

RECORD = Path(__file__).parents[2] / "results" / "vision" / "ready.json"
SETTINGS = {"n_images": 3000, "n_domains": 12, "alpha": 1.0, "size": 128}
DATA = {"Fashion-MNIST": load_fashion_mnist, "CIFAR-10": load_cifar10}
ENCODER = "efficientnet-lite0"


def main() -> None:
    """Embed each set once, deal and fit for every seed, write the record."""
    cli = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    cli.add_argument("--seeds", type=int, default=3)
    cli.add_argument("--record", type=Path, default=RECORD)
    args = cli.parse_args()
    runs, speed = [], {}
    for name, load in DATA.items():
        data = load(split="test")
        n_images = SETTINGS["n_images"]
        shape = getattr(data, "image_shape", (32, 32, 3))
        pixels = data.X[:n_images].reshape(-1, *shape)
        labels = np.asarray(data.labels[:n_images])
        features, speed[name] = embed(pixels.squeeze())
        for seed in range(args.seeds):
            runs.append({"data": name, **run_once(features, pixels, labels, seed)})
            print(json.dumps(runs[-1]), flush=True)
    write(args.record, runs, speed)


def embed(pixels: np.ndarray) -> tuple[np.ndarray, float]:
    """Features of images that lie in a folder, and how many a second."""
    with tempfile.TemporaryDirectory() as folder:
        for number, image in enumerate(pixels):
            path = Path(folder, f"domain{number % 2}", f"{number:05}.png")
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(image).save(path)
        begun = time.perf_counter()
        bunch = embed_folder(folder, ENCODER, size=SETTINGS["size"], device="cpu")
        seconds = time.perf_counter() - begun
    order = np.argsort([Path(file).name for file in bunch.files])
    return bunch.X[order], round(len(pixels) / seconds, 1)


def run_once(
    features: np.ndarray, pixels: np.ndarray, labels: np.ndarray, seed: int
) -> dict:
    """Every method on one deal."""
    n_labels = len(np.unique(labels))
    mixes = draw_prevalence(
        n_labels,
        SETTINGS["n_domains"],
        alpha=SETTINGS["alpha"],
        random_state=seed,
    )
    rows = np.arange(len(labels))
    plan = plan_domains(
        labels, mixes, splits={"train": rows}, valid_share=0, random_state=seed
    )
    taken, domains = take(plan, rows, "train")
    truth = labels[taken]
    most = min(len(taken) // NUMBERS.rows_per_component, NUMBERS.most_components)
    points, _ = project_features(features[taken], most)
    kmeans = KMeans(n_labels, n_init=10, random_state=seed)
    begun = time.process_time()
    model = DomainMixture(n_labels, random_state=seed).fit(points, domains)
    seconds = time.process_time() - begun
    flat = pixels[taken].reshape(len(taken), -1) / 255
    return {
        "seed": seed,
        "n_rows": len(taken),
        "route": model.route_.by,
        "accuracy": {
            "shoal": matched_accuracy(truth, model.labels_),
            "k-means on the features": matched_accuracy(
                truth, kmeans.fit_predict(features[taken])
            ),
            "k-means on pixels": matched_accuracy(truth, kmeans.fit_predict(flat)),
            "majority": majority_accuracy(truth, domains),
        },
        "cpu_seconds": round(seconds, 1),
    }


def write(path: Path, runs: list[dict], speed: dict[str, float]) -> None:
    """The record: mean and standard deviation by data set, then every run."""
    summary = {}
    for name in DATA:
        found = [run["accuracy"] for run in runs if run["data"] == name]
        summary[name] = {
            method: [
                round(float(np.mean([one[method] for one in found])), 4),
                round(float(np.std([one[method] for one in found], ddof=1)), 4),
            ]
            for method in found[0]
        }
    record = {
        "command": "SHOAL_DATA_DIR=... python benchmarks/vision/ready.py",
        "settings": SETTINGS,
        "threads": torch.get_num_threads(),
        "images_per_second": speed,
        "summary": summary,
        "runs": runs,
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
