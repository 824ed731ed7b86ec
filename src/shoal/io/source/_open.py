"""From a path, several, standard input or an object in memory to what it holds."""

import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import (
    digest,
    digest_file,
    join,
    nearest,
    pieces_of,
    refuse_special,
)
from shoal.io._images import holds_images
from shoal.io._options import SourceOptions
from shoal.io.source._anndata import H5AD, take_anndata
from shoal.io.source._arrays import MTX, NPY, NPZ, matrix_content
from shoal.io.source._cytometry import FCS
from shoal.io.source._delimited import CSV, TSV, read_delimited
from shoal.io.source._format import Content, Format, is_sparse, refuse_disguised
from shoal.io.source._others import FEATHER, JSONL, PARQUET, SAS, STATA, XLSX

#: Every format that can be read, by its name.
FORMATS: dict[str, Format] = {}


def register(format: Format) -> None:
    """Make a format known to everything that reads files."""
    FORMATS[format.name] = format


_TABLES = (CSV, TSV, JSONL, PARQUET, FEATHER, XLSX, STATA, SAS)
for _format in (*_TABLES, NPY, NPZ, H5AD, MTX, FCS):
    register(_format)


def is_path(data: Any) -> bool:
    """Whether ``data`` names a file or folder rather than being a table."""
    return isinstance(data, (str, Path))


def are_paths(data: Any) -> bool:
    """Whether ``data`` is a list of files."""
    return isinstance(data, (list, tuple)) and bool(data) and all(map(is_path, data))


def find_file(data: Any) -> Path:
    """The path, if there is such a file or folder; else E101 with the nearest name."""
    path = Path(data)
    if os.path.exists(path):  # False also for a name too long for any file
        refuse_special(path)
        return path
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    close = nearest(path.name, beside)
    hint = f'did you mean "{path.with_name(close)}"?' if close else "check the path"
    raise InputError("E101", f'no file or folder "{path}"', hint)


def format_of(path: Path, name: str | None = None) -> Format:
    """The format of a file by its ending, unless its name was told."""
    if name is not None:
        if name not in FORMATS:
            raise InputError(
                "E102", f'there is no format "{name}"', f"use {', '.join(FORMATS)}"
            )
        return FORMATS[name]
    found = next((one for one in FORMATS.values() if one.takes(path)), None)
    if found is None:
        refuse_disguised(path, str(path))
        raise InputError(
            "E102",
            f'cannot tell the format of "{path}"',
            f"add --format {'|'.join(FORMATS)}, or give its name the usual ending",
        )
    return found


def guess_rows(paths: Sequence[Any]) -> float | None:
    """About how many rows some files have together, without reading them.

    None where nothing can be said of one of them.
    """
    guesses = [_guess_rows(Path(path)) for path in paths]
    known = [guess for guess in guesses if guess is not None]
    return sum(known) if len(known) == len(guesses) else None


def _guess_rows(path: Path) -> float | None:
    found = next((one for one in FORMATS.values() if one.takes(path)), None)
    if found is None or found.n_rows is None or not path.is_file():
        return None
    return found.n_rows(path)


def open_content(data: Any, options: SourceOptions) -> Content:
    """Everything that a path, several paths, standard input or a table holds."""
    if are_paths(data):
        return _one(data[0], options) if len(data) == 1 else _several(data, options)
    return _one(data, options) if is_path(data) else _object(data, options)


def _one(data: Any, options: SourceOptions) -> Content:
    if str(data) == "-":
        return _standard_input(options)
    path = find_file(data)
    if path.is_dir():
        return _folder(path, options)
    format = format_of(path, options.format)
    if options.sheet is not None and format is not XLSX:
        raise InputError("E002", f'"{path}" has no sheets', "leave --sheet out")
    content = format.read(path, options)
    if not content.n_rows:
        raise InputError("E114", f'"{path}" has no rows', "check how it was made")
    source = _source(content, digest_file(path), path.stat().st_size, path=str(path))
    return replace(content, source=source)


def _source(content: Content, fingerprint: str, n_bytes: int, **where: Any) -> Any:
    """Where content is from and how large it is, as a table tells it."""
    rows = content.n_rows
    return {**where, "fingerprint": fingerprint, "rows": rows, "bytes": n_bytes}


# ---- several files, standard input, folders ------------------------------------------


def _several(paths: Any, options: SourceOptions) -> Content:
    """Files below each other; each is a domain unless a column says otherwise."""
    parts = [_one(path, replace(options, sample=None)) for path in paths]
    if any(part.matrix is not None or part.kind != "table" for part in parts):
        raise InputError(
            "E002",
            "several files must be tables with named columns",
            "put arrays into one npz file, and texts or images into one folder",
        )
    columns = list(parts[0].frame.columns)
    for path, part in zip(paths, parts, strict=True):
        absent = [name for name in columns if name not in part.frame.columns]
        if absent:
            raise InputError(
                "E107",
                f'"{path}" has no column "{absent[0]}", which "{paths[0]}" has',
                "give all files the same columns",
            )
    by_file = None if options.domain else _free_name("file", columns)
    frames = [
        part.frame[columns].assign(**({by_file: name} if by_file else {}))
        for name, part in zip(file_names(paths), parts, strict=True)
    ]
    content = Content(
        frame=pd.concat(frames, ignore_index=True),
        by_file=by_file,
        messages=tuple(message for part in parts for message in part.messages),
        decimal=next((part.decimal for part in parts if part.decimal), None),
    )
    source = _source(
        content,
        join([part.source["fingerprint"] for part in parts], 1_000),
        sum(part.source["bytes"] for part in parts),
        paths=[str(path) for path in paths],
    )
    return replace(content, source=source)


