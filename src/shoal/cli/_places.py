"""Where results go: a folder filled as a whole or not at all, nobody's files harmed."""

import contextlib
import hashlib
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shoal.cli._messages import CommandError, write_json
from shoal.cli._output import SCHEMA

#: The file that says how a folder was made, and the fingerprint of each of its files.
RUN = "run.json"
#: The file that makes a folder a model of its own, before any model inside it.
MANIFEST = "manifest.json"


# ---- may it be written? ----------------------------------------------------------


def refuse_existing(path: Path, names: Sequence[str] = (), *, force: bool) -> None:
    """Raise E136 if what would be written exists; called before any work is done.

    Parameters
    ----------
    path : Path
        A folder if ``names`` are given, otherwise the file itself.
    names : sequence of str
        Entries of the folder that would be written.
    force : bool
        Only ask whether writing is possible at all.
    """
    with readable_errors(path):
        _refuse_blocked(path, is_folder=bool(names))
        found = [name for name in names if _is_ours(path / name)]
        if force or not (found if names else path.exists()):
            return
    raise CommandError(
        "E136",
        f'"{path}" {_description(path, found)}',
        "add --force to overwrite, or choose another --out",
    )


def refuse_foreign(folder: Path, names: Sequence[str], command: str) -> None:
    """Raise E136 unless all that is there is an earlier, unchanged run of ``command``.

    An unchanged file is one whose fingerprint the run recorded.
    """
    recorded = _recorded(folder, command)
    if recorded is None:
        refuse_existing(folder, names, force=False)
        return
    with readable_errors(folder):
        present = fingerprints(folder)
    changed = [name for name, content in recorded.items()
               if present.get(name, content) != content]  # fmt: skip
    if changed:
        raise CommandError(
            "E136",
            f'"{folder}" holds {changed[0]}, which was changed since `shoal {command}`',
            "add --force to overwrite, or choose another --out",
        )


def is_unchanged(run: Path, name: str) -> bool:
    """Whether a file of a run is as shoal wrote it."""
    path, recorded = run / name, _read_record(run).get("files", {})
    return path.is_file() and recorded.get(name) == _fingerprint(path)


def refuse_changed(path: Path, run: Path, *, force: bool) -> None:
    """Raise E136 if a file exists and is not as the run in the folder ``run`` wrote it.

    The page of a run may be drawn again; one that somebody edited, or that belongs to
    something else, may not.
    """
    own = path.absolute().parent == run.absolute() and is_unchanged(run, path.name)
    refuse_existing(path, force=force or own)


def update_record(run: Path, names: Sequence[str]) -> None:
    """Note that some files or folders of a run were written anew, by shoal itself."""
    record = _read_record(run)
    if "files" not in record:
        return
    present = fingerprints(run)
    record["files"] |= {
        name: content
        for name, content in present.items()
        if any(name == one or name.startswith(f"{one}/") for one in names)
    }
    with filled_file(run / RUN) as place:
        write_json(place, record)


def _refuse_blocked(path: Path, *, is_folder: bool) -> None:
    """Raise E140 where a file stands in the place of a folder, or the reverse."""
    folders = [path, *path.parents] if is_folder else list(path.parents)
    nearest = next(folder for folder in folders if folder.exists())
    text = ""
    if not nearest.is_dir():
        text = f'"{nearest}" is a file, not a folder'
    elif not os.access(nearest, os.W_OK | os.X_OK):
        text = f'no permission to write to "{nearest}"'
    elif not is_folder and path.is_dir():
        text = f'"{path}" is a folder, not a file'
    if text:
        raise CommandError("E140", text, "choose another --out")


def _is_ours(path: Path) -> bool:
    """Whether an entry exists; others have files called manifest.json, too."""
    if path.name != MANIFEST or not path.is_file():
        return path.exists()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False
    return isinstance(content, dict) and {"format", "digest"} <= set(content)


def _description(path: Path, found: Sequence[str]) -> str:
    """What is in the way: a run and its day, or the first of some files."""
    if RUN in found:
        day = time.strftime("%d %B %Y", time.localtime((path / RUN).stat().st_mtime))
        return f"already holds a run of {day.removeprefix('0')}"
    if MANIFEST in found:
        return "already holds a saved model"
    return f"already holds {found[0]}" if found else "exists already"


# ---- writing ---------------------------------------------------------------------


@contextlib.contextmanager
def filled_folder(folder: Path, *, instead_of: Sequence[str] = ()) -> Iterator[Path]:
    """Temporary folder to fill; what is in it takes its place if the body ends well.

    Entries of the same name are replaced, and those named in ``instead_of`` go, so
    that no page of an earlier run stays beside a new model; others stay. Whatever
    stops the body, an error or Ctrl-C, leaves no trace.
    """
    with readable_errors(folder), _parents(folder):
        temporary = _beside(folder)
        temporary.mkdir()
        try:
            yield temporary
            if not folder.exists():
                os.replace(temporary, folder)
                return
            old = [
                name
                for name in instead_of
                if _is_ours(folder / name) and not (temporary / name).exists()
            ]
            with _uninterrupted():
                _move_entries(temporary, folder)
                for name in old:
                    _remove(folder / name)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def filled_file(path: Path) -> Iterator[Path]:
    """Temporary file to write, in the place of ``path`` if the body ends well."""
    with readable_errors(path), _parents(path):
        # the ending stays: writers read the format from it
        temporary = _beside(path).with_suffix(path.suffix)
        try:
            yield temporary
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _move_entries(temporary: Path, folder: Path) -> None:
    """Each entry by one rename; the run's own record last, as it vouches for them."""
    for entry in sorted(temporary.iterdir(), key=lambda entry: entry.name == RUN):
        final = folder / entry.name
        if final.is_dir() or entry.is_dir():
            old = _beside(final)
            if final.exists():
                os.replace(final, old)
            os.replace(entry, final)
            _remove(old)
        else:
            os.replace(entry, final)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait for a few renames, so that no two runs are mixed."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is ever interrupted
        return
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path) -> Path:
    """A name of this process in the same folder, so that renaming is one step."""
    return path.absolute().with_name(f".{path.name}.{os.getpid()}.tmp")


@contextlib.contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Make the folders above; those made for nothing are removed again."""
    absent = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in absent:
            with contextlib.suppress(OSError):  # not empty: somebody else's by now
                parent.rmdir()
        raise


# ---- fingerprints ----------------------------------------------------------------


def fingerprints(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder but its record, by its relative name."""
    return {
        path.relative_to(folder).as_posix(): _fingerprint(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / RUN
    }


def _fingerprint(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _recorded(folder: Path, command: str) -> dict[str, str] | None:
    """Fingerprints that an earlier run of the command recorded, if it was one."""
    record = _read_record(folder)
    return record["files"] if record.get("command") == command else None


def _read_record(folder: Path) -> dict[str, Any]:
    """The record of a run; empty where there is none that makes sense."""
    try:
        record = json.loads((folder / RUN).read_text(encoding="utf-8"))
        known = record["schema"] == SCHEMA and isinstance(record["files"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(record) if known else {}


@contextlib.contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Errors of the file system as E140."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(
            "E140", f'cannot write to "{path}": {reason}', "choose another --out"
        ) from error
