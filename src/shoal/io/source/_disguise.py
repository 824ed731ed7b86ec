"""Files that are not what their names say, told by their first bytes."""

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

from shoal.exceptions import InputError

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
