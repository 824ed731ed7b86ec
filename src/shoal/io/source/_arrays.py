"""Matrices: NPY, NPZ and Matrix Market files, and the domains of their rows."""

import contextlib
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
from scipy import sparse

from shoal.exceptions import InputError
from shoal.io._files import (
    check_archive,
    check_claims,
    check_memory,
    opened,
    refuse_special,
)
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, is_sparse, readable

Array = np.ndarray[Any, Any]

# What numpy and zipfile raise about files that are not what they claim to be.
BROKEN = (
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    OSError,
    MemoryError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,  # the header of an npy file is a Python literal
    zipfile.BadZipFile,
    zlib.error,
)


# How an npz file that scipy wrote names its pieces.
SPARSE_KEYS = {"data", "indices", "indptr", "shape", "format"}

# First bytes of the files that numpy writes, and words of its errors about pickles.
MAGIC = {"npy": b"\x93NUMPY", "npz": b"PK"}
PICKLED = ("pickle", "Object arrays", "objects in")


# ---- npy and npz ---------------------------------------------------------------------


def read_npy(path: Path, options: SourceOptions) -> Content:
    """A matrix; where its rows come from is said by ``domain_file``."""
    mapped = _map_npy(path)
    check_memory(mapped.size if options.sample is None else 0, f'"{path}"')
    return matrix_content(np.asarray(mapped), options)


def npy_pieces(
    path: Path, options: SourceOptions, *, batch_rows: int, **_: Any
) -> Iterator[Content]:
    """The same, some rows at a time."""
    matrix = _map_npy(path)
    domains = None
    if options.domain_file is not None:
        domains = read_side(Path(options.domain_file), matrix.shape[0])
    for first in range(0, matrix.shape[0], batch_rows):
        rows = np.array(matrix[first : first + batch_rows])
        frame = pd.DataFrame(index=pd.RangeIndex(first, first + len(rows)))
        if domains is not None:
            frame["domain"] = domains[first : first + len(rows)]
        yield Content(frame=frame, matrix=rows)


def _map_npy(path: Path) -> Array:
    """A numeric array on disk, mapped instead of read, checked for its shape."""
    with _numpy_file(path, "npy"):
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    return check_matrix(array)


