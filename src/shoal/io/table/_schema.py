"""How columns became X, so that predict can do it again.

A schema is learned once, travels inside the model as JSON, and is the only way from a
table to the numbers of a model. It refuses what it cannot do: a column that is absent
(E133), a missing value without a stated filling (E115), text in a column of numbers
(E119). A category that fit has not seen gives zeros in all of its columns, with a
warning (W143).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError, ModelFileError
from shoal.io._files import join, n_of
from shoal.io._notation import GAPS, MISSING, Notation
from shoal.io._sentences import SENTENCES, encode_texts
from shoal.io.source._format import is_sparse
from shoal.io.table._cells import is_number, row_number, sentinels, words
from shoal.io.table._columns import Feature
from shoal.io.table._domains import DomainRule
from shoal.io.table._missing import fill, missing_values
from shoal.io.table._table import Message
from shoal.io.table._words import count_words

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Schema:
    """Which columns a model needs, and what becomes of them.

    Attributes
    ----------
    kind : {"table", "counts", "text", "embedding", "images"}
    features : tuple of Feature
        Columns of a table, in the order of X.
    domain : DomainRule or None
    id, label : str or None
        Columns.
    text : str or None
        Column whose words are counted, or which an encoder makes points of.
    encoder : str or None
        Of texts, by its name.
    vocabulary : tuple of str
        The words, one column of X each.
    n_columns : int or None
        Width of a matrix (npy, npz, mtx, h5ad) instead of named columns.
    names : tuple of str
        Of the columns of a matrix, such as genes. Empty where it has none: columns are
        then taken by position.
    layer, use_rep : str or None
        Which matrix of an AnnData file.
    missing, gaps : tuple of str
        Text that means "no value", anywhere and among numbers.
    decimal : {".", ","}
        How text writes numbers.
    sep : str or None
        Separator of text files, where it was told.
    dtype : {"float64", "float32"}
    size : int or None
        Pixels a side of the images that the model's own network takes.
    drop_incomplete : bool
        Whether rows with missing values are left out, as they were in fit.
    keep_missing : bool
        Whether missing values stay, for a model that takes them.
    """

    kind: str = "table"
    features: tuple[Feature, ...] = ()
    domain: DomainRule | None = None
    id: str | None = None
    label: str | None = None
    text: str | None = None
    encoder: str | None = None
    vocabulary: tuple[str, ...] = ()
    n_columns: int | None = None
    names: tuple[str, ...] = ()
    layer: str | None = None
    use_rep: str | None = None
    missing: tuple[str, ...] = MISSING
    gaps: tuple[str, ...] = GAPS
    decimal: str = "."
    sep: str | None = None
    dtype: str = "float64"
    size: int | None = None
    drop_incomplete: bool = False
    keep_missing: bool = False

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X."""
        if self.encoder is not None:
            return [f"x{index}" for index in range(SENTENCES[self.encoder].width)]
        if self.text is not None:
            return list(self.vocabulary)
        if self.n_columns is not None:
            return list(self.names)
        return [name for feature in self.features for name in feature.names]

    @property
    def needed(self) -> list[str]:
        """Columns without which nothing can be encoded."""
        if self.text is not None:
            return [self.text]
        return [feature.name for feature in self.features]

    @property
    def notation(self) -> Notation:
        """How tables write numbers and gaps."""
        return Notation(self.missing, self.gaps, self.decimal)

    def written(
        self,
        *,
        sep: str | None = None,
        decimal: str | None = None,
        na: Iterable[str] = (),
        na_only: bool = False,
    ) -> "Schema":
        """For files that are written in another way than those of the fit."""
        return replace(
            self,
            sep=sep or self.sep,
            decimal=decimal or self.decimal,
            missing=("", *na) if na_only else (*self.missing, *na),
            gaps=() if na_only else self.gaps,
        )

    # ---- from cells to numbers ----------------------------------------------------

    def encode(
        self,
        data: Any,
        messages: list[Message] | None = None,
        *,
        names: Sequence[str] | None = None,
        fitting: bool = False,
    ) -> Any:
        """X of a table (or the matrix that it already is).

        Parameters
        ----------
        data : pandas.DataFrame, or array for a schema of a matrix
        messages : list, default=None
            Warnings are appended to it.
        names : sequence of str, default=None
            Of the columns of an array; None to take them by position.
        fitting : bool, default=False
            Whether a model is still to be made: a missing value has another remedy.

        Returns
        -------
        ndarray or CSR array of shape (n_rows, n_features)
        """
        messages = [] if messages is None else messages
        if self.kind == "images":
            return data  # pixels, which the network of the model checks
        if self.n_columns is not None:
            return self._encode_matrix(data, names)
        if not hasattr(data, "columns"):
            raise ModelFileError(
                "E133",
                f'the model needs columns by name ("{self.needed[0]}", ...), and an '
                "array has none",
                "pass a table with these columns",
            )
        self.require([str(name) for name in data.columns])
        if self.text is not None:
            return self._encode_text(data, messages)
        X = self._encode_columns(data, messages)
        if not _sum_is_finite(X):
            fill(X, self)
            bad = np.isinf(X) if self.keep_missing else ~np.isfinite(X)
            if bad.any():
                raise missing_values(X, data, self, fitting=fitting)
        if self.kind == "counts":
            _check_counts(X, self.feature_names, data.index)
        return X

    def require(self, known: Sequence[str]) -> None:
        """Raise E133 unless all columns that are needed are among ``known``."""
        _refuse_absent(self.needed, known)

    def _encode_matrix(self, matrix: Any, names: Sequence[str] | None) -> Any:
        if self.names and names is not None:
            matrix = _columns_by_name(matrix, names, self.names)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_columns:
            raise ModelFileError(
                "E133",
                f"model needs {self.n_columns} columns, got shape {matrix.shape}",
                "use the same encoder or export as in fit",
            )
        X = matrix.astype(self.dtype, copy=False)
        _check_finite(X)
        if self.kind == "counts":
            _check_counts(X, None, None)
        return X

    def _encode_text(self, frame: pd.DataFrame, messages: list[Message]) -> Any:
        column = frame[self.text]
        cells = ["" if cell is None else cell for cell in words(column, ("",))]
        if self.encoder is not None:
            X = encode_texts(self.encoder, cells)
            empty = np.asarray(~X.any(axis=1))
        else:
            X = count_words(cells, self.vocabulary)
            empty = np.diff(X.indptr) == 0
        if empty.any():
            messages.append(
                Message(
                    "W143",
                    f"{n_of(int(empty.sum()), 'text')} without any word "
                    f"(first: row {row_number(column, empty)})",
                    "they say nothing about the class; check the column",
                )
            )
        return X

    def _encode_columns(self, frame: pd.DataFrame, messages: list[Message]) -> Array:
        names = [feature.name for feature in self.features]
        simple = all(feature.kind == "number" for feature in self.features)
        if simple and not sentinels(self.missing):
            part = frame[names]
            if all(is_number(part[name]) for name in names):
                # A copy always: filling gaps must not reach the caller's table.
                return np.array(part.to_numpy(self.dtype, na_value=np.nan), order="C")
        width = sum(feature.width for feature in self.features)
        X = np.empty((len(frame), width), dtype=self.dtype)
        start = 0
        for feature in self.features:
            place = slice(start, start + feature.width)
            series = frame[feature.name]
            X[:, place] = feature.encode(series, self.notation, messages)
            start += feature.width
        return X

    # ---- JSON ---------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> "Schema":
        """The schema of a JSON-able form; anything else is a ModelFileError."""
        try:
            known = {item.name for item in fields(cls)}
            if not isinstance(content, dict):
                raise TypeError(f"a {type(content).__name__}")
            if not set(content) <= known:
                raise ValueError(f"unknown {sorted(set(content) - known)[0]!r}")
            given = dict(content)
            given["features"] = tuple(
                Feature(**{**one, "levels": _texts(one["levels"])})
                for one in given.get("features", ())
            )
            for name in ("vocabulary", "missing", "gaps", "names"):
                given[name] = _texts(given.get(name, ()))
            if given.get("domain") is not None:
                given["domain"] = _domain_rule(given["domain"])
            return cls(**given)._checked()
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise ModelFileError(
                "E135",
                f"the column schema of the model is damaged ({error})",
                "restore the model from a copy, or fit again",
            ) from error

    def _checked(self) -> "Schema":
        texts = (self.id, self.label, self.text, self.layer, self.use_rep, self.sep)
        right = (
            self.kind in ("table", "counts", "text", "embedding", "images")
            and self.dtype in ("float64", "float32")
            and self.decimal in (".", ",")
            and all(item is None or isinstance(item, str) for item in texts)
            and self.encoder in (None, *SENTENCES)
            and (self.n_columns is None or type(self.n_columns) is int)
            and len(self.names) in (0, self.n_columns)
            and (self.size is None or type(self.size) is int and self.size > 0)
            and type(self.drop_incomplete) is bool
            and type(self.keep_missing) is bool
            and all(
                isinstance(feature.name, str)
                and feature.kind in ("number", "category", "date")
                and isinstance(feature.fill, (str, float, int, type(None)))
                for feature in self.features
            )
        )
        if not right:
            raise ValueError("a value of the wrong kind")
        return self


