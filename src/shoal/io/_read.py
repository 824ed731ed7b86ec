"""Read data of any kind into a :class:`~shoal.io.Table`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.exceptions import InputError
from shoal.io._images import inner_folders, list_images
from shoal.io.source._open import open_content
from shoal.io.source._options import Options
from shoal.io.table._domains import learn_domains
from shoal.io.table._schema import Schema
from shoal.io.table._table import Column, Table
from shoal.io.table._tabulate import Tabulation

Array = np.ndarray[Any, Any]


def read(
    data: Any,
    *,
    domain: Any = None,
    domain_file: Any = None,
    id: str | None = None,
    label: str | None = None,
    group: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    text: str | None = None,
    counts: bool = False,
    layer: str | None = None,
    use_rep: str | None = None,
    format: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    na: Sequence[str] = (),
    impute: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    domain_bins: int | None = None,
    drop_missing_domain: bool = False,
    merge_small: str | None = None,
    require_domain: bool = True,
    domain_from: str | None = None,
    skip_bad: bool = False,
) -> Table:
    """Read a table, and say how every column was understood.

    Parameters
    ----------
    data : path, list of paths, "-", or a table
        A file (csv, tsv, also .gz; parquet; feather or arrow; npy; npz; h5ad; mtx), a
        folder ``root/<domain>/...`` of images or of .txt files, several files (one
        domain each, named after the file), ``"-"`` for CSV on standard input, or a
        pandas, polars or pyarrow table, AnnData object, array or sparse matrix.
    domain : str or array-like, default=None
        Column that says where a row comes from; for arrays also its values.
    domain_file : path, default=None
        Domains in a file of their own, one a line or npy, for npy, npz and mtx.
    id, label : str, default=None
        Columns that name the rows, and that hold true classes (only for scoring).
    group : str, default=None
        Column with the group of each domain, such as healthy or ill; not a feature.
    features : list of str, default=None
        Use these columns and no others, also if a rule would set them aside.
    drop : list of str, default=()
        Columns to leave out.
    text : str, default=None
        Column whose words are counted: those in two rows at least and in half of the
        rows at most, and of them the 5,000 most frequent.
    counts : bool, default=False
        The columns are counts of words: whole numbers from 0.
    layer, use_rep : str, default=None
        Matrix of an AnnData file, instead of X.
    format, sep, encoding : str
        Where the file's name or content does not tell.
    na : sequence of str, default=()
        Further cells that mean "no value".
    impute : {None, "median", "mean", "drop"}, default=None
        What becomes of missing values: an error; the median or mean of a number and
        the most frequent value of a category; or the row is left out.
    sample : int, default=None
        Draw so many rows at random, in bounded memory.
    seed : int, default=0
        For ``sample``.
    domain_bins : int, default=None
        Cut a number into so many domains of about equal size.
    drop_missing_domain : bool, default=False
        Leave out rows without a domain.
    merge_small : str, default=None
        Domains with fewer than 30 rows become one of this name.
    require_domain : bool, default=True
        Whether rows without any domain are an error (E106).
    domain_from : str, default=None
        For images: regular expression whose first group is the domain.
    skip_bad : bool, default=False
        For images: go on also when more than 1 % cannot be read.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        With a code, the column and the first row concerned, and the fix.

    Notes
    -----
    *Missing values* are empty or blank cells, ``NA``, ``NaN``, ``nan``, ``null``,
    ``NULL``, ``<NA>`` and those of ``na``, in every column. They are an error unless
    ``impute`` says what to do; at predict, the values learned in fit are used, or such
    rows left out as in fit. Infinite values are always an error. Blanks around words
    mean nothing.

    *Categories* are text columns with at most 50 distinct values (1,000 if asked for by
    ``features``), each of which becomes a column of zeros and ones. *Dates*, columns
    that differ in every row, text with more values and constant columns are set aside
    and listed in ``columns``; running text and columns that look like the answer are
    errors.

    Rows are counted from 1 in messages, the header left out.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"site": ["a", "b"] * 40, "size": [3.5, 1.2] * 40})
    >>> table = read(frame, domain="site")
    >>> table.X.shape, table.feature_names, table.domains[:2].tolist()
    ((80, 1), ['size'], ['a', 'b'])
    """
    given = {name: value for name, value in locals().items() if name != "data"}
    options = Options(**given)
    content = open_content(data, options)
    if content.kind == "images":
        return _read_images(Path(content.source["path"]), options)
    options.refuse_unfit(content.matrix is None, content.annotated)
    return Tabulation(content, options).table()


def _folder_labels(names: list[str], label: str | None) -> Array | None:
    """True classes of images: the folder below the domain, where asked for as label."""
    if label is None:
        return None
    found = inner_folders(names) if label == "label" else None
    if found is None:
        raise InputError(
            "E107",
            f'no label "{label}" of the images',
            "--label label takes the folder below the domain, <domain>/<label>/*.jpg",
        )
    return found


def _drawn(frame: pd.DataFrame, options: Options) -> pd.DataFrame:
    """Some rows at random, where so many were asked for."""
    if options.sample is None or len(frame) <= options.sample:
        return frame
    return frame.sample(options.sample, random_state=options.seed).sort_index()


def _read_images(root: Path, options: Options) -> Table:
    """The list of a folder's images; pixels are for an encoder to read."""
    images = list_images(
        root, domain_from=options.domain_from, skip_bad=options.skip_bad
    )
    frame = pd.DataFrame(
        {
            "path": images.names,
            "width": images.sizes[:, 0],
            "height": images.sizes[:, 1],
            "format": images.formats,
            "domain": images.domains,
        }
    )
    frame = _drawn(frame, options)
    domains, _, rule, messages = learn_domains(frame["domain"], options)
    source = {
        "path": str(root),
        "fingerprint": images.fingerprint,
        "rows": len(frame),
        "bytes": sum(path.stat().st_size for path in images.paths),
        "skipped": images.skipped,
    }
    return Table(
        X=None,
        domains=domains,
        ids=frame["path"].to_numpy(dtype=object),
        labels=_folder_labels(frame["path"].tolist(), options.label),
        feature_names=[],
        schema=Schema(kind="images", domain=rule),
        columns=[Column("domain", "domain", "name of the folder")],
        kind="images",
        source=source,
        messages=images.messages + messages,
        frame=frame,
        places=frame.index.to_numpy(),
    )
