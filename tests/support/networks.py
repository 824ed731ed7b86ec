"""A tiny network and small images in four domains, for the tests that train."""

from typing import NamedTuple

import numpy as np
import torch


class TinyNet(torch.nn.Module):
    """Two convolutions: the least that has features, statistics and parameters."""

    def __init__(self, n_features: int = 12) -> None:
        super().__init__()
        self.n_features = n_features
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1, bias=False),
            torch.nn.BatchNorm2d(8),
            torch.nn.ReLU(),
            torch.nn.Conv2d(8, n_features, 3, stride=2, padding=1, bias=False),
            torch.nn.BatchNorm2d(n_features),
            torch.nn.ReLU(),
        )

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x).mean(dim=(2, 3))


class Images(NamedTuple):
    """Images, where they come from, and (for scoring) what they are."""

    X: np.ndarray
    domains: np.ndarray
    labels: np.ndarray
    prevalence: np.ndarray


def make_images(n_rows: int = 300, noise: float = 25.0, seed: int = 0) -> Images:
    """Stripes down, stripes across or neither, 6 x 6 pixels, in four domains."""
    rng = np.random.default_rng(seed)
    prevalence = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.2, 0.7],
                           [0.4, 0.3, 0.3]])  # fmt: skip
    domains = np.arange(n_rows) % 4
    labels = np.array([rng.choice(3, p=prevalence[d]) for d in domains])
    pattern = np.full((3, 6, 6), 128.0)
    pattern[0, ::2], pattern[0, 1::2] = 180, 60
    pattern[1, :, ::2], pattern[1, :, 1::2] = 180, 60
    pixels = pattern[labels][..., None] + rng.normal(0, noise, (n_rows, 6, 6, 3))
    return Images(np.clip(pixels, 0, 255).astype(np.uint8), domains, labels, prevalence)
