"""Residual networks with torchvision's parameter names, and files of weights."""

import os
import pickle
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

# ---- weights -------------------------------------------------------------------------

#: What wrappers put before the names of a backbone's parameters.
PREFIXES = ("module.", "_orig_mod.", "backbone.", "encoder_q.", "encoder.", "net.")
#: Parts of a checkpoint that are no backbone: heads, queues, momentum twins.
OTHER_PARTS = (
    "fc.",
    "head.",
    "heads.",
    "cluster_head.",
    "contrastive_head.",
    "projector.",
    "projection.",
    "encoder_k.",
    "queue",
)


def read_weights(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """All tensors of a weights file, by name, without running code from it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"no weights file at {path}; give the path of a .safetensors or .pt file, "
            "such as shoal pretrain writes"
        )
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, KeyError) as error:
        # torch's own words would go on to say how to run the file's code
        raise ValueError(
            f"{path} is damaged or holds more than tensors, which is never run; save "
            "the network's state_dict() alone, best as .safetensors"
        ) from error
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} holds a {type(content).__name__}, not named tensors")
    return {name: w for name, w in content.items() if isinstance(w, Tensor)}


def read_facts(path: str | os.PathLike[str]) -> dict[str, str]:
    """What :func:`save_backbone` was told about the weights; empty for other files."""
    if not os.fspath(path).endswith(".safetensors"):
        return {}
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            return dict(file.metadata() or {})
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error


def backbone_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Only the backbone's tensors, with wrappers' prefixes stripped."""
    names = {name: _bare_name(name) for name in weights}
    # A momentum encoder has the same names behind its own prefix: it is left out.
    return {
        bare: weights[name]
        for name, bare in names.items()
        if not bare.startswith(OTHER_PARTS)
    }


def _bare_name(name: str) -> str:
    stripped = True
    while stripped:
        stripped = False
        for prefix in PREFIXES:
            if name.startswith(prefix):
                name, stripped = name.removeprefix(prefix), True
    return name


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{path} is not a whole safetensors file: {error}") from error


def describe_mismatch(wanted: Mapping[str, Tensor], got: Mapping[str, Tensor]) -> str:
    """What differs between two sets of weights, in words; empty when nothing does."""
    wanted = {n: w for n, w in wanted.items() if not n.endswith("num_batches_tracked")}
    got = {n: w for n, w in got.items() if not n.endswith("num_batches_tracked")}
    missing = [name for name in wanted if name not in got]
    extra = [name for name in got if name not in wanted]
    reshaped = [
        f"{name} {tuple(got[name].shape)} instead of {tuple(wanted[name].shape)}"
        for name in wanted
        if name in got and got[name].shape != wanted[name].shape
    ]
    parts = [
        f"{len(names)} {kind} ({', '.join(names[:3])}{', ...' * (len(names) > 3)})"
        for kind, names in (
            ("missing", missing),
            ("unknown", extra),
            ("of another shape", reshaped),
        )
        if names
    ]
    return ", ".join(parts)


# ---- nets ----------------------------------------------------------------------------

STAGE_WIDTHS = (64, 128, 256, 512)
STAGE_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}
STEMS = ("cifar", "imagenet")


class Backbone(nn.Module):
    """What pretraining and encoding ask of a network.

    Attributes
    ----------
    n_features : int
        Width of :meth:`features`.
    """

    n_features: int

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

    #: The three channels are padded with zeros to a multiple of this.
    channel_multiple = 1

    def __init__(
        self, depth: int, stem: str, n_outputs: int | None, dropout: float
    ) -> None:
        super().__init__()
        self.depth, self.stem = depth, stem
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
        x = self.maxpool(torch.relu_(self.bn1(self._first(x))))
        for number in range(1, 5):
            x = getattr(self, f"layer{number}")(x)
        return x.mean(dim=(2, 3))

    def _first(self, x: Tensor) -> Tensor:
        """First convolution; channels of zeros make it fit the GPU's matrix units."""
        extra = -x.shape[1] % self.channel_multiple
        if not extra:
            return self.conv1(x)
        padding = (0, 0, 0, 0, 0, extra)
        return functional.conv2d(
            functional.pad(x, padding),
            functional.pad(self.conv1.weight, padding),
            stride=self.conv1.stride,
            padding=self.conv1.padding,  # type: ignore[arg-type]
        )

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
    if depth not in STAGE_BLOCKS:
        raise ValueError(f"depth must be one of {[*STAGE_BLOCKS]}, got {depth!r}")
    if stem not in STEMS:
        raise ValueError(f"stem must be 'cifar' or 'imagenet', got {stem!r}")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must lie in [0, 1), got {dropout!r}")
    return ResNet(depth, stem, n_outputs, dropout)


def load_backbone(
    path: str | os.PathLike[str], *, depth: int = 18, stem: str = "cifar"
) -> ResNet:
    """Backbone with the weights of a file.

    Parameters
    ----------
    path : path
        A ``.safetensors`` file, or one of ``torch.save`` (read with
        ``weights_only=True``: no code runs). Prefixes such as ``module.``,
        ``backbone.`` and ``encoder_q.`` are stripped; heads are left out.
    depth, stem
        As :func:`resnet`; must be those of the file.

    Returns
    -------
    ResNet
        In float32, in evaluation mode.

    Raises
    ------
    ValueError
        When the file holds another architecture; the message names the keys.
    """
    net = resnet(depth, stem=stem)
    weights = backbone_weights(read_weights(path))
    problem = describe_mismatch(net.state_dict(), weights)
    if problem:
        found = find_architecture(weights)
        fix = "give the depth and stem of the file"
        if found is not None:
            fix = "give depth={} and stem={!r}, which are those of the file".format(
                *found
            )
        raise ValueError(
            f"{os.fspath(path)} does not hold a ResNet-{depth} with {stem} stem: "
            f"{problem}; {fix}"
        )
    # num_batches_tracked is absent from some files and used by nothing.
    net.load_state_dict({name: w.float() for name, w in weights.items()}, strict=False)
    return net.eval()


def find_architecture(weights: Mapping[str, Tensor]) -> tuple[int, str] | None:
    """Depth and stem of the ResNet that has just these weights, if there is one."""
    for depth, stem in product(STAGE_BLOCKS, STEMS):
        with torch.device("meta"):
            wanted = resnet(depth, stem=stem).state_dict()
        if not describe_mismatch(wanted, weights):
            return depth, stem
    return None


def save_backbone(
    net: nn.Module,
    path: str | os.PathLike[str],
    metadata: Mapping[str, object] | None = None,
) -> Path:
    """Write a network's weights, without its head, as safetensors.

    Parameters
    ----------
    net : ResNet
        The network; wrappers' prefixes are stripped.
    path : path
        File to write; it appears whole or not at all.
    metadata : mapping or None, default=None
        Facts about the training, stored as text.

    Returns
    -------
    pathlib.Path
    """
    from safetensors.torch import save

    path = Path(path)
    weights = {
        name: weight.detach().cpu().contiguous()
        for name, weight in backbone_weights(net.state_dict()).items()
    }
    facts = {"input": "(x/255-0.5)/0.25", **(metadata or {})}
    content = save(weights, {name: str(fact) for name, fact in facts.items()})
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path


def _convolution(n_in: int, n_out: int, size: int, stride: int) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride, padding=size // 2, bias=False)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Sequential | None:
    if stride == 1 and n_in == n_out:
        return None
    return nn.Sequential(_convolution(n_in, n_out, 1, stride), nn.BatchNorm2d(n_out))


def _initialize(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
