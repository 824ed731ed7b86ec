"""How a table writes its numbers and its gaps; nothing here needs pandas.

Half of the world writes 3,5 and half 3.5. Which of them a table means is told, or seen
in its cells; 1,234 alone is no evidence, for it may be a thousand.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

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
