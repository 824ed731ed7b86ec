"""What reading gives back: rows, where they come from, and what was done to them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.io._settings import READING

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Message:
    """A coded warning: one line for the reader, and the one thing to do about it."""

    code: str
    text: str
    hint: str

    @property
    def level(self) -> str:
        """``"error"`` or ``"warning"``."""
        return "error" if self.code.startswith("E") else "warning"

    @property
    def topic(self) -> tuple[str, str]:
        """What it is about; of one topic the first message is enough."""
        return self.code, self.hint


@dataclass(frozen=True)
class Column:
    """How one column of the source was read.

    Attributes
    ----------
    name : str
    role : {"feature", "domain", "id", "label", "known", "group", "order", "set aside"}
    reason : str
        Why, in words for people: ``"number"``, ``"4 levels, one-hot"``,
        ``"the same in every row"``.
    """

    name: str
    role: str
    reason: str


@dataclass(frozen=True, eq=False)
class Table:
    """Rows that a model can take, and everything people ask about them.

    Attributes
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features), or None
        None for a folder of images: see :func:`shoal.io.read_pixels`.
    domains, ids, labels : ndarray of shape (n_rows,) or None
    feature_names : list of str
        Names of the columns of ``X``.
    schema : Schema or None
        How columns became ``X``: the same at fit and predict.
    columns : list of Column
        Every column of the source, in its order.
    kind : {"table", "counts", "text", "embedding", "images"}
    source : dict
        ``path`` (or ``paths``), ``fingerprint`` (SHA-256 of the content), ``rows`` and
        ``bytes``.
    messages : list of Message
    frame : pandas.DataFrame or None
        The chosen columns as people know them, before any encoding.
    groups : dict or None
        The group of each domain, where a column of groups was named.
    order : ndarray of shape (n_rows,) or None
        When each row is from, where a column of times was named.
    places : ndarray of int or None
        Which row of its source each row is, from 0, whatever was left out.
    known : ndarray of shape (n_rows,) or None
        Name of the class that is known of a row, None elsewhere; for ``fit`` to use.
    described : pair of matrix and list of str, or None
        What people know rows by, beside an ``X`` that says them nothing: genes.
    """

    X: Any
    domains: Array | None
    ids: Array | None
    labels: Array | None
    feature_names: list[str]
    schema: Any
    columns: list[Column]
    kind: str
    source: dict[str, Any]
    messages: list[Message] = field(default_factory=list)
    frame: Any = None
    groups: dict[Any, str] | None = None
    order: Array | None = None
    places: Array | None = None
    described: tuple[Any, list[str]] | None = None
    known: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        if self.X is not None:
            return int(self.X.shape[0])
        return 0 if self.domains is None else len(self.domains)

    @property
    def is_wide(self) -> bool:
        """Whether columns are many and of one kind, such as genes: the X of AnnData."""
        matrix = self.kind == "table" and getattr(self.schema, "n_columns", None)
        return bool(matrix and matrix > READING.wide)
