"""Random views of a batch of images, made on the device in a few fused kernels.

Randomness is drawn first and used later: an augmentation states how many uniform
numbers it needs per image (``n_draws``), and ``apply(x, draws)`` is a pure function of
them. A whole view therefore needs one call of the random generator, and the rest can be
compiled, repeated and tested exactly.

Images are float NCHW in [0, 1]; every augmentation keeps shape, range, type and device
(:class:`RandomResizedCrop` may be asked for another size).
"""

from shoal.vision.augment._presets import Strong, simclr_view, strong_view, weak_view
from shoal.vision.augment._views import (
    Augmentation,
    Blur,
    ColorJitter,
    Crop,
    Cutout,
    Flip,
    Grey,
    Identity,
    RandomResizedCrop,
    compose,
)

__all__ = [
    "Augmentation",
    "Blur",
    "ColorJitter",
    "Crop",
    "Cutout",
    "Flip",
    "Grey",
    "Identity",
    "RandomResizedCrop",
    "Strong",
    "compose",
    "simclr_view",
    "strong_view",
    "weak_view",
]
