"""Find data files, read tables without pandas, hand out one bunch."""

import csv
import gzip
import lzma
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

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
