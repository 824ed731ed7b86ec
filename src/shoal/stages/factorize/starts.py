"""Where an iterative solver starts: at a geometric solution, or anywhere."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.stages.factorize.anchors import snpa, spa
from shoal.stages.factorize.result import Solution
from shoal.stages.factorize.volume import volume
from shoal.validation import check_whole

__all__ = ["STARTS", "check_effort", "starting_points"]

Array = NDArray[Any]

STARTS: dict[str, Callable[..., Solution]] = {
    "spa": spa,
    "snpa": snpa,
    "volume": volume,
}


def check_effort(init: str, n_init: int, max_iter: int) -> None:
    """Refuse a start that does not exist, no start at all, and no iteration."""
    if init not in (*STARTS, "random"):
        raise ValueError(f"init must be one of {[*STARTS, 'random']}, got {init!r}")
    check_whole(1, n_init=n_init, max_iter=max_iter)


def starting_points(
    init: str, n_init: int, table: Array, n_classes: int, weight: Array, random: Any
) -> Iterator[tuple[Array, Array]]:
    """Yield ``n_init`` pairs of factors: first as ``init`` says, the others random.

    Fewer clusters than classes leave no choice of anchors: all starts are random.
    """
    n_domains, n_clusters = table.shape
    if init != "random" and n_clusters >= n_classes:
        found = STARTS[init](table, n_classes, weight)
        yield found.class_given_domain, found.cluster_given_class
        n_init -= 1
    for _ in range(n_init):
        prevalence = random.dirichlet(np.ones(n_classes), size=n_domains)
        yield prevalence, random.dirichlet(np.ones(n_clusters), size=n_classes)
