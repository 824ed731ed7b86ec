"""The mixture as a network: backbone, linear softmax, and the table q(d|y)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision.head import Linear
from shoal.vision.nets import Backbone

__all__ = ["MixtureNet"]

Array = np.ndarray[Any, Any]

LEAST_T = 1e-8


class MixtureNet(nn.Module):
    """q(y|x) by a backbone and a linear softmax, and q(d|y) as a table.

    Parameters
    ----------
    backbone : Module
        With ``features(x)`` of shape (n, n_features).
    linear : Linear
        The softmax on features of unit length.
    domain_given_class : ndarray of shape (k, r)
    freeze_statistics : bool, default=True
        Keep batch normalization (and dropout) in evaluation mode when training.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        backbone: Backbone,
        linear: Linear,
        domain_given_class: Array,
        *,
        freeze_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.freeze_statistics = freeze_statistics
        self.register_buffer("centre", _tensor(linear.centre))
        self.register_buffer("spread", _tensor(linear.spread))
        self.weight = nn.Parameter(_tensor(linear.weights[:, :-1]))
        self.intercept = nn.Parameter(_tensor(linear.weights[:, -1]))
        table = np.log(np.maximum(domain_given_class, LEAST_T))
        self.domain_logits = nn.Parameter(_tensor(table))

    @property
    def log_T(self) -> Tensor:  # noqa: N802
        """Logarithm of q(d|y), of shape (k, r)."""
        return functional.log_softmax(self.domain_logits, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of q(y|x) for normalized images (n, 3, h, w)."""
        features = self.backbone.features(x)
        # bf16 has three digits: too few for the logits of many classes
        with torch.autocast(x.device.type, enabled=False):
            unit = functional.normalize(features.float(), dim=1)
            scaled = (unit - self.centre) / self.spread
            return functional.linear(scaled, self.weight, self.intercept)

    def train(self, mode: bool = True) -> "MixtureNet":
        """Training mode; frozen statistics stay frozen."""
        super().train(mode)
        if self.freeze_statistics:
            self.backbone.eval()
        return self

    def solution(self) -> tuple[Linear, Array]:
        """The softmax, and q(d|y) of shape (k, r)."""
        columns = torch.cat([self.weight, self.intercept[:, None]], dim=1)
        linear = Linear(_array(columns), _array(self.centre), float(self.spread))
        return linear, _array(torch.exp(self.log_T))


def _array(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()


def _tensor(values: Any) -> Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.float32)
