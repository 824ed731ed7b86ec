"""Views that move pixels: mirror, shift, cut and stretch, cover."""

from math import log

import torch
from torch import Tensor
from torch.nn import functional

from shoal.vision.augment.base import Augmentation, per_image

__all__ = ["Crop", "Cutout", "Flip", "RandomResizedCrop", "axes", "sample"]


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
