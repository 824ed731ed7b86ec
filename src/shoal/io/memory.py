"""Tables, arrays and AnnData objects that are in memory already."""

from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io.anndata import take_anndata
from shoal.io.arrays import matrix_content
from shoal.io.content import Content, fingerprint_frame, is_sparse
from shoal.io.names import join
from shoal.io.options import Options

__all__ = ["take", "to_frame"]


def take(data: Any, options: Options) -> Content:
    """Content of a pandas, polars or pyarrow table, AnnData object or array."""
    if hasattr(data, "obs") and hasattr(data, "X"):
        return take_anndata(data, options)
    if isinstance(data, np.ndarray) or is_sparse(data):
        content = matrix_content(data, options)
        return _with_source(content, content.matrix)
    index = getattr(data, "index", None) if isinstance(data, pd.DataFrame) else None
    frame = to_frame(data)
    plain = index is None or isinstance(index, pd.RangeIndex)
    return Content(
        frame=frame,
        ids=None if plain else np.asarray(index),
        source={
            "path": None,
            "fingerprint": fingerprint_frame(frame),
            "rows": len(frame),
            "bytes": int(frame.memory_usage(index=False).sum()),
        },
    )


def to_frame(data: Any) -> pd.DataFrame:
    """A pandas frame whose index counts the rows, of any kind of table."""
    if isinstance(data, pd.DataFrame):
        frame = data.reset_index(drop=True)
    elif type(data).__module__.partition(".")[0] == "polars":
        # Through numpy: polars' own way to pandas needs pyarrow as well.
        eager = data.collect() if hasattr(data, "collect") else data
        frame = pd.DataFrame({name: eager[name].to_numpy() for name in eager.columns})
    elif hasattr(data, "to_pandas"):
        frame = data.to_pandas()
    else:
        raise TypeError(
            "data must be a path, a list of paths, '-', an array, or a pandas, polars "
            f"or pyarrow table, got {type(data).__name__}"
        )
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    repeated = frame.columns[frame.columns.duplicated()].tolist()
    if repeated:
        raise InputError(
            "E141",
            f"the table has several columns called {join(repeated)}",
            "rename or remove the copies",
        )
    if frame.empty:
        raise InputError("E103", "the table has no rows", "check how it was made")
    return frame


def _with_source(content: Content, matrix: Any) -> Content:
    values = matrix.data if is_sparse(matrix) else matrix
    frame = pd.DataFrame({"x": np.ravel(np.asarray(values))})
    content.source.update(
        path=None,
        fingerprint=fingerprint_frame(frame),
        rows=int(matrix.shape[0]),
        bytes=int(values.nbytes),
    )
    return content
