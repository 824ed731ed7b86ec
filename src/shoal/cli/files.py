"""Results on disk: all files of a run or none, and nobody else's files harmed."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from shoal.cli.messages import CommandError
from shoal.cli.output import SCHEMA

__all__ = ["SUMMARY", "fingerprint", "refuse_foreign_files", "write_files"]

#: The file that says which files a run wrote, by name and fingerprint.
SUMMARY = "summary.json"


def fingerprint(text: str | bytes) -> str:
    """SHA-256 of a file's content."""
    content = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(content).hexdigest()


def refuse_foreign_files(folder: Path, names: Iterable[str], command: str) -> None:
    """Raise E136 if a file about to be written exists and is not this command's own.

    A command's own file is one whose fingerprint the folder's summary records: an
    earlier run may be replaced, a file that somebody changed since may not.
    """
    with _readable_errors(folder):
        if folder.exists() and not folder.is_dir():
            raise CommandError(
                "E140", f'"{folder}" is a file, not a folder', "choose another --out"
            )
        own = _recorded(folder, command)
        foreign = [
            name
            for name in names
            if (folder / name).exists()
            and (name not in own or own[name] != _content_print(folder / name))
        ]
    if foreign:
        raise CommandError(
            "E136",
            f'"{folder}" already holds {", ".join(foreign)}, not written by '
            f"`shoal {command}` or changed since",
            "add --force to overwrite, or choose another --out",
        )


def write_files(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write every file under a temporary name, then rename them in the given order.

    Whatever stops it earlier, an error or Ctrl-C, leaves no temporary file behind, and
    every file is either whole or as it was before.
    """
    with _readable_errors(folder):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        waiting: list[tuple[Path, Path]] = []
        try:
            for name, text in texts.items():
                temporary = folder / f".{name}.{os.getpid()}.tmp"
                waiting.append((temporary, folder / name))
                temporary.write_text(text, encoding="utf-8", newline="")
            for temporary, final in waiting:
                os.replace(temporary, final)
        except BaseException:
            for temporary, _ in waiting:
                temporary.unlink(missing_ok=True)
            if made:
                with contextlib.suppress(OSError):  # not empty: somebody else's by now
                    folder.rmdir()
            raise
    return [folder / name for name in texts]


def _recorded(folder: Path, command: str) -> dict[str, str]:
    """Fingerprints in the folder's summary if an earlier run of the command wrote it.

    The summary cannot hold its own, so it is taken by its word.
    """
    path = folder / SUMMARY
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        if (summary["schema"], summary["command"]) != (SCHEMA, command):
            return {}
        own = dict(summary["fingerprints"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return {}
    return own | {SUMMARY: _content_print(path)}


def _content_print(path: Path) -> str:
    return fingerprint(path.read_bytes())


@contextlib.contextmanager
def _readable_errors(folder: Path) -> Iterator[None]:
    """Errors of the file system as E140."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandError(
            "E140",
            f'cannot write to "{folder}": {reason}',
            "choose another folder with --out",
        ) from error
