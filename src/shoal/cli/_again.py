"""Fits of the same rows from other seeds, and with other numbers of classes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shoal.cli._models import estimator_for
from shoal.cli._output import Output
from shoal.cli._told import n_known, told

if TYPE_CHECKING:
    from shoal.cli._fit import Settings
    from shoal.io import Table


def said_of(settings: "Settings") -> str:
    """What is going on meanwhile; nothing where no such fit was asked for."""
    if settings.tree:
        return "other numbers of classes, from 2"
    n_fits = settings.n_reruns + 2
    return f"other seeds and numbers of classes: {n_fits}" * bool(settings.n_reruns)


def fit_again(
    output: Output, table: "Table", k: int, settings: "Settings"
) -> Iterator[Any]:
    """From other seeds, with one class fewer and more where that can be, and fewer."""
    import numpy as np

    if not said_of(settings):
        return
    output.begin("rerun")
    n_domains, seed = len(np.unique(np.asarray(table.domains))), settings.work.seed
    plans = [(k, seed + step) for step in range(1, settings.n_reruns + 1)]
    numbers = set(range(2, k)) if settings.tree else set()
    if settings.n_reruns:
        most = k + 1 if settings.work.looks else n_domains
        numbers |= {n for n in (k - 1, k + 1) if 2 <= n <= most}
    numbers = {n for n in numbers if n >= n_known(table)}
    plans += [(n, seed) for n in sorted(numbers)]
    for done, (n_classes, own) in enumerate(plans):
        output.at.advance(done / len(plans))
        work = replace(settings.work, seed=own)
        again = estimator_for(table, n_classes, work)
        yield again.fit(table.X, table.domains, **told(table, again))
