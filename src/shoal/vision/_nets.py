"""Networks that turn images into features: the contract, and three families."""

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from shoal.vision._images import MEAN, SCALE

STAGE_WIDTHS = (64, 128, 256, 512)
STAGE_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
STEMS = ("cifar", "imagenet")


class Backbone(nn.Module):
    """What pretraining and encoding ask of a network.

    Attributes
    ----------
    n_features : int
        Width of :meth:`features`.
    name : str
        From which it can be built anew, see :func:`shoal.vision.register_backbone`;
        empty if it has none.
    """

    n_features: int
    name: str = ""

    def features(self, x: Tensor) -> Tensor:
        """Features (n, n_features) of normalized images (n, 3, height, width)."""
        raise NotImplementedError


class BasicBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut.

    Norms do not need their output again, so that what follows works in its memory.
    """

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = _convolution(n_in, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3, 1)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(n_in, width, stride)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Features of the next depth; dropout acts three times, as in the paper."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.dropout(torch.relu_(self.bn1(self.conv1(x))))
        x = self.dropout(self.bn2(self.conv2(x)))
        return self.dropout(torch.relu_(x.add_(shortcut)))


class Bottleneck(nn.Module):
    """A 3x3 convolution between two 1x1 ones, beside a shortcut."""

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int, dropout: float) -> None:
        super().__init__()
        n_out = width * self.expansion
        self.conv1 = _convolution(n_in, width, 1, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _convolution(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _convolution(width, n_out, 1, 1)
        self.bn3 = nn.BatchNorm2d(n_out)
        self.downsample = _shortcut(n_in, n_out, stride)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Features of the next depth."""
        shortcut = x if self.downsample is None else self.downsample(x)
        x = self.dropout(torch.relu_(self.bn1(self.conv1(x))))
        x = self.dropout(torch.relu_(self.bn2(self.conv2(x))))
        return self.dropout(torch.relu_(self.bn3(self.conv3(x)).add_(shortcut)))


class ResNet(Backbone):
    """A residual network: stem, four stages, mean over pixels, optional linear head.

    Parameters
    ----------
    depth : {18, 34, 50}
        Number of layers.
    stem : {"cifar", "imagenet"}
        A 3x3 convolution for small images, or 7x7 with stride and max-pooling.
    n_outputs : int or None
        Width of the linear head ``fc``; None for no head.
    dropout : float
        Share of activations dropped, three times in every block.

    Attributes
    ----------
    n_features : int
        Width of :meth:`features`.
    """

    def __init__(
        self, depth: int, stem: str, n_outputs: int | None, dropout: float
    ) -> None:
        super().__init__()
        self.depth, self.stem = depth, stem
        self.name = resnet_name(depth, stem)
        small = stem == "cifar"
        self.conv1 = _convolution(3, 64, 3, 1) if small else _convolution(3, 64, 7, 2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, padding=1)
        block = Bottleneck if depth == 50 else BasicBlock
        n_in = 64
        for number, (width, n_blocks) in enumerate(
            zip(STAGE_WIDTHS, STAGE_BLOCKS[depth], strict=True), start=1
        ):
            strides = [1 if number == 1 else 2] + [1] * (n_blocks - 1)
            blocks = []
            for stride in strides:
                blocks.append(block(n_in, width, stride, dropout))
                n_in = width * block.expansion
            setattr(self, f"layer{number}", nn.Sequential(*blocks))
        self.n_features = n_in
        self.fc = None if n_outputs is None else nn.Linear(n_in, n_outputs)
        self.apply(_initialize)

    def features(self, x: Tensor) -> Tensor:
        """Features (n, n_features) of normalized images (n, 3, height, width)."""
        x = self.maxpool(torch.relu_(self.bn1(self.conv1(x))))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x.mean(dim=(2, 3))

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the head, or the features of a network without one."""
        features = self.features(x)
        return features if self.fc is None else self.fc(features)


def resnet(
    depth: int = 18,
    *,
    stem: str = "cifar",
    n_outputs: int | None = None,
    dropout: float = 0.0,
) -> ResNet:
    """Residual network with random weights.

    Parameters
    ----------
    depth : {18, 34, 50}, default=18
        Number of layers.
    stem : {"cifar", "imagenet"}, default="cifar"
        For images of about 32 or about 224 pixels.
    n_outputs : int or None, default=None
        Width of a linear head; None for a backbone.
    dropout : float, default=0.0
        Share of activations dropped, three times in every block.

    Returns
    -------
    ResNet

    Examples
    --------
    >>> import torch
    >>> net = resnet(18)
    >>> net.features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout!r}")
    return ResNet(depth, stem, n_outputs, dropout)


def resnet_name(depth: int, stem: str) -> str:
    """What a residual network is called; an error if there is none such."""
    if depth not in STAGE_BLOCKS:
        raise ValueError(f"depth must be one of {[*STAGE_BLOCKS]}, got {depth!r}")
    if stem not in STEMS:
        raise ValueError(f"stem must be 'cifar' or 'imagenet', got {stem!r}")
    return f"resnet{depth}-{stem}"


def _convolution(n_in: int, n_out: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(_convolution(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


# ---- a plain network of four convolutions, for machines without a GPU ----------------

#: Name of the network, and its layers.
PLAIN, PLAIN_DEPTH = "plain4", 4


class PlainNet(Backbone):
    """Four 3x3 convolutions, each but the first halving the image, and a mean.

    390,000 weights; on a CPU it learns from twenty times as many images a second as a
    ResNet-18.

    Attributes
    ----------
    n_features : int
        256.
    """

    widths = (32, 64, 128, 256)
    n_features = widths[-1]

    def __init__(self) -> None:
        super().__init__()
        self.name, self.depth, self.stem = PLAIN, PLAIN_DEPTH, "plain"
        layers: list[nn.Module] = []
        n_in = 3
        for number, width in enumerate(self.widths):
            stride = 2 if number else 1
            layers += [
                nn.Conv2d(n_in, width, 3, stride, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            n_in = width
        self.layers = nn.Sequential(*layers)

    def features(self, x: Tensor) -> Tensor:
        """Features (n, n_features) of normalized images (n, 3, height, width)."""
        return self.layers(x).mean(dim=(2, 3))  # type: ignore[no-any-return]


# ---- EfficientNet-Lite0: a small network that reads photographs on a CPU -------------
# Written after M. Tan, Q. Le (2019), EfficientNet: rethinking model scaling for
# convolutional neural networks, and the description of the Lite variants (no squeeze
# and excitation, ReLU6). Parts carry the names that published weights have.


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
