"""Parquet and Feather (Arrow) files, whole or in batches of bounded size."""

import contextlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from shoal.io._files import check_memory, require
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, readable, sampled

# Columns are read piece by piece: otherwise whole row groups, a million rows by
# default, come into memory at once (measured: 120 MiB instead of 300 for 20 columns).
BOUNDED = {"pre_buffer": False, "buffer_size": 1 << 18}


def columns_of(path: Path, format: str) -> list[str]:
    """Column names, without reading a row."""
    with _opened(path, format) as file:
        return list((file.schema_arrow if format == "parquet" else file.schema).names)


def n_rows_of(path: Path, format: str) -> int:
    """Number of rows, from the file's own record where it has one."""
    with _opened(path, format) as file:
        if format == "parquet":
            return int(file.metadata.num_rows)
        batches = range(file.num_record_batches)
        return sum(file.get_batch(index).num_rows for index in batches)


def read_columnar(path: Path, options: SourceOptions, *, format: str) -> Content:
    """A whole file, or rows drawn from all of it."""
    if options.sample is not None:
        frames = read_chunks(path, format, batch_rows=READING.batch_rows)
        return Content(frame=sampled(frames, options.sample, options.seed))
    n_columns = len(columns_of(path, format))
    check_memory(n_rows_of(path, format) * n_columns, f'"{path}"')
    with _opened(path, format) as file:
        table = file.read() if format == "parquet" else file.read_all()
        return Content(frame=_to_pandas(table))


def read_chunks(
    path: Path,
    format: str,
    *,
    batch_rows: int,
    columns: list[str] | None = None,
    row_groups: Sequence[int] | None = None,
    start: int = 0,
) -> Iterator[pd.DataFrame]:
    """Frames of at most ``batch_rows`` rows, indices running on from ``start``.

    ``row_groups`` are those of a Parquet file to read; all when None.
    """
    with _opened(path, format) as file:
        for batch in _batches(file, format, batch_rows, columns, row_groups):
            frame = _to_pandas(batch)
            frame.index = pd.RangeIndex(start, start + len(frame))
            start += len(frame)
            yield frame


def _batches(
    file: Any,
    format: str,
    batch_rows: int,
    columns: list[str] | None,
    row_groups: Sequence[int] | None,
) -> Iterator[Any]:
    if format == "parquet":
        yield from file.iter_batches(
            batch_rows, row_groups=row_groups, columns=columns, use_threads=False
        )
        return
    for index in range(file.num_record_batches):
        batch = file.get_batch(index)
        batch = batch if columns is None else batch.select(columns)
        for first in range(0, batch.num_rows, batch_rows):
            yield batch.slice(first, batch_rows)


@contextlib.contextmanager
def _opened(path: Path, format: str) -> Iterator[Any]:
    """A ParquetFile or an Arrow file reader; its errors become E143."""
    purpose = f"reading {format} files"
    with readable_errors(path, format):
        pyarrow = require("pyarrow", "parquet", purpose)
        if format == "parquet":
            parquet = require("pyarrow.parquet", "parquet", purpose)
            with parquet.ParquetFile(path, **BOUNDED) as file:
                yield file
        else:
            with pyarrow.memory_map(str(path)) as source:
                yield pyarrow.ipc.open_file(source)


def readable_errors(path: Path, format: str) -> contextlib.AbstractContextManager[None]:
    """Whatever Arrow says of a file it cannot read, as E143."""
    pyarrow = require("pyarrow", "parquet", f"reading {format} files")
    broken = (pyarrow.ArrowException, OSError, ValueError, KeyError)
    return readable(path, broken, format, ", or name its format with --format")


def _to_pandas(table: Any) -> pd.DataFrame:
    # Arrow's compiled code trusts offsets: those of a damaged file lead anywhere.
    table.validate(full=True)
    # An index that pandas stored is a column like any other; dates keep their kind.
    return table.to_pandas(ignore_metadata=True)


def _pieces(
    path: Path, options: SourceOptions, *, format: str, as_text: Any = None, **how: Any
) -> Iterator[Content]:
    return (Content(frame=frame) for frame in read_chunks(path, format, **how))


def _columnar(name: str, *endings: str) -> Format:
    return Format(
        name,
        endings,
        read=partial(read_columnar, format=name),
        pieces=partial(_pieces, format=name),
        columns=lambda path, options: columns_of(path, name),
        n_rows=partial(n_rows_of, format=name),
    )


PARQUET = _columnar("parquet", ".parquet", ".pq")
FEATHER = _columnar("feather", ".feather", ".arrow")
