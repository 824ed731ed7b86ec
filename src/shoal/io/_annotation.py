"""Classes beside the cells they belong to: in AnnData objects and in h5ad files."""

import contextlib
import io
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal import __version__
from shoal._palette import class_color
from shoal.exceptions import InputError
from shoal.io._assignments import assign
from shoal.io._batches import batches
from shoal.io._files import require, whole_file
from shoal.io.source._anndata import frame_names, opened_h5ad
from shoal.io.table._domains import DomainRule
from shoal.io.table._schema import Schema

Array = np.ndarray[Any, Any]

CLASS, CONFIDENCE = "shoal_class", "shoal_confidence"
PROBABILITIES, ABOUT, COLORS = "X_shoal", "shoal", "shoal_class_colors"


def annotate(
    cells: Any,
    model: Any,
    *,
    domain: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    pooled: bool = False,
    prevalence: Any = None,
) -> None:
    """Put the class of every cell into an AnnData object, in place.

    Parameters
    ----------
    cells : anndata.AnnData
    model : fitted estimator
        One from ``shoal fit`` knows which column and matrix it takes; for any other,
        the next three say so.
    domain : str, default=None
        Column of ``obs`` that says where a cell comes from.
    layer, use_rep : str, default=None
        The matrix to use instead of X: a layer, or an embedding of ``obsm``.
    pooled : bool, default=False
        Use the equal mix of the training domains, wherever a cell is from.
    prevalence : array-like of shape (n_classes,), default=None
        Class mix of a domain that fit has not seen, for all cells.

    See Also
    --------
    annotate_h5ad : The same for a file, in bounded memory.

    Notes
    -----
    Adds ``obs["shoal_class"]``, ``obs["shoal_confidence"]``, ``obsm["X_shoal"]``,
    ``uns["shoal"]`` and ``uns["shoal_class_colors"]`` and touches nothing else.
    """
    schema = _schema(model, domain, layer, use_rep, pooled or prevalence is not None)
    how = {"pooled": pooled, "prevalence": prevalence}
    _annotation(cells, len(cells.obs), model, schema, how).put(cells)


def annotate_h5ad(
    source: Any,
    out: Any,
    model: Any,
    *,
    domain: str | None = None,
    layer: str | None = None,
    use_rep: str | None = None,
    pooled: bool = False,
    prevalence: Any = None,
) -> Path:
    """Copy an h5ad file and put the class of every cell into the copy.

    Parameters
    ----------
    source, out : path
        ``out`` appears when it is whole; a file of that name is replaced.
    model, domain, layer, use_rep, pooled, prevalence
        As in :func:`annotate`.

    Returns
    -------
    pathlib.Path
        ``out``.
    """
    source, out = Path(source), Path(out)
    schema = _schema(model, domain, layer, use_rep, pooled or prevalence is not None)
    how = {"pooled": pooled, "prevalence": prevalence}
    _annotation(source, n_cells_of(source), model, schema, how).write(source, out)
    return out


@dataclass(frozen=True, eq=False)
class Annotation:
    """What is said about the cells of one object or file.

    Attributes
    ----------
    codes : ndarray of int of shape (n_cells,)
        Class of each cell; -1 for one that was left out.
    proba : ndarray of float32 of shape (n_cells, n_classes)
    names : list of str
    facts : dict
        Arrays and a string about the model, for ``uns``.
    """

    codes: Array
    proba: Array
    names: list[str]
    facts: dict[str, Any]

    @classmethod
    def of(
        cls,
        model: Any,
        frames: Iterable[pd.DataFrame],
        n_cells: int,
        *,
        intervals: Any = None,
        about: Mapping[str, Any] | None = None,
    ) -> "Annotation":
        """Collect frames of :func:`shoal.io.assign`, one row for each cell used."""
        names = [str(name) for name in model.class_names_]
        proba = np.full((n_cells, len(names)), np.nan, dtype=np.float32)
        codes = np.full(n_cells, -1)
        for frame in frames:
            places = frame.index.to_numpy()
            proba[places] = frame[[f"p_{name}" for name in names]].to_numpy()
            codes[places] = pd.Categorical(frame["class"], names).codes
        return cls(codes, proba, names, _facts(model, intervals, about or {}))

    @property
    def confidence(self) -> Array:
        """Probability of the class of each cell."""
        return np.asarray(self.proba.max(axis=1))

    @property
    def colors(self) -> list[str]:
        """Of the classes, as in the report."""
        n_classes = len(self.names)
        return [class_color(index, n_classes) for index in range(n_classes)]

    def put(self, cells: Any) -> None:
        """Into an AnnData object."""
        cells.obs[CLASS] = pd.Categorical.from_codes(self.codes, pd.Index(self.names))
        cells.obs[CONFIDENCE] = self.confidence
        cells.obsm[PROBABILITIES] = self.proba
        cells.uns[ABOUT] = self.facts
        cells.uns[COLORS] = np.array(self.colors, dtype=object)

    def write(self, source: Path, out: Path) -> None:
        """Into a copy of a file."""
        h5py = require("h5py", "anndata", "writing h5ad files")
        with opened_h5ad(source) as file:
            _check_layout(file, source)
        with whole_file(out) as temporary:
            shutil.copyfile(source, temporary)
            with contextlib.redirect_stderr(io.StringIO()):
                failed = self._filled(h5py, temporary)
            if failed:
                raise OSError(failed, os.strerror(failed), str(out))

    def _filled(self, h5py: Any, path: Path) -> int:
        """Write into a file; the number of the system's error, 0 if there was none.

        HDF5 says an error of the disk in many ways, and prints it for all that is open.
        """
        try:
            with h5py.File(path, "r+") as file:
                self._fill(file)
        except (OSError, RuntimeError) as error:
            found = re.search(r"errno = (\d+)", str(error))
            if found is None:
                raise
            return int(found[1])
        return 0

    def _fill(self, file: Any) -> None:
        obs, uns = file["obs"], _group(file, "uns")
        _remove(obs, CLASS)
        _remove(uns, ABOUT)
        column = _group(obs, CLASS, "categorical", "0.2.0")
        column.attrs["ordered"] = False
        _write(column, "codes", self.codes.astype(np.int16))
        _write(column, "categories", self.names)
        _write(obs, CONFIDENCE, self.confidence)
        known = frame_names(obs)[1]
        new = [name for name in (CLASS, CONFIDENCE) if name not in known]
        obs.attrs["column-order"] = np.array([*known, *new], dtype=object)
        _write(_group(file, "obsm"), PROBABILITIES, self.proba)
        _write(uns, COLORS, self.colors)
        facts = _group(uns, ABOUT)
        for name, value in self.facts.items():
            _write(facts, name, value)


