"""What tells the classes apart: the columns' marks, and how they are spread."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.analysis._profile import contrast_words, dense, sample_rows
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


# ---- how the most telling features are spread within each class, domain by domain ----


# A freak far away must not press all other rows into one step of a curve.
ENDS = (0.005, 0.995)
QUARTERS = (0.25, 0.5, 0.75)


def describe_looks(rows: ReportRows, seed: int) -> Record | None:
    """Counts of the values of the most telling features, by domain and class.

    None where features mean nothing to people, are words, or rows must not be shown:
    the ends of a curve are values of single rows.
    """
    if not rows.has_features or rows.has_words or not rows.show_rows:
        return None
    columns, names = rows.known_by
    telling = np.abs(rows.contrast.difference).max(axis=0)
    order = np.argsort(-telling, kind="stable")[: SETTINGS.looks]
    chosen = sample_rows(rows.codes, SETTINGS.look_rows, seed)
    largest = np.argsort(-rows.rows_per_domain, kind="stable")
    domains = np.sort(largest[: SETTINGS.look_domains])
    inside = [np.ones(len(chosen), dtype=bool)]
    inside += [rows.codes[chosen] == domain for domain in domains]
    weight = rows.proba[chosen]
    values = dense(columns[chosen][:, order])
    return {
        "domains": domains.tolist(),
        "n_features": len(names),
        "features": [
            {"feature": names[column], **_spread(values[:, place], weight, inside)}
            for place, column in enumerate(order)
        ],
    }


def _spread(values: Array, weight: Array, inside: list[Array]) -> Record:
    """One feature: for all domains, then each shown one, a curve for every class."""
    edges = bin_edges(values)
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    slots = [
        [
            _curve(values[own], cell[own], weight[own, index], len(edges) - 1)
            for index in range(weight.shape[1])
        ]
        for own in inside
    ]
    indicator = bool(np.isin(values, (0, 1)).all())
    ends = [float(edges[0]), float(edges[-1])]
    return {"indicator": indicator, "ends": ends, "slots": slots}


def bin_edges(values: Array) -> Array:
    """Ends of equal steps over the values; whole numbers stand in their middle.

    Examples
    --------
    >>> bin_edges(np.array([1.0, 2.0, 4.0]))
    array([0.5, 1.5, 2.5, 3.5, 4.5])
    """
    low, high = np.quantile(values, ENDS)
    whole = bool((values == np.rint(values)).all())
    if whole and values.max() - values.min() < SETTINGS.look_bins:
        return np.arange(values.min() - 0.5, values.max() + 1)
    if low == high:
        low, high = values.min(), max(values.max(), values.min() + 1e-9)
    return np.linspace(low, high, SETTINGS.look_bins + 1)


def _curve(values: Array, cell: Array, weight: Array, n_bins: int) -> Record:
    """Rows of a class in every step, and its middle half; None where it is too few."""
    rows = float(weight.sum())
    if rows < SETTINGS.rows_to_compare:
        return {"rows": rows, "counts": None, "quarters": None, "mean": None}
    counts = np.bincount(cell, weight, minlength=n_bins)
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / rows
    places = np.minimum(np.searchsorted(reached, QUARTERS), len(values) - 1)
    return {
        "rows": rows,
        "counts": np.round(counts, 2).tolist(),
        "quarters": values[order][places].tolist(),
        "mean": float(values @ weight / rows),
    }
