"""The class of each row of new data, batch by batch."""

from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["UNLIKE", "UNSURE", "marked"]

#: Rows whose best class has less than this probability are marked as unsure.
UNSURE = 0.8
#: Rows stranger than all but this share of the training rows count as unlike them.
UNLIKE = 0.01


def marked(frames: Iterable[Any], least: float = UNSURE) -> Iterator[Any]:
    """Frames of :func:`shoal.io.assign` with one more column, ``unsure``."""
    for frame in frames:
        proba = [name for name in frame.columns if name.startswith("p_")]
        yield frame.assign(unsure=frame[proba].max(axis=1) < least)
