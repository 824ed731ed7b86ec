"""A tree of classes, and the fitted estimator at each of its levels."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Members = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ClassSplit:
    """One class becomes two.

    Attributes
    ----------
    n_classes : int
        Classes after it.
    parts : pair of tuple of int
        Classes of the model in each of the two, the one with more rows first.
    rows : pair of int
    agreement : float
        Share of the rows that a fit with so many classes would class as the tree does.
    columns : list of tuple of str and float
        What sets the parts apart: the mean of the first less that of the second, in
        standard deviations, the largest first. Empty where a row has no columns.
    """

    n_classes: int
    parts: tuple[Members, Members]
    rows: tuple[int, int]
    agreement: float
    columns: list[tuple[str, float]]

    @property
    def whole(self) -> Members:
        """Classes of the model in the class before it."""
        return tuple(sorted(self.parts[0] + self.parts[1]))


@dataclass(frozen=True, eq=False)
class ClassTree:
    """Which class splits into which, from two classes to those of a model.

    Attributes
    ----------
    splits : list of ClassSplit
        In the order of their number of classes, the first one into two.
    class_names : list of str
        Of the model.
    n_rows : int
    seconds : float
        Of the fits with fewer classes; 0 where these were given.
    """

    splits: list[ClassSplit]
    class_names: list[str]
    n_rows: int
    seconds: float
    model: Any = field(repr=False)

    @property
    def n_classes(self) -> int:
        """Classes of the model."""
        return len(self.class_names)

    def groups(self, n_classes: int) -> list[Members]:
        """Classes of the model that make up each class of a level."""
        if isinstance(n_classes, bool) or n_classes not in range(2, self.n_classes + 1):
            raise ValueError(
                f"n_classes must be a whole number from 2 to {self.n_classes}, the "
                f"classes of the model, got {n_classes!r}"
            )
        found: list[Members] = []
        for split in self.splits[: int(n_classes) - 1]:
            found = [one for one in found if one != split.whole]
            found += split.parts
        return sorted(found)

    def cut(self, n_classes: int) -> Any:
        """A fitted estimator with so many classes; the model itself for all of them.

        Its probabilities and prevalences are sums of those of the model, as of
        ``model.merge``.
        """
        groups, found = self.groups(n_classes), self.model
        origin = self.model._origin.n_classes_
        before = self.model._add_up(np.eye(origin)).argmax(axis=1)
        for group in (one for one in groups if len(one) > 1):
            now = found._add_up(np.eye(origin)).argmax(axis=1)
            members = {int(now[before == one][0]) for one in group}
            found = found.merge(*sorted(members))
        return found

    def name(self, members: Members) -> str:
        """What some classes are called together."""
        return "+".join(self.class_names[one] for one in members)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per split."""
        return [
            {
                "n_classes": one.n_classes,
                "class": self.name(one.whole),
                "first": self.name(one.parts[0]),
                "second": self.name(one.parts[1]),
                "first_rows": one.rows[0],
                "second_rows": one.rows[1],
                "agreement": one.agreement,
                "columns": "; ".join(f"{name} {by:+.2f}" for name, by in one.columns),
            }
            for one in self.splits
        ]

    def to_pandas(self) -> Any:
        """Table with one row per split."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model, as JSON takes it."""
        return {
            "n_classes": self.n_classes,
            "classes": list(map(str, self.class_names)),
            "n_rows": self.n_rows,
            "seconds": self.seconds,
            "splits": [
                {
                    "n_classes": one.n_classes,
                    "parts": [list(part) for part in one.parts],
                    "rows": list(one.rows),
                    "agreement": one.agreement,
                    "columns": [[name, by] for name, by in one.columns],
                }
                for one in self.splits
            ],
        }

    def plot(self, *, ax: Any = None) -> Any:
        """The figure of :func:`shoal.plots.plot_tree`."""
        from importlib import import_module

        return import_module("shoal.plots").plot_tree(self, ax=ax)
