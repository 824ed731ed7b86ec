"""How much the page takes and shows: each with a reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PageSettings:
    """Limits of the page.

    Attributes
    ----------
    max_mb : int
        Larger files are refused by name: they take minutes to fit and belong to
        ``shoal fit``, which reads in parts.
    preview_rows, preview_columns : int
        Of the table that people recognize theirs by.
    values : int
        Values of a column that are named, so that people know which one it is.
    seconds_to_end : float
        A cancelled fit may put its files away for so long.
    name_letters : int
        Longer file names are cut.
    """

    max_mb: int = 200
    preview_rows: int = 6
    preview_columns: int = 30
    values: int = 4
    seconds_to_end: float = 5.0
    name_letters: int = 80


PAGE = PageSettings()
