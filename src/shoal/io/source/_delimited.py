"""CSV and TSV files: what can be wrong with them is said before pandas says it."""

import codecs
import contextlib
import csv
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import PIECE, check_memory, has_end, join, opened
from shoal.io._notation import has_commas
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, refuse_disguised, sampled
from shoal.io.table._table import Message

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Enough for any header, and for a look at the first row.
HEAD_BYTES = 1 << 20
# Enough to see how long a line is.
LOOK_BYTES = 1 << 16

DEFAULT, WESTERN = "utf-8", "cp1252"

# Before pandas 3.1, numbers are off by some last digits unless one asks; since then,
# asking is deprecated.
_OLD = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}

#: A path, or the bytes of standard input.
File = Path | io.BytesIO


def read_delimited(file: File, options: SourceOptions) -> Content:
    """A whole CSV or TSV file, or rows drawn from all of it."""
    layout = look(file, options)
    if options.sample is not None:
        frames = csv_chunks(file, options, layout, batch_rows=READING.batch_rows)
        frame = sampled(frames, options.sample, options.seed)
    else:
        if isinstance(file, Path):
            check_memory(_n_cells(file, options, layout.separator), f'"{file}"')
        frame = next(csv_chunks(file, options, layout, batch_rows=None))
    told = layout.messages(file, options)
    return Content(frame=frame, decimal=layout.found_decimal, messages=told)


def csv_chunks(
    file: File,
    options: SourceOptions,
    layout: "Layout | None" = None,
    *,
    batch_rows: int | None,
    columns: list[str] | None = None,
    as_text: set[str] | None = None,
) -> Iterator[pd.DataFrame]:
    """Frames of at most ``batch_rows`` rows (None: one frame), indices running on.

    Parameters
    ----------
    file : path or BytesIO
    options : SourceOptions
    layout : Layout, default=None
        Of the file, if it was looked at already.
    batch_rows : int or None
    columns : list of str, default=None
        The only ones to keep; None for all.
    as_text : set of str, default=None
        Columns whose cells stay text; None for those that the options name.
    """
    layout = look(file, options) if layout is None else layout
    header, options = layout.header, replace(options, encoding=layout.encoding)
    as_text = options.text_columns if as_text is None else as_text
    n_rows = 0
    with _opened(file) as handle:
        with _plain_errors(file, options, layout.separator):
            reader = pd.read_csv(
                handle,
                sep=layout.separator,
                decimal=layout.decimal,
                encoding=options.encoding,
                header=0,
                names=header,
                index_col=False,
                dtype={name: str for name in header if name in as_text},
                na_values=list(options.missing),
                keep_default_na=False,
                low_memory=False,
                **EXACT,
                chunksize=batch_rows,
            )
        frames: Iterator[Any] = iter(reader if batch_rows else [reader])
        while True:
            with _plain_errors(file, options, layout.separator):
                frame = next(frames, None)
            if frame is None:
                break
            if not n_rows and frame.empty:
                raise _no_rows(file)
            n_rows += len(frame)
            # Not by usecols, with which pandas overlooks rows that are too long.
            yield frame if columns is None else frame[columns]
    if not n_rows:
        raise _no_rows(file)


