"""Networks that turn images into features: the contract, and residual networks."""

import torch
from torch import Tensor, nn

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
