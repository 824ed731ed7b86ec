"""Columns that are nearly numbers: what keeps them from it, and what to do about it.

All columns of a table are named in one message, so that one more call is enough.
"""

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join, n_of
from shoal.io._notation import COMMA, POINT, THOUSANDS, Notation
from shoal.io._settings import READING
from shoal.io.table._cells import comma_decimals, row_number, spelling

Array = np.ndarray[Any, Any]

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


def words_among_numbers(mixed: list[Mixed]) -> InputError:
    """E119 for words in columns of numbers, of all of them at once."""
    told = [one.described for one in mixed[:SHOWN]]
    more = f" and {n_of(len(mixed) - SHOWN, 'more column')}" * (len(mixed) > SHOWN)
    cells = list(dict.fromkeys(cell for one in mixed for cell in one.words))
    # a cell that is not shown as it is could not be named so
    tellable = len(cells) <= SHOWN and all(cell == short(cell) for cell in cells)
    named = " ".join(f"--na {shlex.quote(cell)}" for cell in cells)
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


def short(cell: Any, most: int = 30) -> str:
    text = " ".join(str(cell).split())
    return text if len(text) <= most else text[: most - 3] + "..."
