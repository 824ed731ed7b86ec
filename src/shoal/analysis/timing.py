"""What to try first where time is short."""

import time
from collections.abc import Callable, Iterator, Sequence

__all__ = ["Order"]

# Numbers of classes this far below and above the rank are always tried.
BELOW, ABOVE = 1, 2


class Order:
    """Numbers of classes in the order in which they are tried.

    Parameters
    ----------
    time_limit : float or None
        Seconds from now; None for all the time in the world.
    now : callable, default=time.monotonic
        The clock.
    """

    def __init__(
        self, time_limit: float | None, now: Callable[[], float] = time.monotonic
    ) -> None:
        if time_limit is not None and not time_limit > 0:
            raise ValueError(
                f"time_limit must be seconds above 0 or None, got {time_limit!r}"
            )
        self._now = now
        self._end = None if time_limit is None else now() + time_limit

    def late(self) -> bool:
        """Whether the time is over."""
        return self._end is not None and self._now() > self._end

    def groups(self, candidates: Sequence[int], rank: int) -> Iterator[list[int]]:
        """Candidates in groups, until the time is over; the first comes always.

        Without a limit, all at once. With one, first those around the rank, then the
        others one by one, the nearest first.
        """
        if self._end is None:
            yield list(candidates)
            return
        near = [k for k in candidates if rank - BELOW <= k <= rank + ABOVE]
        rest = sorted(set(candidates) - set(near), key=lambda k: (abs(k - rank), k))
        groups = [near] if near else []
        for number, group in enumerate([*groups, *([k] for k in rest)]):
            if number and self.late():
                return
            yield group
