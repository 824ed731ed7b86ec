"""Views that change colours and sharpness."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from shoal.vision.augment.base import Augmentation, per_image

__all__ = ["Blur", "ColorJitter", "Grey"]

#: Luminance of red, green and blue (ITU-R BT.601, as pillow).
LUMA = (0.299, 0.587, 0.114)
#: Quarter turn of the colour circle (in the IQ plane of YIQ) as a matrix on RGB. Its
#: rows sum to 0 and it makes no luminance: grey stays grey, brightness stays.
QUARTER_TURN = (
    (0.16773971, 0.32930952, -0.49704924),
    (-0.32811313, 0.03546699, 0.29264614),
    (1.24954590, -1.04633920, -0.20320670),
)


class ColorJitter(Augmentation):
    """Change brightness, contrast, saturation and hue, with probability ``p``.

    All four are affine in the colours of an image, and hue turns commute with
    saturation, so three numbers and an offset per image do them in a single pass, in
    this order, with one clamp to [0, 1] at the end.

    Parameters
    ----------
    brightness, contrast, saturation : float, default=0.4
        A factor is drawn from [1 - s, 1 + s].
    hue : float, default=0.1
        The hue is turned by a share of the full circle from [-hue, hue].
    p : float, default=0.8
        Probability that an image is changed at all.
    grey : float, default=0.0
        Probability of taking the colours away afterwards, at no extra cost.
    """

    n_draws = 6

    def __init__(
        self,
        brightness: float = 0.4,
        contrast: float = 0.4,
        saturation: float = 0.4,
        hue: float = 0.1,
        *,
        p: float = 0.8,
        grey: float = 0.0,
    ) -> None:
        self.strength = (brightness, contrast, saturation)
        self.hue, self.p, self.grey = hue, p, grey

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Recoloured images."""
        signed = torch.where(draws[:, 4:5] < self.p, 2 * draws - 1, 0)
        brightness, contrast, saturation = (
            (1 + strength * signed[:, i]).clamp(min=0)
            for i, strength in enumerate(self.strength)
        )
        saturation = torch.where(draws[:, 5] < self.grey, 0, saturation)
        angle = 2 * torch.pi * self.hue * signed[:, 3]
        along, across = saturation * angle.cos(), saturation * angle.sin()
        luma = _mix(x, LUMA)
        turned = torch.cat([_mix(x, row) for row in QUARTER_TURN], 1)
        color = luma + per_image(along) * (x - luma) + per_image(across) * turned
        # Contrast is taken around the mean luminance, which brightness has scaled.
        center = per_image((1 - contrast) * brightness) * luma.mean((2, 3), True)
        return (per_image(contrast * brightness) * color + center).clamp(0, 1)


class Grey(Augmentation):
    """Take the colours away with probability ``p``."""

    n_draws = 1

    def __init__(self, p: float = 0.2) -> None:
        self.p = p

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Luminance in all three channels where the draw is below ``p``."""
        grey = _mix(x, LUMA).expand_as(x)
        return torch.where(per_image(draws[:, 0] < self.p), grey, x)


class Blur(Augmentation):
    """Gaussian blur with probability ``p``, its width drawn per image.

    Parameters
    ----------
    sigma : (float, float), default=(0.1, 2.0)
        Smallest and largest standard deviation in pixels.
    radius : int, default=1
        Pixels to each side; about a twentieth of the image.
    p : float, default=0.5
        Probability that an image is blurred.
    """

    n_draws = 2

    def __init__(
        self,
        sigma: tuple[float, float] = (0.1, 2.0),
        *,
        radius: int = 1,
        p: float = 0.5,
    ) -> None:
        self.sigma, self.radius, self.p = sigma, radius, p

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Blurred where the second draw is below ``p``; edges are mirrored."""
        low, high = self.sigma
        sigma = low + (high - low) * draws[:, :1]
        steps = torch.arange(-self.radius, self.radius + 1, device=x.device)
        kernel = torch.exp(-((steps / sigma) ** 2) / 2)
        kernel = kernel / kernel.sum(1, keepdim=True)
        blurred = functional.pad(x, (self.radius,) * 4, mode="reflect")
        for axis, length in ((2, x.shape[2]), (3, x.shape[3])):
            shifted = [blurred.narrow(axis, i, length) for i in range(len(steps))]
            weights = [per_image(weight) for weight in kernel.unbind(1)]
            blurred = torch.zeros_like(shifted[0])
            for weight, part in zip(weights, shifted, strict=True):
                blurred = blurred + weight * part
        return torch.where(per_image(draws[:, 1] < self.p), blurred, x)


def _mix(x: Tensor, weights: Sequence[float]) -> Tensor:
    """Weighted sum of the three channels, (n, 1, h, w), at full precision."""
    red, green, blue = weights
    return red * x[:, :1] + green * x[:, 1:2] + blue * x[:, 2:]
