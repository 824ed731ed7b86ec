"""What a report is made from: rows, what the model says of them, how they look."""

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._profile import (
    Contrast,
    contrast_features,
    dense,
    feature_names_of,
    numeric_columns,
)
from shoal.io._images import as_rgb, open_image
from shoal.report._settings import SETTINGS
from shoal.validation._rows import is_sparse

# ---- rows, their domains, and what the model says of them ----------------------------

Array = np.ndarray[Any, Any]

KINDS = ("table", "counts", "text", "embedding", "images")
# A value that fewer rows share could point at somebody.
RARE = 10
RARE_DOMAIN = "rare domain"


@dataclass(frozen=True)
class ReportRows:
    """Rows of a report, ready to be described.

    Attributes
    ----------
    model : fitted LatentShiftEstimator
    X : ndarray or sparse matrix of shape (n_samples, ...)
        Checked by the model.
    codes : ndarray of shape (n_samples,)
        Domain of each row, as an index.
    proba : ndarray of shape (n_samples, n_classes)
        p_d(y|x).
    domains, features : list of str
        Names as the page shows them.
    kind : str
        One of :data:`KINDS`.
    frame : DataFrame or None
        What people are shown of a row; columns of X when None.
    ids, labels : ndarray of shape (n_samples,) or None
    images : callable or None
        Image of a row, given its number.
    show_rows : bool
        False where single rows must not appear.
    described : pair of matrix and list of str, or None
        What people know rows by, where that is not X: genes or words beside points.
    """

    model: Any
    X: Any
    codes: Array
    proba: Array
    domains: list[str]
    features: list[str]
    kind: str
    frame: Any = None
    ids: Array | None = None
    labels: Array | None = None
    images: Callable[[int], Any] | None = None
    show_rows: bool = True
    described: tuple[Any, list[str]] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.proba.shape[1])

    @cached_property
    def classes(self) -> Array:
        """Most probable class of each row."""
        return np.asarray(self.proba.argmax(axis=1))

    @cached_property
    def rows_per_domain(self) -> Array:
        """Number of rows of each domain."""
        return np.bincount(self.codes, minlength=len(self.domains))

    @cached_property
    def filled(self) -> Any:
        """The rows to describe: with what the model expects where a value misses."""
        return self.model._origin._filled(self.X)

    @cached_property
    def numbers(self) -> tuple[Any, list[str]]:
        """The filled rows as numbers, and the names of their columns."""
        return numeric_columns(self.filled, self.features)

    @property
    def known_names(self) -> list[str]:
        """Names of what people know rows by."""
        return self.described[1] if self.described else self.features

    @cached_property
    def known_by(self) -> tuple[Any, list[str]]:
        """What classes are described by: genes beside an embedding, or ``numbers``."""
        return self.described or self.numbers

    @property
    def bags(self) -> tuple[Any, list[str]]:
        """Counts and words of rows that have words, also beside an encoder's points."""
        return self.described or (self.X, self.features)

    @cached_property
    def contrast(self) -> Contrast:
        """Every column of ``known_by``, in each class against the rest."""
        return contrast_features(self.known_by[0], self.proba)

    def group_name(self, name: str, domains: list[int]) -> str:
        """Name of a group of domains, unless it is rare and rows must not be shown."""
        rare = self.rows_per_domain[domains].sum() < RARE
        return name if self.show_rows or not rare else f"rare group {domains[0]}"

    @property
    def has_columns(self) -> bool:
        """Whether a row is a list of numbers or words, rather than pixels."""
        return bool(self.X.ndim == 2)

    @property
    def has_features(self) -> bool:
        """Whether these mean something to people: an encoder's do not."""
        return self.has_columns and self.kind != "images"

    @property
    def has_words(self) -> bool:
        """Whether features are words, so that their names are content."""
        return self.kind in ("counts", "text")


