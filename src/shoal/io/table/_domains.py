"""The column that says where a row comes from: read, checked, and applied again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._files import join
from shoal.io._notation import Notation
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.table._cells import (
    is_number,
    is_text,
    numbers,
    row_number,
    stripped,
    whole,
    words,
)
from shoal.io.table._columns import decimal_of, looks_like_label
from shoal.io.table._table import Message

Array = np.ndarray[Any, Any]

# Columns with these words in their names are most likely to be meant.
PLACES = (
    "domain", "site", "plot", "island", "batch", "donor", "patient", "subject",
    "hospital", "clinic", "center", "centre", "station", "location", "locality",
    "place", "region", "country", "county", "city", "area", "field", "farm", "lake",
    "river", "habitat", "camera", "store", "shop", "source", "cohort", "lab",
    "company", "ward",
)  # fmt: skip
# Where some rows of a table have no domain, its file has 3.0 for 3.
WHOLE = re.compile(r"(0|-?[1-9]\d{0,17})(\.0+)?")
# A day as Parquet has it, where a CSV file often has the date alone.
MIDNIGHT = re.compile(r"(\d{4}-\d{2}-\d{2})[ T]00:00:00(\.0+)?")


@dataclass(frozen=True)
class DomainRule:
    """How cells become domains, the same at fit and predict.

    Attributes
    ----------
    column : str or None
        None where each file is a domain.
    kind : {"text", "int", "bool"}
    edges : tuple of float or None
        Inner edges of the bins that numbers were cut into.
    merged : tuple of str
        Thin domains that became one, and ``into`` which.
    decimal : {".", ","}
        How text writes the numbers that were cut.
    """

    column: str | None
    kind: str = "text"
    edges: tuple[float, ...] | None = None
    merged: tuple[str, ...] = ()
    into: str | None = None
    decimal: str = "."

    def apply(self, series: pd.Series, missing: Sequence[str]) -> tuple[Array, Array]:
        """Domain of each row, and a mask of the rows that have none."""
        if self.edges is not None:
            written = Notation(tuple(missing), decimal=self.decimal)
            values, wrong = numbers(series, written)
            places = np.searchsorted(self.edges, values, side="right")
            text, empty = _bin_names(self.edges)[places], np.isnan(values) | wrong
        else:
            text = _in_short(words(series, missing))
            empty = np.asarray(pd.isna(text))
        if self.merged:
            merge = dict.fromkeys(self.merged, self.into)
            text = np.array([merge.get(cell, cell) for cell in text], dtype=object)
        return (text if self.kind == "text" else _typed(text, self.kind)), empty


def learn_domains(
    series: pd.Series, options: SourceOptions, *, counts: bool = False
) -> tuple[Array, Array, DomainRule, list[Message]]:
    """Domains of the rows that stay, which those are, the rule, and messages."""
    rule = DomainRule(str(series.name))
    if options.domain_bins is not None:
        rule = _cut(series, options, rule)
    text, empty = rule.apply(series, options.missing)
    messages = _drop_missing(series, empty, options)
    series, text = series[~empty], text[~empty]
    if rule.edges is None:
        if not counts:  # there, each row is usually a domain of its own
            _check_distinct(series, text)
        rule = replace(rule, kind=_kind_of(series, text))
    if options.merge_small is not None:
        rule, more = _merge_small(text, options.merge_small, rule)
        messages += more
    domains, _ = rule.apply(series, options.missing)
    if len(pd.unique(domains)) < 2:
        raise InputError(
            "E112",
            f'all rows come from one domain ({series.name} is "{domains[0]}" '
            "everywhere)",
            "shoal learns from differences between domains: add files or choose "
            "another column",
        )
    if not counts:
        messages += _warn_thin(domains)
    return domains, ~empty, rule, messages


def domain_candidates(
    frame: pd.DataFrame, decimal: str | None = None
) -> list[tuple[str, int]]:
    """Columns that could say where a row comes from, and how many values they have."""
    known = [str(name) for name in frame.columns]
    frame, found = tidy(frame.set_axis(known, axis=1), decimal), []
    for name in known:
        n_values, n_rows = frame[name].nunique(), len(frame)
        most = READING.most_candidates
        if _of_numbers(frame[name]):
            most = READING.most_candidate_numbers
        sensible = 2 <= n_values <= min(most, n_rows // 2)
        if sensible and not looks_like_label(name, n_values, n_rows, known):
            found.append((name, n_values))
    found = [one for one in found if one[1] > 2 or _names_place(one[0])] or found
    return sorted(found, key=lambda one: not _names_place(one[0]))


def _of_numbers(series: pd.Series) -> bool:
    """Whether most cells are numbers, as of results with "n.d." and "<3" among them."""
    if is_number(series):
        return True
    cells = series.dropna().astype(str).str.replace(",", ".")
    return bool(pd.to_numeric(cells, errors="coerce").notna().mean() > 0.5)


def ask_for_domain(
    frame: pd.DataFrame, *, matrix: bool, decimal: str | None = None
) -> InputError:
    """E106, with the columns that could be meant."""
    found = domain_candidates(frame, decimal)
    hint = "candidates: " + join([f"{name} ({n} values)" for name, n in found], 4)
    if not found:
        where = "--domain-file" if matrix else "--domain"
        hint = f"name it with {where}, or pass one file per domain"
    return InputError("E106", "which column says where a row comes from?", hint)


def _names_place(name: str) -> bool:
    """Whether a name holds a word for where rows come from: sampling_site, SiteID."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    return any(part.casefold().removesuffix("s") in PLACES for part in parts)


