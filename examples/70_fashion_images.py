"""Clothes in twelve shops: images end to end, on two cores, in minutes.

Fashion-MNIST has no domains, so its images are handed to twelve shops that sell the ten
kinds of clothing in different proportions. A small network is trained without labels
(SimCLR), a second one learns to tell the shops apart (DDFA), and ImageMixture finds the
classes: first on frozen features, then with the whole network.

    python examples/70_fashion_images.py [FOLDER OF THE IDX FILES]
"""

import sys

import numpy as np
import torch
from torch import nn

from shoal import DDFA
from shoal.datasets import draw_prevalence, plan_domains, take
from shoal.metrics import (
    majority_accuracy,
    match_classes,
    matched_accuracy,
    prevalence_error,
)
from shoal.vision import (
    Backbone,
    FineTuning,
    ImageDiscriminator,
    ImageMixture,
    simclr,
)
from shoal.vision.augment import ColorJitter, RandomResizedCrop, compose
from shoal_bench.datasets import load_fashion_mnist

N_TRAIN, N_TEST = 5_000, 2_000


class SmallNet(Backbone):
    """Three convolutions; for real photographs take shoal.vision.resnet(18)."""

    n_features = 128

    def __init__(self) -> None:
        super().__init__()
        widths = (3, 32, 64, self.n_features)
        self.body = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Conv2d(n_in, n_out, 3, stride=2, padding=1, bias=False),
                    nn.BatchNorm2d(n_out),
                    nn.ReLU(),
                )
                for n_in, n_out in zip(widths, widths[1:], strict=False)
            )
        )

    def features(self, x: torch.Tensor) -> torch.Tensor:
        """Mean over the pixels of the last layer."""
        return self.body(x).mean(dim=(2, 3))


def main() -> None:
    """Load, pretrain, discriminate, mix, compare."""
    data = load_fashion_mnist(sys.argv[1] if len(sys.argv) > 1 else None)
    images = data.X[: N_TRAIN + N_TEST].reshape(-1, *data.image_shape)
    labels = data.labels[: N_TRAIN + N_TEST]
    prevalence = draw_prevalence(10, 12, alpha=3.0, max_condition=8, random_state=0)
    rows = np.arange(len(images))
    plan = plan_domains(
        labels,
        prevalence,
        splits={"train": rows[:N_TRAIN], "test": rows[N_TRAIN:]},
        valid_share=0,
        random_state=0,
    )
    X, shops = take(plan, images, "train")
    X_test, shops_test = take(plan, images, "test")
    truth = plan.labels(labels, "test")
    print(f"{len(X)} images, {len(np.unique(shops))} shops, {len(X_test)} to judge by")

    def report(name: str, classes: np.ndarray, mixes: np.ndarray) -> None:
        matching = match_classes(truth, classes)
        accuracy = matched_accuracy(truth, classes, matching=matching)
        error = prevalence_error(prevalence, mixes, matching=matching)
        print(f"{name:34}{accuracy:8.3f}  {error:8.3f}", flush=True)

    torch.manual_seed(0)
    view = compose(RandomResizedCrop((0.3, 1.0), flip=0.5), ColorJitter(0.4, 0.4, 0, 0))
    net = simclr(
        X, net=SmallNet(), view=view, epochs=15, batch_size=250, progress=False
    ).net

    print(f"{'':34}accuracy  prevalence error")
    accuracy = majority_accuracy(truth, shops_test)
    print(f"{'most frequent kind of the shop':34}{accuracy:8.3f}")

    network = ImageDiscriminator(
        net, epochs=8, batch_size=250, learning_rate=1e-3, random_state=0
    ).fit(X, shops)
    ddfa = DDFA(10, discriminator=lambda q: q, random_state=0)
    ddfa.fit(network.predict_proba(X), shops)
    q_test = network.predict_proba(X_test)
    report("DDFA on the network's q(d|x)", ddfa.predict(q_test, shops_test),
           ddfa.prevalence_)  # fmt: skip

    frozen = ImageMixture(10, backbone=net, fine_tuning=None, random_state=0)
    frozen.fit(X, shops)
    report("ImageMixture, frozen features", frozen.predict(X_test, shops_test),
           frozen.prevalence_)  # fmt: skip

    settings = FineTuning(
        epochs=12, batch_size=250, backbone_rate=2e-3, self_label=0.0, view="flip"
    )
    model = frozen.tune(X, shops, settings)
    report("ImageMixture, end to end", model.predict(X_test, shops_test),
           model.prevalence_)  # fmt: skip
    gain, error = model.gain_
    print(f"held-out gain of fine-tuning: {gain:.3f} ± {error:.3f} nats")
    print(model.diagnose(X, shops, random_state=0))


if __name__ == "__main__":
    main()
