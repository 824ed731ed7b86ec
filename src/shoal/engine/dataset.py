"""Ray Data over a fixed list of items: one block, and so one task, for each.

Ray makes a block again from its lineage when the worker or the node that made it dies,
as often as that happens. A ledger in the cluster counts how often each item was begun,
so that one that ends every worker is given up. However often an item was begun, it
comes back once.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from shoal.engine.cluster import connected, slots
from shoal.engine.outcome import Numbered, Outcome, attempt, death, failure_of

__all__ = ["run_on_ray_data"]


def run_on_ray_data(
    function: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    address: str | None = None,
    workers: int | None = None,
    gpu_share: float | None = None,
    retries: int = 2,
) -> Numbered:
    """Yield the number and the outcome of every item as it comes."""
    listed = list(items)
    if not listed:
        return
    with connected(address) as ray:
        slots(ray, gpu_share)  # or Ray would wait for a GPU for ever
        left = set(range(len(listed)))
        try:
            with _quiet() as data:
                rows = [{"index": index} for index in range(len(listed))]
                outcomes = data.from_items(rows, override_num_blocks=len(rows)).map(
                    _caller(function, listed, _ledger(ray), retries),
                    num_cpus=1,
                    num_gpus=gpu_share,
                    concurrency=workers,
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
    function: Callable[[Any], Any], items: list[Any], ledger: Any, retries: int
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