def _cut(series: pd.Series, options: SourceOptions, rule: DomainRule) -> DomainRule:
    """Bins with about the same number of rows each."""
    values, wrong = numbers(series, options.notation)
    if wrong.any() or np.isnan(values).all():
        raise InputError(
            "E109",
            f'"{rule.column}" cannot be cut into bins: it is not a number (row '
            f"{row_number(series, wrong) if wrong.any() else 1})",
            "leave --domain-bins out, or choose another column",
        )
    if int(options.domain_bins or 2) > len(values):
        raise InputError(
            "E002",
            f"domain_bins={options.domain_bins} is more than the {len(values):,} rows",
            "such as --domain-bins 10",
        )
    shares = np.linspace(0, 1, int(options.domain_bins or 2) + 1)[1:-1]
    edges = np.unique(np.nanquantile(values, shares, method="higher"))
    edges = edges[edges > np.nanmin(values)]
    decimal = options.notation.decimal
    return replace(rule, edges=tuple(edges.tolist()), decimal=decimal)


def _bin_names(edges: Sequence[float]) -> Array:
    """Names of bins, numbered so that the order of words is that of the numbers."""
    shown = [f"{edge:g}" for edge in edges]
    low = ["", *shown]
    high = [*shown, ""]
    names = [
        f"below {after}" if not before else f"from {before}" + (
            f" to {after}" if after else "")
        for before, after in zip(low, high, strict=True)
    ]  # fmt: skip
    digits = len(str(len(names)))
    numbered = [f"{place:0{digits}}: {name}" for place, name in enumerate(names, 1)]
    return np.array(numbered, dtype=object)


def _drop_missing(
    series: pd.Series, empty: Array, options: SourceOptions
) -> list[Message]:
    if not empty.any():
        return []
    count = int(empty.sum())
    what = f"{count:,} rows have no domain" if count > 1 else "1 row has no domain"
    if empty.all():
        raise InputError("E115", "no row has a domain", "choose another column")
    if not options.drop_missing_domain:
        raise InputError(
            "E115",
            f'{what} (first: row {row_number(series, empty)} of "{series.name}")',
            "--drop-missing-domain, or fill them",
        )
    return [Message("W144", f"{what}; left out", "fill them in to keep them")]


def _kind_of(series: pd.Series, text: Array) -> str:
    """Whole numbers become numbers again, unless a zero in front would be lost."""
    if pd.api.types.is_bool_dtype(series.dtype):
        return "bool"
    whole = all(WHOLE.fullmatch(cell) for cell in pd.unique(text))
    return "int" if whole else "text"


