"""Matrix Market files, read without scipy's reader, which a damaged file can abort."""

import gzip
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from scipy import sparse

from shoal.exceptions import InputError

__all__ = ["read_matrix_market"]

LONGEST_LINE = 1_000
MOST_COMMENTS = 10_000


def read_matrix_market(path: Path) -> Any:
    r"""The matrix in a .mtx or .mtx.gz file: a CSR array, or dense as the file is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "x.mtx")
    ...     _ = path.write_text("%%MatrixMarket matrix coordinate integer general\n"
    ...                         "2 3 2\n1 1 5\n2 3 7\n")
    ...     read_matrix_market(path).toarray()
    array([[5, 0, 0],
           [0, 0, 7]])
    """
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            form, field, symmetry = _read_banner(file)
            sizes = _read_sizes(file)
            numbers = _read_numbers(file)
        if form == "array":
            return _dense(numbers, sizes, symmetry)
        return _from_entries(numbers, sizes, field, symmetry)
    except (ValueError, OverflowError, EOFError, OSError, zlib.error) as error:
        reason = " ".join(str(error).split())[:120]
        raise InputError(
            "E143",
            f'"{path}" cannot be read as a Matrix Market file: {reason}',
            "check or replace the file",
        ) from error


def _read_banner(file: BinaryIO) -> tuple[str, str, str]:
    words = file.readline(LONGEST_LINE).decode("ascii").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise ValueError("the first line is not %%MatrixMarket matrix ...")
    form, field, symmetry = words[2:]
    known = (
        form in ("coordinate", "array")
        and field in ("real", "integer", "pattern")
        and symmetry in ("general", "symmetric")
    )
    if not known:
        raise ValueError(f"a {form} {field} {symmetry} matrix is not supported")
    return form, field, symmetry


def _read_sizes(file: BinaryIO) -> list[int]:
    for _ in range(MOST_COMMENTS):
        line = file.readline(LONGEST_LINE)
        if line.strip() and not line.startswith(b"%"):
            sizes = [int(word) for word in line.split()]
            if min(sizes) >= 0:
                return sizes
        if not line:
            break
    raise ValueError("the line with the sizes is missing")


def _read_numbers(file: BinaryIO) -> Any:
    """All lines that follow, as a table of numbers."""
    try:
        frame = pd.read_csv(file, sep=r"\s+", header=None, dtype=np.float64)
    except pd.errors.EmptyDataError:
        return np.empty((0, 3))
    except pd.errors.ParserError as error:
        raise ValueError(str(error)) from error
    return frame.to_numpy()


def _dense(numbers: Any, sizes: list[int], symmetry: str) -> Any:
    n_rows, n_columns = sizes
    if numbers.shape != (n_rows * n_columns, 1) or symmetry != "general":
        raise ValueError(f"{n_rows} x {n_columns} numbers expected")
    return numbers.reshape(n_columns, n_rows).T  # written column by column


def _from_entries(numbers: Any, sizes: list[int], field: str, symmetry: str) -> Any:
    n_rows, n_columns, n_entries = sizes
    width = 2 if field == "pattern" else 3
    if len(numbers) != n_entries or (n_entries and numbers.shape[1] != width):
        raise ValueError(f"{n_entries} entries expected, found {len(numbers)}")
    place = numbers[:, :2].astype(np.int64) - 1
    if (place != numbers[:, :2] - 1).any() or (place < 0).any() or (
        place >= [n_rows, n_columns]
    ).any():  # fmt: skip
        raise ValueError("an entry lies outside of the matrix")
    values = np.ones(n_entries) if field == "pattern" else numbers[:, 2]
    if field == "integer":
        values = values.astype(np.int64)
    row, column = place.T
    if symmetry == "symmetric":
        off = row != column
        values = np.concatenate([values, values[off]])
        row, column = (
            np.concatenate([row, column[off]]),
            np.concatenate([column, row[off]]),
        )
    return sparse.csr_array((values, (row, column)), shape=(n_rows, n_columns))
