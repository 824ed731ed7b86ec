"""Names that somebody mistyped, and lists of names in a sentence."""

import difflib
import shlex
from collections.abc import Iterable, Sequence

from shoal.exceptions import InputError

__all__ = ["join", "n_of", "nearest", "quoted", "require_columns"]


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like ``name``, whatever its case; None if none is close.

    >>> nearest("Iland", ["species", "island"])
    'island'
    """
    by_case = {str(other).casefold(): str(other) for other in known}
    close = difflib.get_close_matches(name.casefold(), list(by_case), n=1, cutoff=0.6)
    return by_case[close[0]] if close else None


def quoted(name: object) -> str:
    """A name as a command line takes it: in quotes where it needs them.

    >>> quoted("observer notes")
    "'observer notes'"
    """
    text = str(name)
    # an option splits names at commas, unless quotes of its own hold them together
    return shlex.quote(f'"{text}"' if "," in text else text)


def join(names: Sequence[object], most: int = 5) -> str:
    """The first names, separated by commas, and how many are left.

    >>> join(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = ", ".join(str(name) for name in names[:most])
    return shown + f" and {len(names) - most} more" * (len(names) > most)


def n_of(count: int, thing: str) -> str:
    """A number of things, as people say it.

    >>> n_of(1, "row"), n_of(2_000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{count:,} {thing}{'s' * (count != 1)}"


def require_columns(names: Iterable[str], known: Sequence[str], option: str) -> None:
    """Raise E107 for the first name that is not a column."""
    for name in names:
        if name not in known:
            close = nearest(str(name), known)
            hint = f'nearest: "{close}"' if close else f"columns: {join(known, 8)}"
            raise InputError("E107", f'no column "{name}" ({option})', hint)