def _sum_is_finite(X: Array) -> bool:
    """Whether all is well, in one pass without a mask."""
    with np.errstate(invalid="ignore", over="ignore"):
        return bool(np.isfinite(X.sum(dtype=float)))


def _texts(values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"expected texts, got {join(list(values), 2)}")
    return tuple(values)


def _domain_rule(content: dict[str, Any]) -> DomainRule:
    given = {**content, "merged": _texts(content.get("merged", ()))}
    if given.get("edges") is not None:
        given["edges"] = tuple(float(edge) for edge in given["edges"])
    rule = DomainRule(**given)
    named = isinstance(rule.column, (str, type(None)))
    if not (
        named and rule.kind in ("text", "int", "bool") and rule.decimal in (".", ",")
    ):
        raise ValueError("a domain column of the wrong kind")
    return rule


# ---- Matrices: columns by name, finite, counts where the model counts ----------------


def _columns_by_name(matrix: Any, known: Sequence[str], wanted: Sequence[str]) -> Any:
    """The columns that a model wants, of a matrix whose columns have names.

    E133 where one is absent, E107 where a name does not say which column is meant.
    Further columns are left out.
    """
    if tuple(known) == tuple(wanted):
        return matrix
    _refuse_absent(wanted, known)
    copies = _repeated(wanted) | _repeated(known)
    unclear = [name for name in dict.fromkeys(wanted) if name in copies]
    if unclear:
        raise InputError(
            "E107",
            f"several columns are called {join(unclear)}, here or in fit, and "
            "the columns are not just those of fit in their order",
            "make the names unique before fit and here",
        )
    place = {name: index for index, name in enumerate(known)}
    return _columns_at(matrix, np.array([place[name] for name in wanted]))


