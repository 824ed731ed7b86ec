"""Marks of the classes: the columns that tell each from the rest, in all classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.analysis._profile import contrast_words
from shoal.report._gather import ReportRows
from shoal.report._settings import SETTINGS

Array = np.ndarray[Any, Any]
Record = dict[str, Any]


def describe_marks(rows: ReportRows, cards: Sequence[Record]) -> Record | None:
    """How common the first words or features of every class are in each of them.

    None where there are few columns, which are drawn one by one, or none to name.
    """
    if not rows.has_features or not rows.show_rows:
        return None
    if len(rows.known_names) < SETTINGS.least_columns_to_mark:
        return None
    marks = _first_marks(rows, cards)
    if not marks:
        return None
    place = {str(name): index for index, name in enumerate(rows.known_names)}
    columns = [place[name] for name, _ in marks]
    levels = _levels(rows)[:, columns]
    return {
        "unit": "share" if rows.has_words else "mean",
        "marks": [{"name": name, "of": f"c{index}"} for name, index in marks],
        "levels": levels.tolist(),
    }


def _first_marks(rows: ReportRows, cards: Sequence[Record]) -> list[tuple[str, int]]:
    """Names of the first marks of each class, and whose they are; each but once."""
    found: dict[str, int] = {}
    for index, card in enumerate(cards):
        names = [entry["word"] for entry in card["words"]]
        names += [
            entry["feature"] for entry in card["features"] if entry["difference"] > 0
        ]
        new = [str(name) for name in names if str(name) not in found]
        found |= dict.fromkeys(new[: SETTINGS.marks], index)
    return list(found.items())


def _levels(rows: ReportRows) -> Array:
    """Share of each word, or mean of each column, in every class."""
    if not rows.has_words:
        return np.asarray(rows.contrast.mean)
    counts = contrast_words(rows.model, rows.bags[0], rows.proba)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
