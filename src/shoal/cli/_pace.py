"""How long counted work will still take, told only where its pace so far is steady."""

from bisect import bisect_left
from dataclasses import dataclass, field

from shoal.cli._options import NUMBERS


@dataclass
class Pace:
    """When which share of some work was done; all times are seconds since it began.

    The guess rests on the later half of what is done. It is none where the earlier half
    went at another pace, for then the rest may do so too, and none once the work has
    been silent for longer than it ever was.

    >>> pace = Pace()
    >>> for step in range(1, 11):
    ...     pace.reach(step / 20, 2.0 * step)
    >>> pace.left(20.0), pace.left(21.0), pace.left(26.0)
    (20.0, 19.0, None)
    """

    # what was done before it began is no work of its own
    before: float = 0.0
    shares: list[float] = field(init=False)
    times: list[float] = field(init=False)
    last: float = 0.0
    longest_pause: float = 0.0

    def __post_init__(self) -> None:
        self.shares, self.times = [self.before], [0.0]

    def reach(self, share: float, at: float) -> None:
        """So much of the work is done by now."""
        self.longest_pause = max(self.longest_pause, at - self.last)
        self.last = at
        if share == 1 or share - self.shares[-1] >= NUMBERS.told_apart:
            self.shares.append(share)
            self.times.append(at)

    def left(self, now: float) -> float | None:
        """Seconds left; None: nobody knows."""
        share, at = self.shares[-1], self.times[-1]
        done = share - self.before
        if share >= 1:
            return 0.0
        few = at < NUMBERS.first_seconds or done < NUMBERS.first_share
        if few or now - self.last > NUMBERS.silent * self.longest_pause:
            return None
        half = bisect_left(self.shares, self.before + done / 2)
        if half == len(self.shares) - 1:  # all of it came at once
            return None
        middle, then = self.shares[half], self.times[half]
        earlier, later = then / (middle - self.before), (at - then) / (share - middle)
        if max(earlier, later) > NUMBERS.steady * min(earlier, later):
            return None
        return max((1 - share) * later - (now - at), 0.0)
