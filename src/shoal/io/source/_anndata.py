"""AnnData files (.h5ad), read with h5py alone.

The layout is public and stable (anndata's "on-disk format"), h5py is one small package,
and rows can be read in batches, which keeps large files out of memory.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from shoal.exceptions import InputError
from shoal.io._files import check_memory, fits, join, require
from shoal.io._options import SourceOptions
from shoal.io.source._format import Content, Format, is_sparse, readable

Array = np.ndarray[Any, Any]


def read_h5ad(path: Path, options: SourceOptions) -> Content:
    """Rows of X, a layer or an embedding, with ``obs`` as columns beside them."""
    with opened_h5ad(path) as file:
        rows = H5adRows(file, options)
        check_memory(0 if options.sample else rows.n_numbers, f'"{path}"')
        matrix = rows.take(0, rows.n_rows)
        return Content(
            frame=rows.obs.reset_index(drop=True),
            matrix=matrix,
            matrix_names=rows.names,
            kind=_kind(options),
            ids=rows.obs.index.to_numpy(),
            annotated=True,
            described=_genes(file, options, rows.n_rows),
        )


def _genes(
    file: Any, options: SourceOptions, n_rows: int
) -> tuple[Any, list[str]] | None:
    """X and its genes, to describe classes of an embedding by, where memory allows."""
    if not options.use_rep or "X" not in file:
        return None
    rows = H5adRows(file, replace(options, use_rep=None))
    if not rows.names or rows.n_rows != n_rows or not fits(rows.n_numbers):
        return None
    return rows.take(0, n_rows), rows.names


def h5ad_pieces(
    path: Path, options: SourceOptions, *, batch_rows: int, **_: Any
) -> Iterator[Content]:
    """The same, some rows at a time."""
    with opened_h5ad(path) as file:
        rows = H5adRows(file, options)
        for first in range(0, rows.n_rows, batch_rows):
            stop = min(first + batch_rows, rows.n_rows)
            obs = rows.obs.iloc[first:stop]
            yield Content(
                frame=obs.set_axis(pd.RangeIndex(first, stop)),
                matrix=rows.take(first, stop),
                matrix_names=rows.names,
                ids=obs.index.to_numpy(),
            )


def take_anndata(data: Any, options: SourceOptions) -> Content:
    """The same from an AnnData object in memory."""
    chosen = _chosen(options)
    home = {"X": {"X": data.X}, "layers": data.layers, "obsm": data.obsm}[chosen[0]]
    if chosen[1] not in home:
        raise _absent_key(chosen[1], chosen[0], list(home))
    matrix = home[chosen[1]]
    matrix = sparse.csr_array(matrix) if is_sparse(matrix) else matrix
    names = None if chosen[0] == "obsm" else [str(name) for name in data.var_names]
    return Content(
        frame=data.obs.reset_index(drop=True),
        matrix=matrix if is_sparse(matrix) else np.asarray(matrix),
        matrix_names=names,
        kind=_kind(options),
        ids=np.asarray(data.obs_names),
        annotated=True,
        described=_genes_in_memory(data) if options.use_rep else None,
    )


def _genes_in_memory(data: Any) -> tuple[Any, list[str]] | None:
    """X of an AnnData object, which may have none, and its genes."""
    if data.X is None:
        return None
    matrix = sparse.csr_array(data.X) if is_sparse(data.X) else np.asarray(data.X)
    return matrix, [str(name) for name in data.var_names]


@contextlib.contextmanager
def opened_h5ad(path: Path) -> Iterator[Any]:
    """The file, open for reading; whatever is wrong with it becomes E143."""
    h5py = require("h5py", "anndata", "reading h5ad files")
    broken = (OSError, KeyError, ValueError, TypeError, RuntimeError)
    with readable(path, broken, "h5ad"), h5py.File(path, "r") as file:
        yield file


class H5adRows:
    """The rows of one matrix of an open file, a slice at a time.

    Attributes
    ----------
    n_rows, n_columns : int
    names : list of str or None
        Of the columns; None for an embedding.
    obs : pandas.DataFrame
        Index are the names of the rows.
    """

    def __init__(self, file: Any, options: SourceOptions) -> None:
        home, key = _chosen(options)
        node = file if home == "X" else file[home] if home in file else {}
        if key not in node:
            raise _absent_key(key, home, list(node))
        self._node = node[key]
        self._whole: Any = None
        shape = self._node.attrs.get("shape", getattr(self._node, "shape", ()))
        if len(shape) != 2:
            raise InputError(
                "E124",
                f"{home} {key} is not rows x features but {tuple(shape)}",
                "choose another --layer or --use-rep",
            )
        self.n_rows, self.n_columns = (int(size) for size in shape)
        self.obs = _read_frame(file["obs"])
        self.names = None
        if home != "obsm":
            self.names = [str(name) for name in _read_frame(file["var"]).index]
            if len(self.names) != self.n_columns:
                n_names = len(self.names)
                raise ValueError(f"{self.n_columns} columns, {n_names} names in var")

    @property
    def n_numbers(self) -> int:
        """How many numbers are stored: a sparse matrix leaves out its zeros."""
        dense = hasattr(self._node, "size")
        return int(self._node.size if dense else self._node["data"].size)

    def take(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop``, dense or CSR as they are stored."""
        encoding = _plain(self._node.attrs.get("encoding-type", "array"))
        if encoding == "array":
            return self._node[start:stop]
        if encoding == "csc_matrix":  # stored by columns: there is no way to slice it
            if self._whole is None:
                self._whole = self._read_sparse(sparse.csc_array).tocsr()
            return self._whole[start:stop]
        pointer = self._node["indptr"][start : stop + 1]
        entries = slice(int(pointer[0]), int(pointer[-1]))
        pieces = (self._node["data"][entries], self._node["indices"][entries])
        shape = (len(pointer) - 1, self.n_columns)
        return sparse.csr_array((*pieces, pointer - pointer[0]), shape=shape)

    def _read_sparse(self, maker: Any) -> Any:
        pieces = [self._node[name][:] for name in ("data", "indices", "indptr")]
        return maker(tuple(pieces), shape=(self.n_rows, self.n_columns))


