"""Tables of what is never read whole: rows in batches, and folders of images.

Rows are read by a schema that fit has learned. Memory is bounded by the batch: CSV,
TSV, Parquet, Feather, NPY and H5AD files are never read whole (a Matrix Market file, an
NPZ archive and columns-first sparse layers are).
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError, ModelFileError
from shoal.io._files import pieces_of, writable
from shoal.io._images import decode, inner_folders, judge_bad, list_images
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._format import Content, Format
from shoal.io.source._open import (
    are_paths,
    file_names,
    find_file,
    format_of,
    is_path,
    open_content,
)
from shoal.io.table._cells import row_number, stripped
from shoal.io.table._domains import learn_domains
from shoal.io.table._missing import FILL, complete_rows
from shoal.io.table._schema import Schema
from shoal.io.table._table import Column, Message, Table

Array = np.ndarray[Any, Any]


def batches(
    data: Any,
    schema: Any,
    *,
    batch_rows: int = READING.batch_rows,
    domain_file: Any = None,
    format: str | None = None,
    sheet: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str = "utf-8",
    na: Iterable[str] = (),
    na_only: bool = False,
    drop_missing_domain: bool = False,
    require_domain: bool = True,
) -> Iterator[Table]:
    """Tables of at most ``batch_rows`` rows each, in the order of the source.

    Parameters
    ----------
    data : path, list of paths, "-", or a table
        As in :func:`shoal.io.read`.
    schema : Schema or dict
        Of the model; a dict is what ``model.schema_`` holds.
    batch_rows : int, default=65536
    domain_file, format, sheet, sep, decimal, encoding, na, na_only, drop_missing_domain
        As in :func:`shoal.io.read`. Where they are not given, separator, decimal sign
        and cells without a value are those of the fit.
    require_domain : bool, default=True
        False for a use of the rows that does not depend on their domains: a row may
        then lack its own (None), and domains are words, whatever they were in fit.

    Yields
    ------
    Table
        ``domains`` is None where the source lacks the domain column; ``ids`` are row
        numbers from 1 where it lacks the id column. A model that was fitted without
        the rows that lack a value (``impute="drop"``) leaves them out here too.
    """
    if not isinstance(schema, Schema):
        schema = Schema.from_dict(schema)
    schema = schema.written(sep=sep, decimal=decimal, na=na, na_only=na_only)
    options = replace(
        _options(schema),
        domain_file=domain_file,
        format=format,
        sheet=sheet,
        encoding=encoding,
        drop_missing_domain=drop_missing_domain,
        require_domain=require_domain,
    )
    paths = list(data) if are_paths(data) else [data]
    names = file_names(paths) if all(map(is_path, paths)) else [None]
    start = n_placed = n_kept = 0
    for path, name in zip(paths, names, strict=True):
        before = start
        for content in _contents(path, options, schema, batch_rows):
            numbered = _numbered(content, start)
            start += content.n_rows
            placed = _with_domain(numbered, schema, options)
            whole = _without_gaps(placed, schema)
            n_placed, n_kept = n_placed + placed.n_rows, n_kept + whole.n_rows
            if whole.n_rows:
                table = _table(whole, schema, name, required=require_domain)
                yield replace(table, places=before + whole.frame.index.to_numpy())
    if start and not n_placed:
        raise InputError("E115", "no row has a domain", "fill them in")
    if start and not n_kept:
        raise InputError("E115", "every row has a missing value", FILL)


def _options(schema: Schema) -> SourceOptions:
    """How to read files that the schema is for."""
    return SourceOptions(
        domain=None if schema.domain is None else schema.domain.column,
        id=schema.id,
        label=schema.label,
        text=schema.text,
        counts=schema.kind == "counts",
        layer=schema.layer,
        use_rep=schema.use_rep,
        na=schema.missing,
        na_only=True,
        sep=schema.sep,
        decimal=schema.decimal if schema.decimal == "," else None,
    )


def _numbered(content: Content, start: int) -> Content:
    """With row numbers for ids where it has none; ``start`` rows came before."""
    if content.ids is not None:
        return content
    return replace(content, ids=np.arange(start + 1, start + 1 + content.n_rows))


def _with_domain(content: Content, schema: Schema, options: SourceOptions) -> Content:
    """Where asked for, only the rows that have a domain; W144 where some have none."""
    rule, frame = schema.domain, content.frame
    known = rule is not None and rule.column in frame.columns
    if rule is None or not known or not options.drop_missing_domain:
        return content
    series = frame[rule.column]
    _, empty = rule.apply(series, schema.missing)
    if not empty.any():
        return content
    first = row_number(series, empty)
    text = f"rows without a domain are left out (first: row {first})"
    told = Message("W144", text, "fill them in to keep them")
    return replace(content.take(~empty), messages=(*content.messages, told))


def _without_gaps(content: Content, schema: Schema) -> Content:
    """The rows that lack no value; W144 where some do."""
    if not content.n_rows:
        return content
    whole, told = complete_rows(content.frame, schema)
    kept = content if whole.all() else content.take(whole)
    return replace(kept, messages=(*content.messages, *told))


def _table(
    content: Content, schema: Schema, file_name: str | None, *, required: bool
) -> Table:
    """One batch as the model takes it."""
    frame, matrix, messages = content.frame, content.matrix, list(content.messages)
    rows = frame if matrix is None else matrix
    X = schema.encode(rows, messages, names=content.matrix_names)
    ids: Any = np.asarray(content.ids)
    if schema.id is not None and schema.id in frame.columns:
        ids = frame[schema.id].to_numpy()
    known = schema.label is not None and schema.label in frame.columns
    return Table(
        X=X,
        domains=_domains(content, schema, file_name, required),
        ids=ids,
        labels=stripped(frame[schema.label]).to_numpy() if known else None,
        feature_names=schema.feature_names,
        schema=schema,
        columns=[Column(name, "feature", "as in fit") for name in schema.needed],
        kind=schema.kind,
        source={"rows": int(X.shape[0])},
        messages=messages,
        frame=frame[schema.needed] if matrix is None else None,
    )


def _domains(
    content: Content, schema: Schema, file_name: str | None, required: bool
) -> Any:
    rule = schema.domain
    if rule is None:
        return None
    if rule.column is None:  # in fit, each file was a domain
        if file_name is None:
            return None
        return np.full(content.n_rows, file_name, dtype=object)
    if rule.column not in content.frame.columns:
        return None
    series = content.frame[rule.column]
    domains, empty = rule.apply(series, schema.missing)
    if not required:
        # as words, all batches have one type, also where some rows have no domain
        shown = domains.astype(str).astype(object)
        shown[empty] = None
        return shown
    if empty.any():
        raise InputError(
            "E115",
            f"{int(empty.sum()):,} rows have no domain (first: row "
            f'{row_number(series, empty)} of "{rule.column}")',
            "--drop-missing-domain, or --pooled to do without domains",
        )
    return domains


def _contents(
    data: Any, options: SourceOptions, schema: Schema, batch_rows: int
) -> Iterator[Content]:
    """Pieces of a source; only formats that must be are read whole."""
    if schema.kind == "images":
        yield from _pictures(data, options, schema, batch_rows)
        return
    options = replace(options, require_domain=False)
    if is_path(data) and str(data) == "-":
        with tempfile.TemporaryDirectory() as folder:  # memory is what must not grow
            spooled = Path(folder, "standard-input.csv")
            with writable(spooled), spooled.open("wb") as file:
                file.writelines(pieces_of(sys.stdin.buffer, "standard input"))
            yield from _contents(spooled, options, schema, batch_rows)
        return
    path = find_file(data) if is_path(data) else None
    if path is not None and path.is_file():
        format = format_of(path, options.format)
        if format.pieces is not None:
            how = _columns(format, path, options, schema)
            yield from format.pieces(path, options, batch_rows=batch_rows, **how)
            return
    yield from _cut(open_content(data, options), batch_rows)


def _columns(
    format: Format, path: Path, options: SourceOptions, schema: Schema
) -> dict[str, Any]:
    """Which columns of a table to read, and whose cells stay text."""
    if format.columns is None:
        return {}
    options.refuse_unfit(table=True)
    wanted = {*schema.needed, schema.id, schema.label, options.domain}
    columns = [name for name in format.columns(path, options) if name in wanted]
    schema.require(columns)
    numbers = {one.name for one in schema.features if one.kind != "category"}
    return {"columns": columns, "as_text": set(columns) - numbers}


def _cut(content: Content, batch_rows: int) -> Iterator[Content]:
    """Batches of what is in memory already."""
    if content.kind == "images":
        raise ModelFileError(
            "E133", "this model takes numbers, not images", "embed the images first"
        )
    for first in range(0, content.n_rows, batch_rows):
        yield content.take(slice(first, first + batch_rows))


# ---- folders of images: as a table, and their pixels in batches ----------------------


def read_images(root: Path, options: SourceOptions) -> Table:
    """The list of a folder's images; pixels are for an encoder to read."""
    options.refuse_encoder("images")
    images = list_images(
        root, domain_from=options.domain_from, skip_bad=options.skip_bad
    )
    frame = pd.DataFrame(
        {
            "path": images.names,
            "width": images.sizes[:, 0],
            "height": images.sizes[:, 1],
            "format": images.formats,
            "domain": images.domains,
        }
    )
    frame = _drawn(frame, options)
    domains, _, rule, messages = learn_domains(frame["domain"], options)
    source = {
        "path": str(root),
        "fingerprint": images.fingerprint,
        "rows": len(frame),
        "bytes": sum(path.stat().st_size for path in images.paths),
        "skipped": images.skipped,
    }
    return Table(
        X=None,
        domains=domains,
        ids=frame["path"].to_numpy(dtype=object),
        labels=_folder_labels(frame["path"].tolist(), options.label),
        feature_names=[],
        schema=Schema(kind="images", domain=rule),
        columns=[Column("domain", "domain", "name of the folder")],
        kind="images",
        source=source,
        messages=images.messages + messages,
        frame=frame,
        places=frame.index.to_numpy(),
    )


