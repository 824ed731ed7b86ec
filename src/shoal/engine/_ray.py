"""Tasks of a Ray cluster."""

import os
import socket
from collections.abc import Iterable, Iterator
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
        try:
            while True:
                free = (room.workers or slots(ray, room.gpu_share)) - len(running)
                for _, (index, item) in zip(range(free), queue, strict=False):
                    running[task.remote(shared, item)] = index, item
                if not running:
                    return
                finished, _ = ray.wait(list(running), num_returns=1)
                index, item = running.pop(finished[0])
                yield index, _result(ray, finished[0], item, room.retries)
        finally:
            for reference in running:  # of a call that was ended
                ray.cancel(reference)


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