def read_npz(path: Path, options: SourceOptions) -> Content:
    """A sparse matrix as scipy writes it, or named arrays: one matrix and columns.

    Every one-dimensional array is a column that ``domain``, ``id`` or ``label`` can
    name; the matrix is called X, or is the only array with two dimensions.
    """
    with (
        _numpy_file(path, "npz"),
        path.open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        check_archive(path)
        if SPARSE_KEYS <= set(archive.files):
            n_rows, n_columns = (int(size) for size in archive["shape"])
            check_claims(n_rows, n_columns, archive["data"].size, f'"{path}"')
            file.seek(0)
            matrix = sparse.csr_array(sparse.load_npz(file))
            matrix.check_format(full_check=True)
            arrays: dict[str, Any] = {"X": matrix}
        else:
            # members that are no arrays come as bytes
            arrays = {name: np.asarray(archive[name]) for name in archive.files}
    wide = [name for name, array in arrays.items() if array.ndim > 1]
    name = "X" if "X" in wide else (wide[0] if len(wide) == 1 else None)
    if name is None:
        raise InputError(
            "E124",
            f'"{path}" holds {len(wide)} arrays with two dimensions, none called X',
            "call the matrix X and the domains by a name for --domain",
        )
    matrix = check_matrix(arrays.pop(name))
    columns = {key: array for key, array in arrays.items() if array.ndim == 1}
    for key, column in columns.items():
        check_length(matrix.shape[0], len(column), key)
    index = pd.RangeIndex(matrix.shape[0])
    return matrix_content(matrix, options, pd.DataFrame(columns, index))


@contextlib.contextmanager
def _numpy_file(path: Path, format: str) -> Iterator[None]:
    """Errors of numpy, as coded ones; by its first bytes a file must be one of its own.

    Otherwise numpy would take it for a pickle.
    """
    magic = MAGIC[format]
    with path.open("rb") as file:
        if file.read(len(magic)) != magic:
            raise InputError(
                "E143", f'"{path}" is not an {format} file', "check or replace the file"
            )
    with readable(path, BROKEN):
        try:
            yield
        except BROKEN as error:
            if any(word in str(error) for word in PICKLED):
                raise InputError(
                    "E102",
                    f'"{path}" needs pickle, which shoal never loads',
                    "save as a numeric array or parquet",
                ) from error
            raise


# ---- matrices and what lies beside them ----------------------------------------------


def matrix_content(
    matrix: Any, options: SourceOptions, frame: pd.DataFrame | None = None
) -> Content:
    """Content of a matrix and the columns beside it."""
    matrix = check_matrix(matrix)
    if is_sparse(matrix):
        matrix = sparse.csr_array(matrix)
    n_rows = matrix.shape[0]
    frame = pd.DataFrame(index=pd.RangeIndex(n_rows)) if frame is None else frame
    if options.domain_file is not None:
        frame = frame.assign(domain=read_side(Path(options.domain_file), n_rows))
    is_counts = options.counts or is_sparse(matrix)
    return Content(
        frame=frame, matrix=matrix, kind="counts" if is_counts else "embedding"
    )


def read_side(path: Path, n_rows: int) -> Any:
    """Domains from a file of their own: npy, or one a line (a CSV with one column)."""
    if not path.is_file():
        raise InputError("E101", f'no file "{path}" (domain_file)', "check the path")
    refuse_special(path)
    if path.suffix == ".npy":
        with _numpy_file(path, "npy"):
            values = np.ravel(np.load(path, allow_pickle=False))
        if values.dtype.kind not in "biufUSmM":
            raise InputError(
                "E102",
                f'"{path}" holds {values.dtype}, and domains are words or numbers',
                "save them as text, one a line",
            )
    else:
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise InputError(
                "E143", f'"{path}" is not UTF-8', "save it as UTF-8"
            ) from error
        lines = [line.strip().strip('"') for line in lines]
        if len(lines) == n_rows + 1:  # the first line names the column
            lines = lines[1:]
        values = np.array(lines, dtype=object)
    check_length(n_rows, len(values), "domains")
    return values


def check_length(n_rows: int, n_values: int, name: str) -> None:
    """Raise E124 unless there is one value per row."""
    if n_rows != n_values:
        raise InputError(
            "E124",
            f"X has {n_rows:,} rows, {name} {n_values:,}",
            "pass both from the same table",
        )


def check_matrix(matrix: Any) -> Any:
    """Rows by features, of numbers, or an error that says what else it is."""
    if matrix.dtype.kind not in "biuf":
        raise InputError(
            "E102",
            f"an array of {matrix.dtype} is not an array of numbers",
            "save it as a numeric array or a parquet table",
        )
    if matrix.ndim != 2:
        pictures = " (for pictures, a folder root/<domain>/...)"
        raise InputError(
            "E124",
            f"expected rows x features, got {matrix.shape}",
            "reshape it to two dimensions, or embed it first"
            + pictures * (matrix.ndim == 4),
        )
    n_rows, n_columns = matrix.shape
    check_claims(n_rows, n_columns, matrix.size, "the matrix")
    return matrix


def check_varied(X: Any) -> None:
    """E124 for an embedding in which most rows are the same."""
    if is_sparse(X) or len(X) < 3:
        return
    rows = np.ascontiguousarray(X)
    bits = rows.view(np.uint64 if rows.dtype.itemsize == 8 else np.uint32)
    odd = np.random.default_rng(0).integers(2**63, size=bits.shape[1], dtype=np.uint64)
    with np.errstate(over="ignore"):
        # Equal rows have equal sums, in exact arithmetic modulo 2^64.
        sums = bits.astype(np.uint64) @ (2 * odd + np.uint64(1))
    share = np.unique(sums, return_counts=True)[1].max() / len(sums)
    if share > READING.identical:
        raise InputError(
            "E124",
            f"{share:.0%} of vectors are identical",
            "check the encoder step; blank images?",
        )


def check_size(X: Any, names: list[str]) -> None:
    """Raise E115 for numbers that cannot be squared."""
    values = X.data if is_sparse(X) else X
    if not values.size:
        return
    # gaps may be left, and have no size
    if max(float(np.nanmax(values)), -float(np.nanmin(values))) <= READING.largest:
        return
    place = int(np.nanargmax(np.abs(values)))
    column = X.indices[place] if is_sparse(X) else place % X.shape[1]
    raise InputError(
        "E115",
        f'"{names[column]}" holds {np.ravel(values)[place]:.3g}, too large to square',
        "rescale the column, or clean its rows",
    )


# ---- matrix market -------------------------------------------------------------------

LONGEST_LINE = 1_000
MOST_COMMENTS = 10_000


def read_mtx(path: Path, options: SourceOptions) -> Content:
    """A Matrix Market file, one row per line of ``domain_file``."""
    return matrix_content(read_matrix_market(path), options)


def read_matrix_market(path: Path) -> Any:
    r"""The matrix in a .mtx or .mtx.gz file: a CSR array, or dense as the file is.

    Not by scipy's reader, which ends the process on some damaged files.

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
    broken = (ValueError, OverflowError, EOFError, OSError, zlib.error)
    with readable(path, broken, "a Matrix Market file"):
        with opened(path) as file:
            form, field, symmetry = _read_banner(file)
            sizes = _read_sizes(file, 2 if form == "array" else 3)
            n_entries = sizes[0] * sizes[1] if form == "array" else sizes[2]
            check_claims(sizes[0], sizes[1], n_entries, f'"{path}"')
            # one more than there should be is enough to see that there are too many
            numbers = _read_numbers(file, n_entries + 1)
        if form == "array":
            return _dense(numbers, sizes, symmetry)
        return _from_entries(numbers, sizes, field, symmetry)


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


def _read_sizes(file: BinaryIO, n_sizes: int) -> list[int]:
    for _ in range(MOST_COMMENTS):
        line = file.readline(LONGEST_LINE)
        if line.strip() and not line.startswith(b"%"):
            sizes = [int(word) for word in line.split()]
            if min(sizes) >= 0 and len(sizes) == n_sizes:
                return sizes
            break
        if not line:
            break
    raise ValueError("the line with the sizes is missing")


def _read_numbers(file: BinaryIO, most: int) -> Any:
    """The lines that follow, as a table of numbers."""
    try:
        frame = pd.read_csv(file, sep=r"\s+", header=None, dtype=np.float64, nrows=most)
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


NPY = Format(
    "npy",
    (".npy",),
    read=read_npy,
    pieces=npy_pieces,
    n_rows=lambda path: len(_map_npy(path)),
)
NPZ = Format("npz", (".npz",), read=read_npz)
MTX = Format("mtx", (".mtx", ".mtx.gz"), read=read_mtx)
