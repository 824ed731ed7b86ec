"""Find data files, read tables without pandas, read folders of images; one bunch."""

import csv
import gzip
import lzma
import os
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shoal.exceptions import CodedWarning, IdentifiabilityWarning, InputError
from shoal.io._files import join
from shoal.io._images import ImageList, decode, inner_folders, judge_bad, list_images
from shoal.io.table._table import Message

Array = np.ndarray[Any, Any]

#: Name of the environment variable that says where data files lie.
DATA_DIR = "SHOAL_DATA_DIR"


def find_file(
    names: Sequence[str],
    path: str | os.PathLike[str] | None,
    *,
    what: str,
    how: str,
    folders: Sequence[str | os.PathLike[str]] = ("",),
    system: str | None = None,
) -> Path:
    """Find a data file, or say what to place where.

    Parameters
    ----------
    names : sequence of str
        Names the file may have, the preferred one first.
    path : path or None
        The file itself or the folder that holds it. With None the folders of
        ``SHOAL_DATA_DIR`` are searched, then ``system``.
    what : str
        The data set, for the message.
    how : str
        How the file is had, for the message.
    folders : sequence of paths, default=("",)
        Folders inside ``SHOAL_DATA_DIR``.
    system : str or None, default=None
        A folder where a package of the operating system puts the file.

    Returns
    -------
    pathlib.Path
    """
    if path is not None and Path(path).is_file():
        return Path(path)
    for folder in _search_folders(path, folders, system):
        for name in names:
            if (folder / name).is_file():
                return folder / name
    raise FileNotFoundError(_absent_message(names[0], path, what, how))


