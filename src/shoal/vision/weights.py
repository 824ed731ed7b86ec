"""Files of weights: read without running code, cleaned of wrappers, compared."""

import os
import pickle
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

__all__ = ["backbone_weights", "describe_mismatch", "read_facts", "read_weights"]

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
