"""CSV and TSV files: what can be wrong with them is said before pandas says it."""

import codecs
import contextlib
import csv
import gzip
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import check_memory, join
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format, sampled

# ---- Files that are not what their names say, told by their first bytes --------------

SHEET = "save the sheet as CSV"
UNPACK = "unpack it first"
#: First bytes, what such a file is, and what to do about it.
KINDS = (
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", SHEET),
    (b"\x1f\x8b", "packed by gzip", "unpack it, or end its name with .csv.gz"),
    (b"\xfd7zX", "packed by xz", UNPACK),
    (b"BZh", "packed by bzip2", UNPACK),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", UNPACK),
)
PARQUET = b"PAR1"
ZIP = b"PK\x03\x04"


def refuse_disguised(file: Path | io.BytesIO, name: str) -> None:
    """Raise E102 for a workbook, a Parquet file or an archive taken for text.

    Parameters
    ----------
    file : path or BytesIO
    name : str
        What to call it.
    """
    kind = _kind_of(file)
    if kind is None:
        return
    what, hint = kind
    if isinstance(file, io.BytesIO) and hint is not SHEET:
        hint = "pass the file by its name, or unpack it first"
    raise InputError("E102", f'"{name}" is {what}, not text', hint)


def _kind_of(file: Path | io.BytesIO) -> tuple[str, str] | None:
    """What a file is by its first bytes, and the fix; None where they say nothing."""
    head, tail = _ends_of(file)
    if head == tail == PARQUET:  # a column may be called PAR1
        return "a Parquet file", "add --format parquet"
    if head == ZIP:
        return _zipped(file)
    found = ((what, fix) for start, what, fix in KINDS if head.startswith(start))
    return next(found, None)


def _ends_of(file: Path | io.BytesIO) -> tuple[bytes, bytes]:
    """The first and the last four bytes."""
    if isinstance(file, io.BytesIO):
        with file.getbuffer() as content:
            return bytes(content[:4]), bytes(content[-4:])
    with contextlib.suppress(OSError), file.open("rb") as handle:
        head = handle.read(4)
        handle.seek(-len(head), io.SEEK_END)
        return head, handle.read(4)
    return b"", b""  # a reader says what is wrong with it


def _zipped(file: Any) -> tuple[str, str]:
    """Excel, numpy and others all pack what they write as zip archives."""
    names: list[str] = []
    # whatever is wrong with an archive, it is still one
    with contextlib.suppress(Exception), zipfile.ZipFile(file) as archive:
        names = archive.namelist()
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook", SHEET
    if names and all(name.endswith(".npy") for name in names):
        return "an archive of numpy arrays", "add --format npz"
    return "a zip archive", "unpack it; a sheet must be saved as CSV"


# ---- text with separators ------------------------------------------------------------

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
# Enough for any header, and for a look at the first row.
HEAD_BYTES = 1 << 20
# Enough to see how long a line is.
LOOK_BYTES = 1 << 16

# Before pandas 3.1, numbers are off by some last digits unless one asks; since then,
# asking is deprecated.
_OLD = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
EXACT: dict[str, Any] = {"float_precision": "round_trip"} if _OLD else {}

#: A path, or the bytes of standard input.
File = Path | io.BytesIO


def read_delimited(file: File, options: SourceOptions) -> Content:
    """A whole CSV or TSV file, or rows drawn from all of it."""
    if options.sample is not None:
        frames = read_chunks(file, options, batch_rows=READING.batch_rows)
        return Content(frame=sampled(frames, options.sample, options.seed))
    if isinstance(file, Path):
        times = READING.unpacked if file.suffix == ".gz" else 1
        n_cells = times * file.stat().st_size / READING.bytes_per_cell
        check_memory(n_cells, f'"{file}"')
    return Content(frame=next(read_chunks(file, options, batch_rows=None)))


