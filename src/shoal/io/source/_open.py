"""From a path to what it holds: which format, which reader, how many rows."""

import hashlib
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_memory, join, nearest
from shoal.io._images import holds_images
from shoal.io.source import _columnar as columnar
from shoal.io.source import _delimited as delimited
from shoal.io.source._anndata import read_h5ad
from shoal.io.source._arrays import map_npy, read_mtx, read_npy, read_npz, take
from shoal.io.source._delimited import refuse_disguised
from shoal.io.source._options import Content, Options, fingerprint_file
from shoal.io.source._text import read_text_folder

#: Endings, and the format that each stands for; .gz may follow a text format.
ENDINGS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npy": "npy",
    ".npz": "npz",
    ".h5ad": "h5ad",
    ".mtx": "mtx",
}
FORMATS = ("csv", "tsv", "parquet", "feather", "npy", "npz", "h5ad", "mtx")
SAMPLE_BATCH = 65_536
# Bytes of text that one number of a table takes, seen often; .gz makes six of one.
BYTES_PER_CELL = 6.0


def is_path(data: Any) -> bool:
    """Whether ``data`` names a file or folder rather than being a table."""
    return isinstance(data, (str, Path))


def open_content(data: Any, options: Options) -> Content:
    """Everything that a path, several paths, standard input or a table holds."""
    if isinstance(data, (list, tuple)) and data and all(map(is_path, data)):
        return _one(data[0], options) if len(data) == 1 else _several(data, options)
    return _one(data, options) if is_path(data) else take(data, options)


def recognise(path: Path, format: str | None) -> str:
    """The format of a file by its ending, unless it was told."""
    if format is not None:
        if format not in FORMATS:
            raise InputError(
                "E102", f'there is no format "{format}"', f"use {', '.join(FORMATS)}"
            )
        return format
    endings = [ending.lower() for ending in path.suffixes]
    if endings[-1:] == [".gz"] and endings[-2:-1] in ([".csv"], [".tsv"], [".mtx"]):
        endings = endings[:-1]
    known = ENDINGS.get(endings[-1]) if endings else None
    if known is None:
        refuse_disguised(path, str(path))
        raise InputError(
            "E102",
            f'cannot tell the format of "{path}"',
            f"add --format {'|'.join(FORMATS)}",
        )
    return known


def find_file(data: Any) -> Path:
    """The path, if there is such a file or folder; else E101 with the nearest name."""
    path = Path(data)
    if path.exists():
        return path
    beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
    close = nearest(path.name, beside)
    hint = f'did you mean "{path.with_name(close)}"?' if close else "check the path"
    raise InputError("E101", f'no file or folder "{path}"', hint)


def file_names(paths: Any) -> list[str]:
    """A name for each of several files: without folder and endings, if that will do."""
    stems = [Path(path).name.partition(".")[0] for path in paths]
    if len(set(stems)) == len(stems) and all(stems):
        return stems
    return [str(Path(path).with_suffix("")) for path in paths]


def _several(paths: Any, options: Options) -> Content:
    """Files below each other; each is a domain unless a column says otherwise."""
    parts = [_one(path, replace(options, sample=None)) for path in paths]
    if any(part.matrix is not None or part.kind != "table" for part in parts):
        raise InputError(
            "E002",
            "several files must be tables with named columns",
            "put arrays into one npz file, and texts or images into one folder",
        )
    first = parts[0].frame
    for path, part in zip(paths, parts, strict=True):
        absent = [name for name in first.columns if name not in part.frame.columns]
        if absent:
            raise InputError(
                "E107",
                f'"{path}" has no column "{absent[0]}", which "{paths[0]}" has',
                "give all files the same columns",
            )
    names = file_names(paths)
    by_file = None if options.domain else _free_name("file", list(first.columns))
    frames = [
        part.frame[first.columns].assign(**({by_file: name} if by_file else {}))
        for name, part in zip(names, parts, strict=True)
    ]
    frame = pd.concat(frames, ignore_index=True)
    source = {
        "paths": [str(path) for path in paths],
        "fingerprint": join([part.source["fingerprint"] for part in parts], 1_000),
        "rows": len(frame),
        "bytes": sum(part.source["bytes"] for part in parts),
    }
    if options.sample is not None and len(frame) > options.sample:
        rng = np.random.default_rng(options.seed)
        rows = np.sort(rng.choice(len(frame), options.sample, replace=False))
        frame = frame.iloc[rows]
    return Content(frame=frame, source=source, by_file=by_file)


