"""One way to write files, one to name their content, and what one may ask for.

The writers and digests here are those of the whole project: whatever is written under a
name that others read goes through :func:`whole_file` or :func:`write_whole`, folders
through ``_swap.py``, and whatever is called by its content through one of the digests.
"""

import contextlib
import difflib
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import socket
import stat
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from shoal.exceptions import CodedError, InputError
from shoal.io._settings import READING

# ---- Files that are either whole or not there ----------------------------------------


@contextlib.contextmanager
def whole_file(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Temporary name to write to; renamed to ``path`` if the body ends well.

    Whatever stops the body, an error or Ctrl-C, leaves what was there before. The name
    has the ending of ``path``, from which some writers read the format.

    Parameters
    ----------
    path : Path
        In a folder that exists.
    durable : bool, default=False
        Wait until the content is on the disk: after a power cut there is the old file
        or the new one, and not an empty one.
    """
    temporary = _temporary(path)
    try:
        yield temporary
        if durable:
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(
    path: Path, content: bytes | memoryview | str, *, durable: bool = False
) -> None:
    """Write a file of which no reader ever sees half; text is UTF-8."""
    with whole_file(path, durable=durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _temporary(path: Path) -> Path:
    """A name of our own in the same folder, so that renaming is one step."""
    ours = f"{_machine()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    return path.with_name(f".{path.stem}.{ours}.tmp{path.suffix}")


def _machine() -> str:
    return digest(socket.gethostname())[:8]


def sweep(path: Path) -> None:
    """Remove what processes that were killed on this machine left of a file."""
    # once more for each writer that another one called
    mine = rf"\.+{re.escape(path.stem)}(?:\.{_machine()}_(\d+)_\w+\.tmp)+"
    known = re.compile(mine + re.escape(path.suffix))
    if os.name != "posix" or not path.parent.is_dir():
        return  # elsewhere there is no asking whether a process lives
    for entry in path.parent.iterdir():
        found = known.fullmatch(entry.name)
        if found and not _lives(int(found[1])):
            entry.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Whatever the system says of a path that cannot be written, in one line (E140)."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CodedError(
            "E140", f'cannot write "{path}": {reason}', "choose another path"
        ) from error


# ---- Names of content: SHA-256 in hexadecimal ----------------------------------------


def digest(content: bytes | str | Iterable[bytes | str]) -> str:
    """Digest of bytes or text, or of pieces of them one after the other.

    >>> digest("fish") == digest([b"fi", "sh"])
    True
    """
    pieces = [content] if isinstance(content, (bytes, str)) else content
    sha = hashlib.sha256()
    for piece in pieces:
        sha.update(piece.encode() if isinstance(piece, str) else piece)
    return sha.hexdigest()


def digest_file(path: Path) -> str:
    """Digest of a file, which is read piece by piece."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_json(content: Any) -> str:
    """Digest of plain values, whatever the order of keys.

    >>> digest_json({"a": 1, "b": [2]}) == digest_json({"b": [2], "a": 1})
    True
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return digest(text)


# ---- what fits into memory -----------------------------------------------------------

GIB = 2**30


def fits(cells: float) -> bool:
    """Whether so many numbers, and the copies of a fit, fit into the free memory."""
    free = available_memory()
    return free is None or READING.copies * 8 * cells <= READING.room * free


def check_memory(cells: float, what: str) -> None:
    """Raise E137 if so many numbers would not fit into the free memory."""
    if not fits(cells):
        need, free = READING.copies * 8 * cells, available_memory() or 0.0
        raise InputError(
            "E137",
            f"{what} needs about {need / GIB:.3g} GiB, {free / GIB:.3g} GiB free",
            "--sample 200000, fewer columns (--features), or, for Parquet, --engine "
            "local",
        )


def available_memory() -> float | None:
    """Free memory in bytes, the limit of a container counted; None if unknown."""
    found = []
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = dict(line.split(":") for line in lines)
        found.append(float(sizes["MemAvailable"].split()[0]) * 1024)
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
        found.append(float(limit) - float(used))
    except (OSError, ValueError, KeyError):  # another system, or no limit ("max")
        pass
    return min(found) if found else None


# ---- Packages that only some files need ----------------------------------------------


def require(package: str, extra: str, purpose: str) -> Any:
    """Import an optional package, or say which extra brings it (E132)."""
    try:
        return import_module(package)
    except ImportError as error:
        raise InputError(
            "E132",
            f"{purpose} needs the package {package}",
            f'pip install "shoal[{extra}]"',
        ) from error


# ---- Names that somebody mistyped, and lists of names in a sentence ------------------


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
    present = set(known)
    for name in names:
        if name not in present:
            close = nearest(str(name), known)
            hint = f'nearest: "{close}"' if close else f"columns: {join(known, 8)}"
            raise InputError("E107", f'no column "{name}" ({option})', hint)


# ---- what a file may ask of this machine ---------------------------------------------
# A few bytes can claim a billion columns, unpack to gigabytes, or never end. All of
# this is found before memory is taken, and said in one line.

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
