"""Processes of this machine, each in a pool of its own, and what became of an item."""

import os
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import Any

from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor

# ---- what all engines share ----------------------------------------------------------


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


#: What is called with every item.
Function = Callable[[Any], Any]
#: The number and the outcome of every item as it comes; closing it ends the work.
Numbered = Generator[tuple[int, Outcome], None, None]


@dataclass(frozen=True)
class Room:
    """What a call may take; the fields are explained in :func:`shoal.engine.map_runs`.

    Engines leave out what they have no use for.
    """

    address: str | None = None
    workers: int | None = None
    gpu_share: float | None = None
    retries: int = 2

    def __post_init__(self) -> None:
        # not above: a worker, which imports this file, begins without scikit-learn
        from shoal.validation import check_whole

        if self.workers is not None:
            check_whole(1, workers=self.workers)
        if self.gpu_share is not None and not 0 < self.gpu_share <= 1:
            raise ValueError(
                f"gpu_share must be above 0 and at most 1, got {self.gpu_share!r}"
            )


def attempt(function: Function, item: Any) -> Outcome:
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


def run_here(function: Function, items: Iterable[Any], room: Room) -> Numbered:
    """One after the other, in this process."""
    for index, item in enumerate(items):
        yield index, attempt(function, item)


# ---- processes -----------------------------------------------------------------------

# So often a worker looks whether its parent is still there.
LOOK_SECONDS = 1.0
# Two processes with two threads each are slower than with one each.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


def run_in_processes(function: Function, items: Iterable[Any], room: Room) -> Numbered:
    """In processes of this machine, each of which is replaced when it dies."""
    queue = enumerate(items)
    pool = [_Worker(variables, function) for variables in _environments(room)]
    running: _Running = {}
    try:
        for worker in pool:
            worker.take_next(queue, running)
        while running:
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                worker = running.pop(future)
                outcome = worker.result(future, room.retries)
                if outcome is None:
                    worker.submit(running)
                    continue
                yield worker.index, outcome
                worker.take_next(queue, running)
    finally:
        for worker in pool:
            worker.end()


class _Worker:
    """A process that is replaced when it dies, and the item that it is at."""

    def __init__(self, variables: dict[str, str], function: Function) -> None:
        self._variables = variables
        self._function = function
        self._executor: Any = None
        self.index = -1
        self._item: Any = None
        self._tries = 0

    def take_next(self, queue: Iterator[tuple[int, Any]], running: "_Running") -> None:
        """Begin the next item, if there is one."""
        for self.index, self._item in queue:
            self._tries = 0
            self.submit(running)
            return

    def submit(self, running: "_Running") -> None:
        """Begin (again) the item that it is at."""
        self._tries += 1
        try:
            running[self._begin()] = self
        except BrokenProcessPool:  # it died between two items
            self.end()
            running[self._begin()] = self

    def result(self, future: Future[Outcome], retries: int) -> Outcome | None:
        """What became of its item; None if it has to be tried again."""
        try:
            return future.result()
        except BrokenProcessPool as error:
            self.end()
            if self._tries <= retries:
                return None
            return death(self._item, self._tries, str(error).partition("\n")[0])
        except Exception as error:  # the value could not travel
            return Outcome(self._item, failure=failure_of(error))

    def _begin(self) -> Future[Outcome]:
        if self._executor is None:
            self._executor = ProcessPoolExecutor(
                1,
                env=dict(self._variables),
                initializer=_end_with,
                initargs=(os.getpid(),),
            )
        begun: Future[Outcome] = self._executor.submit(
            attempt, self._function, self._item
        )
        return begun

    def end(self) -> None:
        """Stop the process, whatever it is at."""
        if self._executor is not None:
            self._executor.shutdown(wait=True, kill_workers=True)
            self._executor = None


_Running = dict[Future[Outcome], _Worker]


def _end_with(parent: int) -> None:
    """Let a worker end soon after its parent, however that ended (kill -9 too)."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _environments(room: Room) -> list[dict[str, str]]:
    """Environment of every worker; with GPUs, which of them it sees."""
    if room.gpu_share is None:
        return [dict(ONE_THREAD)] * (room.workers or os.cpu_count() or 1)
    devices = _visible_gpus()
    if not devices:
        raise ValueError(
            f"gpu_share={room.gpu_share!r} needs a GPU that torch can use; none is "
            "visible"
        )
    slots = devices * int(1 / room.gpu_share + 1e-9)
    return [
        {**ONE_THREAD, "CUDA_VISIBLE_DEVICES": device}
        for device in slots[: room.workers]
    ]


def _visible_gpus() -> list[str]:
    """Their names as CUDA_VISIBLE_DEVICES has them; torch is asked how many."""
    try:
        import torch
    except ImportError:
        return []
    count = torch.cuda.device_count()
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return named.split(",")[:count] if named else [str(i) for i in range(count)]
