"""JSON lines: one object a line, its keys the columns."""

import io
import itertools
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_memory
from shoal.io._limits import opened
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, readable, sampled


def read_jsonl(path: Path, options: SourceOptions) -> Content:
    """A whole file, or rows drawn from all of it."""
    frames = jsonl_chunks(path, options, batch_rows=READING.batch_rows)
    if options.sample is not None:
        return Content(frame=sampled(frames, options.sample, options.seed))
    check_memory(path.stat().st_size / READING.bytes_per_cell, f'"{path}"')
    found = list(frames)
    return Content(frame=pd.concat(found) if found else pd.DataFrame())


def jsonl_chunks(
    path: Path, options: SourceOptions, *, batch_rows: int
) -> Iterator[pd.DataFrame]:
    """Frames of at most ``batch_rows`` rows; a key that a line lacks has no value."""
    start = 0
    broken = (OSError, EOFError, zlib.error, ValueError, LookupError)
    with readable(path, broken, "jsonl"):
        objects = _objects(path, options.encoding)
        while rows := list(itertools.islice(objects, batch_rows)):
            index = pd.RangeIndex(start, start + len(rows))
            yield pd.DataFrame.from_records(rows, index=index)
            start += len(rows)


def _objects(path: Path, encoding: str) -> Iterator[dict[str, Any]]:
    """Every line that is not blank, as an object; anything else is E143."""
    with opened(path) as packed, io.TextIOWrapper(packed, encoding) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                found = json.loads(line)
            except (ValueError, RecursionError):
                found = None
            if not isinstance(found, dict):
                raise InputError(
                    "E143",
                    f'line {number} of "{path}" is not a JSON object',
                    'write one object a line, such as {"site": "a", "text": "..."}',
                )
            yield found


def _pieces(
    path: Path, options: SourceOptions, *, batch_rows: int, **_: Any
) -> Iterator[Content]:
    chunks = jsonl_chunks(path, options, batch_rows=batch_rows)
    return (Content(frame=frame) for frame in chunks)


JSONL = Format(
    "jsonl",
    (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    read=read_jsonl,
    pieces=_pieces,
)