def _folder_labels(names: list[str], label: str | None) -> Array | None:
    """True classes of images: the folder below the domain, where asked for as label."""
    if label is None:
        return None
    found = inner_folders(names) if label == "label" else None
    if found is None:
        raise InputError(
            "E107",
            f'no label "{label}" of the images',
            "--label label takes the folder below the domain, <domain>/<label>/*.jpg",
        )
    return found


def _drawn(frame: pd.DataFrame, options: SourceOptions) -> pd.DataFrame:
    """Some rows at random, where so many were asked for."""
    if options.sample is None or len(frame) <= options.sample:
        return frame
    return frame.sample(options.sample, random_state=options.seed).sort_index()


def _pictures(
    data: Any, options: SourceOptions, schema: Schema, batch_rows: int
) -> Iterator[Content]:
    """Pixels of the images in a folder, as many at a time as memory allows."""
    folder = find_file(data) if is_path(data) and str(data) != "-" else None
    if folder is None or not folder.is_dir() or schema.size is None:
        raise ModelFileError(
            "E133", "this model takes a folder of images", "DATA/<domain>/*.jpg"
        )
    listed = list_images(folder, need_domains=options.require_domain)
    messages = tuple(listed.messages)
    step = min(batch_rows, max(READING.pixel_bytes // (3 * schema.size**2), 1))
    for first in range(0, len(listed.names), step):
        part = slice(first, first + step)
        pixels, readable = decode(listed.paths[part], schema.size)
        names = np.array(listed.names[part], dtype=object)
        lost = judge_bad(listed.root, names[~readable].tolist(), len(names), False)
        index = pd.RangeIndex(first, first + len(readable))
        frame = pd.DataFrame({"domain": listed.domains[part]}, index)[readable]
        yield Content(
            frame=frame,
            matrix=pixels,
            ids=names[readable],
            messages=(*messages, *lost),
        )
        messages = ()
