"""The class of every row, computed and written batch by batch."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from shoal.exceptions import InputError, ModelFileError
from shoal.io._files import join, require, whole_file, writable
from shoal.io._notation import DIGITS, LEAST_SHARE, cell
from shoal.io._settings import READING
from shoal.io.table._table import Table
from shoal.validation._domains import encode_domains

Array = np.ndarray[Any, Any]


def assign(
    model: Any,
    tables: Iterable[Table],
    *,
    pooled: bool = False,
    prevalence: Any = None,
) -> Iterator[pd.DataFrame]:
    """Classes of the rows of each table.

    Parameters
    ----------
    model : fitted estimator
    tables : iterable of Table
        As :func:`shoal.io.batches` gives them.
    pooled : bool, default=False
        Use the equal mix of the training domains, wherever a row is from.
    prevalence : array-like of shape (n_classes,), default=None
        Class mix of a domain that fit has not seen, for all rows.

    Yields
    ------
    pandas.DataFrame
        ``row_id``, ``domain``, ``class`` (its name), ``p_<name>`` for each class,
        ``margin`` (the lead of the most probable class over the next) and
        ``fit_score`` (share of training rows that are at least as unusual). The index
        says which row of its source a row is, from 0.
    """
    names = pd.Index(model.class_names_)
    check_is_fitted(model)
    mix = None if prevalence is None else model._check_prevalence(prevalence)
    fit_score = model._origin._familiarity
    for table in tables:
        own = table.domains is not None and not pooled and mix is None
        codes = _codes(table.domains, model) if own else None
        rows = model._check_rows(table.X)  # once, for probabilities and scores
        proba = model._posterior(rows, codes, mix)
        first_two = np.partition(proba, -2, axis=1)[:, -2:]
        columns: dict[str, Any] = {
            "row_id": _plain(table.ids),
            "domain": _plain(table.domains, len(proba)),
            "class": names.take(proba.argmax(axis=1)),
        }
        columns |= {f"p_{name}": proba[:, place] for place, name in enumerate(names)}
        columns["margin"] = first_two[:, 1] - first_two[:, 0]
        columns["fit_score"] = fit_score(rows)
        yield pd.DataFrame(columns, index=table.places)


def marked(frames: Iterable[Any], least: float = READING.unsure) -> Iterator[Any]:
    """Frames of :func:`assign` with one more column, ``unsure``."""
    for frame in frames:
        proba = [name for name in frame.columns if name.startswith("p_")]
        yield frame.assign(unsure=frame[proba].max(axis=1) < least)


def write_assignments(
    path: Any, batches: Iterable[pd.DataFrame], *, plain_csv: bool = False
) -> int:
    """Write frames below each other as they come, to .parquet or .csv.

    The file appears under its name when it is whole; until then, and if anything goes
    wrong, what was there before stays.

    Parameters
    ----------
    path : path
        Ends with .parquet or .csv.
    batches : iterable of pandas.DataFrame
        All with the same columns.
    plain_csv : bool, default=False
        Write text into a .csv as it is. Otherwise control characters are spelled out,
        and a quote stands before text that a spreadsheet would take for a formula.

    Returns
    -------
    int
        Number of rows written.
    """
    path = Path(path)
    as_csv = partial(_write_csv, plain=plain_csv)
    writers: dict[str, Any] = {".parquet": _write_parquet, ".csv": as_csv}
    if path.suffix not in writers:
        raise InputError(
            "E102",
            f'cannot tell the format of "{path}"',
            "end its name with .parquet or .csv",
        )
    with writable(path), whole_file(path) as temporary:
        return int(writers[path.suffix](temporary, batches))


def _write_csv(path: Path, batches: Iterable[pd.DataFrame], *, plain: bool) -> int:
    n_rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for number, frame in enumerate(batches):
            frame = _with_neat_shares(frame if plain else _with_safe_cells(frame))
            frame.to_csv(file, index=False, header=number == 0, lineterminator="\n")
            n_rows += len(frame)
    return n_rows


def _with_neat_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, its shares as :func:`shoal.io._notation.neat` makes them."""
    rounded = frame.copy(deep=False)
    for name in frame.columns[frame.dtypes == np.float64]:
        values = frame[name].to_numpy()
        with np.errstate(over="ignore", invalid="ignore"):
            is_share = (np.abs(values) >= LEAST_SHARE) & (np.abs(values) <= 1)
            rounded[name] = np.where(is_share, np.round(values, DIGITS), values)
    return rounded


def _with_safe_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, its text as cells of a CSV file."""
    safe = frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":
            safe[name] = frame[name].map(cell)
    return safe.set_axis([cell(name) for name in frame.columns], axis=1)


def _write_parquet(path: Path, batches: Iterable[pd.DataFrame]) -> int:
    pyarrow = require("pyarrow", "parquet", "writing parquet files")
    parquet = require("pyarrow.parquet", "parquet", "writing parquet files")
    n_rows, writer = 0, None
    try:
        for frame in batches:
            schema = None if writer is None else writer.schema
            table = pyarrow.Table.from_pandas(frame, schema, preserve_index=False)
            if writer is None:
                table = table.cast(_with_words(pyarrow, table.schema))
                # Numbers hardly repeat: only words are worth a dictionary.
                text = [name for name in frame if frame[name].dtype.kind == "O"]
                writer = parquet.ParquetWriter(path, table.schema, use_dictionary=text)
            writer.write_table(table)
            n_rows += len(frame)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise InputError("E114", "there are no rows to write", "check the input")
    return n_rows


def _with_words(pyarrow: Any, schema: Any) -> Any:
    """The schema, with words where the first batch holds nothing to tell the type."""
    return pyarrow.schema(
        [
            field.with_type(pyarrow.string()) if field.type == pyarrow.null() else field
            for field in schema
        ],
        metadata=schema.metadata,
    )


def _codes(domains: Any, model: Any) -> Array:
    """Index of each row's domain among those of the model; E134 for any other."""
    codes, present = pd.factorize(np.asarray(domains), use_na_sentinel=False)
    known = set(model.domains_.tolist())
    unseen = [value for value in present.tolist() if value not in known]
    if unseen:
        more = f" and {len(unseen) - 1} more" * (len(unseen) > 1)
        raise ModelFileError(
            "E134",
            f'the model has not seen the domain "{unseen[0]}"{more}; it knows '
            f"{join(sorted(map(str, known)))}",
            "`shoal adapt` first, or --pooled",
        )
    found = encode_domains(present, model.domains_, n_samples=len(present))
    return np.asarray(found)[codes]


def rows_by_class(frame: pd.DataFrame) -> Counter[tuple[str | None, str]]:
    """Rows of each domain, as a word or None, and class of a table of predictions.

    >>> rows_by_class(pd.DataFrame({"domain": ["a", None, "a"], "class": "c0"}))
    Counter({('a', 'c0'): 2, (None, 'c0'): 1})
    """
    found: Counter[tuple[str | None, str]] = Counter()
    sizes = frame.groupby(["domain", "class"], dropna=False).size().reset_index()
    for domain, name, size in sizes.itertuples(index=False):
        found[None if pd.isna(domain) else str(domain), name] += int(size)
    return found


def _plain(values: Any, n_rows: int = 0) -> Any:
    """A column that keeps its type from batch to batch."""
    if values is None:
        return np.full(n_rows, None, dtype=object)
    values = np.asarray(values)
    if values.dtype.kind in "biuf":
        return values
    if pd.api.types.infer_dtype(values, skipna=True) in ("string", "empty"):
        return values
    return np.array([None if one is None else str(one) for one in values], dtype=object)
