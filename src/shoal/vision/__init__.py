"""Networks for images: pretraining, views, encoders and training on CPU or GPU.

Needs the extra ``shoal[vision]`` (torch, pillow). Images are uint8 arrays of shape
(n, height, width, 3); a network sees ``(x / 255 - 0.5) / 0.25`` as NCHW.

Names are loaded on first use. Functions that a module is named after are had from it:
``from shoal.vision.simclr import simclr``, likewise ``moco`` and ``encode``.
"""

from typing import TYPE_CHECKING

from shoal.lazy import lazy_names as _lazy_names

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

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "ImageDiscriminator": "shoal.vision.discriminator",
        "ImageMixture": "shoal.vision.mixture",
        "ImageSet": "shoal.vision.data",
        "SCAN": "shoal.vision.scan",
        "embed_folder": "shoal.vision.encode",
        "knn_monitor": "shoal.vision.knn",
        "load_backbone": "shoal.vision.nets",
        "resnet": "shoal.vision.nets",
        "save_backbone": "shoal.vision.nets",
    },
)
