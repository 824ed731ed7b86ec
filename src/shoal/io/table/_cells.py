"""Cells of a column as numbers and as words, and what is nearly a number.

There is one notion of "missing". Rows in messages are counted from 1, the header left
out, as the source has them.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join, n_of, quoted
from shoal.io._notation import COMMA, POINT, THOUSANDS, Notation
from shoal.io._settings import READING

Array = np.ndarray[Any, Any]

#: Cells are what they are: no word means "no value".
EXACTLY = Notation(missing=(), gaps=())

DATE = (
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}([T ]\d{2}:\d{2}.*)?"  # 2024-05-31
    r"|\d{1,2}([-/.])\d{1,2}\3\d{4}"  # 31.05.2024
)
#: Numbers in a form that only people read, and the pattern of each.
SPELLINGS = {
    "thousands separators": r"[-+]?\d{1,3}((,\d{3})+(\.\d+)?|(\.\d{3})+(,\d+)?)",
    "percent signs": r"[-+]?\d+([.,]\d+)? ?%",
}
WHOLE = re.compile(r"[-+]?\d+")
# Whole numbers of at most so many digits are finite floats.
LONGEST = 308


def is_number(series: pd.Series) -> bool:
    """Whether the column is stored as numbers or as true and false."""
    return bool(pd.api.types.is_numeric_dtype(series.dtype)) and not (
        pd.api.types.is_complex_dtype(series.dtype)
    )


def is_text(series: pd.Series) -> bool:
    """Whether the column is stored as words, categories or Python objects."""
    kinds = (pd.api.types.is_object_dtype, pd.api.types.is_string_dtype)
    return isinstance(series.dtype, pd.CategoricalDtype) or any(
        kind(series.dtype) for kind in kinds
    )


def stripped(series: pd.Series) -> pd.Series:
    """Text without the blanks around it; what is no text stays as it is.

    >>> stripped(pd.Series(["Site 0 ", "Site 0", " "])).tolist()
    ['Site 0', 'Site 0', '']
    """
    if isinstance(series.dtype, pd.CategoricalDtype):  # few values, many rows
        values = series.cat.categories.to_series()
        if not is_text(values):
            return series
        known = np.array([*stripped(values), None], dtype=object)
        cells: Any = known[series.cat.codes]  # the last one, of code -1, is no value
    elif isinstance(series.dtype, pd.StringDtype):
        return series.str.strip()
    elif is_text(series):
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in series]
    else:
        return series
    return pd.Series(cells, index=series.index, dtype=object, name=series.name)


def numbers(series: pd.Series, written: Notation = EXACTLY) -> tuple[Array, Array]:
    """Cells as numbers, NaN where there is none, and a mask of those that are neither.

    >>> cells = pd.Series(["1", "3,5", "-", "broken"])
    >>> values, wrong = numbers(cells, Notation(decimal=","))
    >>> values, wrong
    (array([1. , 3.5, nan, nan]), array([False, False, False,  True]))
    """
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        moments = pd.to_datetime(series, utc=True).dt.tz_localize(None)
        since = moments.to_numpy("datetime64[us]") - np.datetime64(0, "us")
        return since / np.timedelta64(1, "s"), np.zeros(len(series), dtype=bool)
    if is_number(series):
        values = series.to_numpy(dtype=float, na_value=np.nan)
        wrong = np.zeros(len(values), dtype=bool)
    else:
        series = stripped(series)
        empty = _empty(series, written.empty)
        cells = series.astype(object).where(~empty)
        if written.decimal != ".":
            cells = _with_points(cells, written)
        values = _parsed(cells)
        wrong = np.isnan(values) & ~empty
    if tokens := sentinels(written.missing):
        values = np.where(np.isin(values, tokens), np.nan, values)
    return values, wrong


def _with_points(cells: pd.Series, written: Notation) -> pd.Series:
    """Text as Python writes numbers, whatever else there is as it is."""
    codes, values = pd.factorize(cells)  # many are alike
    plain = [written.plain(one) if isinstance(one, str) else one for one in values]
    known = np.array([*plain, None], dtype=object)
    return pd.Series(known[codes], index=cells.index, dtype=object)


def _parsed(cells: pd.Series) -> Array:
    """Cells as floats, NaN for what is no number.

    Whole numbers of hundreds of digits are infinite as floats; pandas stops at them, or
    takes them for text.
    """
    try:
        found = pd.to_numeric(cells, errors="coerce")
    except OverflowError:
        found = pd.to_numeric(cells.map(_bounded), errors="coerce")
    values = np.array(found.to_numpy(dtype=np.float64, na_value=np.nan))
    lost = np.flatnonzero(np.isnan(values))
    bounded = (_bounded(cell) for cell in cells.iloc[lost])
    values[lost] = [one if isinstance(one, float) else np.nan for one in bounded]
    return values


def _bounded(cell: Any) -> Any:
    """Infinity for a whole number too large for a float; other cells as they are."""
    if isinstance(cell, str) and len(cell) > LONGEST and WHOLE.fullmatch(cell):
        return float(cell)
    if isinstance(cell, int) and abs(cell) > sys.float_info.max:
        return float("inf") if cell > 0 else float("-inf")
    return cell


def words(series: pd.Series, missing: Sequence[str] = ()) -> Array:
    """Cells as text, None where there is no value.

    Whole numbers stored as floats, which is what missing values make of them, lose
    their ".0"; text loses the blanks around it.

    >>> words(pd.Series(["a ", "NA", None]), ["NA"]).tolist()
    ['a', None, None]
    """
    series = stripped(series)
    empty = _empty(series, missing)
    if pd.api.types.is_float_dtype(series.dtype):
        if whole(series[~empty].to_numpy(float)):
            series = series.astype("Int64")
    if isinstance(series.dtype, pd.StringDtype):  # text already: nothing to convert
        text: Any = series.astype(object).to_numpy(copy=True)
        text[empty] = None
        return text
    values = series.astype(object).where(~empty, None).to_numpy(dtype=object)
    converted = [value if value is None else str(value) for value in values]
    return np.array(converted, dtype=object)


def whole(values: Array) -> bool:
    """Whether all of some numbers are whole; infinity is not."""
    return bool((np.isfinite(values) & (np.round(values) == values)).all())


def check_flat(name: str, series: pd.Series) -> None:
    """Raise E124 for a column whose cells are lists or tables of their own."""
    if not pd.api.types.is_object_dtype(series.dtype):
        return
    first = next((value for value in series if value is not None), None)
    if isinstance(first, (list, tuple, dict, set, np.ndarray)):
        raise InputError(
            "E124",
            f'column "{name}" holds a {type(first).__name__} in each cell',
            f"write one column per number (or an npy file), or --drop {quoted(name)}",
        )


def row_number(series: pd.Series, mask: Array) -> int:
    """The first marked row, as people count."""
    return int(series.index[int(np.argmax(mask))]) + 1


def looks_like_dates(text: Array) -> bool:
    """Whether all of the first cells read like 2024-05-31 or 31.05.2024."""
    return _all_match(DATE, text)


def comma_decimals(text: Array) -> bool:
    """Whether all of the first cells read like 3,5."""
    return _all_match(COMMA.pattern, text)


def spelling(text: Array) -> str | None:
    """What all of the first cells have that keeps them from being numbers.

    >>> spelling(np.array(["1,234.5", "12,000"], dtype=object))
    'thousands separators'
    """
    found = (name for name, one in SPELLINGS.items() if _all_match(one, text))
    return next(found, None)


def _all_match(pattern: str, text: Array) -> bool:
    look = text[: READING.look_rows]
    return len(look) > 0 and all(re.fullmatch(pattern, cell) for cell in look)


def _empty(series: pd.Series, missing: Sequence[str]) -> Array:
    """Cells without a value: None, NaN, and the words that mean it."""
    empty = series.isna().to_numpy()
    if is_text(series) and missing:
        tokens = {*missing, *(token.strip() for token in missing)}
        empty = empty | series.isin(list(tokens)).to_numpy()
    return np.asarray(empty)


def sentinels(missing: Sequence[str]) -> list[float]:
    """Numbers that mean "no value", such as -999.

    >>> sentinels(["NA", "-999", "nan"])
    [-999.0]
    """
    return list(_sentinels(tuple(missing)))


@lru_cache  # every column asks
def _sentinels(missing: tuple[str, ...]) -> tuple[float, ...]:
    found = pd.to_numeric(pd.Series(list(missing), dtype=object), errors="coerce")
    return tuple(float(number) for number in found.dropna())


# ---- columns that are nearly numbers: what keeps them from it ------------------------

#: So many columns, or words among their numbers, are named in one message.
SHOWN = 4


@dataclass(frozen=True, eq=False)
class Mixed:
    """A column of numbers with words among them."""

    name: str
    series: pd.Series
    text: Array
    wrong: Array

    @property
    def words(self) -> list[str]:
        """Each of them once."""
        return [str(cell) for cell in pd.unique(self.text[self.wrong])]

    @property
    def described(self) -> str:
        """Where they are: "mass" is a number except rows 3, 9 ("broken")."""
        rows = (self.series.index[self.wrong][:3] + 1).tolist()
        more = int(self.wrong.sum()) - len(rows)
        shown = join([f'"{short(cell)}"' for cell in self.words], SHOWN)
        return (
            f'"{self.name}" is a number except row{"s" * (len(rows) > 1)} '
            f"{', '.join(map(str, rows))}{f' and {more} more' * (more > 0)} ({shown})"
        )


def is_mixed(found: Array, wrong: Array) -> bool:
    """Numbers with some text between them, rather than grades such as 1, 2, A, B."""
    n_values, n_words = len(pd.unique(found)), len(pd.unique(wrong))
    grades = n_values <= READING.most_grades
    if len(wrong) <= len(found) / 2:
        return not grades or n_words == 1
    # a word that most rows have, and many numbers: a gap that nobody told us of
    return not grades and n_words <= READING.words_among_numbers * (n_values - n_words)


def is_spelled(text: Array, found: Array, wrong: Array) -> bool:
    """Numbers as 3,5 or 1,234 or 3 %; few different ones such as 10 % are grades."""
    if comma_decimals(found):
        return True
    return len(pd.unique(found)) > READING.most_grades and bool(spelling(text[wrong]))


def spelled(
    name: str, series: pd.Series, text: Array, wrong: Array, commas: bool
) -> InputError:
    """E119 for numbers that are written in a way that may mean two things."""
    first, cell = row_number(series, wrong), short(text[int(np.argmax(wrong))])
    spelled = spelling(text[wrong])
    what = spelled or "decimal commas"
    hint = f"write {_plain(cell)} instead of {cell}"
    if commas:
        hint = f"--decimal , if that is {_with_point(cell)}, or {hint}"
    return InputError("E119", f'"{name}" has {what} (row {first}: "{cell}")', hint)


def words_among_numbers(mixed: list[Mixed], impute: str | None) -> InputError:
    """E119 for words in columns of numbers, of all of them at once.

    Where they are too many to be filled in unasked, the hint asks for that as well.
    """
    told = [one.described for one in mixed[:SHOWN]]
    more = f" and {n_of(len(mixed) - SHOWN, 'more column')}" * (len(mixed) > SHOWN)
    cells = list(dict.fromkeys(cell for one in mixed for cell in one.words))
    # a cell that is not shown as it is could not be named so
    tellable = len(cells) <= SHOWN and all(cell == short(cell) for cell in cells)
    named = " ".join(f"--na {shlex.quote(cell)}" for cell in cells)
    lacks = max((one.wrong | pd.isna(one.text)).mean() for one in mixed)
    if impute is None and lacks > READING.most_filled:
        named += " --impute median"
    hint = f"{named} or clean the rows" if tellable else "clean the rows"
    return InputError("E119", "; ".join(told) + more, hint)


def _plain(cell: str) -> str:
    """1,234.5 and 1.234,5 as 1234.5, 3,2% as 3.2; 1,234 is one of two numbers."""
    if cell.endswith("%"):
        return _with_point(cell)
    for decimal, other in ((".", ","), (",", ".")):
        if THOUSANDS[decimal].fullmatch(cell):
            whole = cell.replace(other, "").replace(decimal, ".")
            return whole if decimal in cell else f"{whole} or {_with_point(cell)}"
    return _with_point(cell)


def _with_point(cell: str) -> str:
    return cell.rstrip("% ").replace(",", ".")


def not_a_number(
    name: str, series: pd.Series, wrong: Array, written: Notation
) -> InputError:
    cell = str(series[wrong].iloc[0])
    other = "," if written.decimal == "." else "."
    hint = f"--na {shlex.quote(cell)} or clean the rows"
    if (COMMA if other == "," else POINT).fullmatch(cell.strip()):
        hint = f"--decimal {other} if that is a number, or clean the rows"
    return InputError(
        "E119",
        f'"{name}" was a number in fit; row {row_number(series, wrong)} holds "{cell}"',
        hint,
    )


def short(cell: Any) -> str:
    """A cell on one line of at most 30 characters."""
    text = " ".join(str(cell).split())
    return text if len(text) <= 30 else text[:27] + "..."
