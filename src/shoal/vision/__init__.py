"""Networks for images: pretraining, views, encoders and training on CPU or GPU.

Needs the extra ``shoal[vision]`` (torch, pillow). Images are uint8 arrays of shape
(n, height, width, 3); a network sees ``(x / 255 - 0.5) / 0.25`` as NCHW.
"""

from shoal.vision._backbone import load_backbone, register_backbone, save_backbone
from shoal.vision._discriminator import ImageDiscriminator
from shoal.vision._encode import embed_folder, encode, knn_monitor
from shoal.vision._images import ImageSet
from shoal.vision._loop import fit
from shoal.vision._mixture import ImageMixture
from shoal.vision._nets import Backbone, resnet
from shoal.vision._ray import train_on_ray
from shoal.vision._settings import FineTuning
from shoal.vision._simclr import simclr
from shoal.vision._steps import part

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
