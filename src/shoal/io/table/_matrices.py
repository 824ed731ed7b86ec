"""Matrices as a model takes them: columns by name, finite, counts where it counts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.exceptions import InputError, ModelFileError
from shoal.io._files import join
from shoal.io.source._format import is_sparse

Array = np.ndarray[Any, Any]


def columns_by_name(matrix: Any, known: Sequence[str], wanted: Sequence[str]) -> Any:
    """The columns that a model wants, of a matrix whose columns have names.

    E133 where one is absent, E107 where a name does not say which column is meant.
    Further columns are left out.
    """
    if tuple(known) == tuple(wanted):
        return matrix
    refuse_absent(wanted, known)
    copies = _repeated(wanted) | _repeated(known)
    unclear = [name for name in dict.fromkeys(wanted) if name in copies]
    if unclear:
        raise InputError(
            "E107",
            f"several columns are called {join(unclear)}, here or in fit, and "
            "the columns are not just those of fit in their order",
            "make the names unique before fit and here",
        )
    place = {name: index for index, name in enumerate(known)}
    return _columns_at(matrix, np.array([place[name] for name in wanted]))


def refuse_absent(needed: Sequence[str], known: Sequence[str]) -> None:
    """Raise E133 unless all columns that are needed are known."""
    there = set(known)
    absent = [name for name in needed if name not in there]
    if absent:
        more = f" (and {len(absent) - 1} more)" * (len(absent) > 1)
        raise ModelFileError(
            "E133",
            f'model needs the column "{absent[0]}"{more}; extra columns are '
            "ignored, order does not matter",
            "supply it, or refit without it",
        )


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _columns_at(matrix: Any, places: Array) -> Any:
    """Some columns, laid out in memory as if they had been read in this order.

    Sums then have one order, and results are the same to the last bit.
    """
    if not is_sparse(matrix):
        return np.take(matrix, places, axis=1)
    chosen = matrix[:, places]
    chosen.sort_indices()
    return chosen


def check_counts(X: Any, names: Sequence[str] | None, index: Any) -> None:
    """Raise E130 unless all of X is whole numbers from 0."""
    values = X.data if is_sparse(X) else X
    wrong = (values < 0) | (values % 1 != 0)
    if not wrong.any():
        return
    where = ""
    if names is not None:
        row, column = np.argwhere(wrong)[0]
        where = f' (first: row {int(index[row]) + 1}, "{names[column]}")'
    value = values[wrong].flat[0]
    what = "negative" if value < 0 else "fractional"
    raise InputError(
        "E130",
        f"--counts given but values are {what}, such as {value:g}{where}",
        "name the raw layer: --layer counts, or leave --counts out",
    )


def check_finite(X: Any) -> None:
    """Raise E115 unless all of X is finite."""
    values = X.data if is_sparse(X) else X
    bad = ~np.isfinite(values)
    if bad.any():
        where = "" if is_sparse(X) else (
            f" (first: row {int(np.argwhere(bad)[0][0]) + 1}, column "
            f"{int(np.argwhere(bad)[0][1]) + 1})"
        )  # fmt: skip
        raise InputError(
            "E115",
            f"{int(bad.sum()):,} missing or infinite values{where}",
            "fill or drop them before saving the array",
        )
