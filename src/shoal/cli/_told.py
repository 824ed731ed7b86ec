"""``--known``: classes that somebody knows of some rows, for a fit to use."""

from typing import TYPE_CHECKING, Any

from shoal.cli._messages import CommandError
from shoal.io._options import ReadOptions

if TYPE_CHECKING:
    from shoal.io import Table


def refuse_clash_of_known(known: str | None, source: ReadOptions) -> None:
    """Raise E002 for a column of known classes that is something else as well."""
    named = {role: getattr(source, role) for role in ("domain", "id", "label", "group")}
    named["text"] = source.text
    for role, column in named.items():
        if known is not None and column == known:
            text = f'"{known}" is named by --known and by --{role}'
            raise CommandError("E002", text, "a column is one or the other: copy it")
    if known is not None and known in (source.features or ()):
        text = f'"{known}" is named by --known and by --features'
        raise CommandError("E002", text, "take it out of --features")


def refuse_known_in_parts(known: str | None) -> None:
    """Raise E002 for known classes of data that are read in parts."""
    if known is not None:
        text = "--known is for rows in memory, not for data read in parts"
        raise CommandError("E002", text, "add --engine memory, or leave it out")


def told(table: "Table", estimator: Any) -> dict[str, Any]:
    """What ``fit`` of an estimator is told beside the rows of a table."""
    if table.known is None:
        return {}
    if not hasattr(estimator, "_known_of"):
        text = "--known is for columns of numbers and categories, not for words"
        raise CommandError("E002", text, "leave it out")
    return {"labels": table.known}


def n_known(table: "Table") -> int:
    """Number of classes that are known of some row."""
    if table.known is None:
        return 0
    return len({name for name in table.known if name is not None})


def at_least(k: int | None, table: "Table") -> int | None:
    """A number of classes that was chosen, or as many as are known."""
    return None if k is None else max(k, n_known(table))


def refuse_too_many(k: int | None, table: "Table") -> None:
    """Raise E112 for more classes than domains, or known rows, can tell apart."""
    import numpy as np

    n_domains = len(np.unique(np.asarray(table.domains)))
    if k is not None and k > max(n_domains, n_known(table)):
        text = f"{k} classes cannot be separated with {n_domains} domains"
        hint = f"use --k {n_domains} or less, a finer domain column, or --by looks"
        raise CommandError("E112", text, hint)