def read_table(path: Path, columns: Sequence[str]) -> dict[str, Array]:
    """Columns of a csv, csv.gz or csv.xz file as text.

    Every cell stays text: ``NA`` may be a species, and an empty cell is for the
    caller to judge.
    """
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8", newline="") as lines:  # type: ignore[operator]
            rows = list(csv.reader(lines))
    except (EOFError, OSError, UnicodeDecodeError, csv.Error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged or not a table: {error}") from error
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    absent = [name for name in columns if name not in header]
    if absent:
        raise ValueError(
            f"{path} has no column {absent[0]!r}; its first line has {header[:8]}"
        )
    for number, row in enumerate(body, start=2):
        if len(row) != len(header):
            raise ValueError(
                f"{path} is damaged: line {number} has {len(row)} cells, the first "
                f"line {len(header)}"
            )
    places = [header.index(name) for name in columns]
    return {
        name: np.array([row[place] for row in body], dtype=str)
        for name, place in zip(columns, places, strict=True)
    }


def to_numbers(text: Array) -> Array:
    """Text as float64; empty cells and ``NA`` become NaN."""
    missing = np.isin(text, ("", "NA"))
    return np.where(missing, "nan", text).astype(np.float64)


def describe(name: str, **facts: str) -> dict[str, str]:
    """What a data set is and its licence, from ``data/about.toml``.

    ``facts`` are filled in where the description names them in braces.
    """
    about = Path(__file__).parent / "data" / "about.toml"
    found = tomllib.loads(about.read_text(encoding="utf-8"))[name]
    description = found["description"].format(**facts)
    return {"description": description, "licence": found["licence"]}


def table_bunch(
    features: Mapping[str, Array],
    domains: tuple[str, Array],
    labels: tuple[str, Array],
    *,
    description: str,
    licence: str,
    as_frame: bool = False,
) -> Bunch:
    """Bunch of a data set whose rows come from domains and have known labels.

    Parameters
    ----------
    features : mapping of str to ndarray of shape (n_samples,)
        Columns of X by name.
    domains, labels : tuple of (str, ndarray of shape (n_samples,))
        What they are called in the source, and their values.
    description, licence : str
        For people; the description says what was left out.
    as_frame : bool, default=False
        X as a pandas DataFrame, domains and labels as named Series.
    """
    X: Any = np.column_stack([*features.values()]).astype(np.float64)
    values: dict[str, Any] = {"domains": domains[1], "labels": labels[1]}
    if as_frame:
        import pandas as pd

        X = pd.DataFrame(X, columns=[*features])
        values = {
            "domains": pd.Series(domains[1], name=domains[0]),
            "labels": pd.Series(labels[1], name=labels[0]),
        }
    return Bunch(
        X=X,
        **values,
        feature_names=[*features],
        domain_name=domains[0],
        label_name=labels[0],
        description=description,
        licence=licence,
    )


def _search_folders(
    path: str | os.PathLike[str] | None,
    folders: Sequence[str | os.PathLike[str]],
    system: str | None,
) -> list[Path]:
    """Folders to look into: only the given one, or the known ones."""
    if path is not None:
        return [Path(path)]
    root = os.environ.get(DATA_DIR)
    inside = [Path(root, folder) for folder in folders] if root else []
    return [*inside, Path(system)] if system else inside


def _absent_message(
    name: str, path: str | os.PathLike[str] | None, what: str, how: str
) -> str:
    if path is not None:
        where = f"path={os.fspath(path)!r} is neither {name} nor a folder that holds it"
    elif os.environ.get(DATA_DIR):
        where = f"{name} is not in {DATA_DIR}={os.environ[DATA_DIR]}"
    else:
        where = f"path is None and {DATA_DIR} is not set"
    return f"{what} needs {name}: {where}; {how}"


# ---- folders of image files: root/domain/*.jpg or root/domain/class/*.jpg ------------


def load_image_folder(
    path: str | os.PathLike[str],
    size: int | None = None,
    *,
    domain_from: str | None = None,
    skip_bad: bool = False,
) -> Bunch:
    """Load images that lie in one folder per domain.

    Parameters
    ----------
    path : path
        ``path/domain/*.jpg``, or ``path/domain/class/*.jpg`` when true classes are
        known. Greyscale and transparent images become RGB of 8 bits; greyscale of
        16 bits is rescaled, floats cannot be read.
    size : int or None, default=None
        Height and width that every image is cut and resized to; None: as they are,
        which needs all of one square size.
    domain_from : str or None, default=None
        Regular expression whose first group is the domain, searched in the path below
        ``path``, instead of the first folder. Folders inside the first are then
        still taken for classes.
    skip_bad : bool, default=False
        Leave unreadable files out even when they are more than 1 in 100.

    Returns
    -------
    bunch : :class:`~sklearn.utils.Bunch`
        ``X`` (n, size, size, 3) uint8, ``domains``, ``labels`` (names of the inner
        folders, for scoring only, or None), ``files`` (paths below ``path``),
        ``skipped``, ``description``, ``licence``.
    """
    listed = find_images(path, domain_from=domain_from, skip_bad=skip_bad)
    pixels, readable = decode(listed.paths, size or common_size(listed))
    warn(check_readable(listed, readable, skip_bad=skip_bad))
    return Bunch(
        X=pixels,
        **describe_rows(listed, readable),
        description=f"Images of {listed.root.name}, one folder per domain.",
        licence="that of the images",
    )


def find_images(
    path: str | os.PathLike[str],
    *,
    domain_from: str | None = None,
    skip_bad: bool = False,
) -> ImageList:
    """List a folder of images; what is odd about it is said as warnings."""
    root = Path(path)
    if not root.is_dir():
        raise InputError(
            "E101", f'no folder "{root}"', "give the folder that holds the domains"
        )
    listed = list_images(root, domain_from=domain_from, skip_bad=skip_bad)
    warn(listed.messages, stacklevel=4)
    text, hint = lone_images(listed.domains)
    if text:
        warnings.warn(f"{text}; {hint}", IdentifiabilityWarning, stacklevel=3)
    return listed


def warn(messages: Sequence[Message], stacklevel: int = 3) -> None:
    """Say what is odd about images, to the caller of the caller."""
    for message in messages:
        said = CodedWarning(message.code, message.text, message.hint)
        warnings.warn(said, stacklevel=stacklevel)


def lone_images(domains: Array) -> tuple[str, str]:
    """What to say of domains with one image, and what to do; empty without any."""
    names, counts = np.unique(domains.astype(str), return_counts=True)
    alone = [f'"{name}"' for name in names[counts == 1]]
    if not alone:
        return "", ""
    who = f"domain {alone[0]} has one image, which says"
    if len(alone) > 1:
        who = f"domains {join(alone, 3)} have one image each, which says"
    hint = "add images or move it into another domain"
    return f"{who} nothing of its class mix", hint


def check_readable(
    listed: ImageList, readable: Array, *, skip_bad: bool
) -> list[Message]:
    """E143 when too many of all files turned out to be bad, W128 when some did.

    Those whose heads are bad were judged when the folder was listed; they count again.
    """
    bad = [name for name, ok in zip(listed.names, readable, strict=True) if not ok]
    if not bad:
        return []
    n_files = len(listed.names) + len(listed.skipped)
    return judge_bad(listed.root, [*listed.skipped, *bad], n_files, skip_bad)


def describe_rows(listed: ImageList, readable: Array) -> dict[str, Any]:
    """Domains, labels (inner folders, or None), files and skipped files."""
    names = np.array(listed.names)
    labels = inner_folders(names[readable].tolist())
    return {
        "domains": listed.domains[readable].astype(str),
        "labels": None if labels is None else labels.astype(str),
        "files": names[readable],
        "skipped": [*listed.skipped, *names[~readable].tolist()],
    }


def read_class_folders(
    root: Path,
    classes: Sequence[str],
    size: int,
    *,
    keep: Callable[[int], Array] | None = None,
    skip_bad: bool = False,
) -> tuple[Array, Array, Array]:
    """Images of ``root/<class>/*`` for the classes asked for.

    Parameters
    ----------
    root : Path
        Holds a folder per class.
    classes : sequence of str
        Folders to read.
    size : int
        Height and width.
    keep : callable or None, default=None
        From the number of files of a class to the places of those wanted, in order of
        name.
    skip_bad : bool, default=False
        As :func:`load_image_folder`.

    Returns
    -------
    images : ndarray of shape (n, size, size, 3), dtype uint8
    labels : ndarray of shape (n,)
        Places in ``classes``.
    files : ndarray of shape (n,)
        Paths below ``root``, sorted within a class.
    """
    paths: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(classes):
        inside = sorted(p for p in (root / name).iterdir() if p.is_file())
        if keep is not None:
            inside = [inside[place] for place in keep(len(inside))]
        paths += inside
        labels += [label] * len(inside)
    images, readable = decode(paths, size)
    files = np.array([path.relative_to(root).as_posix() for path in paths])
    warn(judge_bad(root, files[~readable].tolist(), len(files), skip_bad))
    return images, np.array(labels, dtype=np.intp)[readable], files[readable]


def common_size(listed: ImageList) -> int:
    """Side of the images, which must be squares of one size (E124)."""
    sizes = sorted({(int(w), int(h)) for w, h in listed.sizes})
    if len(sizes) == 1 and sizes[0][0] == sizes[0][1]:
        return sizes[0][0]
    shown = ", ".join(f"{w} x {h}" for w, h in sizes[:3])
    raise InputError(
        "E124",
        f"images must be squares of one size; found {shown}",
        "give size, such as size=64 (--size 64), to cut and resize all of them",
    )
