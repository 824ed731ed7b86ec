"""What is given beside rows and domains, and what is no array of numbers or names."""

import math
import numbers
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

Array = np.ndarray[Any, Any]

# ---- settings: numbers, choices, switches, threads and seeds -------------------------


def check_whole(least: int, **given: Any) -> None:
    """Refuse settings, given by name, that are not whole numbers from ``least``."""
    for name, value in given.items():
        if not is_whole(value) or value < least:
            raise ValueError(
                f"{name} must be a whole number from {least}, got {value!r}"
            )


def check_choice(allowed: Iterable[str], **given: Any) -> None:
    """Refuse settings, given by name, that are none of the ``allowed`` ones."""
    known = list(allowed)
    for name, value in given.items():
        if not isinstance(value, str) or value not in known:
            listed = ", ".join(map(repr, known))
            raise ValueError(f"{name} must be one of {listed}, got {value!r}")


def check_real(
    least: float, most: float = np.inf, *, above: bool = False, **given: Any
) -> None:
    """Refuse settings, given by name, that are not finite numbers of a range.

    With ``above``, ``least`` itself is refused too.
    """
    expected = f"{'above' if above else 'from'} {least:g}"
    if np.isfinite(most):
        expected += f", {most:g} at most" if above else f" to {most:g}"
    for name, value in given.items():
        number = as_number(value)
        inside = number is not None and least <= number <= most
        if not inside or (above and number == least):
            raise ValueError(f"{name} must be a number {expected}, got {value!r}")


def as_number(value: Any) -> float | None:
    """A finite number, also from an array without axes; None for all else."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def is_whole(value: Any) -> bool:
    """Tell whether ``value`` is an integer (bool and float are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_flag(**given: Any) -> None:
    """Refuse switches, given by name, that are neither True nor False."""
    for name, value in given.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} must be True or False, got {shown(value)}")


def check_work(settings: dict[str, Any]) -> None:
    """Refuse an ``n_jobs`` or a ``random_state`` that is none, where there is one."""
    n_jobs, seed = settings.get("n_jobs"), settings.get("random_state")
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be None or a whole number but 0 (-1: all cores), got "
            f"{shown(n_jobs)}"
        )
    try:
        check_random_state(seed)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, a whole number from 0 to 2**32 - 1 or a "
            f"numpy RandomState, got {shown(seed)}"
        ) from error


# What numpy says of tables that it cannot turn into numbers.
NOT_NUMBERS = (
    "could not convert string",
    "argument must be",
    "could not be promoted",
    "setting an array element",
    "signaling NaN",
    "too large to convert",
)

# ---- kinds of things -----------------------------------------------------------------


def taken_in(value: Any, name: str) -> Any:
    """The value of the argument ``name``, if an array can be made of it.

    Raises
    ------
    TypeError
        For what is no array, nor a list of values: a generator, a dict, a set, the name
        of a file, a lazy table, a tensor with a gradient.
    ValueError
        For masked values, and for sparse rows that point outside of their matrix.
    """
    if sparse.issparse(value):
        return _sound(value, name)
    reason = _no_array(value, name)
    if reason is not None:
        raise TypeError(f"{name} is {reason}")
    if np.ma.isMaskedArray(value):
        return _unmasked(value, name)
    return value


def _no_array(value: Any, name: str) -> str | None:
    """What the value is, and what to pass instead; None if it may be an array."""
    kind = type(value).__name__
    if isinstance(value, (str, bytes, bytearray, os.PathLike)):
        return f"the text {shown(value)}; read the file first (pandas.read_csv)"
    if isinstance(value, Mapping):
        return f"a {kind}; pass a DataFrame, or a list of its values"
    if isinstance(value, Set):
        return f"a {kind}, which has no order; pass a list"
    if isinstance(value, Iterator):
        return f"a {kind}, which can be read only once; pass list({name})"
    if hasattr(value, "collect_schema") and not hasattr(value, "to_numpy"):
        return f"a {kind}, which holds no rows yet; pass {name}.collect()"
    if getattr(value, "requires_grad", False) is True:
        return f"a {kind} with a gradient; pass {name}.detach().numpy()"
    if isinstance(value, type) or callable(value):
        return f"a {kind}, {shown(value)}; pass an array"
    return None