def _typed(text: Array, kind: str) -> Array:
    """Words as numbers or truth values; what is neither stays a word."""

    def convert(cell: Any) -> Any:
        if kind == "bool" and cell in ("True", "False"):
            return cell == "True"
        if kind == "int" and (number := WHOLE.fullmatch(cell)):
            return int(number[1])
        return cell

    values, codes = np.unique(text.astype(str), return_inverse=True)
    found = [convert(value) for value in values.tolist()]
    if all(isinstance(value, bool) for value in found):
        return np.array(found, dtype=bool)[codes]
    if all(type(value) is int for value in found):
        return np.array(found, dtype=np.int64)[codes]
    typed = np.empty(len(found), dtype=object)
    typed[:] = found
    return typed[codes]


def _in_short(text: Array) -> Array:
    """Days without their midnight, whole numbers without their ".0".

    Whether a file has them depends on its format, and on the other rows read with it.

    >>> _in_short(np.array(["2020-01-02 00:00:00", "3.0", "3.5", None], dtype=object))
    array(['2020-01-02', '3', '3.5', None], dtype=object)
    """
    codes, values = pd.factorize(text)  # few values, many rows; no value is -1
    found = [MIDNIGHT.fullmatch(cell) or WHOLE.fullmatch(cell) for cell in values]
    short = [one[1] if one else cell for one, cell in zip(found, values, strict=True)]
    return np.array([*short, None], dtype=object)[codes]


def _check_distinct(series: pd.Series, text: Array) -> None:
    n_values, n_rows = len(pd.unique(text)), len(text)
    values, wrong = numbers(series)
    most = min(READING.most_fractions, n_rows / READING.rows_of_a_fraction)
    measures = n_values > most and not wrong.any() and not whole(values)
    if n_values > max(n_rows / 2, 1) or measures:
        what = "holds fractions and has" if measures else "has"
        raise InputError(
            "E109",
            f'"{series.name}" {what} {n_values:,} values in {n_rows:,} rows',
            "group it (--domain-bins 10) or choose another column",
        )


def _merge_small(
    text: Array, into: str, rule: DomainRule
) -> tuple[DomainRule, list[Message]]:
    names, sizes = np.unique(text.astype(str), return_counts=True)
    thin = tuple(names[sizes < READING.thin].tolist())
    if not thin:
        return rule, []
    rule = replace(rule, kind="text", merged=thin, into=into)
    message = f'{len(thin)} domains with fewer than {READING.thin} rows became "{into}"'
    return rule, [Message("W111", message, f"they were {join(thin)}")]


def _warn_thin(domains: Array) -> list[Message]:
    names, sizes = np.unique(domains.astype(str), return_counts=True)
    thin = np.flatnonzero(sizes < READING.thin)
    if not len(thin):
        return []
    first = thin[np.argmin(sizes[thin])]
    others = f" (and {len(thin) - 1} more are thin)" * (len(thin) > 1)
    return [
        Message(
            "W111",
            f"{names[first]} has {sizes[first]} rows{others}; about "
            f"{READING.rows_for_five_points} would give ±5 points",
            "--merge-small other, or collect more",
        )
    ]


# ---- a table as it will be read, for those who have yet to say what is in it ---------


def tidy(frame: pd.DataFrame, decimal: str | None = None) -> pd.DataFrame:
    """The table with numbers for text that holds nothing else, and no blanks around.

    Before a domain is named there are no options to read by, but the file may have
    shown its ``decimal`` sign. Words for a gap among numbers are gaps here too.

    >>> frame = pd.DataFrame({"site": ["A ", "A", "B"], "size": ["3,5", "-", "4,25"]})
    >>> tidy(frame, ",").to_dict("list")
    {'site': ['A', 'A', 'B'], 'size': [3.5, nan, 4.25]}
    """
    options = SourceOptions(require_domain=False)
    written = replace(options.notation, decimal=decimal or decimal_of(frame, options))
    changed = {}
    for name in frame.columns:
        if not is_text(frame[name]):
            continue
        values, wrong = numbers(frame[name], written)
        if wrong.any() or np.isnan(values).all():
            changed[name] = stripped(frame[name])
        else:
            changed[name] = pd.Series(values, index=frame.index)
    return frame.assign(**changed)
