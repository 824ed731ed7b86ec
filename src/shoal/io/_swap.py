"""Folders that are whole or not there, and replaced in one step.

A folder is filled beside its place, in a workshop (``.NAME.shoal-tmp``), and then
exchanged with what stands there: one call of the system, before and after which there
is one whole folder of that name. Who fills it holds the workshop: a second one is told,
and what lies in a workshop that nobody holds was left by the dead, and goes.

Some folders cannot be exchanged: where the system has no such call, where another disk
is mounted, where somebody works in them, where they hold others' folders. There the new
entries come into the folder as one (``.shoal-new``, with the names that go), which is
the step that counts; moving them to their names is the rest, which the next who comes
completes if this one cannot.
"""

import contextlib
import ctypes
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from shoal.exceptions import CodedError

try:
    import fcntl
except ImportError:  # of Windows: nobody is told there
    fcntl = None  # type: ignore[assignment]

#: Of the new entries of a folder that are to be moved to their names.
READY = ".shoal-new"
# Inside it: the names that go.
GONE = ".gone"
WORKSHOP = ".shoal-tmp"
# More files than this are not linked into a new folder: it is no folder of a run.
MOST_LINKS = 1_000

# Workshops by path, process and thread: a fork of ours holds none.
_HELD: dict[tuple[Path, int, int], Path] = {}


@contextlib.contextmanager
def whole_folder(
    path: Path, *, stays: Callable[[Path], bool] = lambda entry: False
) -> Iterator[Path]:
    """Temporary folder to fill; takes the place of ``path`` if the body ends well.

    What is there already stays until the new folder is whole and on the disk. E136 if
    another process is filling one for the same place.

    Parameters
    ----------
    path : Path
        The folders above it are made.
    stays : callable
        Whether an entry of the old folder that the new one lacks belongs into it, too;
        by default none does.
    """
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    with held(path) as workshop:
        new = workshop / "new"
        new.mkdir()
        yield new
        sync(new)
        if not path.exists():
            os.rename(new, path)
        elif not _exchanged(new, path, stays):
            _hand_over(new, path, stays)
        _sync_one(path.parent)


@contextlib.contextmanager
def held(path: Path) -> Iterator[Path]:
    """The workshop of a folder, ours alone; what the dead have left is cleared up.

    E136 if another process, or another thread, holds it.
    """
    path = path.resolve()
    key = (path, os.getpid(), threading.get_ident())
    if key in _HELD:
        yield _HELD[key]
        return
    workshop = _workshop(path)
    with contextlib.ExitStack() as last:  # all of it, also after a second Ctrl-C
        descriptor = _lock(workshop, path)
        if descriptor is not None:
            last.callback(os.close, descriptor)
        last.callback(shutil.rmtree, workshop, ignore_errors=True)
        last.callback(_HELD.pop, key, None)
        _HELD[key] = workshop
        _empty(workshop)
        finish(path)
        try:
            yield workshop
        finally:
            with contextlib.suppress(OSError):
                finish(path)  # of which Ctrl-C may have stopped the rest


def take_place(whole: Path, path: Path, old: Path) -> None:
    """Rename what is whole; what was there before has the name ``old`` afterwards.

    If it cannot be renamed, all is as it was before.
    """
    if path.exists():
        if exchange(whole, path):
            try:
                os.replace(whole, old)
            except BaseException:
                exchange(whole, path)
                raise
            return
        os.replace(path, old)
    try:
        os.replace(whole, path)
    except BaseException:
        if old.exists():
            os.replace(old, path)
        raise


