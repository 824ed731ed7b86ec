"""Tasks of a Ray cluster, and Ray Data over a fixed list of items."""

import os
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.engine._local import (
    Function,
    Numbered,
    Outcome,
    Room,
    attempt,
    death,
    failure_of,
)
from shoal.exceptions import CodedError

# ---- tasks of a cluster --------------------------------------------------------------


@contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster; one that is connected already stays so.

    Without an address: that of ``RAY_ADDRESS``, else a cluster of one's own. Ray would
    join any that it finds on the machine, whosever it is.
    """
    ray = _import_ray()
    own = not ray.is_initialized()
    if own:
        # unless its user says otherwise, a cluster of ours reports to nobody
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            address = address or os.environ.get("RAY_ADDRESS") or "local"
            _knock(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise CodedError(
                "E101",
                f"no Ray cluster answers at {address!r}: {reason}",
                "start one with `ray start --head`, or leave the address out",
            ) from error
        except Exception as error:  # Ray has no class of its own for it
            reason = str(error).partition("\n")[0]
            hint = "run it again; Ray's own logs, in /tmp/ray, say what was wrong"
            raise CodedError("E145", f"Ray did not start: {reason}", hint) from error
    try:
        yield ray
    finally:
        if own:
            ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself would wait for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=10).close()


def run_on_ray(function: Function, items: Iterable[Any], room: Room) -> Numbered:
    """As tasks of a cluster; it may grow meanwhile."""
    with connected(room.address) as ray:
        task = ray.remote(attempt).options(
            num_cpus=1, num_gpus=room.gpu_share or 0, max_retries=room.retries
        )
        shared = ray.put(function)  # sent to a node once, not with every item
        queue = enumerate(items)
        running: dict[Any, tuple[int, Any]] = {}
        while True:
            free = (room.workers or slots(ray, room.gpu_share)) - len(running)
            for _, (index, item) in zip(range(free), queue, strict=False):
                running[task.remote(shared, item)] = index, item
            if not running:
                return
            finished, _ = ray.wait(list(running), num_returns=1)
            index, item = running.pop(finished[0])
            yield index, _result(ray, finished[0], item, room.retries)


def _result(ray: Any, reference: Any, item: Any, retries: int) -> Outcome:
    try:
        outcome: Outcome = ray.get(reference)
        return outcome
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError) as error:
        return death(item, retries + 1, str(error).partition("\n")[0])
    except ray.exceptions.RayError as error:
        return Outcome(item, failure=failure_of(error))


def slots(ray: Any, gpu_share: float | None) -> int:
    """How many items the whole cluster has room for."""
    resources = ray.cluster_resources()
    found = int(resources.get("CPU", 0))
    if gpu_share is not None:
        found = min(found, int(resources.get("GPU", 0) / gpu_share + 1e-9))
        if not found:
            raise ValueError(
                f"gpu_share={gpu_share!r} needs a GPU; this Ray cluster has none"
            )
    return max(found, 1)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise CodedError(
            "E132", "where='ray' needs one more package", 'pip install "shoal[ray]"'
        ) from error
    return ray


# ---- blocks of a data set ------------------------------------------------------------


def run_on_ray_data(function: Function, items: Iterable[Any], room: Room) -> Numbered:
    """As blocks of a data set, which is cut before it is begun."""
    listed = list(items)
    if not listed:
        return
    with connected(room.address) as ray:
        slots(ray, room.gpu_share)  # or Ray would wait for a GPU for ever
        left = set(range(len(listed)))
        try:
            with _quiet() as data:
                rows = [{"index": index} for index in range(len(listed))]
                outcomes = data.from_items(rows, override_num_blocks=len(rows)).map(
                    _caller(function, listed, _ledger(ray), room.retries),
                    num_cpus=1,
                    num_gpus=room.gpu_share,
                    concurrency=room.workers,
                )
                for row in outcomes.iter_rows():
                    left.discard(row["index"])
                    yield row["index"], row["outcome"]
        except ray.exceptions.RayError as error:
            for index in sorted(left):
                yield index, Outcome(listed[index], failure=failure_of(error))


class _Ledger:
    """How often each item of each call was begun."""

    def __init__(self) -> None:
        self._begun: Counter[tuple[str, int]] = Counter()

    def begin(self, call: str, index: int) -> int:
        self._begun[call, index] += 1
        return self._begun[call, index]


# That of the present connection: a process of its own takes seconds to start.
_ledgers: dict[tuple[str, str], Any] = {}


def _ledger(ray: Any) -> Any:
    """The one that all calls of a connection share.

    Without a core: it must not keep one from the work. One that dies comes back and
    counts from zero, which costs some more tries.
    """
    context = ray.get_runtime_context()
    connection = context.gcs_address, context.get_job_id()
    if connection not in _ledgers:
        _ledgers.clear()
        _ledgers[connection] = (
            ray.remote(_Ledger)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=-1)
            .remote()
        )
    return _ledgers[connection]


def _caller(
    function: Function, items: list[Any], ledger: Any, retries: int
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What is done with one row of the data set, on a worker."""
    name = uuid.uuid4().hex

    def call(row: dict[str, Any]) -> dict[str, Any]:
        import ray

        index = int(row["index"])
        begun = ray.get(ledger.begin.remote(name, index))
        if begun > retries + 1:
            outcome = death(items[index], begun - 1, "it was lost each time")
        else:
            outcome = attempt(function, items[index])
        # no array, so Ray Data carries it as it is, in a column of objects
        return {"index": index, "outcome": outcome}

    return call


@contextmanager
def _quiet() -> Iterator[Any]:
    """Ray Data without its bars and reports, as it was before afterwards."""
    import logging
    import warnings

    with warnings.catch_warnings():
        # Ray Data warns of its own settings when it makes them for the first time.
        warnings.simplefilter("ignore", DeprecationWarning)
        import ray.data

        context = ray.data.DataContext.get_current()
    log = logging.getLogger("ray.data")
    before = context.enable_progress_bars, log.level
    context.enable_progress_bars = False
    log.setLevel(logging.ERROR)
    try:
        yield ray.data
    finally:
        context.enable_progress_bars = before[0]
        log.setLevel(before[1])