def _refuse_absent(needed: Sequence[str], known: Sequence[str]) -> None:
    """Raise E133 unless all columns that are needed are known."""
    there = set(known)
    absent = [name for name in needed if name not in there]
    if absent:
        more = f" (and {len(absent) - 1} more)" * (len(absent) > 1)
        raise ModelFileError(
            "E133",
            f'model needs the column "{absent[0]}"{more}; extra columns are '
            "ignored, order does not matter",
            "supply it, or refit without it",
        )


def _repeated(names: Sequence[str]) -> set[str]:
    return {name for name, times in Counter(names).items() if times > 1}


def _columns_at(matrix: Any, places: Array) -> Any:
    """Some columns, laid out in memory as if they had been read in this order.

    Sums then have one order, and results are the same to the last bit.
    """
    if not is_sparse(matrix):
        return np.take(matrix, places, axis=1)
    chosen = matrix[:, places]
    chosen.sort_indices()
    return chosen


def _check_counts(X: Any, names: Sequence[str] | None, index: Any) -> None:
    """Raise E130 unless all of X is whole numbers from 0."""
    values = X.data if is_sparse(X) else X
    wrong = (values < 0) | (values % 1 != 0)
    if not wrong.any():
        return
    where = ""
    if names is not None:
        row, column = np.argwhere(wrong)[0]
        where = f' (first: row {int(index[row]) + 1}, "{names[column]}")'
    value = values[wrong].flat[0]
    what = "negative" if value < 0 else "fractional"
    raise InputError(
        "E130",
        f"--counts given but values are {what}, such as {value:g}{where}",
        "name the raw layer: --layer counts, or leave --counts out",
    )


def _check_finite(X: Any) -> None:
    """Raise E115 unless all of X is finite."""
    values = X.data if is_sparse(X) else X
    bad = ~np.isfinite(values)
    if bad.any():
        where = "" if is_sparse(X) else (
            f" (first: row {int(np.argwhere(bad)[0][0]) + 1}, column "
            f"{int(np.argwhere(bad)[0][1]) + 1})"
        )  # fmt: skip
        raise InputError(
            "E115",
            f"{int(bad.sum()):,} missing or infinite values{where}",
            "fill or drop them before saving the array",
        )
