"""Rows of a part as a model takes them: numbers, and the code of their domain."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from shoal.exceptions import InputError, ModelFileError
from shoal.io.table._cells import row_number
from shoal.io.table._domains import DomainRule
from shoal.io.table._missing import FILL, complete_rows
from shoal.io.table._schema import Schema
from shoal.io.table._table import Message
from shoal.scale._parts import Part
from shoal.validation._rows import row_keys

Array = np.ndarray[Any, Any]


class Batch(NamedTuple):
    """Some rows.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Domain of each row, as an index into those of the model.
    chance : ndarray of shape (n_rows,)
        What decides whether a row is in a sample, see :func:`chance_of`.
    frame : DataFrame
        The rows as they were read.
    """

    X: Any
    codes: Array
    chance: Array
    frame: pd.DataFrame


@dataclass(frozen=True)
class RowReader:
    """How the rows of a part become numbers; small, and the same everywhere.

    Attributes
    ----------
    schema : Schema
    domains : ndarray of shape (n_domains,) or None
        Names of the model's domains; None: all rows are of one, with code 0.
    seed : int
        Of :func:`chance_of`.
    drop_missing_domain : bool
    beside : tuple of str
        Columns to read that are no features.
    """

    schema: Schema
    domains: Array | None
    seed: int = 0
    drop_missing_domain: bool = False
    beside: tuple[str, ...] = ()

    def batches(self, part: Part, messages: list[Message]) -> Iterator[Batch]:
        """The rows of a part, piece by piece."""
        rule = None if self.domains is None else self.schema.domain
        own = () if rule is None else (str(rule.column),)
        columns = dict.fromkeys([*self.schema.needed, *self.beside, *own])
        for frame in part.frames(list(columns)):
            codes = np.zeros(len(frame), dtype=np.intp)
            if rule is not None:
                codes = self._codes(frame[rule.column], rule, messages)
                frame, codes = frame[codes >= 0], codes[codes >= 0]
            whole, found = complete_rows(frame, self.schema)
            messages += found
            frame, codes = frame[whole], codes[whole]
            if len(frame):
                X = self.schema.encode(frame, messages)
                yield Batch(X, codes, chance_of(part, frame.index, self.seed), frame)

    def _codes(
        self, series: pd.Series, rule: DomainRule, messages: list[Message]
    ) -> Array:
        """Code of the domain of each row, -1 where there is none."""
        assert self.domains is not None
        names = self.domains.tolist()
        codes = domain_codes(series, rule, self.schema.missing, names)
        empty = codes < 0
        if empty.any():
            first = row_number(series, empty)
            if not self.drop_missing_domain:
                raise InputError(
                    "E115",
                    f'rows have no domain (first: row {first} of "{series.name}")',
                    "--drop-missing-domain, or fill them",
                )
            text = f"rows without a domain are left out (first: row {first})"
            messages.append(Message("W144", text, "fill them in to keep them"))
        return codes


def without_gaps(
    schema: Schema, frame: pd.DataFrame
) -> tuple[pd.DataFrame, list[Message]]:
    """Rows that were drawn, without those that fit would have left out.

    E115 where that leaves none.
    """
    whole, noticed = complete_rows(frame, schema)
    if len(whole) and not whole.any():
        raise InputError("E115", "every row that was drawn has a missing value", FILL)
    return frame[whole], noticed


def schema_of(model: Any, columns: Sequence[str]) -> Schema:
    """How columns become numbers for a model; E135, E002 or E133 where they do not."""
    known = getattr(model, "schema_", None)
    if known is None:
        raise ModelFileError(
            "E135",
            "the model does not say which columns it takes",
            "fit with shoal.scale.fit, or set model.schema_ = table.schema.to_dict()",
        )
    schema = Schema.from_dict(known)
    if schema.n_columns is not None:
        raise InputError(
            "E002",
            "the model takes a matrix, and Parquet files have columns with names",
            "use shoal predict on the npy, npz or h5ad file",
        )
    schema.require(columns)
    return schema


def known_rule(schema: Schema, columns: Sequence[str]) -> DomainRule:
    """From cells to domains; E133 where no column says where rows come from."""
    rule = schema.domain
    if rule is None or rule.column is None or rule.column not in columns:
        column = getattr(rule, "column", None) or "domain"
        raise ModelFileError(
            "E133",
            f'the model needs "{column}" to know where each row is from',
            "supply it, or --pooled (predict only) to do without",
        )
    return rule


def domains_of(
    series: pd.Series, rule: DomainRule, missing: Sequence[str]
) -> tuple[list[Any], Array]:
    """Distinct domains of a column, and which of them each row has (-1: none).

    Names are few and rows are many: only the distinct cells are looked at.
    """
    place, cells = pd.factorize(series, use_na_sentinel=True)
    distinct = pd.Series(cells, name=series.name)
    _, empty = rule.apply(distinct, missing)
    domains, _ = rule.apply(distinct[~empty], missing)
    names, codes = np.unique(domains.astype(str), return_inverse=True)
    first = [int(np.flatnonzero(codes == code)[0]) for code in range(len(names))]
    code_of_cell = np.full(len(distinct) + 1, -1)  # the last: cells without a value
    code_of_cell[:-1][~empty] = codes
    return [domains[one : one + 1].tolist()[0] for one in first], code_of_cell[place]


def domain_codes(
    series: pd.Series, rule: DomainRule, missing: Sequence[str], names: Sequence[Any]
) -> Array:
    """Place of the domain of each row among ``names``, -1 where it has none.

    E134 where a domain is not among them.
    """
    found, place = domains_of(series, rule, missing)
    known = {name: code for code, name in enumerate(names)}
    unseen = [name for name in found if name not in known]
    if unseen:
        raise ModelFileError(
            "E134",
            f'the model has not seen the domain "{unseen[0]}"',
            "`shoal adapt` first, or --pooled",
        )
    return np.array([*(known[name] for name in found), -1], dtype=np.intp)[place]


def chance_of(part: Part, index: pd.Index, seed: int) -> Array:
    """A number in [0, 2^64) for each row, as if drawn: the same whatever is read first.

    It depends on the seed, the name of the file and the number of the row in it.
    """
    name = hashlib.blake2b(f"{seed}:{part.name}".encode(), digest_size=8).digest()
    salt = np.full(len(index), int.from_bytes(name, "little"), dtype=np.uint64)
    in_file = index.to_numpy() - part.start + part.first
    return row_keys(in_file[:, None].astype(float), salt)
