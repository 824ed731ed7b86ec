"""Fetch an archive from a public host, check it, and unpack it."""

import hashlib
import os
import sys
import tarfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from shoal.datasets.extend import DATA_DIR

BLOCK = 1 << 20
#: A file or folder that is given; None: where the environment says.
Place = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Archive:
    """A tar archive on a public host.

    Attributes
    ----------
    url : str
        Where it is.
    md5 : str
        Its checksum as the host publishes it.
    megabytes : int
        Its size, for the message.
    """

    url: str
    md5: str
    megabytes: int


def target_folder(path: Place) -> Path:
    """Folder that downloads are unpacked into: ``path``, or SHOAL_DATA_DIR."""
    if path is not None:
        return Path(path)
    root = os.environ.get(DATA_DIR)
    if not root:
        raise ValueError(
            f"download=True needs a place: give path, or set {DATA_DIR} to a folder"
        )
    return Path(root)


def fetch(archive: Archive, folder: Path, *, progress: bool = True) -> None:
    """Download an archive, compare its checksum, and unpack it into ``folder``.

    Nothing is unpacked from an archive that is not the expected one, and no member
    may write outside ``folder``.

    Raises
    ------
    OSError
        When the host cannot be reached or the disk is full.
    ValueError
        When what came is not the file that the checksum is of.
    """
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{Path(archive.url).name}.{os.getpid()}.part"
    try:
        got = _download(archive, partial, progress)
        if got != archive.md5:
            raise ValueError(
                f"{archive.url} has checksum md5 {got}, expected {archive.md5}; try "
                "again, or place the files by hand"
            )
        with tarfile.open(partial) as tar:
            tar.extractall(folder, filter="data")
    finally:
        partial.unlink(missing_ok=True)


def _download(archive: Archive, target: Path, progress: bool) -> str:
    """Write the archive to a file; its md5 checksum comes back."""
    digest = hashlib.md5(usedforsecurity=False)
    done, shown = 0, -1
    try:
        with urllib.request.urlopen(archive.url) as source, open(target, "wb") as file:
            while block := source.read(BLOCK):
                file.write(block)
                digest.update(block)
                done += len(block)
                tenth = int(10 * done / (archive.megabytes * 1e6))
                if progress and tenth > shown:
                    shown = tenth
                    name = Path(archive.url).name
                    text = f"{name}: {done / 1e6:.0f} of {archive.megabytes} MB"
                    print(text, file=sys.stderr)
    except urllib.error.URLError as error:
        raise OSError(
            f"{archive.url} cannot be reached ({error.reason}); fetch it elsewhere and "
            "unpack it where the loader looks"
        ) from error
    return digest.hexdigest()
