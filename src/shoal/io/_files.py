"""One way to write files, one way to name their content, and what reading needs.

The writers and digests here are those of the whole project: whatever is written under a
name that others read goes through :func:`whole_file` or :func:`write_whole`, folders
through ``_swap.py``, and whatever is called by its content through one of the digests.
"""

import contextlib
import difflib
import hashlib
import json
import os
import re
import shlex
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

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
    mine = rf"\.{re.escape(path.stem)}\.{_machine()}_(\d+)_\w+\.tmp"
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
