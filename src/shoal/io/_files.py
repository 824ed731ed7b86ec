"""Files that are whole or not there, bounded and compared, and what they need."""

import contextlib
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import stat
import uuid
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.exceptions import InputError, ModelFileError
from shoal.io.model._values import damaged

# ---- Files and folders that are either whole or not there ----------------------------


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Temporary name to write to; renamed to ``path`` if the body ends well.

    Whatever stops the body, an error or Ctrl-C, leaves what was there before.
    """
    temporary = _beside(path, "tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Temporary folder to fill; takes the place of ``path`` if the body ends well.

    A folder that is already there stays until the new one is whole.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = _beside(path, "tmp"), _beside(path, "old")
    temporary.mkdir()
    try:
        yield temporary
        take_place(temporary, path, old)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def take_place(whole: Path, path: Path, old: Path) -> None:
    """Rename what is whole; what was there before has the name ``old`` afterwards.

    If it cannot be renamed, all is as it was before.
    """
    if path.exists():
        os.replace(path, old)
    try:
        os.replace(whole, path)
    except BaseException:
        if old.exists():
            os.replace(old, path)
        raise


def _beside(path: Path, ending: str) -> Path:
    """A name of its own in the same folder, so that renaming is one step."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.{ending}")


# ---- files ---------------------------------------------------------------------------

KNOWN_NAME = re.compile(r"arrays\.safetensors|classes\.json|parts/\d{1,6}\.skops")
MIB = 2**20
# The most that a file of each kind may hold, checked before it is read.
LIMITS = {".json": 256 * MIB, ".safetensors": 8192 * MIB, ".skops": 2048 * MIB}


class Folder:
    """Files of one folder, each read once, none larger than it should be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._expected: dict[str, Any] = {}

    def expect(self, files: Any) -> None:
        """Remember size and fingerprint of each file, as the manifest has them."""
        for name, facts in files.items():
            if not KNOWN_NAME.fullmatch(name):
                raise damaged(f"the manifest names a file that is not allowed: {name}")
            self._expected[name] = (facts["bytes"], facts["sha256"])

    def read(self, name: str) -> bytes:
        """Content of a file; an error unless it is what the manifest says."""
        expected = self._expected.get(name)
        if expected is None and name != "manifest.json":
            raise damaged(f"the manifest does not list {name}")
        path = self.path / name
        try:
            facts = path.stat()
        except OSError as error:
            raise damaged(f'"{self.path}" lacks {name}') from error
        # A pipe or a device could be read for ever.
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LIMITS[path.suffix]:
            raise damaged(f"{name} is not a file of a sensible size")
        if expected is not None and facts.st_size != expected[0]:
            raise damaged(f"{name} has {facts.st_size} bytes instead of {expected[0]}")
        content = path.read_bytes()
        if expected and hashlib.sha256(content).hexdigest() != expected[1]:
            raise damaged(f"{name} was changed after it was saved")
        return content


def find_model(path: Path) -> Path:
    """The model's folder: the path itself, or ``model/`` of a run."""
    for folder in (path, path / "model"):
        if (folder / "manifest.json").is_file():
            return folder
    what = "is not a shoal model" if path.exists() else "does not exist"
    raise ModelFileError(
        "E135", f'"{path}" {what}', "pass the folder that `shoal fit` or save wrote"
    )


def strict_json(content: bytes) -> Any:
    """JSON without NaN, without infinity and without a key that occurs twice."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_no_constant,
            object_pairs_hook=_no_repeats,
        )
    except (ValueError, RecursionError) as error:
        raise damaged(f"a JSON file of the model cannot be read ({error})") from error


def canonical_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of a manifest without its own digest, whatever its white space."""
    content = {key: value for key, value in manifest.items() if key != "digest"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a key occurs twice")
    return content


# ---- capacity ------------------------------------------------------------------------

GIB = 2**30
# Reading keeps the columns, their encoding and the copies of a fit at the same time.
COPIES = 4
# The share of free memory that reading may count on.
ROOM = 0.8


def fits(cells: float) -> bool:
    """Whether so many numbers, and the copies of a fit, fit into the free memory."""
    free = available_memory()
    return free is None or COPIES * 8 * cells <= ROOM * free


def check_memory(cells: float, what: str) -> None:
    """Raise E137 if so many numbers would not fit into the free memory."""
    if not fits(cells):
        need, free = COPIES * 8 * cells, available_memory() or 0.0
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
    for name in names:
        if name not in known:
            close = nearest(str(name), known)
            hint = f'nearest: "{close}"' if close else f"columns: {join(known, 8)}"
            raise InputError("E107", f'no column "{name}" ({option})', hint)
