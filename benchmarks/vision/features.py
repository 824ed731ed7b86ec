"""Features of CIFAR from a backbone, for the benchmark's frozen estimators.

    python benchmarks/vision/features.py --data DIR --backbone simclr24_resnet18 \
        --kind simclr24_pca128

``DIR`` holds CIFAR in its official binary layout and
``weights/BACKBONE_{cifar10,cifar100}.safetensors``. Written are
``DIR/features/{cifar20,cifar10}_KIND.npz``: features of the clean images, of unit
length, on the first 128 principal components of the 50,000 training rows, which stand
before the 10,000 test rows, and the labels, which only scoring reads. On two cores ten
minutes a data set. Needs torch, numpy, scikit-learn and safetensors.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.decomposition import PCA

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from shoal.io.extend import whole_file
from shoal.vision import encode, load_backbone
from shoal_bench.datasets.cifar import load_cifar10, load_cifar20

#: Data set -> how to read it, and what its weights are named after.
DATASETS = {"cifar20": (load_cifar20, "cifar100"), "cifar10": (load_cifar10, "cifar10")}


def main(arguments: list[str] | None = None) -> None:
    cli = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    cli.add_argument("--data", type=Path, required=True)
    cli.add_argument("--backbone", default="simclr24_resnet18")
    cli.add_argument("--kind", default="simclr24_pca128", help="name of the result")
    cli.add_argument("--datasets", nargs="+", choices=[*DATASETS], default=[*DATASETS])
    cli.add_argument("--components", type=int, default=128)
    cli.add_argument("--device")
    args = cli.parse_args(arguments)
    for dataset in args.datasets:
        load, named = DATASETS[dataset]
        data = load(args.data, split="all")
        weights = args.data / "weights" / f"{args.backbone}_{named}.safetensors"
        features = encode(load_backbone(weights), data.X, device=args.device)
        train = np.asarray(data.split) == "train"
        axes = PCA(args.components, svd_solver="covariance_eigh").fit(features[train])
        path = args.data / "features" / f"{dataset}_{args.kind}.npz"
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as temporary, open(temporary, "wb") as file:
            np.savez(
                file,
                features=axes.transform(features).astype(np.float16),
                labels=data.labels.astype(np.uint8),
                n_train=train.sum(),
            )
        share = axes.explained_variance_ratio_.sum()
        print(f"{path}: {features.shape[0]} rows, {share:.0%} of the variance")


if __name__ == "__main__":
    main()