def _unmasked(value: Any, name: str) -> Array:
    masked = np.ma.getmaskarray(value)
    if masked.any():
        row = int(np.argwhere(masked)[0][0])
        raise ValueError(
            f"{name} has {int(masked.sum())} masked values (first in row {row}); fill "
            f"them in ({name}.filled(...)) or drop those rows"
        )
    return np.asarray(value.data)


def _sound(value: Any, name: str) -> Any:
    """A sparse matrix whose indices lie inside it, of 32 bits where these will do.

    Those of a CSR matrix are not looked at by scipy: a product with one that points
    outside reads foreign memory, or ends the process.
    """
    try:
        if value.format in ("csr", "csc", "bsr"):
            value.check_format(full_check=True)
        rows = value.tocsr()
        rows.check_format(full_check=True)
    except Exception as error:
        raise ValueError(
            f"{name} is a sparse matrix that is not sound: {first_line(error)}; make "
            "it anew from rows, columns and values"
        ) from error
    largest = np.iinfo(np.int32).max
    if rows.indices.dtype == np.int64 and max(rows.nnz, *rows.shape) < largest:
        small = (rows.data, *(x.astype(np.int32) for x in (rows.indices, rows.indptr)))
        return type(rows)(small, shape=rows.shape)
    return value


def shown(value: Any) -> str:
    """A short text of any value, also of one that will not be shown."""
    try:
        return first_line(reprlib.repr(value))
    except Exception:
        return f"<{type(value).__name__}>"


def first_line(said: Any) -> str:
    """What an error says, without its later lines."""
    return str(said).strip().partition("\n")[0].rstrip(" .;:")


# ---- why a table is refused ----------------------------------------------------------


def explain(X: Any, error: Exception) -> str:
    """One line instead of what scikit-learn or numpy said of a table.

    Their own words stay where scikit-learn's checks look for them.
    """
    said = str(error)
    if said.startswith(("Expected 2D array", "Expected a 2-dimensional")):
        return (
            f"X must have two dimensions, got shape {np.shape(X)}. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if said.startswith("Found array"):  # with no rows, no columns, three dimensions
        return f"X: {said.rstrip('.')}; pass a table (n_samples, n_features)"
    if said.startswith("Complex data"):
        return (
            "Complex data not supported: X must be real; pass real and imaginary "
            "parts as columns"
        )
    if "inhomogeneous shape" in said:
        return "X has rows of different lengths; give every row all columns"
    if any(sign in said for sign in NOT_NUMBERS):
        return _locate_value(X)
    if said.startswith("Feature names"):
        said = first_line(said.partition(", but")[0])
        return f"X: {said}; pass X.rename(columns=str)"
    if said.startswith(("X has ", "The feature names should match")):
        return said  # as scikit-learn's checks want it, line by line
    return f"X cannot be read as a table of numbers: {' '.join(said.split())}"


# For tables with names, whose words the reader of files knows how to encode.
READ = (
    ": table = shoal.io.read(X, domain=domains), then fit(table.X, table.domains), "
    "does as `shoal fit` does"
)


def _locate_value(X: Any) -> str:
    """Say which entry is not a number."""
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        kind = type(X).__name__
        return f"X must be a table (n_samples, n_features) of numbers, got a {kind}"
    for index in np.ndindex(*table.shape):
        value = table[index]
        if value is None:  # counts as missing, and is found later
            continue
        place = f"column {column_name(X, index[1])} (row {index[0]}"
        fix = "encode it as numbers or drop it"
        try:
            float(value)
        except TypeError:
            return (
                f"X has a {type(value).__name__} in {place}: {shown(value)}), "
                f"and the argument must be a string of digits or a number; {fix}"
            )
        except ValueError:
            if isinstance(value, (str, bytes)):
                told = f"X has text in {place}: {shown(value)}); {fix}"
                return told + READ if column_names(X) else told
            return f"X has no number in {place}: {shown(value)}); {fix}"
        except OverflowError:
            return f"X has a number too large in {place}: {shown(value)}); rescale it"
        except Exception as error:
            return f"X has no number in {place}: {first_line(error)}); {fix}"
    return "X has text; encode it as numbers or drop it"


def column_names(X: Any) -> list[Any]:
    """Names of a table's columns, none of an array's; the columns of Arrow are data."""
    arrow = not hasattr(X, "iloc") and hasattr(X, "column_names")
    columns = X.column_names if arrow else getattr(X, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)


def column_name(X: Any, index: int) -> str:
    """A column as messages call it: by name, or by number."""
    names = column_names(X)
    return shown(names[index]) if names else str(index)
