"""The stages of a command's work: a bar on a terminal, plain lines in a log."""

import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from shoal.cli._options import NUMBERS
from shoal.io._notation import visible

# ---- how long counted work will still take, where its pace so far is steady ----------


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


# ---- stages, and how they are shown --------------------------------------------------


@dataclass
class Stages:
    """Where a command is in its plan.

    Parameters
    ----------
    plan : mapping of str to str
        What is going on in each stage, by a short key, in order.
    say : callable
        Called with this object whenever a stage begins or moves on.
    now : callable, default=time.monotonic
        The clock.
    """

    plan: Mapping[str, str]
    say: Callable[["Stages"], None]
    now: Callable[[], float] = time.monotonic
    current: str = ""
    share: float = 0.0
    begun: float = field(init=False)
    part: str = ""
    part_begun: float = field(init=False)
    pace: Pace = field(init=False, default_factory=Pace)

    def __post_init__(self) -> None:
        self.begun = self.part_begun = self.now()

    def begin(self, key: str) -> None:
        """Announce the stage ``key`` before its work begins."""
        if key not in self.plan:
            raise KeyError(f"no stage {key!r} in {list(self.plan)}")
        self.current, self.share, self.part = key, 0.0, ""
        self.part_begun, self.pace = self.now(), Pace()
        self.say(self)

    def advance(self, share: float, part: str = "") -> None:
        """Tell how much of the current stage is done, from 0 to 1.

        A stage that goes over its data again and again names each pass by ``part``, of
        which ``share`` is then the share.
        """
        self.share = min(max(share, 0.0), 1.0)
        if part != self.part:
            self.part, self.part_begun = part, self.now()
            self.pace = Pace(self.share)
        self.pace.reach(self.share, self.now() - self.part_begun)
        self.say(self)

    @property
    def number(self) -> int:
        """Number of the current stage, from 1."""
        return list(self.plan).index(self.current) + 1

    @property
    def text(self) -> str:
        """What is going on now."""
        return self.plan[self.current]

    @property
    def elapsed(self) -> float:
        """Seconds since the command began to work."""
        return self.now() - self.begun

    @property
    def done(self) -> float:
        """Stages behind us, and the share of this one, of all."""
        return (self.number - 1 + self.share) / len(self.plan)

    @property
    def left(self) -> float | None:
        """Seconds left of this stage or part, as its work went so far; None: unknown.

        What a later stage will take depends on what this one finds: nobody knows.
        """
        return self.pace.left(self.now() - self.part_begun)


@contextmanager
def stages_on(
    console: Any, plan: Mapping[str, str], *, verbose: bool = False
) -> Iterator[Stages]:
    """Stages shown on stderr: a bar on a terminal, plain lines in a log or a pipe.

    ``verbose`` makes lines everywhere, each with the memory that was needed so far.
    """
    if verbose or not sys.stderr.isatty():
        yield Stages(plan, PlainLines(verbose))
    else:
        with _bar(console, plan) as stages:
            yield stages


@dataclass
class PlainLines:
    """Says stages as lines of text, and a long one again now and then."""

    verbose: bool = False
    key: str = ""
    said: float = 0.0

    def __call__(self, stages: Stages) -> None:
        """One line, if there is something new to say."""
        new = stages.current != self.key
        if not new and stages.elapsed - self.said < NUMBERS.plain_every:
            return
        self.key, self.said = stages.current, stages.elapsed
        part = "" if new else f", {stages.share:.0%} of it done"
        line = f"[{stages.number}/{len(stages.plan)}] {stages.text}{part}"
        memory = _memory() if self.verbose else ""
        print(visible(line + _times(stages) + memory), file=sys.stderr, flush=True)


def _times(stages: Stages) -> str:
    """The time gone, and what is left of this stage where that is known."""
    if stages.elapsed < 1:
        return ""
    left = _left(stages)
    return f" ({clock(stages.elapsed)} gone{left and ', '}{left})"


def _left(stages: Stages) -> str:
    if stages.left is None:
        return ""
    return f"about {clock(stages.left)} left of {stages.part or 'this step'}"


def _memory() -> str:
    """Most memory that this process has held; nothing where no system call tells."""
    try:
        import resource
    except ImportError:
        return ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f" [{peak / (1e6 if sys.platform == 'darwin' else 1e3):,.0f} MB]"


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds, or hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


@contextmanager
def _bar(console: Any, plan: Mapping[str, str]) -> Iterator[Stages]:
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )
    from rich.text import Text

    class TimeLeft(ProgressColumn):
        """Asked anew whenever the bar is drawn: a guess does not stand still."""

        def render(self, task: Any) -> Text:
            return Text(_left(stages))

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.fields[step]}"),
        TimeElapsedColumn(),
        TimeLeft(),
    )
    stages = Stages(plan, lambda stages: None)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=1.0, step="")

        def say(stages: Stages) -> None:
            progress.update(
                task,
                completed=stages.done,
                description=stages.text,
                step=f"{stages.number}/{len(plan)}",
                refresh=True,  # before the work begins, not a tenth of a second later
            )

        stages.say = say
        yield stages
