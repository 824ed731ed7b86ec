"""Networks for images: pretraining, views, encoders and training on CPU or GPU.

Needs the extra ``shoal[vision]`` (torch, pillow). Images are uint8 arrays of shape
(n, height, width, 3); a network sees ``(x / 255 - 0.5) / 0.25`` as NCHW.

Names are loaded on first use. Functions that a module is named after are had from it:
``from shoal.vision.simclr import simclr``, likewise ``moco`` and ``encode``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.vision.data import ImageSet
    from shoal.vision.discriminator import ImageDiscriminator
    from shoal.vision.encode import embed_folder
    from shoal.vision.knn import knn_monitor
    from shoal.vision.mixture import ImageMixture
    from shoal.vision.nets import load_backbone, resnet, save_backbone
    from shoal.vision.scan import SCAN

__all__ = [
    "SCAN",
    "ImageDiscriminator",
    "ImageMixture",
    "ImageSet",
    "embed_folder",
    "knn_monitor",
    "load_backbone",
    "resnet",
    "save_backbone",
]

_HOMES = {
    "ImageDiscriminator": "discriminator",
    "ImageMixture": "mixture",
    "ImageSet": "data",
    "SCAN": "scan",
    "embed_folder": "encode",
    "knn_monitor": "knn",
    "load_backbone": "nets",
    "resnet": "nets",
    "save_backbone": "nets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shoal.vision' has no attribute {name!r}")
    value = getattr(import_module(f"shoal.vision.{_HOMES[name]}"), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
