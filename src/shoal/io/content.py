"""What a source holds, before any column has a role."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from scipy import sparse

__all__ = ["Content", "fingerprint_file", "fingerprint_frame", "is_sparse"]

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
        As in :class:`~shoal.io.table.Table`.
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
