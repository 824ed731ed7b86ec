"""What a source holds, what a format is, and files that are not what names say."""

import contextlib
import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from shoal.exceptions import InputError
from shoal.io._settings import READING

# ---- what a format is, and what a file of any format holds ---------------------------


@dataclass(frozen=True, eq=False)
class Content:
    """Named columns, and maybe a matrix whose columns are all features.

    Attributes
    ----------
    frame : pandas.DataFrame
        Has no columns where there is only a matrix. Its index counts the rows of the
        source from 0, whatever was left out since.
    matrix : ndarray, CSR array or None
        Beside a matrix, the columns of ``frame`` say things about rows but are no
        features. Pixels of images, where a model takes them, have four axes.
    matrix_names : list of str or None
    kind : {"table", "counts", "text", "embedding", "images"}
    source : dict
        As in :class:`~shoal.io.Table`.
    ids : sequence or None
        Names of the rows that came with the source, such as a pandas index.
    annotated : bool
        Whether the frame is the ``obs`` of an AnnData file.
    by_file : str or None
        Name of the column that says which of several files a row is from.
    messages : tuple of Message
        What reading noticed.
    decimal : str or None
        How the source writes numbers, where it was found.
    described : pair of matrix and list of str, or None
        What people know rows by, beside a matrix that says them nothing: genes beside
        an embedding of cells.
    """

    frame: pd.DataFrame
    matrix: Any = None
    matrix_names: list[str] | None = None
    kind: str = "table"
    source: dict[str, Any] = field(default_factory=dict)
    ids: Any = None
    annotated: bool = False
    by_file: str | None = None
    messages: tuple[Any, ...] = ()
    decimal: str | None = None
    described: tuple[Any, list[str]] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame) if self.matrix is None else int(self.matrix.shape[0])

    def sample(self, n_rows: int | None, seed: int) -> "Content":
        """So many of the rows, drawn at random, in their order; all where fewer."""
        if n_rows is None or self.n_rows <= n_rows:
            return self
        rng = np.random.default_rng(seed)
        return self.take(np.sort(rng.choice(self.n_rows, n_rows, replace=False)))

    def take(self, rows: Any) -> "Content":
        """Some of the rows: a slice, a mask or places."""
        described = self.described
        return replace(
            self,
            described=described and (described[0][rows], described[1]),
            frame=self.frame.iloc[rows],
            matrix=None if self.matrix is None else self.matrix[rows],
            ids=None if self.ids is None else np.asarray(self.ids)[rows],
        )


@dataclass(frozen=True)
class Format:
    """A kind of file: how it is recognised and read.

    Attributes
    ----------
    name : str
        As ``--format`` takes it.
    endings : tuple of str
        Of the names of its files, in lower case.
    read : callable
        From a path and the options to the :class:`Content` of the whole file.
    pieces : callable or None
        From the same, and ``batch_rows``, ``columns`` and ``as_text`` by name, to
        contents of at most so many rows, in bounded memory. ``columns`` are the only
        ones to read and ``as_text`` those whose cells stay text; both are None for all
        columns, as the options have them, and for matrices. A format without it is read
        whole and cut.
    columns : callable or None
        From the same to the names of the columns, before a row is read. None for a
        format that holds a matrix.
    n_rows : callable or None
        From a path to about the number of rows, without reading them; None where
        nothing can be said.
    """

    name: str
    endings: tuple[str, ...]
    read: Callable[..., Content]
    pieces: Callable[..., Iterator[Content]] | None = None
    columns: Callable[..., list[str]] | None = None
    n_rows: Callable[[Path], float | None] | None = None

    def takes(self, path: Path) -> bool:
        """Whether a file is called like one of this format."""
        return path.name.lower().endswith(self.endings)


def is_sparse(matrix: Any) -> bool:
    """Whether ``matrix`` is a scipy sparse array or matrix."""
    return bool(sparse.issparse(matrix))


