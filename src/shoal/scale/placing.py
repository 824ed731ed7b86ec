"""Where predictions go: out of sight until they are whole, and nothing else harmed."""

import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.exceptions import CodedError, InputError, ModelFileError
from shoal.io.atomic import take_place
from shoal.scale.parts import Parts
from shoal.scale.store import digest_of

__all__ = ["DONE", "discard", "publish", "refuse_place", "unfinished", "unless_refused"]

#: Folder of what was counted, beside the parts it was counted in.
DONE = "_done"
# Of a part that is being written; a worker that was killed leaves it.
HALF = r"\.part-\d+\.parquet\.\w+\.tmp"
# Entries of a folder that predict has written.
OWN = re.compile(rf"part-\d+\.parquet|{DONE}|{HALF}")


def refuse_place(out: Path, data: Any, parts: Parts, *, force: bool) -> None:
    """E136 where something is that may not be replaced; data may not, even by force."""
    place, hint = out.resolve(), "choose another path"
    given = data if isinstance(data, (list, tuple)) else [data]
    folders = [Path(one).resolve() for one in given if Path(one).is_dir()]
    files = [Path(part.path).resolve() for part in parts.parts]
    if any(one.is_relative_to(place) for one in (*folders, *files)):
        raise CodedError("E136", f'"{out}" is or holds the data', hint)
    for folder in folders:
        # names that begin with a dot or _ are not data there
        inside = place.is_relative_to(folder) and place.relative_to(folder).parts
        if inside and not any(name[0] in "._" for name in inside):
            raise CodedError("E136", f'"{out}" lies among the data', hint)
    if not out.exists():
        return
    if not force:
        raise CodedError("E136", f'"{out}" exists already', f"--force, or {hint}")
    if out.is_dir():
        other = [one.name for one in out.iterdir() if not OWN.fullmatch(one.name)]
        if other:
            text = f'"{out}" holds "{min(other)}", which is no prediction'
            raise CodedError("E136", text, hint)


def unfinished(out: Path, settings: Mapping[str, Any], checkpoint: Any) -> Path:
    """Folder of finished parts until all are; its name says what they depend on."""
    key = digest_of(settings)
    if checkpoint is not None:
        return Path(checkpoint).absolute() / f"predicted-{key}"
    return out.absolute().with_name(f".{out.name}.{key}.partial")


@contextmanager
def unless_refused(folder: Path) -> Iterator[None]:
    """Leave nothing where data do not suit the model: other data make other parts.

    Whatever else stops the body leaves finished parts, for a second call.
    """
    try:
        yield
    except (InputError, ModelFileError):
        discard(folder)
        raise


def publish(folder: Path, out: Path, *, keep: bool) -> None:
    """Give a whole folder its place and name; what was there before goes last.

    With ``keep`` the parts also stay where they are, without taking room twice where
    the file system can share files.
    """
    whole = folder
    if keep:
        whole = out.absolute().with_name(f".{out.name}.{folder.name[-16:]}.partial")
        discard(whole)
        whole.mkdir(parents=True)
        for part in folder.glob("part-*.parquet"):
            _share(part, whole / part.name)
    else:
        shutil.rmtree(folder / DONE)
        for entry in folder.iterdir():
            if re.fullmatch(HALF, entry.name):
                entry.unlink()
    take_place(whole, out, _old_name(whole))
    _sweep(out)


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another disk, or one without links
        shutil.copy2(source, target)


def _sweep(out: Path) -> None:
    """Remove what was replaced, and what calls that were killed have left of this name.

    Parts of the same settings were taken over before; those of others nobody wants,
    now that the name is given.
    """
    name = re.escape(out.name)
    own = re.compile(rf"\.{name}\.[0-9a-f]{{16}}(\.[0-9a-f]{{8}})*\.(partial|old)")
    for entry in out.absolute().parent.iterdir():
        if own.fullmatch(entry.name):
            discard(entry)


def discard(path: Path) -> None:
    """Remove a folder or file, if it is there.

    A folder is renamed first: a worker that has not ended cannot write to it any more.
    """
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return
    gone = _old_name(path)
    os.replace(path, gone)
    shutil.rmtree(gone)


def _old_name(path: Path) -> Path:
    """A name that nobody has, and that :func:`_sweep` knows."""
    return path.with_suffix(f".{uuid.uuid4().hex[:8]}.old")
