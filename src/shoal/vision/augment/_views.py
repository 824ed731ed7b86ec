"""Random views of images: each a number of draws and a pure function of them."""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor
from torch.nn import functional

# ---- An augmentation is a number of draws and a pure function of them ----------------


class Augmentation:
    """Base of all views: draw uniform numbers, then apply a pure function of them."""

    #: Uniform numbers needed per image.
    n_draws: int = 0

    @torch.compiler.disable  # a generator cannot be traced
    def draw(
        self, n: int, device: torch.device, generator: torch.Generator | None = None
    ) -> Tensor:
        """Uniform numbers of shape (n, n_draws)."""
        return torch.rand(n, self.n_draws, device=device, generator=generator)

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """The view that ``draws`` (n, n_draws) stand for."""
        raise NotImplementedError

    def __call__(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A random view of every image."""
        return self.apply(x, self.draw(len(x), x.device, generator))

    def __repr__(self) -> str:
        """Class and settings; the same text in every process, for checkpoints."""
        settings = ", ".join(f"{k}={_tell(v)}" for k, v in vars(self).items())
        return f"{type(self).__name__}({settings})"


class Identity(Augmentation):
    """The image itself."""

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """``x``."""
        return x


class _Composed(Augmentation):
    def __init__(self, parts: Sequence[Augmentation]) -> None:
        self.parts = tuple(parts)
        self.n_draws = sum(part.n_draws for part in self.parts)

    def __repr__(self) -> str:
        return f"compose({', '.join(map(repr, self.parts))})"

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        start = 0
        for part in self.parts:
            x = part.apply(x, draws[:, start : start + part.n_draws])
            start += part.n_draws
        return x


def compose(*parts: Augmentation) -> Augmentation:
    """Augmentations one after the other, with one draw for all."""
    return _Composed(parts)


def per_image(values: Tensor) -> Tensor:
    """(n,) as (n, 1, 1, 1)."""
    return values[:, None, None, None]


def _tell(value: object) -> str:
    """A setting as text: of objects that show an address, only the class."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_tell, value))})"
    plain = isinstance(value, int | float | str | None | Augmentation)
    return repr(value) if plain else f"<{type(value).__name__}>"


# ---- Views that change colours and sharpness -----------------------------------------

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


# ---- Views that move pixels: mirror, shift, cut and stretch, cover -------------------


class Flip(Augmentation):
    """Mirror left and right with probability ``p``."""

    n_draws = 1

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Mirrored where the draw is below ``p``."""
        return torch.where(per_image(draws[:, 0] < self.p), x.flip(3), x)


class Crop(Augmentation):
    """Shift by up to ``padding`` whole pixels; what comes in from outside is black."""

    n_draws = 2

    def __init__(self, padding: int = 4) -> None:
        self.padding = padding

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Shifted images of the same size."""
        n, _, height, width = x.shape
        padded = functional.pad(x, (self.padding,) * 4)
        shift = (draws * (2 * self.padding + 1)).long()
        rows = shift[:, :1] + torch.arange(height, device=x.device)
        columns = shift[:, 1:2] + torch.arange(width, device=x.device)
        image = torch.arange(n, device=x.device)
        # (n, height, width, channels): the index arrays stand first in the result.
        taken = padded[image[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return taken.permute(0, 3, 1, 2)


class RandomResizedCrop(Augmentation):
    """A random part of the image, stretched to the full size, perhaps mirrored.

    Parameters
    ----------
    scale : (float, float), default=(0.2, 1.0)
        Smallest and largest share of the area.
    ratio : (float, float), default=(3/4, 4/3)
        Smallest and largest ratio of width to height (log-uniform).
    flip : float, default=0.0
        Probability of mirroring, at no extra cost.
    size : int or None, default=None
        Height and width of the view; None: those of the image.
    """

    n_draws = 5

    def __init__(
        self,
        scale: tuple[float, float] = (0.2, 1.0),
        *,
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        flip: float = 0.0,
        size: int | None = None,
    ) -> None:
        self.scale, self.ratio, self.flip, self.size = scale, ratio, flip, size

    def boxes(self, draws: Tensor) -> tuple[Tensor, Tensor]:
        """Centres and half sides (n, 2) as (x, y), in units where the image is [-1, 1].

        Height and width are cut to the image, as a part cannot be larger.
        """
        low, high = self.scale
        area = low + (high - low) * draws[:, 0]
        log_low, log_high = (log(bound) for bound in self.ratio)
        ratio = torch.exp(log_low + (log_high - log_low) * draws[:, 1])
        half = torch.stack([(area * ratio).sqrt(), (area / ratio).sqrt()], 1)
        half = half.clamp(max=1)
        return (1 - half) * (2 * draws[:, 2:4] - 1), half

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Bilinear views of the boxes."""
        center, half = self.boxes(draws)
        sign = torch.where(draws[:, 4] < self.flip, -1.0, 1.0)
        columns, rows = axes(x, self.size)
        across = (half[:, 0] * sign)[:, None, None] * columns + center[:, :1, None]
        down = half[:, 1, None, None] * rows[:, None] + center[:, 1:, None]
        return sample(x, across, down)


class Cutout(Augmentation):
    """Cover a square with mid grey, which a network sees as zero.

    Parameters
    ----------
    share : float, default=0.5
        Side of the square as a share of the image's side. Its centre may lie anywhere
        in the image, so that a part can hang over the edge.
    p : float, default=1.0
        Probability that an image is covered.
    """

    n_draws = 3

    def __init__(self, share: float = 0.5, *, p: float = 1.0) -> None:
        self.share, self.p = share, p

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Images with a square covered."""
        inside = (draws[:, 2] < self.p)[:, None, None]
        for axis, length in ((1, x.shape[2]), (2, x.shape[3])):
            center = draws[:, axis - 1 : axis]
            place = (torch.arange(length, device=x.device) + 0.5) / length
            near = (place - center).abs() < self.share / 2
            inside = inside & near.unsqueeze(3 - axis)
        return torch.where(inside[:, None], 0.5, x)


def axes(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Centres of columns and rows, in units where the image is [-1, 1]."""
    height, width = (size, size) if size else x.shape[2:]
    columns = (2 * torch.arange(width, device=x.device) + 1) / width - 1
    rows = (2 * torch.arange(height, device=x.device) + 1) / height - 1
    return columns, rows


def sample(x: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Bilinear values at positions that broadcast to (n, h, w); the edge is repeated.

    The grid is written out instead of multiplied, as autocast would round a product of
    matrices to bf16.
    """
    grid = torch.stack(torch.broadcast_tensors(across, down), 3)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)
