"""Results on disk: one record per spec, shared by any number of processes.

A store is a folder. ``records.jsonl`` has one line per finished spec, ``failed.jsonl``
one per failed attempt, ``claims/`` one lock per trial that is running. A line is
appended under a lock, in one write, and reaches the disk before the trial counts as
done: a crash or a kill loses at most the trials that were running. The system frees the
locks of a process that dies, however it dies, so that no claim can go stale.

Locks are ``flock``: POSIX systems; between machines the folder must be on a file
system that has them (NFS 4 does).
"""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from shoal_bench.spec import Spec

Record = dict[str, Any]


class Store:
    """A folder of records; see the module's text.

    Parameters
    ----------
    folder : path
        Made when the first line is written.

    Examples
    --------
    >>> import tempfile
    >>> from shoal_bench.spec import Spec
    >>> from shoal_bench.store import Store
    >>> store = Store(tempfile.mkdtemp())
    >>> spec = Spec("gauss2", 3, 3, wave=0, method="kmeans")
    >>> with store.claim(spec):
    ...     store.add({"name": spec.name, "metrics": {"accuracy": 0.9}})
    >>> spec.name in store, store.claim(spec)
    (True, None)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self._records = _Lines(self.folder / "records.jsonl")
        self._failed = _Lines(self.folder / "failed.jsonl")

    def records(self) -> dict[str, Record]:
        """Record of every finished spec, by name; of two, the later."""
        return dict(self._records.read())

    def failures(self) -> dict[str, Record]:
        """Last failure of every spec that failed and has not succeeded since."""
        done, failed = self._records.read(), self._failed.read()
        return {name: line for name, line in failed.items() if name not in done}

    def __contains__(self, name: str) -> bool:
        return name in self._records.read()

    def add(self, record: Record) -> None:
        """Keep a record; on return it is on the disk."""
        self._records.append(record)

    def add_failure(self, record: Record) -> None:
        """Keep a failure, apart from the records."""
        self._failed.append(record)

    def claim(self, spec: Spec) -> "Claim | None":
        """Claim the right to run a spec; None if it is done or running elsewhere.

        The claim is freed by its ``close``, by leaving its ``with`` block, or by the
        end of the process.
        """
        claim = Claim.take(self.folder / "claims" / spec.name)
        # Somebody may have finished it between our look and our claim.
        if claim is not None and spec.name in self:
            claim.close()
            return None
        return claim

    def running(self) -> dict[str, Record]:
        """Who runs what: process and host of every live claim, by name of the spec."""
        found = {}
        for path in sorted((self.folder / "claims").glob("*")):
            claim = Claim.take(path)
            if claim is not None:  # nobody's: left behind by a process that died
                claim.close()
                continue
            with contextlib.suppress(FileNotFoundError, ValueError):
                found[path.name] = json.loads(path.read_text())
        return found


class Claim:
    """An exclusive lock on a file that says who holds it."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle: int | None = handle

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Lock the file, making it if need be; None if another process holds it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            if _is_file(handle, path):
                break
            os.close(handle)  # its last owner removed it while we waited: again
        owner = {"pid": os.getpid(), "host": socket.gethostname()}
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(owner).encode(), 0)
        return cls(path, handle)

    def close(self) -> None:
        """Free the spec; closing twice does nothing."""
        if self._handle is not None:
            self._path.unlink(missing_ok=True)  # first, while nobody else can hold it
            os.close(self._handle)
            self._handle = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _is_file(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), os.stat(path))
    return False


class _Lines:
    """A file of JSON lines that only grows; what was read once is remembered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Record] = {}
        self._read_to = 0

    def read(self) -> Mapping[str, Record]:
        """Last whole line of every name; half a line is from a writer that died."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            size = 0
        if size < self._read_to:  # somebody took lines out
            self._known, self._read_to = {}, 0
        if size > self._read_to:
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                whole, newline, _ = file.read().rpartition(b"\n")
            self._known |= {line["name"]: line for line in _parse(whole)}
            self._read_to += len(whole) + len(newline)
        return self._known

    def append(self, record: Mapping[str, Any]) -> None:
        text = json.dumps(record, sort_keys=True, allow_nan=False) + "\n"
        with self._locked() as handle:
            end = os.lseek(handle, 0, os.SEEK_END)
            torn = end > 0 and os.pread(handle, 1, end - 1) != b"\n"
            line = (b"\n" if torn else b"") + text.encode()
            while line:
                line = line[os.write(handle, line) :]
            os.fsync(handle)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)


def _parse(text: bytes) -> list[Record]:
    records = []
    for line in text.split(b"\n"):
        with contextlib.suppress(ValueError):  # torn by a writer that died
            record = json.loads(line)
            if isinstance(record, dict) and "name" in record:
                records.append(record)
    return records
