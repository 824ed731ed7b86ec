r"""Names and cells as they are shown: nothing acts on a terminal, nothing computes.

Files name columns, domains and rows, and a name can hold anything: an escape sequence
that a terminal obeys, a newline that begins another line of a table, a formula that a
spreadsheet runs. Every name goes through here on its way to a terminal, a page, a CSV
file or the card of a model.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

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


def is_text(text: str) -> bool:
    r"""Whether text can be written: bytes of a command line that are not UTF-8 cannot.

    >>> is_text("Ängby"), is_text("\udcff")
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
