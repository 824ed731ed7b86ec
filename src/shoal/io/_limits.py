"""What a file may ask of this machine: to be a file, and to fit when it is unpacked.

A few bytes can claim a billion columns, unpack to gigabytes, or never end. All of this
is found before memory is taken, and said in one line.
"""

import gzip
import io
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from shoal.exceptions import InputError
from shoal.io._files import GIB, check_memory
from shoal.io._settings import READING

PIECE = 1 << 20

# ---- places that are no files --------------------------------------------------------

KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
# Their files have no size and may have no end.
OF_THE_SYSTEM = (Path("/proc"), Path("/sys"))


def refuse_special(path: Path) -> None:
    """Raise E102 for a pipe, a socket, a device or a file of the system itself."""
    kind = KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if kind is None and any(map(path.resolve().is_relative_to, OF_THE_SYSTEM)):
        kind = "a file of the system"
    if kind is not None:
        raise InputError(
            "E102",
            f'"{path}" is {kind}, not a file with data',
            "save what it gives to a file; CSV can be piped in, with - for its name",
        )


# ---- what is packed ------------------------------------------------------------------


def opened(path: Path) -> BinaryIO:
    """A file as it is or unpacked by gzip, whose size and first line have an end."""
    is_packed = path.suffix == ".gz"
    file: Any = gzip.open(path, "rb") if is_packed else path.open("rb")
    return io.BufferedReader(_Guarded(file, path, is_packed), PIECE)


def most_unpacked(path: Path) -> int:
    """Bytes that a packed file may become."""
    return max(READING.always_unpacked, READING.most_unpacked * path.stat().st_size)


def check_unpacked(n_bytes: int, path: Path) -> None:
    """Raise E137 for a small file that becomes a large one."""
    if n_bytes > most_unpacked(path):
        raise InputError(
            "E137",
            f'"{path}" unpacks to more than {most_unpacked(path) / GIB:.3g} GiB, over '
            f"{READING.most_unpacked} times its size",
            "unpack it first, if that is what you expect",
        )


def check_archive(path: Path, bytes_per_number: float = 8) -> None:
    """Raise E137 for a zip archive whose members would not fit into memory."""
    with zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
    check_unpacked(n_bytes, path)
    check_memory(n_bytes / bytes_per_number, f'"{path}"')


class _Guarded(io.RawIOBase):
    """Reads on, until too much was read or no line has ended."""

    def __init__(self, file: Any, path: Path, is_packed: bool) -> None:
        self._file, self._path, self._is_packed = file, path, is_packed
        self._count, self._has_lines = 0, False

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        self._count = int(self._file.seek(place, whence))
        return self._count

    def readinto(self, buffer: Any) -> int:
        count = int(self._file.readinto(buffer))
        self._count += count
        if self._is_packed:
            check_unpacked(self._count, self._path)
        if not self._has_lines:
            self._has_lines = has_end(bytes(buffer[:count]))
            check_line(0 if self._has_lines else self._count, str(self._path))
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def check_line(n_bytes: int, name: str) -> None:
    """Raise E143 where so many bytes are still not the whole of a line."""
    if n_bytes > READING.longest_line:
        raise InputError(
            "E143",
            f'line 1 of "{name}" is longer than {READING.longest_line >> 20} MiB',
            "check whether it is text, with a line per row",
        )


def has_end(piece: bytes) -> bool:
    """Whether a line ends in a piece of text, in any encoding that has ASCII in it."""
    return b"\n" in piece or b"\r" in piece


def pieces_of(stream: Any, name: str) -> Iterator[bytes]:
    """What a stream gives, piece by piece, if it has lines."""
    count, has_lines = 0, False
    while piece := stream.read(PIECE):
        count += len(piece)
        has_lines = has_lines or has_end(piece)
        check_line(0 if has_lines else count, name)
        yield piece


# ---- sizes that are only claimed -----------------------------------------------------


def check_claims(n_rows: int, n_columns: int, n_entries: int, what: str) -> None:
    """Raise E137 for a matrix with far more rows or columns than a fit can use.

    Parameters
    ----------
    n_rows, n_columns : int
        As the file claims.
    n_entries : int
        Numbers that are really there; a sparse matrix leaves out its zeros.
    what : str
        What to call it in a message.
    """
    if n_columns > READING.most_columns:
        raise InputError(
            "E137",
            f"{what} claims {n_columns:,} columns, more than {READING.most_columns:,}",
            "check its first lines, or use fewer columns",
        )
    if n_rows > READING.rows_per_entry * (n_entries + READING.spare_rows):
        raise InputError(
            "E137",
            f"{what} claims {n_rows:,} rows, and holds {n_entries:,} numbers",
            "check its first lines, or leave out its empty rows",
        )
    check_memory(n_entries + n_rows + n_columns, what)
