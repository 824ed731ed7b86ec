"""Random views of a batch of images, made on the device in a few fused kernels.

Randomness is drawn first and used later: an augmentation states how many uniform
numbers it needs per image (``n_draws``), and ``apply(x, draws)`` is a pure function of
them. A whole view therefore needs one call of the random generator, and the rest can be
compiled, repeated and tested exactly.

Images are float NCHW in [0, 1]; every augmentation keeps shape, range, type and device
(:class:`RandomResizedCrop` may be asked for another size).
"""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor
from torch.nn import functional

from shoal.validation import check_whole


class Augmentation:
    """Base of all views: draw uniform numbers, then apply a pure function of them."""

    #: Uniform numbers needed per image.
    n_draws: int = 0

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


def _per_image(values: Tensor) -> Tensor:
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
        color = luma + _per_image(along) * (x - luma) + _per_image(across) * turned
        # Contrast is taken around the mean luminance, which brightness has scaled.
        center = _per_image((1 - contrast) * brightness) * luma.mean((2, 3), True)
        return (_per_image(contrast * brightness) * color + center).clamp(0, 1)


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
            weights = [_per_image(weight) for weight in kernel.unbind(1)]
            blurred = torch.zeros_like(shifted[0])
            for weight, part in zip(weights, shifted, strict=True):
                blurred = blurred + weight * part
        return torch.where(_per_image(draws[:, 1] < self.p), blurred, x)


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
        return torch.where(_per_image(draws[:, 0] < self.p), x.flip(3), x)


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

    def positions(
        self, draws: Tensor, columns: Tensor, rows: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Where in the image the columns and rows of a view lie, as (x, y)."""
        center, half = self.boxes(draws)
        sign = torch.where(draws[:, 4] < self.flip, -1.0, 1.0)
        across = (half[:, 0] * sign)[:, None, None] * columns + center[:, :1, None]
        return across, half[:, 1, None, None] * rows + center[:, 1:, None]

    def apply(self, x: Tensor, draws: Tensor) -> Tensor:
        """Bilinear views of the boxes."""
        columns, rows = _axes(x, self.size)
        return _sample(x, *self.positions(draws, columns, rows[:, None]))


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


def _axes(x: Tensor, size: int | None) -> tuple[Tensor, Tensor]:
    """Centres of columns and rows, in units where the image is [-1, 1]."""
    height, width = (size, size) if size else x.shape[2:]
    columns = (2 * torch.arange(width, device=x.device) + 1) / width - 1
    rows = (2 * torch.arange(height, device=x.device) + 1) / height - 1
    return columns, rows


def _sample(x: Tensor, across: Tensor, down: Tensor) -> Tensor:
    """Bilinear values at positions that broadcast to (n, h, w); the edge is repeated.

    The grid is written out instead of multiplied, as autocast would round a product of
    matrices to bf16.
    """
    grid = torch.stack(torch.broadcast_tensors(across, down), 3)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


# ---- Views as they are used ----------------------------------------------------------


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
        slanted = self._slanted(*_axes(x, None), warp)
        x = _sample(x, *self.crop.positions(crop, *slanted))
        x = self.jitter.apply(x, jitter)
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
        threshold = _per_image(1 - self.magnitude * draws[:, 1])
        levels = _per_image(2.0 ** (8 - (4 * self.magnitude * draws[:, 2]).round()))
        solarized = torch.where(x >= threshold, 1 - x, x)
        posterized = torch.minimum((x * levels).floor(), levels - 1) / levels
        chosen, share = _per_image(draws[:, 0]), 0.1 * self.magnitude
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
