"""A Parquet data set as an ordered list of parts, each small enough to work on."""

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join, require
from shoal.io.source._open import find_file, is_path
from shoal.io.source._others import arrow_chunks, readable_errors
from shoal.scale._settings import SETTINGS

ENDINGS = (".parquet", ".pq")


@dataclass(frozen=True)
class Part:
    """Some row groups of one file.

    Attributes
    ----------
    number : int
        From 0, in the data set.
    path : str
    name : str
        The path from the folder of the data set: what a row is known by stays the same
        when that folder moves.
    row_groups : tuple of int
    first : int
        Rows before it in its file.
    start : int
        Rows before it in the data set.
    n_rows : int
    keys : tuple of (str, value)
        Columns that the names of folders say, as in ``site=A``.
    """

    number: int
    path: str
    name: str
    row_groups: tuple[int, ...]
    first: int
    start: int
    n_rows: int
    keys: tuple[tuple[str, Any], ...] = ()

    def frames(self, columns: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Its rows in batches; the index counts the rows of the data set."""
        keys = {name: value for name, value in self.keys if name in columns}
        stored = [name for name in columns if name not in keys]
        if not stored:  # all that is asked for stands in the name of its folder
            rows = pd.RangeIndex(self.start, self.start + self.n_rows)
            yield pd.DataFrame(keys, index=rows)
            return
        for frame in arrow_chunks(
            Path(self.path),
            "parquet",
            batch_rows=SETTINGS.batch_rows,
            columns=stored,
            row_groups=self.row_groups,
            start=self.start,
        ):
            yield frame.assign(**keys) if keys else frame


@dataclass(frozen=True)
class Parts:
    """All parts, in order.

    Attributes
    ----------
    parts : tuple of Part
    columns : tuple of str
        Also those that folders name.
    files : tuple of (str, int, int, int)
        Name, bytes, time of change and rows of every file: what a checkpoint is of.
    source : str
        As it was given.
    """

    parts: tuple[Part, ...]
    columns: tuple[str, ...]
    files: tuple[tuple[str, int, int, int], ...]
    source: str

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' own records."""
        return sum(part.n_rows for part in self.parts)

    @property
    def n_bytes(self) -> int:
        """Size of all files."""
        return sum(size for _, size, _, _ in self.files)

    def first_frame(self) -> pd.DataFrame:
        """Some rows with all columns, to see what they are like."""
        return next(self.parts[0].frames(self.columns))


def holds_parquet(data: Any) -> bool:
    """Whether ``data`` is a folder of Parquet files, or a pattern of their names."""
    if not is_path(data):
        return False
    path = Path(data)
    if path.is_dir():
        return next(_below(path), None) is not None
    return not path.exists() and bool(glob.has_magic(str(data)) and _matching(data))


def list_parts(data: Any, *, part_rows: int = SETTINGS.part_rows) -> Parts:
    """Cut a data set into parts, by the records at the end of its files.

    Parameters
    ----------
    data : path or list of paths
        Parquet files: one, several, a folder (also with folders such as ``site=A``
        inside), or a pattern such as ``"rows/*.parquet"``.
    part_rows : int
        Row groups that follow each other in a file share a part up to this many rows.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pd.DataFrame({"x": range(10)}).to_parquet(f"{folder}/rows.parquet")
    ...     parts = list_parts(folder)
    >>> parts.n_rows, parts.columns, len(parts.parts)
    (10, ('x',), 1)
    """
    root, paths = _files(data)
    dataset = require("pyarrow.dataset", "parquet", "reading parquet data sets")
    with readable_errors(root, "parquet"):
        found = dataset.dataset([str(path) for path in paths], partitioning="hive")
        listed = [
            _Listed(fragment, root, dataset) for fragment in found.get_fragments()
        ]
    columns = tuple(dict.fromkeys(listed[0].columns))
    parts: list[Part] = []
    for one in listed:
        one.refuse_other_columns(columns, listed[0])
        start = parts[-1].start + parts[-1].n_rows if parts else 0
        parts += one.parts(len(parts), start, part_rows)
    if not parts:
        raise InputError("E114", f'"{root}" has no rows', "check how it was made")
    shown = join([str(one) for one in data]) if isinstance(data, list) else str(data)
    return Parts(tuple(parts), columns, tuple(one.record for one in listed), shown)


class _Listed:
    """One file: what its name and its own record say of it."""

    def __init__(self, fragment: Any, root: Path, dataset: Any) -> None:
        keys = dataset.get_partition_keys(fragment.partition_expression)
        self.path = Path(fragment.path)
        self.keys = tuple(sorted(keys.items()))
        self.sizes = [group.num_rows for group in fragment.row_groups]
        self.schema = fragment.physical_schema
        stored = list(self.schema.names)
        self.columns = [*stored, *(name for name in keys if name not in stored)]
        self.name = os.path.relpath(self.path, root).replace(os.sep, "/")
        about = self.path.stat()
        self.record = (self.name, about.st_size, about.st_mtime_ns, sum(self.sizes))

    def refuse_other_columns(self, columns: Sequence[str], first: "_Listed") -> None:
        absent = [name for name in columns if name not in self.columns]
        if absent:
            raise InputError(
                "E107",
                f'"{self.path}" has no column "{absent[0]}", which "{first.path}" has',
                "give all files the same columns",
            )
        pyarrow = require("pyarrow", "parquet", "reading parquet data sets")
        for field in first.schema:
            own = self.schema.field(field.name)
            try:
                both = [pyarrow.schema([field]), pyarrow.schema([own])]
                pyarrow.unify_schemas(both, promote_options="permissive")
            except pyarrow.ArrowException as error:
                raise InputError(
                    "E119",
                    f'"{field.name}" is {own.type} in "{self.path}", {field.type} in '
                    f'"{first.path}"',
                    "give all files the same types",
                ) from error

    def parts(self, number: int, start: int, part_rows: int) -> Iterator[Part]:
        """Its row groups, as many together as ``part_rows`` allows."""
        groups: list[int] = []
        first = n_rows = 0
        for group, size in enumerate([*self.sizes, None]):
            if groups and (size is None or n_rows + size > part_rows):
                yield Part(
                    number,
                    str(self.path),
                    self.name,
                    tuple(groups),
                    first,
                    start + first,
                    n_rows,
                    self.keys,
                )
                groups, first, n_rows = [], first + n_rows, 0
                number += 1
            if size:
                groups.append(group)
                n_rows += size


def _files(data: Any) -> tuple[Path, list[Path]]:
    """The folder that names are counted from, and the files in the order of names."""
    if isinstance(data, (list, tuple)) and data and all(map(is_path, data)):
        paths = [find_file(one).absolute() for one in data]
        return _shared_folder(paths), paths
    if not is_path(data) or str(data) == "-":
        raise InputError(
            "E002",
            "work in parts needs Parquet files",
            "pass a file, a folder or a pattern such as 'rows/*.parquet'",
        )
    if glob.has_magic(str(data)) and not Path(data).exists():
        paths = _matching(data)
        if not paths:
            raise InputError("E101", f'no file matches "{data}"', "check the pattern")
        return _shared_folder(paths), paths
    path = find_file(data).absolute()
    if path.is_file():
        if path.suffix not in ENDINGS:
            raise InputError(
                "E002",
                f'"{path}" is not a Parquet file, and only these are read in parts',
                "write it as Parquet, or use --engine memory",
            )
        return path.parent, [path]
    paths = sorted(_below(path))
    if not paths:
        raise InputError(
            "E002",
            f'"{path}" holds no Parquet files',
            "work in parts reads files that end with .parquet",
        )
    return path, paths


def _shared_folder(paths: list[Path]) -> Path:
    return Path(os.path.commonpath([path.parent for path in paths]))


def _matching(pattern: Any) -> list[Path]:
    found = sorted(glob.glob(str(pattern), recursive=True))
    files = (Path(one).absolute() for one in found if Path(one).suffix in ENDINGS)
    return [path for path in files if path.is_file()]


def _below(folder: Path) -> Iterator[Path]:
    """Parquet files of a folder; names that begin with a dot or _ are not data."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder).parts
        if path.suffix in ENDINGS and not any(one[0] in "._" for one in inside):
            if path.is_file():
                yield path
