"""A backbone with several linear heads side by side."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision.nets import Backbone

__all__ = ["Heads", "ScanNet"]


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
        return self.heads(self.backbone.features(x))
