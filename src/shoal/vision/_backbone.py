"""Backbones by name and by file.

One value says which network is meant: a name such as ``"resnet18-cifar"``, a file of
weights, whose names and shapes tell which network it is, or the network itself.
"""

import os
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from shoal.io._files import whole_file
from shoal.io._ready import ready_encoder, weights_file
from shoal.vision._nets import (
    PLAIN,
    PLAIN_DEPTH,
    STAGE_BLOCKS,
    STEMS,
    Backbone,
    EfficientNetLite0,
    PlainNet,
    resnet,
    resnet_name,
)
from shoal.vision._settings import SETTINGS

# ---- names ---------------------------------------------------------------------------

#: What is taken where nothing is said.
USUAL = "resnet18-cifar"

_BUILDERS: dict[str, Callable[[], Backbone]] = {}


def register_backbone(name: str, build: Callable[[], Backbone]) -> None:
    """Make a network known by a name.

    From then on estimators take the name as their ``backbone``,
    :func:`shoal.vision.load_backbone` knows a file of its weights by what is in it, and
    models with such a network can be saved and loaded.

    Parameters
    ----------
    name : str
    build : callable
        Gives a new :class:`shoal.vision.Backbone` with random weights, such as its
        class. Weights whose names begin with ``fc.`` or ``head.`` are no part of it.
    """
    if name in _BUILDERS:
        raise ValueError(f"a backbone {name!r} is known already; give another name")
    _BUILDERS[name] = build


def build_backbone(name: str) -> Backbone:
    """The network of a name, with random weights."""
    if name not in _BUILDERS:
        raise ValueError(
            f"backbone must be one of {', '.join(_BUILDERS)}, got {name!r}"
        )
    net = _BUILDERS[name]()
    net.name = name
    return net


def blank_backbone(name: str) -> Backbone:
    """The same with names, shapes and types of weights, but without numbers."""
    with torch.random.fork_rng([]), torch.device("meta"):
        return build_backbone(name)


def name_of(net: nn.Module) -> str | None:
    """Name that suffices to build a network of the same class anew, if there is one."""
    name = getattr(net, "name", "")
    name = name or find_backbone(backbone_weights(net.state_dict()))
    known = name in _BUILDERS and type(blank_backbone(name)) is type(net)
    return name if known else None


def find_backbone(weights: Mapping[str, Tensor]) -> str | None:
    """Name of the network that has just these weights, if there is one."""
    for name in _BUILDERS:
        if not describe_mismatch(_weights_of(name), weights):
            return name
    return None


@cache
def _weights_of(name: str) -> dict[str, Tensor]:
    return backbone_weights(blank_backbone(name).state_dict())


def resnet_like(name: str | None, depth: int | None, stem: str | None) -> str:
    """Name of a ResNet; what is not given is as in another's name."""
    found = re.fullmatch(r"resnet(\d+)-(\w+)", name or "")
    usual = found.groups() if found else ("18", "cifar")
    return resnet_name(depth or int(usual[0]), stem or usual[1])


def default_backbone(side: int, depth: int = 18) -> str:
    """Name of the ResNet whose first layers fit images of so many pixels.

    Four layers are those of the plain network.
    """
    if depth == PLAIN_DEPTH:
        return PLAIN
    return resnet_name(depth, "cifar" if side <= SETTINGS.large_side else "imagenet")


for _depth, _stem in product(STAGE_BLOCKS, STEMS):
    register_backbone(resnet_name(_depth, _stem), partial(resnet, _depth, stem=_stem))
register_backbone("efficientnet-lite0", EfficientNetLite0)
register_backbone(PLAIN, PlainNet)


# ---- files ---------------------------------------------------------------------------

#: What wrappers put before the names of a backbone's parameters.
PREFIXES = ("module.", "_orig_mod.", "backbone.", "encoder_q.", "encoder.", "net.")
#: Parts of a checkpoint that are no backbone: heads, queues, momentum twins.
OTHER_PARTS = (
    "fc.",
    "_fc.",
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
            f"such as shoal pretrain writes, or one of {', '.join(_BUILDERS)}"
        )
    if path.suffix == ".safetensors":
        with _open_safetensors(path) as file:
            return {name: file.get_tensor(name) for name in file.keys()}
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
    with _open_safetensors(path) as file:
        return dict(file.metadata() or {})


@contextmanager
def _open_safetensors(path: str | os.PathLike[str]) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as file:
            yield file
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


def load_backbone(
    backbone: str | os.PathLike[str] | nn.Module, name: str | None = None
) -> Backbone:
    """A backbone by its name or from a file; a network is given back as it is.

    Parameters
    ----------
    backbone : str, path or Module
        A name, for random weights: ``"resnet18-cifar"`` (also 34 and 50, and
        ``imagenet`` for images of about 224 pixels) or one that was registered;
        ``"efficientnet-lite0"`` comes with the weights of the extra
        ``shoal[encoders]``, which ImageNet's labels have taught. Or a
        ``.safetensors`` file, or one of ``torch.save`` (read with
        ``weights_only=True``: no code runs). Prefixes such as ``module.``,
        ``backbone.`` and ``encoder_q.`` are stripped; heads are left out.
    name : str or None, default=None
        Of the network that a file must hold; None: whichever it holds.

    Returns
    -------
    Backbone
        That of a file in float32, in evaluation mode.

    Raises
    ------
    ValueError
        When the file holds another network; the message names the keys.
    """
    if isinstance(backbone, nn.Module):
        if hasattr(backbone, "features") and hasattr(backbone, "n_features"):
            return cast(Backbone, backbone)
    elif isinstance(backbone, str) and ready_encoder(backbone) is not None:
        return _load_file(weights_file(backbone), backbone)
    elif isinstance(backbone, str) and backbone in _BUILDERS:
        return build_backbone(backbone)
    elif isinstance(backbone, (str, os.PathLike)):
        return _load_file(Path(backbone), name)
    raise TypeError(
        "backbone must be a path to weights, or a network with features(x) and "
        f"n_features, such as shoal.vision.resnet(18), got {backbone!r}"
    )


def _load_file(path: Path, name: str | None) -> Backbone:
    weights = backbone_weights(read_weights(path))
    found = find_backbone(weights)
    name = name or found or USUAL
    net = build_backbone(name)
    own_names = {_bare_name(own): own for own in net.state_dict()}
    problem = describe_mismatch(backbone_weights(net.state_dict()), weights)
    if problem:
        fix = f"give weights of {', '.join(_BUILDERS)}"
        if found is not None:
            fix = f"give name={found!r}, which is that of the file"
        raise ValueError(f"{path} does not hold a {name}: {problem}; {fix}")
    # num_batches_tracked is absent from some files and used by nothing.
    net.load_state_dict(
        {own_names.get(bare, bare): weight.float() for bare, weight in weights.items()},
        strict=False,
    )
    return net.eval()


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
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return path


def find_size(path: str | os.PathLike[str]) -> int:
    """Side of the images that a file's network was trained on; 32 if it is silent."""
    told = read_facts(path).get("size", str(SETTINGS.usual_size))
    if not told.isdecimal() or int(told) == 0:
        raise ValueError(
            f'size in "{path}" must be a whole number from 1, got {told!r}; give size'
        )
    return int(told)