def _one(data: Any, options: Options) -> Content:
    if str(data) == "-":
        return _from_stdin(options)
    path = find_file(data)
    if path.is_dir():
        return _from_folder(path, options)
    format = recognise(path, options.format)
    if format == "npy":  # before it is read for its fingerprint
        mapped = map_npy(path)
        check_memory(mapped.size if options.sample is None else 0, f'"{path}"')
    source = {
        "path": str(path),
        "fingerprint": fingerprint_file(path),
        "bytes": path.stat().st_size,
    }
    readers = {"npy": read_npy, "npz": read_npz, "h5ad": read_h5ad, "mtx": read_mtx}
    if format in readers:
        content = readers[format](path, options)
    else:
        content = Content(frame=_read_table(path, format, options))
    if not content.n_rows:
        raise InputError("E114", f'"{path}" has no rows', "check how it was made")
    return replace(content, source={**source, "rows": content.n_rows})


def _read_table(path: Path, format: str, options: Options) -> pd.DataFrame:
    if options.sample is not None:
        return _sampled(_chunks(path, format, options), options.sample, options.seed)
    if format in ("csv", "tsv"):
        unpacked = path.stat().st_size * (6 if path.suffix == ".gz" else 1)
        check_memory(unpacked / BYTES_PER_CELL, f'"{path}"')
        return delimited.read_delimited(path, replace(options, format=format))
    n_columns = len(columnar.columns_of(path, format))
    check_memory(columnar.n_rows_of(path, format) * n_columns, f'"{path}"')
    return columnar.read_columnar(path, format)


def _chunks(path: Path, format: str, options: Options) -> Iterator[pd.DataFrame]:
    if format in ("csv", "tsv"):
        told = replace(options, format=format)
        return delimited.read_chunks(path, told, batch_rows=SAMPLE_BATCH)
    return columnar.read_chunks(path, format, batch_rows=SAMPLE_BATCH)


def _sampled(frames: Iterator[pd.DataFrame], n_rows: int, seed: int) -> pd.DataFrame:
    """So many rows, all sets of them equally likely, from one pass in bounded memory.

    Every row draws a number, and the rows with the smallest numbers stay.
    """
    rng = np.random.default_rng(seed)
    kept: list[tuple[Any, pd.DataFrame]] = []
    waiting = 0

    def shrink() -> None:
        keys = np.concatenate([key for key, _ in kept])
        rows = pd.concat([frame for _, frame in kept])
        best = np.sort(np.argpartition(keys, min(n_rows, len(keys)) - 1)[:n_rows])
        kept[:] = [(keys[best], rows.iloc[best])]

    for frame in frames:
        kept.append((rng.random(len(frame)), frame))
        waiting += len(frame)
        if waiting > 4 * n_rows + SAMPLE_BATCH:
            shrink()
            waiting = n_rows
    shrink()
    return kept[0][1]


def _from_stdin(options: Options) -> Content:
    content = sys.stdin.buffer.read()
    if options.format not in (None, "csv", "tsv"):
        raise InputError(
            "E102", f"standard input is read as CSV, not {options.format}", "use a file"
        )
    frame = delimited.read_delimited(io.BytesIO(content), options)
    source = {
        "path": "-",
        "fingerprint": hashlib.sha256(content).hexdigest(),
        "rows": len(frame),
        "bytes": len(content),
    }
    if options.sample is not None:
        frame = _sampled(iter([frame]), options.sample, options.seed)
    return Content(frame=frame, source=source)


def _from_folder(path: Path, options: Options) -> Content:
    if holds_images(path):
        return Content(frame=pd.DataFrame(), kind="images", source={"path": str(path)})
    if next(path.glob("*/**/*.txt"), None) is not None:
        return read_text_folder(path)
    raise InputError(
        "E101",
        f'no images or texts below "{path}"; expected {path}/<domain>/*.jpg or *.txt',
        "check the folder, or name the file inside it",
    )


def _free_name(name: str, taken: list[str]) -> str:
    while name in taken:
        name += "_"
    return name
