"""A model's own witness, and the history of its names and merges."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from shoal.exceptions import UnseenWordWarning
from shoal.io.model._values import damaged

# ---- probe ---------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

N_ROWS = 8
# Other processors and libraries round differently, and a network's layers add it up.
RELATIVE, ABSOLUTE = 1e-4, 1e-6
OF_A_NETWORK = 1e-2


def make_probe(estimator: Any) -> dict[str, Any] | None:
    """Rows and their probabilities, pooled and in the first domain.

    None for a model whose rows cannot be made up.
    """
    rows = estimator._origin._probe_rows(N_ROWS)
    if rows is None:
        return None
    with estimator._origin._probing(), _unwarned():
        return {
            "rows": rows,
            "pooled": estimator.predict_proba(rows),
            "in_first": estimator.predict_proba(rows, _first_domain(estimator)),
        }


def check_probe(estimator: Any, probe: Any) -> None:
    """Raise unless the model gives the stored probabilities."""
    if probe is None:
        return
    rows = probe["rows"]
    with estimator._origin._probing(), _unwarned():
        pairs = [
            (estimator.predict_proba(rows), probe["pooled"]),
            (
                estimator.predict_proba(rows, _first_domain(estimator)),
                probe["in_first"],
            ),
        ]
    absolute = OF_A_NETWORK if estimator._origin._takes_images else ABSOLUTE
    for got, stored in pairs:
        if got.shape != np.shape(stored) or not np.all(
            np.isclose(got, stored, rtol=RELATIVE, atol=absolute)
        ):
            raise damaged("the model gives other probabilities than when it was saved")


def _first_domain(estimator: Any) -> Any:
    # One per row: a tuple alone would not pass for one domain.
    return np.repeat(estimator.domains_[:1], N_ROWS)


@contextmanager
def _unwarned() -> Iterator[None]:
    """Let made-up rows hold words that fit has not seen: they are nobody's rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenWordWarning)
        yield


# ---- history -------------------------------------------------------------------------


def rename(estimator: Any, names: Any) -> Any:
    """``estimator.set_names(names)``, remembered."""
    renamed = estimator.set_names(names)
    before, after = list(estimator.class_names_), list(renamed.class_names_)
    step = {"step": "rename", "before": before, "after": after}
    return _remember(estimator, renamed, step)


def merge(estimator: Any, classes: Sequence[Any], name: str | None = None) -> Any:
    """``estimator.merge(*classes, name=name)``, remembered."""
    merged = estimator.merge(*classes, name=name)
    step = {
        "step": "merge",
        "groups": [[int(index) for index in group] for group in merged.groups],
        "before": list(estimator.class_names_),
        "after": list(merged.class_names_),
    }
    return _remember(estimator, merged, step)


def undo(estimator: Any) -> Any:
    """The estimator before the last step; a ValueError if there was none.

    A merge gives back the classes that it merged, under the names they had.
    """
    history = list(getattr(estimator, "class_history_", []))
    if not history:
        raise ValueError("nothing to undo: no class was renamed or merged")
    last = history.pop()
    origin = estimator.estimator if last["step"] == "merge" else estimator
    earlier = copy.copy(origin)  # names of old models would be refused today
    earlier.class_names_ = list(last["before"])
    return _inherit(estimator, earlier, history)


def _remember(before: Any, after: Any, step: dict[str, Any]) -> Any:
    history = [*getattr(before, "class_history_", []), step]
    return _inherit(before, after, history)


def _inherit(before: Any, after: Any, history: list[Any]) -> Any:
    after = copy.copy(after)
    after.class_history_ = history
    if hasattr(before, "schema_"):
        after.schema_ = before.schema_
    return after