@contextlib.contextmanager
def readable(
    path: Path, broken: tuple[type[Exception], ...], what: str = "", fix: str = ""
) -> Iterator[None]:
    """Whatever a library says of a file that it cannot read, in one line (E143).

    Parameters
    ----------
    path : Path
    broken : tuple of exceptions
        What the library raises about files that are not what they claim to be.
    what : str
        What the file was taken for.
    fix : str
        What else to do about it than to check the file.
    """
    try:
        yield
    except InputError:
        raise
    except broken as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        taken = f" as {what}" * bool(what)
        raise InputError(
            "E143",
            f'"{path}" cannot be read{taken}: {reason}',
            f"check or replace the file{fix}",
        ) from error


def sampled(frames: Iterator[pd.DataFrame], n_rows: int, seed: int) -> pd.DataFrame:
    """So many rows, all sets of them equally likely, from one pass in bounded memory.

    Every row draws a number, and the rows with the smallest numbers stay.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[Any, pd.DataFrame]] = []
    waiting = 0

    def shrink() -> None:
        keys = np.concatenate([key for key, _ in kept])
        rows = pd.concat([frame for _, frame in kept])
        best = np.sort(np.argpartition(keys, min(n_rows, len(keys)) - 1)[:n_rows])
        kept[:] = [(keys[best], rows.iloc[best])]

    for frame in frames:
        kept.append((rng.random(len(frame)), frame))
        waiting += len(frame)
        if waiting > 4 * n_rows + READING.batch_rows:
            shrink()
            waiting = n_rows
    shrink()
    return kept[0][1]


# ---- files that are not what their names say, told by their first bytes --------------

SHEET = "save the sheet as CSV"
WORKBOOK = "end its name with .xlsx, or add --format xlsx"
UNPACK = "unpack it first"
#: First bytes, what such a file is, and what to do about it.
KINDS = (
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", SHEET),
    (b"$FL2", "an SPSS file", "save it as CSV or for Stata (.dta)"),
    (b"\x1f\x8b", "packed by gzip", "unpack it, or end its name with .csv.gz"),
    (b"\xfd7zX", "packed by xz", UNPACK),
    (b"BZh", "packed by bzip2", UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", UNPACK),
)
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"


def refuse_disguised(file: Path | io.BytesIO, name: str) -> None:
    """Raise E102 for a workbook, a Parquet file or an archive taken for text.

    Parameters
    ----------
    file : path or BytesIO
    name : str
        What to call it.
    """
    kind = _kind_of(file)
    if kind is None:
        return
    what, hint = kind
    if isinstance(file, io.BytesIO) and hint is not SHEET:
        hint = "pass the file by its name, or unpack it first"
    raise InputError("E102", f'"{name}" is {what}, not text', hint)


def _kind_of(file: Path | io.BytesIO) -> tuple[str, str] | None:
    """What a file is by its first bytes, and the fix; None where they say nothing."""
    head, tail = _ends_of(file)
    if head == tail == PARQUET:  # a column may be called PAR1
        return "a Parquet file", "add --format parquet"
    if head == ZIP:
        return _zipped(file)
    found = ((what, fix) for start, what, fix in KINDS if head.startswith(start))
    return next(found, None)


def _ends_of(file: Path | io.BytesIO) -> tuple[bytes, bytes]:
    """The first and the last four bytes."""
    if isinstance(file, io.BytesIO):
        with file.getbuffer() as content:
            return bytes(content[:4]), bytes(content[-4:])
    with contextlib.suppress(OSError), file.open("rb") as handle:
        head = handle.read(4)
        handle.seek(-len(head), io.SEEK_END)
        return head, handle.read(4)
    return b"", b""  # a reader says what is wrong with it


def _zipped(file: Any) -> tuple[str, str]:
    """Excel, numpy and others all pack what they write as zip archives."""
    names: list[str] = []
    # whatever is wrong with an archive, it is still one
    with contextlib.suppress(Exception), zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook", WORKBOOK
    if names and all(name.endswith(".npy") for name in names):
        return "an archive of numpy arrays", "add --format npz"
    return "a zip archive", "unpack it; a sheet must be saved as CSV"
