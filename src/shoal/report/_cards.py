"""One card per class: rows to look at, how sure they are, what tells them apart."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.report._gather import ReportRows
from shoal.report._profile import (
    Contrast,
    contrast_features,
    contrast_words,
    numeric_columns,
    top_features,
    top_words,
)
from shoal.report._showing import RowViewer
from shoal.validation import is_sparse

Array = np.ndarray[Any, Any]
Record = dict[str, Any]

MOST_DOMAINS = 6
ROWS_PER_DOMAIN = 4
BORDERLINE = 6
N_BINS = 10
SURE, UNSURE = 0.95, 0.8
# Less probable rows are no examples of a class.
LEAST_PROBABLE = 0.5
CANDIDATES = 2_000


def make_cards(rows: ReportRows, kept: Array | None) -> tuple[list[Record], list[str]]:
    """Cards of all classes, and the columns that their example rows show.

    Parameters
    ----------
    rows : ReportRows
    kept : ndarray of shape (n_samples,) or None
        Share of resamples in which each row keeps its class.
    """
    telling, contrast = _telling(rows)
    viewer = RowViewer(rows, _column_order(rows, contrast), telling)
    cards = []
    for index in range(rows.n_classes):
        card = {**_size(rows, index, kept), **telling[index]}
        if rows.show_rows:
            distance = _Distance(rows, contrast, index)
            card["exemplars"] = [
                {"domain": domain, "rows": [viewer.show(row, index) for row in own]}
                for domain, own in _exemplars(rows, index, distance)
            ]
            card["borderline"] = [
                viewer.show(row, index) | {"other": _second(rows.proba[row], index)}
                for row in _borderline(rows, index)
            ]
        cards.append(card)
    return cards, [str(name) for name in viewer.columns] if rows.show_rows else []


def _telling(rows: ReportRows) -> tuple[list[Record], Contrast | None]:
    """Features or words of each class; nothing where a row is an image."""
    empty: Record = {"features": [], "words": []}
    if not rows.has_features:
        return [dict(empty) for _ in range(rows.n_classes)], None
    if rows.has_words:
        if not rows.show_rows:
            return [dict(empty) for _ in range(rows.n_classes)], None
        counts = contrast_words(rows.model, rows.X, rows.proba)
        return [
            empty | {"words": top_words(counts, rows.features, index)}
            for index in range(rows.n_classes)
        ], None
    columns, names = numeric_columns(rows.X, rows.features)
    contrast = contrast_features(columns, rows.proba)
    return [
        empty | {"features": top_features(columns, rows.proba, names, index, contrast)}
        for index in range(rows.n_classes)
    ], contrast


def _column_order(rows: ReportRows, contrast: Contrast | None) -> Sequence[str]:
    """Names of the features, the most telling first."""
    if contrast is None or contrast.difference.shape[1] != len(rows.features):
        return rows.features
    order = np.argsort(-np.abs(contrast.difference).max(axis=0), kind="stable")
    return [rows.features[index] for index in order]


def _size(rows: ReportRows, index: int, kept: Array | None) -> Record:
    own = rows.classes == index
    top = rows.proba[own, index]
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    by_domain = np.bincount(rows.codes[own], minlength=len(rows.domains))
    some = len(top) > 0
    return {
        "class_id": f"c{index}",
        "rows": int(own.sum()),
        "rows_by_domain": by_domain.tolist(),
        "histogram": np.bincount(bins, minlength=N_BINS).tolist(),
        "sure": float((top >= SURE).mean()) if some else None,
        "unsure": float((top < UNSURE).mean()) if some else None,
        "kept": float(kept[own].mean()) if some and kept is not None else None,
        "exemplars": [],
        "borderline": [],
    }


# ---- rows to look at ---------------------------------------------------------------


class _Distance:
    """How far rows lie from the centre of a class, in spreads of each column."""

    def __init__(self, rows: ReportRows, contrast: Contrast | None, index: int) -> None:
        numeric = contrast is not None and not is_sparse(rows.X)
        self.usable = numeric and rows.X.dtype.kind in "biuf"
        if self.usable:
            assert contrast is not None
            self.X, self.centre = rows.X, contrast.mean[index]
            self.spread = np.maximum(rows.X.std(axis=0), 1e-300)

    def __call__(self, numbers: Array) -> Array:
        if not self.usable:
            return np.zeros(len(numbers))
        away = (self.X[numbers] - self.centre) / self.spread
        return np.asarray((away**2).sum(axis=1))


def _exemplars(
    rows: ReportRows, index: int, distance: _Distance
) -> list[tuple[int, Array]]:
    """The surest rows of the domains where the class has most rows.

    Among rows that are equally sure to three digits, those nearest to the centre of the
    class come first: the surest of all tend to be freaks.
    """
    own = rows.classes == index
    count = np.bincount(rows.codes[own], minlength=len(rows.domains))
    homes = np.sort(np.argsort(-count, kind="stable")[:MOST_DOMAINS])
    if len(count) > MOST_DOMAINS:  # of few domains, also those that lack the class
        homes = homes[count[homes] > 0]
    found = []
    for domain in homes:
        sure = own & (rows.codes == domain) & (rows.proba[:, index] >= LEAST_PROBABLE)
        numbers = np.flatnonzero(sure)
        p = np.round(rows.proba[numbers, index], 3)
        few = np.argsort(-p, kind="stable")[:CANDIDATES]
        numbers, p = numbers[few], p[few]
        order = np.lexsort([numbers, distance(numbers), -p])
        found.append((int(domain), numbers[order[:ROWS_PER_DOMAIN]]))
    return found


def _borderline(rows: ReportRows, index: int) -> Array:
    """The rows of a class that another class nearly won."""
    numbers = np.flatnonzero(rows.classes == index)
    ranked = np.partition(rows.proba[numbers], -2, axis=1)
    margin = ranked[:, -1] - ranked[:, -2]
    return np.asarray(numbers[np.argsort(margin, kind="stable")[:BORDERLINE]])


def _second(proba: Array, index: int) -> Record:
    others = proba.copy()
    others[index] = -1
    second = int(others.argmax())
    return {"class_id": f"c{second}", "p": float(proba[second])}
