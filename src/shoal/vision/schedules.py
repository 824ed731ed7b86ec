"""Learning rates as pure functions of the epoch, so that a resumed run goes on exactly.

A schedule maps the epochs done (a float; 2.5 is the middle of the third) to a factor of
every parameter group's own learning rate.
"""

from collections.abc import Callable
from math import cos, pi

__all__ = ["Schedule", "constant", "cosine", "exponential"]

Schedule = Callable[[float], float]


def constant() -> Schedule:
    """Always 1."""
    return lambda epoch: 1.0


def cosine(epochs: float, *, warmup: float = 0.0, floor: float = 0.0) -> Schedule:
    """Half a cosine from 1 to ``floor`` after a linear rise over ``warmup`` epochs.

    >>> schedule = cosine(10)
    >>> [round(schedule(epoch), 3) for epoch in (0, 5, 10)]
    [1.0, 0.5, 0.0]
    """
    if not 0 <= warmup < epochs:
        raise ValueError(f"warmup must lie in [0, epochs={epochs}), got {warmup}")

    def factor(epoch: float) -> float:
        if epoch < warmup:
            return epoch / warmup
        done = min((epoch - warmup) / (epochs - warmup), 1.0)
        return floor + (1 - floor) * (1 + cos(pi * done)) / 2

    return factor


def exponential(gamma: float) -> Schedule:
    """``gamma`` to the number of whole epochs done.

    >>> exponential(0.5)(2.9)
    0.25
    """
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must lie in (0, 1], got {gamma}")
    return lambda epoch: gamma ** int(epoch)