def exchange(one: Path, other: Path) -> bool:
    """Give each of two the other's name, in one step; False where that cannot be."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system, or an old one
        return False
    here, flag = -100, ctypes.c_uint(2)  # AT_FDCWD and RENAME_EXCHANGE of Linux
    return bool(call(here, os.fsencode(one), here, os.fsencode(other), flag) == 0)


# ---- the workshop --------------------------------------------------------------------


def _workshop(path: Path) -> Path:
    """Beside the folder; inside it, where beside is another disk or not ours."""
    beside = os.access(path.parent, os.W_OK | os.X_OK) and not path.is_mount()
    return (
        path.with_name(f".{path.name[:100]}{WORKSHOP}") if beside else path / WORKSHOP
    )


def _lock(workshop: Path, path: Path) -> int | None:
    """A descriptor that holds the workshop until it is closed, or we are gone."""
    while True:
        workshop.mkdir(exist_ok=True)
        if fcntl is None:
            return None
        with contextlib.suppress(FileNotFoundError):  # its holder ended just now
            descriptor = os.open(workshop, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), os.stat(workshop)):
                    return descriptor
            except BlockingIOError as error:
                os.close(descriptor)
                raise CodedError(
                    "E136",
                    f'another run is writing to "{path}" at this moment',
                    "wait until it has ended, or choose another --out",
                ) from error
            except OSError:  # a disk that knows no locks, or a workshop that went
                if workshop.exists():
                    return descriptor
            os.close(descriptor)


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        _remove(entry)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---- one step ------------------------------------------------------------------------


def _exchanged(new: Path, path: Path, stays: Callable[[Path], bool]) -> bool:
    """Exchange a folder for the one in its place, if that can be done."""
    others = [one for one in path.iterdir() if not _has(new, one) and stays(one)]
    if len(others) > MOST_LINKS or any(map(_is_folder, others)) or _is_used(path):
        return False
    try:
        for one in others:
            os.link(one, new / one.name, follow_symlinks=False)
        shutil.copymode(path, new)
        _sync_one(new)
        done = exchange(new, path)
    except OSError:  # a disk that knows no links
        done = False
    if not done:
        for one in others:
            (new / one.name).unlink(missing_ok=True)
        return False
    for one in new.iterdir():  # the old folder now: what came into it meanwhile
        if not _has(path, one) and stays(one):
            os.replace(one, path / one.name)
    return True


def _has(folder: Path, entry: Path) -> bool:
    return os.path.lexists(folder / entry.name)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _is_used(path: Path) -> bool:
    """Whether we, and likely the shell that we were called from, are in a folder."""
    with contextlib.suppress(OSError):
        return Path.cwd().resolve().is_relative_to(path)
    return False


# ---- one step and the rest -----------------------------------------------------------


def _hand_over(new: Path, path: Path, stays: Callable[[Path], bool]) -> None:
    """Put a new folder into the one in its place, and let its entries take over."""
    spared = {READY, WORKSHOP}
    old = [one for one in path.iterdir() if one.name not in spared]
    gone = [one.name for one in old if not _has(new, one) and not stays(one)]
    (new / GONE).write_text(json.dumps(gone), encoding="utf-8")
    sync(new)
    os.rename(new, path / READY)  # from here on, it is the new folder that counts
    _sync_one(path)
    finish(path)


def is_unfinished(path: Path) -> bool:
    """Whether a folder holds a new one whose entries have not all taken over."""
    return (path / READY).is_dir()


def finish(path: Path) -> None:
    """Complete what :func:`_hand_over` began; nothing where nothing is begun."""
    if not is_unfinished(path):
        return
    ready = path / READY
    for name in _names_to_go(ready / GONE):
        _remove(path / name)
    for entry in ready.iterdir():
        final = path / entry.name
        if entry.name != GONE:
            if _is_folder(final) or _is_folder(entry):
                _remove(final)
            os.replace(entry, final)
    _sync_one(path)
    _remove(ready)


def _names_to_go(file: Path) -> list[str]:
    """Names of entries; what is not one, and would lead elsewhere, is left alone."""
    try:
        names = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # gone already, with all that it names
        return []
    known = names if isinstance(names, list) else []
    return [one for one in known if isinstance(one, str) and one not in ("", ".", "..")
            and os.sep not in one and "\0" not in one]  # fmt: skip


# ---- on the disk ---------------------------------------------------------------------


def sync(folder: Path) -> None:
    """Wait until all files of a folder, and their names, are on the disk."""
    for place, _, files in os.walk(folder):
        for name in files:
            if not os.path.islink(os.path.join(place, name)):
                _sync_one(Path(place, name))
        _sync_one(Path(place))


def _sync_one(path: Path) -> None:
    with contextlib.suppress(PermissionError):  # Windows opens no folders
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
