"""Views as they are used: weak, of SimCLR, strong."""

import torch
from torch import Tensor

from shoal.validation import check_whole
from shoal.vision.augment._views import (
    Augmentation,
    Blur,
    ColorJitter,
    Crop,
    Cutout,
    Flip,
    RandomResizedCrop,
    axes,
    compose,
    per_image,
    sample,
)


class Strong(Augmentation):
    """A strong view in the spirit of RandAugment: warp, recolour, posterize, cover.

    Cubuk ED, Zoph B, Shlens J, Le QV (2020). RandAugment. Each family is applied with
    its own probability, and its strength is uniform up to ``magnitude`` times its full
    range: turns of 30 degrees, shears and shifts of 0.3, colour factors from 0.1 to
    1.9, solarizing, and posterizing down to 4 bits.

    Parameters
    ----------
    magnitude : float, default=1.0
        0 leaves only the crop, the flip and the square.
    cutout : float, default=0.5
        Side of the covered square as a share of the image's; 0 for none.
    """

    n_draws = 5 + 8 + 6 + 3 + 3

    def __init__(self, magnitude: float = 1.0, cutout: float = 0.5) -> None:
        self.magnitude = magnitude
        self.crop = RandomResizedCrop((0.5, 1.0), flip=0.5)
        colour = 0.9 * magnitude
        self.jitter = ColorJitter(colour, colour, colour, 0.05 * magnitude, p=0.8)
        self.cutout = Cutout(cutout, p=1.0 if cutout > 0 else 0.0)

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """The strong view."""
        crop, warp, jitter, tone, cover = draws.split([5, 8, 6, 3, 3], 1)
        center, half = self.crop.boxes(crop)
        columns, rows = self._slanted(*axes(x, None), warp)
        sign = torch.where(crop[:, 4] < self.crop.flip, -1.0, 1.0)
        across = (half[:, 0] * sign)[:, None, None] * columns + center[:, :1, None]
        down = half[:, 1, None, None] * rows + center[:, 1:, None]
        x = self.jitter.apply(sample(x, across, down), jitter)
        return self.cutout.apply(self._tone(x, tone), cover)

    def _slanted(
        self, columns: Tensor, rows: Tensor, draws: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Turned, sheared and shifted positions (n, h, w); each in half the images."""
        signed = (self.magnitude * (2 * draws - 1))[:, :, None, None]
        turned, sheared, shifted = (draws[:, 5:8, None, None] < 0.5).unbind(1)
        angle = turned * signed[:, 0] * (torch.pi / 6)
        slant = 0.3 * sheared[:, None] * signed[:, 1:3]
        shift = 0.3 * shifted[:, None] * signed[:, 3:5]
        rows = rows[:, None]
        u = columns + slant[:, 0] * rows
        v = rows + slant[:, 1] * columns
        cos, sin = angle.cos(), angle.sin()
        return cos * u - sin * v + shift[:, 0], sin * u + cos * v + shift[:, 1]

    def _tone(self, x: Tensor, draws: Tensor) -> Tensor:
        """Solarize a tenth of the images and posterize another tenth."""
        threshold = per_image(1 - self.magnitude * draws[:, 1])
        levels = per_image(2.0 ** (8 - (4 * self.magnitude * draws[:, 2]).round()))
        solarized = torch.where(x >= threshold, 1 - x, x)
        posterized = torch.minimum((x * levels).floor(), levels - 1) / levels
        chosen, share = per_image(draws[:, 0]), 0.1 * self.magnitude
        x = torch.where(chosen < share, solarized, x)
        return torch.where((chosen >= share) & (chosen < 2 * share), posterized, x)


def weak_view(size: int = 32) -> Augmentation:
    """Shift by an eighth of the side and flip: what a label survives."""
    return compose(Crop(max(size // 8, 1)), Flip())


def simclr_view(size: int = 32, *, view_size: int | None = None) -> Augmentation:
    """The view of SimCLR; views beyond 64 pixels are also blurred.

    Parameters
    ----------
    size : int, default=32
        Longer side of the images.
    view_size : int or None, default=None
        Height and width of square views; None: those of the images. A part stretched to
        the whole image shows things larger than they are in it, by 1.4 on average.
        Views of three quarters of the side show them about as large as the images that
        the network will be asked about, for little more than half of the arithmetic.

    References
    ----------
    Chen T, Kornblith S, Norouzi M, Hinton G (2020), with colour strength 0.5.

    Touvron H, Vedaldi A, Douze M, Jegou H (2019). Fixing the train-test resolution
    discrepancy. NeurIPS.
    """
    if view_size is not None:
        check_whole(1, view_size=view_size)
    parts: list[Augmentation] = [
        RandomResizedCrop((0.2, 1.0), flip=0.5, size=view_size),
        ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8, grey=0.2),
    ]
    side = size if view_size is None else view_size
    if side > 64:
        parts.append(Blur(radius=max(side // 20, 1)))
    return compose(*parts)


def strong_view(size: int = 32) -> Augmentation:
    """Warped, recoloured and partly covered; see :class:`Strong`."""
    return Strong()
