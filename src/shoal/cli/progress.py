"""Stages of a command: announced before they begin, with the time gone and left."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Stage", "Stages", "clock", "stages_on"]

# Seconds between lines about one long stage where there is no bar to move.
PLAIN_EVERY = 10.0


class Stage(NamedTuple):
    """One part of the work.

    Attributes
    ----------
    text : str
        What is going on, as the reader sees it.
    cost : float
        Its share of the time, in any unit; only used to guess the time left.
    """

    text: str
    cost: float = 1.0


@dataclass
class Stages:
    """Where a command is in its plan.

    Parameters
    ----------
    plan : mapping of str to Stage
        All stages by a short key, in order.
    say : callable
        Called with this object whenever a stage begins or moves on.
    now : callable, default=time.monotonic
        The clock.
    """

    plan: Mapping[str, Stage]
    say: Callable[["Stages"], None]
    now: Callable[[], float] = time.monotonic
    current: str = ""
    share: float = 0.0
    begun: float = field(init=False)
    stage_begun: float = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.stage_begun = self.now()

    def begin(self, key: str) -> None:
        """Announce the stage ``key`` before its work begins."""
        if key not in self.plan:
            raise KeyError(f"no stage {key!r} in {list(self.plan)}")
        self.current, self.share, self.stage_begun = key, 0.0, self.now()
        self.say(self)

    def advance(self, share: float) -> None:
        """Tell how much of the current stage is done, from 0 to 1."""
        self.share = min(max(share, 0.0), 1.0)
        self.say(self)

    @property
    def number(self) -> int:
        """Number of the current stage, from 1."""
        return list(self.plan).index(self.current) + 1

    @property
    def text(self) -> str:
        """What is going on now."""
        return self.plan[self.current].text

    @property
    def elapsed(self) -> float:
        """Seconds since the command began to work."""
        return self.now() - self.begun

    @property
    def done(self) -> float:
        """Share of the whole plan that is behind us, by the stages' costs."""
        costs = [stage.cost for stage in self.plan.values()]
        behind = sum(costs[: self.number - 1]) + self.share * costs[self.number - 1]
        return behind / sum(costs)

    @property
    def left(self) -> float | None:
        """Seconds left if the rest goes as the part behind us; None at the start.

        A stage that tells its share is its own measure; the others go by their costs.
        """
        if self.done <= 0:
            return None
        costs = [stage.cost for stage in self.plan.values()]
        ahead = costs[self.number :]
        if self.share > 0:
            here = (self.now() - self.stage_begun) * (1 - self.share) / self.share
        else:
            here, ahead = 0.0, costs[self.number - 1 :]
        return here + self.elapsed * sum(ahead) / sum(costs) / self.done


@contextmanager
def stages_on(
    console: Any, plan: Mapping[str, Stage], *, verbose: bool = False
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
        if not new and stages.elapsed - self.said < PLAIN_EVERY:
            return
        self.key, self.said = stages.current, stages.elapsed
        part = "" if new else f", {stages.share:.0%} of it done"
        line = f"[{stages.number}/{len(stages.plan)}] {stages.text}{part}"
        memory = _memory() if self.verbose else ""
        print(line + _times(stages) + memory, file=sys.stderr, flush=True)


def _times(stages: Stages) -> str:
    """The time gone and left, once there is something to say about it."""
    if stages.left is None or stages.elapsed < 1:
        return ""
    return f" ({clock(stages.elapsed)} gone, about {clock(stages.left)} left)"


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
def _bar(console: Any, plan: Mapping[str, Stage]) -> Iterator[Stages]:
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=1.0, left="")

        def say(stages: Stages) -> None:
            left = "" if stages.left is None else f"about {clock(stages.left)} left"
            progress.update(
                task,
                completed=stages.done,
                description=stages.text,
                left=left,
                refresh=True,  # before the work begins, not a tenth of a second later
            )

        yield Stages(plan, say)