def file_names(paths: Any) -> list[str]:
    """A name for each of several files: without folder and endings, if that will do."""
    stems = [Path(path).name.partition(".")[0] for path in paths]
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    return [str(Path(path).with_suffix("")) for path in paths]


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _standard_input(options: SourceOptions) -> Content:
    if options.format not in (None, "csv", "tsv"):
        raise InputError(
            "E102", f"standard input is read as CSV, not {options.format}", "use a file"
        )
    text = b"".join(pieces_of(sys.stdin.buffer, "standard input"))
    content = read_delimited(io.BytesIO(text), options)
    source = _source(content, digest(text), len(text), path="-")
    return replace(content, source=source)


def _folder(path: Path, options: SourceOptions) -> Content:
    if holds_images(path):
        return Content(frame=pd.DataFrame(), kind="images", source={"path": str(path)})
    texts = sorted(text for text in path.glob("*/**/*.txt") if text.is_file())
    if texts:
        return _texts(path, texts)
    samples = sorted(one for one in path.glob("**/*.fcs") if one.is_file())
    if samples:
        return _several(samples, options)
    raise InputError(
        "E101",
        f'no images or texts below "{path}"; expected {path}/<domain>/*.jpg or *.txt',
        "check the folder, or name the file inside it",
    )


def _texts(root: Path, paths: list[Path]) -> Content:
    """One row per text file below root/<domain>/, with its path as its id."""
    rows = []
    for path in paths:
        place = path.relative_to(root)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(
                "E143",
                f'"{path}" is not UTF-8 (byte {error.start})',
                "save it as UTF-8",
            ) from error
        rows.append((place.parts[0], place.as_posix(), text))
    frame = pd.DataFrame(rows, columns=["domain", "path", "text"])
    content = Content(frame=frame, kind="text")
    source = _source(
        content,
        digest("\0".join(row) for row in rows),
        int(frame["text"].str.len().sum()),
        path=str(root),
    )
    return replace(content, source=source)


# ---- Tables, arrays and AnnData objects that are in memory already -------------------


def _object(data: Any, options: SourceOptions) -> Content:
    """Content of a pandas, polars or pyarrow table, AnnData object or array."""
    if hasattr(data, "obs") and hasattr(data, "X"):
        return take_anndata(data, options)
    if isinstance(data, np.ndarray) or is_sparse(data):
        content = matrix_content(data, options)
        values = content.matrix.data if is_sparse(data) else data
        known, n_bytes = pd.DataFrame({"x": np.ravel(values)}), values.nbytes
    else:
        content = _table(data)
        known = content.frame
        n_bytes = known.memory_usage(index=False).sum()
    source = _source(content, digest(_columns(known)), int(n_bytes), path=None)
    return replace(content, source=source)


def _table(data: Any) -> Content:
    """A pandas frame whose index counts the rows, of any kind of table."""
    ids = None
    if isinstance(data, pd.DataFrame):
        frame = data.reset_index(drop=True)
        ids = None if isinstance(data.index, pd.RangeIndex) else np.asarray(data.index)
    elif type(data).__module__.partition(".")[0] == "polars":
        # Through numpy: polars' own way to pandas needs pyarrow as well.
        eager = data.collect() if hasattr(data, "collect") else data
        frame = pd.DataFrame({name: eager[name].to_numpy() for name in eager.columns})
    elif hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    else:
        raise TypeError(
            "data must be a path, a list of paths, '-', an array, or a pandas, polars "
            f"or pyarrow table, got {type(data).__name__}"
        )
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    repeated = frame.columns[frame.columns.duplicated()].tolist()
    if repeated:
        raise InputError(
            "E107",
            f"the table has several columns called {join(repeated)}",
            "rename or remove the copies",
        )
    if frame.empty:
        raise InputError("E114", "the table has no rows", "check how it was made")
    return Content(frame=frame, ids=ids)


def _columns(frame: pd.DataFrame) -> Any:
    """Names and values of the columns, the same for equal frames: for a digest."""
    for name in frame.columns:
        yield repr(name)
        try:
            hashed = pd.util.hash_array(frame[name].to_numpy())
        except (TypeError, ValueError):  # lists and other values that do not hash
            hashed = pd.util.hash_array(frame[name].astype(str).to_numpy(dtype=object))
        yield hashed.tobytes()