def _chosen(options: SourceOptions) -> tuple[str, str]:
    """Which matrix: its home in the file, and its key there."""
    if options.layer and options.use_rep:
        raise InputError(
            "E002", "layer and use_rep both name a matrix", "use one of them"
        )
    if options.layer:
        return "layers", options.layer
    return ("obsm", options.use_rep) if options.use_rep else ("X", "X")


def _kind(options: SourceOptions) -> str:
    if options.use_rep:
        return "embedding"
    return "counts" if options.counts else "table"


def _absent_key(key: str, home: str, known: list[str]) -> InputError:
    return InputError(
        "E107", f'no "{key}" in {home}', f"available: {join(known) or 'none'}"
    )


def _read_frame(node: Any) -> pd.DataFrame:
    """``obs`` or ``var``: a group with one member per column."""
    if hasattr(node, "dtype"):  # before 0.7: one compound array
        return pd.DataFrame({"index": _decoded(node["index"])}).set_index("index")
    index, order = frame_names(node)
    legacy = node.get("__categories", {})
    columns = {name: _read_column(node[name], legacy.get(name)) for name in order}
    return pd.DataFrame(columns, index=_decoded(node[index][:]))


def frame_names(node: Any) -> tuple[str, list[str]]:
    """Names of the index and, in order, of the columns of ``obs`` or ``var``."""
    order = np.asarray(node.attrs.get("column-order", []), dtype=object)
    return _plain(node.attrs.get("_index", "_index")), [_plain(name) for name in order]


def _read_column(node: Any, categories: Any = None) -> Any:
    encoding = _plain(node.attrs.get("encoding-type", "array"))
    if encoding == "categorical":
        categories, codes = node["categories"], node["codes"][:]
    elif categories is not None:
        codes = node[:]
    elif encoding.startswith("nullable"):
        return pd.Series(node["values"][:]).where(~node["mask"][:]).to_numpy()
    else:
        return _decoded(node[:])
    levels = _decoded(categories[:])
    present = codes >= 0
    cells = np.full(len(codes), None, dtype=object)
    cells[present] = levels[codes[present]]
    return cells


def _decoded(values: Any) -> Array:
    """Text, which HDF5 gives as bytes, as text."""
    if values.dtype.kind not in "OS":
        return np.asarray(values)
    return np.array([_plain(item) for item in values], dtype=object)


def _plain(item: Any) -> Any:
    """A text, which some writers store as bytes."""
    return item.decode() if isinstance(item, bytes) else item


H5AD = Format("h5ad", (".h5ad",), read=read_h5ad, pieces=h5ad_pieces)
