"""Missing values: what fills them, which rows are left out, and what is said of them.

Which cells have no value is said by ``_cells``: those that are None or NaN, and those
that hold one of the tokens that mean it. What fills them is learned in fit and not
later; the schema of a model keeps it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import n_of
from shoal.io._notation import Notation
from shoal.io._settings import READING
from shoal.io.table._cells import is_text, numbers, row_number, words
from shoal.io.table._columns import Feature
from shoal.io.table._table import Message

if TYPE_CHECKING:
    from shoal.io.table._schema import Schema

Array = np.ndarray[Any, Any]

FILL_IN_FIT = "--impute median, or drop the rows (--impute drop)"
FILLED = "--impute drop leaves such rows out, --impute stop stops here"
OPEN = "--impute median fills them in, --impute drop leaves such rows out"
FILL = (
    "fill or remove the rows, or fit again with --impute median, which the model "
    "then keeps"
)
KEEP_GAPS = "fill them in, or fit again with --impute median, to keep them"


def with_fill(
    feature: Feature, series: pd.Series, written: Notation, how: str | None
) -> Feature:
    """The feature with what to put where a value is missing, learned from its cells."""
    if how not in ("median", "mean"):
        return feature
    if feature.kind == "category":
        cells = pd.Series(words(series, written.missing)).dropna()
        return replace(feature, fill=str(cells.mode().iloc[0]))
    values, _ = numbers(series, written)
    finite = values[np.isfinite(values)]
    middle = np.median if how == "median" else np.mean
    return replace(feature, fill=float(middle(finite)))


def fill(X: Array, schema: "Schema") -> None:
    """Put the stated values where a number is missing, in place."""
    start = 0
    for feature in schema.features:
        column = X[:, start]
        if feature.kind != "category" and feature.fill is not None:
            column[np.isnan(column)] = feature.fill
        start += feature.width


def lacking(frame: pd.DataFrame, schema: "Schema") -> Array:
    """Mask of the rows that lack a value which the schema needs."""
    schema.require([str(name) for name in frame.columns])
    found = np.zeros(len(frame), dtype=bool)
    if schema.text is not None:
        return found | pd.isna(words(frame[schema.text], schema.missing))
    for feature in schema.features:
        found |= gaps_of(feature, frame[feature.name], schema.notation)
    return found


def gaps_of(feature: Feature, series: pd.Series, written: Notation) -> Array:
    """Mask of the cells that have no value."""
    if feature.kind == "category":
        return np.asarray(pd.isna(words(series, written.missing)))
    values, wrong = numbers(series, written)
    return np.asarray(np.isnan(values) & ~wrong)


def filled_unasked(
    frame: pd.DataFrame, schema: "Schema", domains: Array | None, stop: InputError
) -> tuple["Schema", Message]:
    """A schema that fills a few gaps in, and what is said of them.

    Where the gaps are too many to be guessed at unasked, ``stop`` is raised, which
    counts them, with the reason.
    """
    gaps = _gaps_by_column(frame, schema)
    counts = _counts(gaps)
    for name in counts:
        reason = _too_many(gaps[name], domains)
        if reason:
            raise InputError(stop.code, f"{stop.text}; {name} {reason}", stop.hint)
    features = tuple(
        with_fill(one, frame[one.name], schema.notation, "median")
        for one in schema.features
    )
    what = "filled in with the median or commonest of the column"
    return replace(schema, features=features), _told(counts, what, FILLED)


def left_open(frame: pd.DataFrame, schema: "Schema") -> list[Message]:
    """What is said of the gaps that the model is to take as they are, if it is."""
    if not schema.keep_missing:
        return []
    counts = _counts(_gaps_by_column(frame, schema))
    return [_told(counts, "left open: the model takes gaps", OPEN)] if counts else []


def _gaps_by_column(frame: pd.DataFrame, schema: "Schema") -> dict[str, Array]:
    columns = schema.features
    return {one.name: gaps_of(one, frame[one.name], schema.notation) for one in columns}


def _counts(gaps: dict[str, Array]) -> dict[str, int]:
    return {name: int(mask.sum()) for name, mask in gaps.items() if mask.any()}


def _told(counts: dict[str, int], what: str, hint: str) -> Message:
    most = sorted(counts, key=lambda name: -counts[name])
    named = ", ".join(f"{name} {counts[name]:,}" for name in most[:3])
    more = ", ..." if len(most) > 3 else ""
    total = n_of(sum(counts.values()), "missing value")
    return Message("W149", f"{total} {what} ({named}{more})", hint)


def _too_many(gaps: Array, domains: Array | None) -> str:
    """Why the gaps of a column are not filled in unasked; empty if they may be."""
    if gaps.mean() > READING.most_filled:
        return f"lacks {gaps.mean():.0%} of its values"
    if domains is None:
        return ""
    codes = pd.factorize(domains)[0]
    sizes = np.bincount(codes)
    lost = np.bincount(codes, weights=gaps) == sizes
    n_lost = int((lost & (sizes >= READING.rows_without_any)).sum())
    return f"has no value at all in {n_of(n_lost, 'domain')}" if n_lost else ""


def count_filled(frame: pd.DataFrame | None, schema: Any) -> dict[str, int]:
    """Cells without a value that the schema fills in, by column that has some."""
    found: dict[str, int] = {}
    if frame is None or schema is None:
        return found
    for feature in schema.features:
        if feature.fill is None or feature.name not in frame:
            continue
        gaps = gaps_of(feature, frame[feature.name], schema.notation)
        found[feature.name] = int(gaps.sum())
    return {name: count for name, count in found.items() if count}


def legible(frame: pd.DataFrame | None, schema: Any) -> pd.DataFrame | None:
    """The rows as people read them: numbers written as text become numbers.

    A column of which some cells are ``-`` is text in a file with decimal commas, and
    the one beside it is not: side by side they would be written differently.
    """
    if frame is None or schema is None:
        return frame
    written = {
        one.name: numbers(frame[one.name], schema.notation)[0]
        for one in schema.features
        if one.kind == "number" and one.name in frame and is_text(frame[one.name])
    }
    return frame.assign(**written)


def complete_rows(frame: pd.DataFrame, schema: "Schema") -> tuple[Array, list[Message]]:
    """Which rows lack no value; W144 where some do, which fit left out too.

    All rows of a model that was not fitted with ``impute="drop"``.
    """
    if not schema.drop_incomplete:
        return np.ones(len(frame), dtype=bool), []
    gaps = lacking(frame, schema)
    if not gaps.any():
        return ~gaps, []
    first = row_number(frame.iloc[:, 0], gaps)
    text = f"rows with missing values are left out, as in fit (first: row {first})"
    return ~gaps, [Message("W144", text, KEEP_GAPS)]


def missing_values(
    X: Array, frame: pd.DataFrame, schema: "Schema", *, fitting: bool
) -> InputError:
    """E115: how many values are missing or infinite, and where."""
    features = schema.features
    starts = np.cumsum([0, *(feature.width for feature in features)])[:-1]
    first = X[:, starts]
    bad = np.isinf(first) if schema.keep_missing else ~np.isfinite(first)
    counts, rows = bad.sum(axis=0), np.asarray(bad.any(axis=1))
    worst = int(counts.argmax())
    column = features[int(np.argmax(bad[int(np.argmax(rows))]))].name
    kind = "infinite" if np.isinf(first).any() else "missing"
    hint = FILL_IN_FIT if fitting else FILL
    if kind == "infinite":
        hint = "clean the rows, or --na inf to count them as missing"
    return InputError(
        "E115",
        f"{n_of(int(counts.sum()), f'{kind} value')} in "
        f"{n_of(int((counts > 0).sum()), 'column')} (most: {features[worst].name}, "
        f"{int(counts[worst]):,}; first: row {row_number(frame.iloc[:, 0], rows)}, "
        f"{column})",
        hint,
    )
