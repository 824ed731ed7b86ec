"""Files and folders that are either whole or not there."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

__all__ = ["take_place", "whole_file", "whole_folder"]


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
