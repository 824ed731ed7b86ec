"""Tables that are not CSV: Parquet and Arrow, JSON lines, sheets, Stata and SAS."""

import contextlib
import io
import itertools
import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_archive, check_memory, join, nearest, opened, require
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._delimited import check_names
from shoal.io.source._format import Content, Format, readable, sampled

# ---- Parquet and Feather (Arrow): whole or in batches of bounded size ----------------

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
        frames = arrow_chunks(path, format, batch_rows=READING.batch_rows)
        return Content(frame=sampled(frames, options.sample, options.seed))
    n_columns = len(columns_of(path, format))
    check_memory(n_rows_of(path, format) * n_columns, f'"{path}"')
    with _opened(path, format) as file:
        table = file.read() if format == "parquet" else file.read_all()
        return Content(frame=_to_pandas(table))


def arrow_chunks(
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


def _arrow_pieces(
    path: Path, options: SourceOptions, *, format: str, as_text: Any = None, **how: Any
) -> Iterator[Content]:
    return (Content(frame=frame) for frame in arrow_chunks(path, format, **how))


def _columnar(name: str, *endings: str) -> Format:
    return Format(
        name,
        endings,
        read=partial(read_columnar, format=name),
        pieces=partial(_arrow_pieces, format=name),
        columns=lambda path, options: columns_of(path, name),
        n_rows=partial(n_rows_of, format=name),
    )


PARQUET = _columnar("parquet", ".parquet", ".pq")
FEATHER = _columnar("feather", ".feather", ".arrow")

# ---- JSON lines: one object a line, its keys the columns -----------------------------


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


def _line_pieces(
    path: Path, options: SourceOptions, *, batch_rows: int, **_: Any
) -> Iterator[Content]:
    chunks = jsonl_chunks(path, options, batch_rows=batch_rows)
    return (Content(frame=frame) for frame in chunks)


JSONL = Format(
    "jsonl",
    (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"),
    read=read_jsonl,
    pieces=_line_pieces,
)

# ---- Excel ---------------------------------------------------------------------------

#: What libraries raise about files that are not what they claim to be.
BROKEN = (
    OSError, EOFError, KeyError, ValueError, TypeError, IndexError, AttributeError,
    OverflowError, NotImplementedError, ParseError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_workbook(path: Path, options: SourceOptions) -> Content:
    """The one sheet of a workbook that holds a table, or the one that was named."""
    openpyxl = require("openpyxl", "excel", "reading Excel files")
    with readable(path, BROKEN, "an Excel workbook"):
        check_archive(path, READING.bytes_per_sheet_cell)
        workbook = openpyxl.load_workbook(path, data_only=True)
        try:
            for sheet in workbook.worksheets:  # a far cell makes all before it
                check_memory(sheet.max_row * sheet.max_column, f'"{path}"')
            return Content(frame=_frame(_sheet(workbook, path, options.sheet)))
        finally:
            workbook.close()


def _sheet(workbook: Any, path: Path, name: str | None) -> Any:
    sheets = {sheet.title: sheet for sheet in workbook.worksheets}
    if name is not None:
        if name not in sheets:
            close = nearest(name, sheets)
            hint = f'nearest: "{close}"' if close else f"sheets: {join(list(sheets))}"
            raise InputError("E107", f'no sheet "{name}" in "{path}"', hint)
        return sheets[name]
    filled = [title for title, sheet in sheets.items() if _is_filled(sheet)]
    if not filled:
        raise InputError("E114", f'"{path}" is empty', "check the export that made it")
    if len(filled) > 1:
        raise InputError(
            "E143",
            f'"{path}" has {len(filled)} sheets: {join(filled)}',
            f'--sheet "{filled[0]}", or the one meant',
        )
    return sheets[filled[0]]


def _is_filled(sheet: Any) -> bool:
    rows = sheet.iter_rows(values_only=True)
    return any(cell is not None for row in rows for cell in row)


def _frame(sheet: Any) -> pd.DataFrame:
    """Columns of a sheet by the names in its first line that is not empty."""
    rows = list(sheet.iter_rows(values_only=True))
    lines = [place for place, row in enumerate(rows) if any(map(_is_value, row))]
    name = f'the sheet "{sheet.title}"'
    if not lines:
        raise InputError("E114", f"{name} is empty", "check the export that made it")
    _refuse_merged(sheet, lines[0] + 1)
    _refuse_title(name, rows, lines)
    if len(lines) == 1:
        hint = "check the export or filter that made it"
        raise InputError("E114", f"{name} has a header but no rows", hint)
    table = [rows[place] for place in lines]
    used = [
        place
        for place in range(len(table[0]))
        if any(_is_value(row[place]) for row in table)
    ]
    header = ["" if table[0][one] is None else str(table[0][one]) for one in used]
    columns = check_names(name, header)
    cells = ([row[place] for row in table[1:]] for place in used)
    frame = pd.DataFrame(dict(zip(columns, cells, strict=True)))
    return frame.infer_objects()


def _is_value(cell: Any) -> bool:
    return cell is not None and str(cell).strip() != ""


def _refuse_merged(sheet: Any, header: int) -> None:
    """Raise E143 for merged cells: only the first of them has a value."""
    for merged in sorted(sheet.merged_cells.ranges, key=lambda one: one.min_row):
        what = "unmerge them, and write the value into each of them"
        if merged.min_row <= header:
            what = "unmerge them: one line, with a name of its own for each column"
        text = f'the cells {merged.coord} of the sheet "{sheet.title}" are merged'
        raise InputError("E143", text, what)


def _refuse_title(name: str, rows: list[Any], lines: list[int]) -> None:
    """Raise E143 where the first line is a title and not the names of columns."""
    widths = [sum(map(_is_value, rows[place])) for place in lines[:3]]
    if widths[0] == 1 and max(widths) > 1:
        raise InputError(
            "E143",
            f"line {lines[0] + 1} of {name} holds one cell, the next ones more",
            "remove titles above the line with the names of the columns",
        )


# ---- Stata and SAS -------------------------------------------------------------------


def read_stata(path: Path, options: SourceOptions) -> Content:
    """A file of Stata, its labels as words."""
    return _by_pandas(path, pd.read_stata, "a Stata file")


def read_sas(path: Path, options: SourceOptions) -> Content:
    """A file of SAS, as it is or for transport."""
    transport = path.suffix.lower() == ".xpt"
    how: dict[str, Any] = {"format": "xport", "encoding": options.encoding}
    if not transport:
        how = {"format": "sas7bdat", "encoding": "infer"}
    return _by_pandas(path, pd.read_sas, "a SAS file", **how)


def _by_pandas(path: Path, read: Any, what: str, **how: Any) -> Content:
    check_memory(path.stat().st_size / READING.bytes_per_cell, f'"{path}"')
    with readable(path, BROKEN, what):
        frame = read(path, **how)
    return Content(frame=frame.reset_index(drop=True))


XLSX = Format("xlsx", (".xlsx", ".xlsm"), read=read_workbook)
STATA = Format("stata", (".dta",), read=read_stata)
SAS = Format("sas", (".sas7bdat", ".xpt"), read=read_sas)