def n_cells_of(path: Path) -> int:
    """Number of cells in a file."""
    with opened_h5ad(path) as file:
        _check_layout(file, path)
        return len(file["obs"][frame_names(file["obs"])[0]])


def _annotation(
    cells: Any, n_cells: int, model: Any, schema: Schema, how: dict[str, Any]
) -> Annotation:
    by_domain = not how["pooled"] and how["prevalence"] is None
    frames = assign(model, batches(cells, schema, require_domain=by_domain), **how)
    return Annotation.of(model, frames, n_cells)


def _schema(
    model: Any,
    domain: str | None,
    layer: str | None,
    use_rep: str | None,
    anywhere: bool,
) -> Schema:
    """Which matrix and which domains: as the model was fitted, or as told."""
    stored = getattr(model, "schema_", None)
    if stored is not None:
        schema = Schema.from_dict(stored)
    else:
        counts = model._origin._counts_words
        schema = Schema(
            kind="counts" if counts else "embedding" if use_rep else "table",
            n_columns=model.n_features_in_,
        )
    if layer is not None or use_rep is not None:
        schema = replace(schema, layer=layer, use_rep=use_rep)
    if domain is not None:
        kind = {"i": "int", "u": "int", "b": "bool"}.get(model.domains_.dtype.kind)
        rule = schema.domain or DomainRule(domain, kind=kind or "text")
        schema = replace(schema, domain=replace(rule, column=domain))
    if schema.domain is None and not anywhere:
        raise InputError(
            "E106",
            "which column of obs says where a cell comes from?",
            "pass domain=, or pooled=True to do without",
        )
    return schema


def _facts(model: Any, intervals: Any, about: Mapping[str, Any]) -> dict[str, Any]:
    facts = {
        "classes": np.array([str(name) for name in model.class_names_], dtype=object),
        "domains": np.array([str(name) for name in model.domains_], dtype=object),
        "prevalence": np.asarray(model.prevalence_, dtype=np.float64),
    }
    if intervals is not None:
        facts |= {"low": np.asarray(intervals.low), "high": np.asarray(intervals.high)}
    said = {"shoal": __version__, "estimator": type(model).__name__, **about}
    return {**facts, "about": json.dumps(said)}


# ---- anndata's layout on disk ----------------------------------------------------


def _check_layout(file: Any, path: Path) -> None:
    if not hasattr(file.get("obs"), "keys") or "column-order" not in file["obs"].attrs:
        raise InputError(
            "E143",
            f'"{path}" has the layout of AnnData before 0.7, or no obs: nothing can be '
            "added to it",
            "write it anew with anndata, or use --out with .parquet or .csv",
        )


def _group(home: Any, name: str, kind: str = "dict", version: str = "0.1.0") -> Any:
    """A group of the file, made where there is none."""
    found = home.require_group(name)
    found.attrs["encoding-type"], found.attrs["encoding-version"] = kind, version
    return found


def _remove(home: Any, name: str) -> None:
    if name in home:
        del home[name]


def _write(home: Any, name: str, value: Any) -> None:
    """An array of numbers, an array of words, or a word."""
    _remove(home, name)
    words = isinstance(value, (str, list)) or value.dtype.kind == "O"
    if words:
        h5py = require("h5py", "anndata", "writing h5ad files")
        home.create_dataset(name, data=value, dtype=h5py.string_dtype())
    else:
        home[name] = value
    word = isinstance(value, str)
    kind = "string" if word else "string-array" if words else "array"
    home[name].attrs["encoding-type"] = kind
    home[name].attrs["encoding-version"] = "0.2.0"
