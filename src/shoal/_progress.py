"""Work that is counted, and who listens to it.

A loop deep inside says how far it is without being handed a bar: :func:`counted` tells
whoever has called :func:`listening` around it.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")
Hear = Callable[[float], None]

_LISTENER: ContextVar[Hear | None] = ContextVar("listener", default=None)


@contextmanager
def listening(hear: Hear) -> Iterator[None]:
    """Call ``hear`` with the share that is done of what is counted in the body."""
    token = _LISTENER.set(hear)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def counted(items: Iterable[Item], total: int) -> Iterator[Item]:
    """The items, after each of which the listener is told the share that is done.

    They must be of about the same cost: the time left is told from it.

    >>> with listening(print):
    ...     letters = list(counted("ab", 2))
    0.5
    1.0
    """
    hear = _LISTENER.get()
    for done, item in enumerate(items, start=1):
        yield item
        if hear is not None:
            hear(done / total)
