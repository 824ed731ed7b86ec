"""How cells are written: numbers and gaps in a table, names where they are shown.

Nothing here needs pandas.

Half of the world writes 3,5 and half 3.5. Which of them a table means is told, or seen
in its cells; 1,234 alone is no evidence, for it may be a thousand.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from shoal.io._settings import READING

#: Cells of a text file, and text in any table, that mean "no value".
MISSING = ("", "NA", "NaN", "nan", "null", "NULL", "<NA>")
#: Words that mean "no value" where a column is otherwise numbers; elsewhere they may be
#: a value like any other. What may mean "too little to measure" (n.d.) is not here.
GAPS = (
    "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "?", "n/a", "N/A", "n.a.",
    "N.A.", "na", "Na", "#N/A", "#NV", "k.A.", "none", "None", "NONE", "nil", "missing",
    "Missing",
)  # fmt: skip

COMMA = re.compile(r"[-+]?\d+,\d+([eE][-+]?\d+)?")
POINT = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")
# A thousand does not begin with a zero.
THOUSANDS = {
    ".": re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"),
    ",": re.compile(r"[-+]?[1-9]\d{0,2}(\.\d{3})+(,\d+)?"),
}


@dataclass(frozen=True)
class Notation:
    """How numbers and gaps are written.

    Attributes
    ----------
    missing : tuple of str
        Cells without a value, in every column.
    gaps : tuple of str
        Further ones, among numbers only.
    decimal : {".", ","}
    """

    missing: tuple[str, ...] = MISSING
    gaps: tuple[str, ...] = GAPS
    decimal: str = "."

    @property
    def empty(self) -> tuple[str, ...]:
        """All cells that are no number and need not be one."""
        return (*self.missing, *self.gaps)

    def plain(self, cell: str) -> str:
        """The cell as Python writes numbers; what could mean two things is no number.

        >>> of_europe = Notation(decimal=",")
        >>> [of_europe.plain(cell) for cell in ("3,5", "3.5", "12", "1.234")]
        ['3.5', '3.5', '12', '']
        """
        if self.decimal == ".":
            return cell
        if COMMA.fullmatch(cell):
            return cell.replace(",", ".")
        return "" if "," in cell or THOUSANDS[","].fullmatch(cell) else cell


def has_commas(cells: Iterable[str], *, few: bool) -> bool:
    """Whether the different cells of a column are numbers with decimal commas.

    Words among them do not matter, as long as there are more numbers.

    Parameters
    ----------
    cells : iterable of str
        Without those that mean "no value".
    few : bool
        Whether a few different values are enough: 1,2 and 1,3 may also be two choices
        among many, unless the table separates its cells by something else than commas.

    >>> has_commas(["3,5", "4", "12,25", "broken"], few=True)
    True
    >>> has_commas(["1,234", "12,000"], few=True)  # thousands, or three decimals
    False
    """
    found = list(cells)
    commas = [cell for cell in found if COMMA.fullmatch(cell)]
    numbers = len(commas) + sum(WHOLE.fullmatch(cell) is not None for cell in found)
    return (
        any(THOUSANDS["."].fullmatch(cell) is None for cell in commas)
        and not any(POINT.fullmatch(cell) for cell in found)
        and 2 * numbers > len(found)
        and (few or numbers > READING.most_grades)
    )


# ---- names and cells as they are shown -----------------------------------------------
# Files name columns, domains and rows, and a name can hold anything: an escape sequence
# that a terminal obeys, a newline that begins another line of a table, a formula that a
# spreadsheet runs. Every name goes through here on its way to a terminal, a page, a CSV
# file or the card of a model.

# Control characters, halves of characters, and what turns the direction of a line: all
# that a reader cannot see and that does something.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# A cell that begins so is a formula to spreadsheets, unless it is a number. The quotes
# are those of an earlier escape, so that each escape can be undone.
FORMULA = re.compile(r"'*[=+\-@＝＋－＠]")
# Where lists are separated by semicolons, text after one is a cell of its own.
INNER = re.compile(r";(?='*[=+\-@＝＋－＠])")
INNER_ESCAPED = re.compile(r";'(?='*[=+\-@＝＋－＠])")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?%?")

# Shares are computed to about so many decimals; of smaller ones all digits are kept.
DIGITS, LEAST_SHARE = 15, 1e-3


def visible(text: str, *, lines: bool = False) -> str:
    r"""Text with its control characters spelled out, as JSON spells them.

    Parameters
    ----------
    text : str
    lines : bool, default=False
        Whether ends of lines and tabs are meant, and stay.

    Examples
    --------
    >>> print(visible("a\x1b[31m\nb"))
    a\u001b[31m\nb
    """

    def spelled(found: re.Match[str]) -> str:
        one = found[0]
        if lines and one in "\n\t":
            return one
        return SHORT.get(one) or f"\\u{ord(one):04x}"

    return UNSEEN.sub(spelled, text)


def is_utf8(text: str) -> bool:
    r"""Whether text can be written: bytes of a command line that are not UTF-8 cannot.

    >>> is_utf8("Ängby"), is_utf8("\udcff")
    (True, False)
    """
    return not any("\ud800" <= one <= "\udfff" for one in text)


def cell(value: Any) -> Any:
    """A value as a cell of a CSV file; only text changes.

    A quote before it keeps a spreadsheet from taking text for a formula, also one that
    splits at semicolons.

    >>> cell("=1+1"), cell("-5"), cell(-5.0), cell("north"), cell("a;=1")
    ("'=1+1", '-5', -5.0, 'north', "a;'=1")
    """
    if not isinstance(value, str):
        return value
    text = INNER.sub(";'", visible(value))
    is_formula = FORMULA.match(text) and not NUMBER.fullmatch(text)
    return f"'{text}" if is_formula else text


def uncell(text: str) -> str:
    """The text of a cell, without the quotes that :func:`cell` put into it.

    >>> uncell(cell("=1+1")), uncell("'tis"), uncell(cell("a;=1"))
    ('=1+1', "'tis", 'a;=1')
    """
    text = INNER_ESCAPED.sub(";", text)
    return text[1:] if text[:1] == "'" and FORMULA.match(text) else text


def neat(value: Any) -> Any:
    """A share without the digits that are only rounding error; others as they are.

    >>> neat(1 - 0.535), neat(1e-20), neat(-5), neat("a")
    (0.465, 1e-20, -5, 'a')
    """
    is_share = isinstance(value, float) and LEAST_SHARE <= abs(value) <= 1
    return round(value, DIGITS) if is_share else value


def write_rows(
    file: TextIO, rows: Iterable[Sequence[Any]], *, plain: bool = False
) -> None:
    """Rows as CSV; ``plain`` leaves their text as it is."""
    writer = csv.writer(file, lineterminator="\n")
    for row in rows:
        writer.writerow([neat(one if plain else cell(one)) for one in row])
