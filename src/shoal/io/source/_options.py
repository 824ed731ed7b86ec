"""What the reader was told, and what a source holds before columns have roles."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import sparse

from shoal.exceptions import InputError

# ---- What the reader was told, in one object that every step can be handed -----------

#: Cells of a text file, and text in any table, that mean "no value".
MISSING = ("", "NA", "NaN", "nan", "null", "NULL", "<NA>")

IMPUTATIONS = ("median", "mean", "drop")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments of :func:`shoal.io.read`, which describes them."""

    domain: Any = None
    domain_file: Any = None
    id: str | None = None
    label: str | None = None
    group: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    text: str | None = None
    counts: bool = False
    layer: str | None = None
    use_rep: str | None = None
    format: str | None = None
    sep: str | None = None
    encoding: str = "utf-8"
    na: Sequence[str] = ()
    impute: str | None = None
    sample: int | None = None
    seed: int = 0
    domain_bins: int | None = None
    drop_missing_domain: bool = False
    merge_small: str | None = None
    require_domain: bool = True
    domain_from: str | None = None
    skip_bad: bool = False

    def __post_init__(self) -> None:
        if self.impute is not None and self.impute not in IMPUTATIONS:
            raise InputError(
                "E002",
                f"impute={self.impute!r} is not a way to fill missing values",
                f"use one of {', '.join(IMPUTATIONS)}",
            )
        for name in ("sample", "domain_bins"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 2):
                raise InputError(
                    "E002",
                    f"{name}={value!r} is not a whole number from 2",
                    f"leave {name} out, or raise it",
                )

    @property
    def missing(self) -> tuple[str, ...]:
        """Every cell that means "no value"."""
        return (*MISSING, *self.na)

    @property
    def text_columns(self) -> set[str]:
        """Columns whose cells are names or words, whatever they look like."""
        named = (self.domain, self.id, self.label, self.group, self.text)
        return {name for name in named if isinstance(name, str)}

    def refuse_unfit(self, table: bool, annotated: bool = False) -> None:
        """Refuse options that would be overlooked in silence.

        Parameters
        ----------
        table : bool
            Whether the source has named columns instead of a matrix.
        annotated : bool
            Whether it is AnnData.
        """
        unfit = {
            "domain_file": table and self.domain_file is not None,
            "features": not table and self.features is not None,
            "drop": not table and len(self.drop) > 0,
            "text": not table and self.text is not None,
            "layer": not annotated and self.layer is not None,
            "use_rep": not annotated and self.use_rep is not None,
        }
        what = "a table with named columns" if table else "a matrix"
        for name in (name for name, wrong in unfit.items() if wrong):
            instead = "name the column with --domain instead"
            raise InputError(
                "E002",
                f"{name} says nothing about {what}",
                instead if name == "domain_file" else "leave it out",
            )


# ---- What a source holds, before any column has a role -------------------------------

READ_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Content:
    """Named columns, and maybe a matrix whose columns are all features.

    Attributes
    ----------
    frame : pandas.DataFrame
        Has no columns where there is only a matrix. Its index counts the rows of the
        source from 0, whatever was left out since.
    matrix : ndarray, CSR array or None
        Beside a matrix, the columns of ``frame`` say things about rows but are no
        features. Pixels of images, where a model takes them, have four axes.
    matrix_names : list of str or None
    kind : {"table", "counts", "text", "embedding"}
    source : dict
        As in :class:`~shoal.io.Table`.
    ids : sequence or None
        Names of the rows that came with the source, such as a pandas index.
    annotated : bool
        Whether the frame is the ``obs`` of an AnnData file.
    by_file : str or None
        Name of the column that says which of several files a row is from.
    messages : tuple of Message
        What reading noticed.
    """

    frame: pd.DataFrame
    matrix: Any = None
    matrix_names: list[str] | None = None
    kind: str = "table"
    source: dict[str, Any] = field(default_factory=dict)
    ids: Any = None
    annotated: bool = False
    by_file: str | None = None
    messages: tuple[Any, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.frame) if self.matrix is None else int(self.matrix.shape[0])


def is_sparse(matrix: Any) -> bool:
    """Whether ``matrix`` is a scipy sparse array or matrix."""
    return bool(sparse.issparse(matrix))


def fingerprint_file(path: Path) -> str:
    """SHA-256 of a file's bytes, read piece by piece."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def fingerprint_frame(frame: pd.DataFrame) -> str:
    """SHA-256 of a frame's names and values, the same for equal frames."""
    digest = hashlib.sha256()
    for name in frame.columns:
        digest.update(repr(name).encode())
        try:
            hashed = pd.util.hash_array(frame[name].to_numpy())
        except (TypeError, ValueError):  # lists and other values that do not hash
            hashed = pd.util.hash_array(frame[name].astype(str).to_numpy(dtype=object))
        digest.update(hashed.tobytes())
    return digest.hexdigest()
