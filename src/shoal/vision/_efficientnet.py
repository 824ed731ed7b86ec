"""EfficientNet-Lite0: a small network that reads photographs on a CPU.

Written after M. Tan, Q. Le (2019), EfficientNet: rethinking model scaling for
convolutional neural networks, and the description of the Lite variants (no squeeze and
excitation, ReLU6). Parts carry the names that published weights have.
"""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision._images import MEAN, SCALE
from shoal.vision._nets import Backbone

# What the published weights were taught to expect: (byte - 127) / 128.
BYTE_MEAN, BYTE_SCALE = 127.0, 128.0
STEM, HEAD = 32, 1280
norm = partial(nn.BatchNorm2d, eps=1e-3, momentum=0.01)


class Stage(NamedTuple):
    """Blocks of one width; the first of them has the stride."""

    kernel: int
    stride: int
    expansion: int
    width: int
    blocks: int


STAGES = (
    Stage(3, 1, 1, 16, 1),
    Stage(3, 2, 6, 24, 2),
    Stage(5, 2, 6, 40, 2),
    Stage(3, 2, 6, 80, 3),
    Stage(5, 1, 6, 112, 3),
    Stage(5, 2, 6, 192, 4),
    Stage(3, 1, 6, 320, 1),
)


class Convolution(nn.Conv2d):
    """A convolution padded so that n pixels become n / stride, rounded up.

    Where the padding is odd, the pixel more stands on the right and below.
    """

    def __init__(
        self, n_in: int, n_out: int, size: int, stride: int = 1, groups: int = 1
    ) -> None:
        super().__init__(n_in, n_out, size, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The convolution of an image with its border of zeros."""
        size, stride = self.kernel_size[0], self.stride[0]
        if size > 1:
            high, wide = (
                max((-(-side // stride) - 1) * stride + size - side, 0)
                for side in x.shape[2:]
            )
            x = functional.pad(
                x, (wide // 2, wide - wide // 2, high // 2, high - high // 2)
            )
        return super().forward(x)


class InvertedBlock(nn.Module):
    """Widen, filter every channel by itself, narrow; beside a shortcut."""

    def __init__(self, n_in: int, n_out: int, stage: Stage, stride: int) -> None:
        super().__init__()
        wide = n_in * stage.expansion
        self.widens = stage.expansion > 1
        if self.widens:
            self._expand_conv = Convolution(n_in, wide, 1)
            self._bn0 = norm(wide)
        self._depthwise_conv = Convolution(wide, wide, stage.kernel, stride, wide)
        self._bn1 = norm(wide)
        self._project_conv = Convolution(wide, n_out, 1)
        self._bn2 = norm(n_out)
        self.adds = stride == 1 and n_in == n_out

    def forward(self, x: Tensor) -> Tensor:
        """Features of the next depth."""
        shortcut = x
        if self.widens:
            x = functional.relu6(self._bn0(self._expand_conv(x)))
        x = functional.relu6(self._bn1(self._depthwise_conv(x)))
        x = self._bn2(self._project_conv(x))
        return x + shortcut if self.adds else x


class EfficientNetLite0(Backbone):
    """The network without its head, which names the 1,000 classes of ImageNet."""

    n_features = HEAD

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem = Convolution(3, STEM, 3, 2)
        self._bn0 = norm(STEM)
        blocks, n_in = [], STEM
        for stage in STAGES:
            for number in range(stage.blocks):
                stride = stage.stride if number == 0 else 1
                blocks.append(InvertedBlock(n_in, stage.width, stage, stride))
                n_in = stage.width
        self._blocks = nn.ModuleList(blocks)
        self._conv_head = Convolution(n_in, HEAD, 1)
        self._bn1 = norm(HEAD)

    def features(self, x: Tensor) -> Tensor:
        """Features (n, 1280) of images as all networks here see them."""
        x = (255 * (x * SCALE + MEAN) - BYTE_MEAN) / BYTE_SCALE
        x = functional.relu6(self._bn0(self._conv_stem(x)))
        for block in self._blocks:
            x = block(x)
        x = functional.relu6(self._bn1(self._conv_head(x)))
        return torch.mean(x, dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self.features(x)
