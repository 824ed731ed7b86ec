"""Networks for images: pretraining, views, encoders and training on CPU or GPU.

Needs the extra ``shoal[vision]`` (torch, pillow). Images are uint8 arrays of shape
(n, height, width, 3); a network sees ``(x / 255 - 0.5) / 0.25`` as NCHW.

Names are loaded on first use.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.vision._backbone import (
        load_backbone,
        register_backbone,
        save_backbone,
    )
    from shoal.vision._discriminator import ImageDiscriminator
    from shoal.vision._encode import embed_folder, encode, knn_monitor
    from shoal.vision._images import ImageSet
    from shoal.vision._loop import fit
    from shoal.vision._nets import Backbone, resnet
    from shoal.vision._ray import train_on_ray
    from shoal.vision._simclr import simclr
    from shoal.vision._steps import part
    from shoal.vision.mixture._estimator import ImageMixture
    from shoal.vision.mixture._finetune import FineTuning

__all__ = [
    "Backbone",
    "FineTuning",
    "ImageDiscriminator",
    "ImageMixture",
    "ImageSet",
    "embed_folder",
    "encode",
    "fit",
    "knn_monitor",
    "load_backbone",
    "part",
    "register_backbone",
    "resnet",
    "save_backbone",
    "simclr",
    "train_on_ray",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "Backbone": "shoal.vision._nets",
        "FineTuning": "shoal.vision.mixture._finetune",
        "ImageDiscriminator": "shoal.vision._discriminator",
        "ImageMixture": "shoal.vision.mixture._estimator",
        "ImageSet": "shoal.vision._images",
        "embed_folder": "shoal.vision._encode",
        "encode": "shoal.vision._encode",
        "fit": "shoal.vision._loop",
        "knn_monitor": "shoal.vision._encode",
        "load_backbone": "shoal.vision._backbone",
        "part": "shoal.vision._steps",
        "register_backbone": "shoal.vision._backbone",
        "resnet": "shoal.vision._nets",
        "save_backbone": "shoal.vision._backbone",
        "simclr": "shoal.vision._simclr",
        "train_on_ray": "shoal.vision._ray",
    },
)
