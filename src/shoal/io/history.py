"""Names and merges of classes, remembered so that each can be taken back.

``class_history_`` is a list of steps, oldest first. It travels with a saved model, in
``classes.json``.
"""

import copy
from collections.abc import Sequence
from typing import Any

__all__ = ["merge", "rename", "undo"]


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
