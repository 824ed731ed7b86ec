"""An augmentation is a number of draws and a pure function of them."""

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Augmentation", "Identity", "compose", "per_image"]


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
