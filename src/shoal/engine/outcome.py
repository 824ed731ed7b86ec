"""What became of one item: its value, or why there is none."""

import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

__all__ = ["Failure", "Numbered", "Outcome", "attempt", "death"]


@dataclass(frozen=True)
class Failure:
    """An exception as text, so that it can travel between processes and be kept.

    Attributes
    ----------
    kind : str
        Name of its class; ``"WorkerDied"`` when the process ended instead of raising.
    text : str
    traceback : str
    """

    kind: str
    text: str
    traceback: str


@dataclass(frozen=True)
class Outcome:
    """An item with the value of the function, or with its failure."""

    item: Any
    value: Any = None
    failure: Failure | None = None


#: The number and the outcome of every item as it comes; closing it ends the work.
Numbered = Generator[tuple[int, Outcome], None, None]


def attempt(function: Callable[[Any], Any], item: Any) -> Outcome:
    """Call the function; an exception becomes a failure instead of spreading."""
    try:
        return Outcome(item, function(item))
    except Exception as error:
        return Outcome(item, failure=failure_of(error))


def failure_of(error: BaseException) -> Failure:
    """An exception as text."""
    lines = traceback.format_exception(error)
    return Failure(type(error).__name__, str(error), "".join(lines))


def death(item: Any, tries: int, reason: str) -> Outcome:
    """Outcome of an item that ended its worker every time it was tried."""
    text = f"the worker died {tries} times running it: {reason}"
    return Outcome(item, failure=Failure("WorkerDied", text, text))