def gather(
    model: Any,
    X: Any,
    domains: Any,
    *,
    feature_names: Sequence[Any] | None,
    frame: Any,
    ids: Any,
    labels: Any,
    kind: str,
    images: Any,
    described: Any = None,
) -> ReportRows:
    """Check everything that came from outside, and predict every row once."""
    check_is_fitted(model)
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    rows = model._check_rows(X)
    codes = np.asarray(model._encode_domains(domains, rows.shape[0]))
    if kind == "images" and images is None and np.ndim(rows) > 2:
        images = rows.__getitem__
    return ReportRows(
        model=model,
        X=rows,
        codes=codes,
        proba=model._posterior(rows, codes, None),
        domains=[str(name) for name in model.domains_],
        features=feature_names_of(model, X, feature_names),
        kind=kind,
        frame=_checked(frame, codes, "frame"),
        ids=None if ids is None else _checked(np.asarray(ids), codes, "ids"),
        labels=None
        if labels is None
        else _checked(np.asarray(labels), codes, "labels"),
        images=images,
        described=described,
    )


def redacted(rows: ReportRows) -> ReportRows:
    """The rows with everything left out that could name or show somebody.

    Single rows, ids, images and words disappear; values that fewer than ten rows share
    (domains, labels, levels of a category) lose their names.
    """
    rare = rows.rows_per_domain < RARE
    domains = [
        f"{RARE_DOMAIN} {index}" if rare[index] and not _is_hidden(name) else name
        for index, name in enumerate(rows.domains)
    ]
    return replace(
        rows,
        domains=domains,
        features=_safe_features(rows),
        frame=None,
        ids=None,
        labels=_safe_labels(rows.labels),
        images=None,
        show_rows=False,
        described=None if rows.has_words else rows.described,
    )


def _is_hidden(domain: str) -> bool:
    """Whether a domain has lost its name already, before the fit."""
    return domain.startswith(f"{RARE_DOMAIN} ")


def _safe_features(rows: ReportRows) -> list[str]:
    if rows.has_words:
        return [f"word {index}" for index in range(len(rows.features))]
    if not rows.has_columns or not np.issubdtype(rows.X.dtype, np.number):
        return rows.features
    # An indicator column is named after a value: "city = Smallville".
    nonzero = np.asarray((abs(rows.X) > 0).sum(axis=0)).ravel()  # no gap is
    few = np.minimum(nonzero, rows.n_rows - nonzero) < RARE
    indicator = few & _only_zeros_and_ones(rows.X)
    return [
        f"rare value {index}" if indicator[index] else name
        for index, name in enumerate(rows.features)
    ]


def _only_zeros_and_ones(X: Any) -> Array:
    if is_sparse(X):
        odd = X.tocsc(copy=True)
        odd.data = (odd.data != 0) & (odd.data != 1)
        return np.asarray(odd.sum(axis=0)).ravel() == 0
    return np.asarray(((X == 0) | (X == 1) | np.isnan(X)).all(axis=0))


def _safe_labels(labels: Array | None) -> Array | None:
    if labels is None:
        return None
    text = np.asarray([str(label) for label in labels], dtype=object)
    values, code, count = np.unique(text, return_inverse=True, return_counts=True)
    values = np.where(count < RARE, "rare labels", values)
    return np.asarray(values[code], dtype=object)


def _checked(table: Any, codes: Array, name: str) -> Any:
    if table is not None and len(table) != len(codes):
        raise ValueError(f"{name} has {len(table)} rows, X has {len(codes)}")
    return table


# ---- how single rows look to people --------------------------------------------------

Record = dict[str, Any]


class RowViewer:
    """Turns row numbers into records that the page can show.

    Parameters
    ----------
    rows : ReportRows
    order : sequence of str
        Features, the most telling first: where there are many, the first are shown.
    telling : list of dict
        For each class, its ``words``.
    """

    def __init__(
        self, rows: ReportRows, order: Sequence[str], telling: list[Record]
    ) -> None:
        self.rows = rows
        self.telling = telling
        self.text_column = _text_column(rows)
        self.columns = self._choose_columns(order)

    def _choose_columns(self, order: Sequence[str]) -> list[Any]:
        rows = self.rows
        if rows.frame is None:
            plain = rows.has_columns and rows.kind == "table"
            names = list(rows.features) if plain else []
        else:
            names = [n for n in rows.frame.columns if n != self.text_column]
        first = [name for name in order if name in set(names)]
        rest = [name for name in names if name not in set(first)]
        chosen = set([*first, *rest][: SETTINGS.columns])
        return [name for name in names if name in chosen]

    def show(self, row: int, index: int) -> Record:
        """Everything the page says of a row as an example of a class."""
        rows = self.rows
        record: Record = {
            "row": int(row),
            "id": str(rows.ids[row]) if rows.ids is not None else str(row),
            "domain": int(rows.codes[row]),
            "p": float(rows.proba[row, index]),
            "values": [self._value(name, row) for name in self.columns],
        }
        if self.text_column is not None:
            words = [entry["word"] for entry in self.telling[index]["words"]]
            text = str(_cell(rows.frame, self.text_column, row))
            record["text"] = snippet(text, words)
        elif rows.has_words:
            record["text"] = _commonest(rows, row)
        if rows.images is not None:
            record["image"] = thumbnail(rows.images(int(row)))
        return record

    def _value(self, name: Any, row: int) -> Any:
        if self.rows.frame is not None:
            return _plain(_cell(self.rows.frame, name, row))
        column = self.rows.features.index(name)
        return _plain(self.rows.X[row, column])


