"""Long work: one thread for its many small products, and who listens to it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

# ---- one thread ----------------------------------------------------------------------

# Their matrices are far too small to be shared: threads of BLAS and OpenMP would spend
# their time waiting for each other. A fit of 3,000 rows by 16 columns took 2.4 seconds
# of processor time with one thread and 23 with two, on two busy cores.


class _SharedLimit:
    """A limit for the whole process that the first user sets and the last one lifts.

    Fits may run in threads side by side; if each restored what it had found, the last
    to end could leave the process with the limit of another.
    """

    def __init__(self, pools: ThreadpoolController) -> None:
        self._pools = pools
        self._lock = Lock()
        self._n_users = 0
        self.n_threads = 1  # that were allowed before

    def __enter__(self) -> int:
        with self._lock:
            if self._n_users == 0:
                counts = [pool["num_threads"] for pool in self._pools.info()]
                self.n_threads = max(counts, default=1)
                self._limit = self._pools.limit(limits=1)
            self._n_users += 1
        return self.n_threads

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._n_users -= 1
            if self._n_users == 0:
                self._limit.restore_original_limits()


@contextmanager
def one_thread() -> Iterator[int]:
    """Keep BLAS and OpenMP to one thread each; yields what BLAS may use otherwise."""
    blas, openmp = _pools()
    # OpenMP keeps a number for every thread that calls it, BLAS one for the process.
    with openmp.limit(limits=1), blas as n_threads:
        yield n_threads


@cache
def _pools() -> tuple[_SharedLimit, ThreadpoolController]:
    """The pools of numpy, scipy and scikit-learn.

    Not torch's own: a network trains long enough to profit from its threads.
    """
    everything = ThreadpoolController()
    paths = [pool["filepath"] for pool in everything.info()]
    ours = everything.select(filepath=[path for path in paths if "torch" not in path])
    return _SharedLimit(ours.select(user_api="blas")), ours.select(user_api="openmp")


# ---- work that is counted ------------------------------------------------------------

# A loop deep inside says how far it is without being handed a bar: :func:`counted`
# tells whoever has called :func:`listening` around it.

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
