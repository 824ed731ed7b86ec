"""Excel sheets, and files of Stata and SAS: tables that other programs write."""

import zipfile
import zlib
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_memory, join, nearest, require
from shoal.io._limits import check_archive
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._delimited import check_names
from shoal.io.source._format import Content, Format, readable

#: What libraries raise about files that are not what they claim to be.
BROKEN = (
    OSError, EOFError, KeyError, ValueError, TypeError, IndexError, AttributeError,
    OverflowError, NotImplementedError, ParseError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


# ---- Excel ---------------------------------------------------------------------------


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