def snippet(text: str, words: Sequence[str]) -> str:
    """The part of a text around the first telling word.

    Examples
    --------
    >>> snippet("a short text", ["text"])
    'a short text'
    """
    text, most = " ".join(text.split()), SETTINGS.snippet_letters
    if len(text) <= most:
        return text
    places = [text.lower().find(word.lower()) for word in words]
    first = min((place for place in places if place >= 0), default=0)
    start = max(0, min(first - most // 4, len(text) - most))
    part = text[start : start + most]
    return "…" * (start > 0) + part + "…" * (start + most < len(text))


def _text_column(rows: ReportRows) -> Any:
    """The column of a text table that holds the text: the one with the longest."""
    if rows.frame is None or rows.kind != "text":
        return None
    few = range(min(rows.n_rows, SETTINGS.text_rows))
    lengths = {}
    for name in rows.frame.columns:
        cells = [_cell(rows.frame, name, row) for row in few]
        if all(isinstance(cell, str) for cell in cells):
            lengths[name] = sum(map(len, cells))
    return max(lengths, key=lengths.__getitem__) if lengths else None


def _cell(frame: Any, name: Any, row: int) -> Any:
    column = frame[name]
    return column.iloc[row] if hasattr(column, "iloc") else column[int(row)]


def _commonest(rows: ReportRows, row: int) -> str:
    counts = np.ravel(dense(rows.X[[row]]))
    order = np.argsort(-counts, kind="stable")[: SETTINGS.words]
    return ", ".join(
        f"{rows.features[column]} × {counts[column]:g}"
        for column in order
        if counts[column] > 0
    )


def _plain(value: Any) -> Any:
    """A cell as JSON knows it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    text, most = str(value), SETTINGS.cell_letters
    return text if len(text) <= most else text[: most - 1] + "…"


# ---- small pictures inside the page --------------------------------------------------


def thumbnail(image: Any, pixels: int = SETTINGS.pixels) -> str:
    """An image as a ``data:`` address, without its metadata.

    Parameters
    ----------
    image : bytes or ndarray of uint8
        A PNG, JPEG or WebP file, or pixels of shape (height, width) or (height, width,
        channels).
    pixels : int, default=96
        Most pixels on each side; smaller images are kept as they are.

    Returns
    -------
    str
        ``data:image/webp;base64,...``
    """
    picture = as_rgb(_open(image))
    picture.thumbnail((pixels, pixels))
    buffer = io.BytesIO()
    # Written anew: a camera's place and time do not travel along.
    picture.save(buffer, format="WEBP", quality=SETTINGS.quality, method=4)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def shrink(address: str, pixels: int) -> str:
    """The same thumbnail with fewer pixels."""
    return thumbnail(base64.b64decode(address.partition(",")[2]), pixels)


def _open(image: Any) -> Any:
    from PIL import Image

    if isinstance(image, (bytes, bytearray, memoryview)):
        return open_image(io.BytesIO(bytes(image)))
    values = np.asarray(image)
    if values.dtype != np.uint8:
        raise TypeError(
            f"images must give bytes or arrays of uint8, got an array of {values.dtype}"
        )
    return Image.fromarray(values.squeeze(-1) if values.shape[-1] == 1 else values)
