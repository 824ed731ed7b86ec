"""Where work runs: in this process, in others on this machine, or on a Ray cluster."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from shoal.engine._local import (
    Failure,
    Function,
    Numbered,
    Outcome,
    Room,
    run_here,
    run_in_processes,
)
from shoal.engine._ray import run_on_ray

__all__ = ["Failure", "Outcome", "iterate_runs", "map_runs"]

ENGINES: Mapping[str, Callable[[Function, Iterable[Any], Room], Numbered]] = {
    "here": run_here,
    "processes": run_in_processes,
    "ray": run_on_ray,
}


def map_runs(
    function: Function,
    items: Iterable[Any],
    where: str = "here",
    *,
    on_result: Callable[[Outcome], None] | None = None,
    **room: Any,
) -> list[Outcome]:
    """Call a function with every item, wherever there is room.

    An exception in the function fails its item only. A worker that dies (kill -9, out
    of memory) is replaced and its item tried again.

    Parameters
    ----------
    function : callable
        ``function(item)``; must pickle unless ``where="here"``.
    items : iterable
        Taken one by one, when a worker is free: a generator can decide as late as
        that what is left to do.
    where : {"here", "processes", "ray"}, default="here"
        In this process, one after the other; in processes of this machine; as tasks
        of a Ray cluster. Workers compute with one thread each.
    on_result : callable, default=None
        Called in this process with every outcome as it comes.
    address : str, default=None
        Of the Ray cluster; None: that of ``RAY_ADDRESS``, else a new one on this
        machine. A cluster that this process is connected to already is used as it is.
    workers : int, default=None
        Most items at a time; None: as many as there are cores (on Ray, as the
        cluster has room for).
    gpu_share : float, default=None
        Share of a GPU that each item gets, such as .25 for four side by side on one.
        None: items do not ask for a GPU (and on Ray see none).
    retries : int, default=2
        How often an item is tried again after its worker died.

    Returns
    -------
    list of Outcome
        In the order of the items.

    Examples
    --------
    >>> from shoal.engine import map_runs
    >>> [outcome.value for outcome in map_runs(abs, [-1, 2, -3])]
    [1, 2, 3]
    >>> map_runs(int, ["x"])[0].failure.kind
    'ValueError'
    """
    outcomes: dict[int, Outcome] = {}
    for index, outcome in iterate_runs(function, items, where, **room):
        outcomes[index] = outcome
        if on_result is not None:
            on_result(outcome)
    return [outcomes[index] for index in sorted(outcomes)]


def iterate_runs(
    function: Function, items: Iterable[Any], where: str = "here", **room: Any
) -> Numbered:
    """The number and the outcome of every item, as they come; nothing is kept.

    The arguments are those of :func:`map_runs`.

    Examples
    --------
    >>> [(number, outcome.value) for number, outcome in iterate_runs(abs, [-1, 2])]
    [(0, 1), (1, 2)]
    """
    if where not in ENGINES:
        raise ValueError(f"where must be one of {list(ENGINES)}, got {where!r}")
    wanted = Room(**room)
    if wanted.address is not None and where != "ray":
        raise ValueError(
            f"address={wanted.address!r} needs where='ray', got where={where!r}"
        )
    return ENGINES[where](function, items, wanted)
