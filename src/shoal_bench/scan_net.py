"""SCAN's network, its loss, and the step that learns from its own sure answers."""

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from shoal.vision import Backbone, ImageSet
from shoal.vision.augment import Augmentation
from shoal.vision.extend import (
    Step,
    mean_over_processes,
    neighbour_consistency,
    network_part,
    random_views,
    self_label_loss,
)

TINY = 1e-8  # the logarithm of a class that no row is of


class Heads(nn.Module):
    """Several linear heads side by side: logits of shape (n, n_heads, n_classes)."""

    def __init__(self, n_features: int, n_heads: int, n_classes: int) -> None:
        super().__init__()
        each = [nn.Linear(n_features, n_classes) for _ in range(n_heads)]
        self.weight = nn.Parameter(torch.stack([h.weight.detach() for h in each]))
        self.bias = nn.Parameter(torch.stack([h.bias.detach() for h in each]))

    def forward(self, features: Tensor) -> Tensor:
        """Logits of all heads."""
        flat = functional.linear(
            features, self.weight.flatten(0, 1), self.bias.flatten()
        )
        return flat.view(len(features), *self.bias.shape)

    def keep(self, head: int) -> None:
        """Drop all heads but one."""
        self.weight = nn.Parameter(self.weight[head : head + 1].detach().clone())
        self.bias = nn.Parameter(self.bias[head : head + 1].detach().clone())


class ScanNet(nn.Module):
    """A backbone and its heads."""

    def __init__(self, backbone: Backbone, n_heads: int, n_classes: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.heads = Heads(backbone.n_features, n_heads, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of all heads for normalized images."""
        logits: Tensor = self.heads(self.backbone.features(x))
        return logits


def mean_entropy(logits: Tensor) -> Tensor:
    """Entropy, in nats, of the mean of q(y|x): largest when all classes are used."""
    mean = mean_over_processes(torch.softmax(logits, dim=1).mean(dim=0))
    return -(mean * torch.log(mean.clamp_min(TINY))).sum()


def scan_loss(
    logits: Tensor, neighbour_logits: Tensor, entropy_weight: float = 5.0
) -> Tensor:
    """Loss of SCAN: neighbours agree, and classes are used evenly.

    References
    ----------
    W. Van Gansbeke, S. Vandenhende, S. Georgoulis, M. Proesmans, L. Van Gool (2020).
    SCAN: Learning to Classify Images without Labels. ECCV. Equation 2.
    """
    agreement = neighbour_consistency(logits, neighbour_logits)
    return agreement - entropy_weight * mean_entropy(logits)


def self_label_step(
    net: nn.Module,
    images: ImageSet,
    weak: Augmentation,
    strong: Augmentation,
    threshold: float,
) -> Step:
    """A strong view learns what a weak view of the same image is sure of."""
    make_weak, make_strong = random_views(weak), random_views(strong)
    classify = network_part(net)

    def step(indices: Tensor, generator: Generator) -> Tensor:
        pixels = images.bytes_batch(indices)
        with torch.no_grad():
            sure = classify(make_weak(pixels, generator)).float()[:, 0]
        logits = classify(make_strong(pixels, generator)).float()[:, 0]
        return self_label_loss(
            torch.softmax(sure, dim=1), logits, threshold=threshold, balance=True
        )

    return step