# ---- how a file is laid out ----------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """What the first lines of a file tell.

    Attributes
    ----------
    header : list of str
        Column names, checked: some, no two alike, and not the first row of numbers.
    separator : str
    decimal : {".", ","}
    found_decimal : str or None
        The same, where the lines show it: points are no evidence, whole numbers may
        follow.
    encoding : str
    """

    header: list[str]
    separator: str
    decimal: str
    found_decimal: str | None
    encoding: str

    def messages(self, file: File, options: SourceOptions) -> tuple[Message, ...]:
        """W147 where the encoding is a guess."""
        if self.encoding == options.encoding or self.encoding != WESTERN:
            return ()
        text = (
            f'"{name_of(file)}" is not UTF-8; it is read as {WESTERN} (Western Europe)'
        )
        hint = "add --encoding (cp1250, cp1251, ...) if names or words look wrong"
        return (Message("W147", text, hint),)


def look(file: File, options: SourceOptions) -> Layout:
    """Find the separator, the names of the columns, and the decimal sign."""
    told = _told_separator(options)
    _check_encoding(options)
    if not (isinstance(file, Path) and file.suffix == ".gz"):
        refuse_disguised(file, name_of(file))
    usual = _usual_separator(file, options)
    with _plain_errors(file, options, told or usual), _opened(file) as handle:
        head = handle.read(HEAD_BYTES)
        while not has_end(head) and (more := handle.read(HEAD_BYTES)):
            head += more
        encoding = _encoding_of(head, options)
        text = _decoded(head, encoding).removeprefix("\ufeff")
        separator = told or _find_separator(text, usual)
        header = next(_rows(text, separator), [])
    if not header or not text.strip():
        raise InputError(
            "E114", f'"{name_of(file)}" is empty', "check the export that made it"
        )
    _check_separator(header, separator)
    decimal = options.decimal or _find_decimal(text, separator, options)
    names = check_names(f'"{name_of(file)}"', header)
    return Layout(names, separator, decimal or ".", decimal, encoding)


def read_header(file: File, options: SourceOptions) -> list[str]:
    """Names of the columns."""
    return look(file, options).header


def _n_cells(file: Path, options: SourceOptions, separator: str) -> float:
    """About how many cells a file has; a packed one is unpacked to count them."""
    if file.suffix != ".gz":
        return file.stat().st_size / READING.bytes_per_cell
    n_bytes = n_cells = 0
    with _plain_errors(file, options, separator), _opened(file) as handle:
        while piece := handle.read(PIECE):
            n_bytes += len(piece)
            n_cells += piece.count(separator.encode()) + piece.count(b"\n")
    return max(n_bytes / READING.bytes_per_cell, n_cells)


def _no_rows(file: File) -> InputError:
    return InputError(
        "E114",
        f'"{name_of(file)}" has a header but no rows',
        "check the export or filter that made it",
    )


def name_of(file: File) -> str:
    """What to call the file in a message."""
    return str(file) if isinstance(file, Path) else "standard input"


def _told_separator(options: SourceOptions) -> str | None:
    if options.sep is None:
        return None
    separator = options.sep.replace("\\t", "\t")
    if len(separator) != 1:
        raise InputError(
            "E002", f"sep={options.sep!r} is not one character", "use ';' or '\\t'"
        )
    return separator


def _usual_separator(file: File, options: SourceOptions) -> str:
    """That of files with such a name."""
    tabs = options.format is None and isinstance(file, Path) and TSV.takes(file)
    return "\t" if tabs or options.format == "tsv" else ","


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Lines that are not empty, cut into cells."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return (row for row in rows if row)


def _first_rows(text: str, separator: str) -> list[list[str]]:
    """The first rows of a head, without its last one, which may be cut off."""
    found: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        for row in _rows(text, separator):
            found.append(row)
            if len(found) > READING.look_rows:
                break
    return found[:-1] if len(found) > 2 else found


def _find_separator(text: str, usual: str) -> str:
    """The separator that splits the first lines most often, all of them alike.

    Names and cells may hold another one many times (k__Bacteria|p__Firmicutes). Where
    commas split as often as something else, they are decimal commas.
    """
    found = {one: _splits(text, one) for one in SEPARATORS}
    best = max(found, key=lambda one: (found[one], one != ",", one == usual))
    return best if found[best] else usual


def _splits(text: str, separator: str) -> int:
    """How often a separator splits line 1, if it splits the next lines as often."""
    rows = _first_rows(text, separator)
    return len(rows[0]) - 1 if len(rows) > 1 and len(set(map(len, rows))) == 1 else 0


def _find_decimal(text: str, separator: str, options: SourceOptions) -> str | None:
    """A comma where cells of the first rows show it; None where nothing does."""
    empty = options.notation.empty
    for cells in zip(*_first_rows(text, separator)[1:], strict=False):
        found = {cell.strip() for cell in cells}.difference(empty)
        if has_commas(found, few=separator != ","):
            return ","
    return None


def _check_separator(header: list[str], separator: str) -> None:
    """Raise E143 where another separator is the likely one."""
    if len(header) > 1:
        return
    found = {other: header[0].count(other) for other in SEPARATORS}
    likely = max(found, key=found.__getitem__)
    if likely != separator and found[likely]:
        shown = "\\t" if likely == "\t" else likely
        raise InputError(
            "E143",
            f"only 1 column found; line 1 holds {found[likely]} {SEPARATORS[likely]}",
            f"add --sep '{shown}' (sep in Python), or the one meant",
        )


def check_names(source: str, header: list[str]) -> list[str]:
    """Names of columns, if no two are alike and they are not the first row of numbers.

    Parameters
    ----------
    source : str
        What to call the table.
    header : list of str
    """
    # R and pandas write row numbers under no name at all.
    names = [cell.strip() or f"Unnamed: {place}" for place, cell in enumerate(header)]
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputError(
            "E107",
            f"{source} has several columns called {join(repeated)}",
            "rename or remove the copies",
        )
    if all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", name) for name in names):
        raise InputError(
            "E143",
            f"the first line of {source} holds numbers, not column names",
            "add a header line that names the columns",
        )
    return names


@contextlib.contextmanager
def _opened(file: File) -> Iterator[BinaryIO]:
    if isinstance(file, io.BytesIO):
        file.seek(0)
        yield file
        return
    with opened(file) as handle:
        yield handle


@contextlib.contextmanager
def _plain_errors(file: File, options: SourceOptions, separator: str) -> Iterator[None]:
    """Errors of decoding and parsing, as coded ones that say where."""
    name = name_of(file)
    try:
        with warnings.catch_warnings():
            # The one warning is about rows longer than the header, cut short.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnicodeError as error:
        raise _undecodable(file, options) from error
    except (pd.errors.ParserWarning, pd.errors.ParserError, csv.Error) as error:
        raise _unparsable(file, options, separator, str(error)) from error
    except (EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            "E143", f'"{name}" cannot be read: {reason}', "check or replace the file"
        ) from error


def _check_encoding(options: SourceOptions) -> None:
    """Raise E143 for what is no encoding, or one of bytes such as base64."""
    try:
        "a".encode(options.encoding)
    except (LookupError, ValueError) as error:
        text = f"there is no encoding {options.encoding[:40]!r} of text"
        hint = "use utf-8, latin-1 or utf-16"
        raise InputError("E143", text, hint) from error


def _encoding_of(head: bytes, options: SourceOptions) -> str:
    """The encoding of a file of which nobody told one, by its first bytes.

    Spreadsheets write UTF-8, UTF-16 with its mark or, under Western Europe's Windows,
    cp1252. There letters beyond ASCII stand alone or in pairs among others; words made
    of such letters are of another alphabet, which nothing here can name.
    """
    if options.encoding != DEFAULT:
        return options.encoding
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    with contextlib.suppress(UnicodeError):
        _decoded(head, DEFAULT)
        return DEFAULT
    if re.search(rb"[\x80-\xff]{3}|[\0-\x08\x0e-\x1f]", head):
        return DEFAULT
    with contextlib.suppress(UnicodeError):
        _decoded(head, WESTERN)
        return WESTERN
    return DEFAULT


def _decoded(head: bytes, encoding: str) -> str:
    # Cut off inside a character, a head must not look broken: not "final".
    return codecs.getincrementaldecoder(encoding)().decode(head)


def _undecodable(file: File, options: SourceOptions) -> InputError:
    hint = "add --encoding (cp1252, cp1250, cp1251, ...), or save the file as UTF-8"
    with _opened(file) as handle:
        for number, line in enumerate(handle, start=1):
            try:
                line.decode(options.encoding)
            except UnicodeError as error:
                where = error.start if isinstance(error, UnicodeDecodeError) else 0
                text = f"byte 0x{line[where]:02X} at line {number} is not "
                return InputError("E143", text + _encoding_name(options), hint)
    text = f'"{name_of(file)}" is not {_encoding_name(options)}'
    return InputError("E143", text, hint)


def _encoding_name(options: SourceOptions) -> str:
    return "UTF-8" if options.encoding == DEFAULT else options.encoding


def _unparsable(
    file: File, options: SourceOptions, separator: str, reason: str
) -> InputError:
    """Name the first line whose number of cells differs from the header's."""
    hint = "check the line for a separator or a quote too many"
    with _opened(file) as handle:
        text = io.TextIOWrapper(handle, options.encoding, newline="")
        rows = csv.reader(text, delimiter=separator)
        with contextlib.suppress(csv.Error):
            expected = 0
            for row in rows:
                expected = expected or len(row)
                if len(row) > expected:
                    text_ = f"line {rows.line_num} has {len(row)} cells, the header "
                    text_ += f"{expected}"
                    text.detach()
                    return InputError("E143", text_, hint)
        text.detach()
    return InputError("E143", f'"{name_of(file)}" cannot be split: {reason}', hint)


# ---- the formats ---------------------------------------------------------------------


def _pieces(file: File, options: SourceOptions, **how: Any) -> Iterator[Content]:
    layout = look(file, options)
    told = layout.messages(file, options)
    for frame in csv_chunks(file, options, layout, **how):
        yield Content(frame=frame, messages=told)
        told = ()


def _n_lines(path: Path) -> float | None:
    """About how many lines there are, by the length of the first ones."""
    if path.suffix == ".gz":
        return None
    with path.open("rb") as file:
        head = file.read(LOOK_BYTES)
    return path.stat().st_size * max(head.count(b"\n"), 1) / max(len(head), 1)


CSV, TSV = (
    Format(
        name,
        tuple(f".{ending}{packed}" for ending in endings for packed in ("", ".gz")),
        read=read_delimited,
        pieces=_pieces,
        columns=read_header,
        n_rows=_n_lines,
    )
    # spreadsheets call text with tabs .txt; separators are found in any of them
    for name, endings in {"csv": ("csv", "txt"), "tsv": ("tsv", "tab")}.items()
)