def read_chunks(
    file: File,
    options: SourceOptions,
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
    batch_rows : int or None
    columns : list of str, default=None
        The only ones to keep; None for all.
    as_text : set of str, default=None
        Columns whose cells stay text; None for those that the options name.
    """
    header = read_header(file, options)
    as_text = options.text_columns if as_text is None else as_text
    n_rows = 0
    with _opened(file) as handle:
        with _plain_errors(file, options):
            reader = pd.read_csv(
                handle,
                sep=_separator(file, options),
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
            with _plain_errors(file, options):
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


def read_header(file: File, options: SourceOptions) -> list[str]:
    """Column names, checked: some, no two alike, and not the first row of numbers."""
    separator = _separator(file, options)
    if not (isinstance(file, Path) and file.suffix == ".gz"):
        refuse_disguised(file, name_of(file))
    with _plain_errors(file, options), _opened(file) as handle:
        head = handle.read(HEAD_BYTES)
        # Cut off inside a character, a head must not look broken: not "final".
        text = codecs.getincrementaldecoder(options.encoding)().decode(head)
        text = text.removeprefix("\ufeff")
        header = next(_rows(text, separator), [])
    if not header or not text.strip():
        raise InputError(
            "E114", f'"{name_of(file)}" is empty', "check the export that made it"
        )
    _check_separator(text, header, separator, told=options.sep is not None)
    return _check_names(file, header)


def _no_rows(file: File) -> InputError:
    return InputError(
        "E114",
        f'"{name_of(file)}" has a header but no rows',
        "check the export or filter that made it",
    )


def name_of(file: File) -> str:
    """What to call the file in a message."""
    return str(file) if isinstance(file, Path) else "standard input"


def _separator(file: File, options: SourceOptions) -> str:
    if options.sep is not None:
        separator = options.sep.replace("\\t", "\t")
        if len(separator) != 1:
            raise InputError(
                "E002", f"sep={options.sep!r} is not one character", "use ';' or '\\t'"
            )
        return separator
    tabs = options.format is None and isinstance(file, Path) and TSV.takes(file)
    return "\t" if tabs or options.format == "tsv" else ","


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    """Lines that are not empty, cut into cells."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return (row for row in rows if row)


def _check_separator(text: str, header: list[str], separator: str, told: bool) -> None:
    """Raise E143 where another separator is the likely one."""
    if len(header) == 1:
        found = {other: header[0].count(other) for other in SEPARATORS}
    elif told:
        return
    else:
        found = {other: _splits(text, other) for other in SEPARATORS}
    likely = max(found, key=found.__getitem__)
    if likely != separator and found[likely] >= len(header):
        shown = "\\t" if likely == "\t" else likely
        columns = "1 column" if len(header) == 1 else f"{len(header)} columns"
        raise InputError(
            "E143",
            f"only {columns} found; line 1 holds {found[likely]} {SEPARATORS[likely]}",
            f"add --sep '{shown}' (sep in Python), or the one meant",
        )


def _splits(text: str, separator: str) -> int:
    """How often a separator splits line 1, if it splits the next line as often.

    Names of columns may hold another one many times (k__Bacteria|p__Firmicutes).
    """
    with contextlib.suppress(csv.Error, StopIteration):
        rows = _rows(text, separator)
        first, second = next(rows), next(rows)
        return len(first) - 1 if len(first) == len(second) else 0
    return 0


def _check_names(file: File, header: list[str]) -> list[str]:
    # R and pandas write row numbers under no name at all.
    names = [cell.strip() or f"Unnamed: {place}" for place, cell in enumerate(header)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InputError(
            "E107",
            f'"{name_of(file)}" has several columns called {join(repeated)}',
            "rename or remove the copies",
        )
    if all(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", name) for name in names):
        raise InputError(
            "E143",
            f'the first line of "{name_of(file)}" holds numbers, not column names',
            "add a header line that names the columns",
        )
    return names


@contextlib.contextmanager
def _opened(file: File) -> Iterator[BinaryIO]:
    if isinstance(file, io.BytesIO):
        file.seek(0)
        yield file
        return
    opener: Any = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rb") as handle:
        yield handle


@contextlib.contextmanager
def _plain_errors(file: File, options: SourceOptions) -> Iterator[None]:
    """Errors of decoding and parsing, as coded ones that say where."""
    name = name_of(file)
    try:
        with warnings.catch_warnings():
            # The one warning is about rows longer than the header, cut short.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            yield
    except UnicodeError as error:
        raise _undecodable(file, options) from error
    except LookupError as error:
        raise InputError(
            "E143",
            f"there is no encoding {options.encoding!r}",
            "use utf-8, latin-1 or utf-16",
        ) from error
    except (pd.errors.ParserWarning, pd.errors.ParserError, csv.Error) as error:
        raise _unparsable(file, options, str(error)) from error
    except (EOFError, OSError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            "E143", f'"{name}" cannot be read: {reason}', "check or replace the file"
        ) from error


def _undecodable(file: File, options: SourceOptions) -> InputError:
    hint = "add --encoding latin-1, or save the file as UTF-8"
    with _opened(file) as handle:
        if handle.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            hint = "add --encoding utf-16"
        handle.seek(0)
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
    return "UTF-8" if options.encoding == "utf-8" else options.encoding


def _unparsable(file: File, options: SourceOptions, reason: str) -> InputError:
    """Name the first line whose number of cells differs from the header's."""
    separator = _separator(file, options)
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
    return (Content(frame=frame) for frame in read_chunks(file, options, **how))


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
        (f".{name}", f".{name}.gz"),
        read=read_delimited,
        pieces=_pieces,
        columns=read_header,
        n_rows=_n_lines,
    )
    for name in ("csv", "tsv")
)
