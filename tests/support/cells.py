"""Small h5ad files of cells from three donors."""

from pathlib import Path
from typing import Any

import h5py
import numpy as np

SHARES = {"p1": 0.1, "p2": 0.5, "p3": 0.9}


def write_text(home: Any, name: str, words: Any) -> None:
    home.create_dataset(name, data=list(words), dtype=h5py.string_dtype())
    home[name].attrs.update({"encoding-type": "string-array"})


def write_cells(path: Path, seed: int, n_cells: int = 80, *, gap: bool = False) -> Any:
    """A file in the layout of anndata; the donors of all cells."""
    rng = np.random.default_rng(seed)
    donors = np.repeat(list(SHARES), n_cells)
    kinds = rng.random(len(donors)) < np.repeat(list(SHARES.values()), n_cells)
    space = rng.normal(size=(len(donors), 3)) + 4 * kinds[:, None]
    said = [None if gap and row < 5 else one for row, one in enumerate(donors)]
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros((len(donors), 2), dtype=np.float32)
        obs, var = file.create_group("obs"), file.create_group("var")
        for home, names in ((obs, [f"cell{n}" for n in range(len(donors))]),
                            (var, ["g0", "g1"])):  # fmt: skip
            home.attrs.update({"_index": "_index", "encoding-type": "dataframe",
                               "encoding-version": "0.2.0"})  # fmt: skip
            write_text(home, "_index", names)
        obs.attrs["column-order"] = np.array(["donor"], dtype=object)
        var.attrs["column-order"] = np.array([], dtype=float)
        write_text(obs, "donor", ["" if one is None else one for one in said])
        file.create_group("obsm")["X_pca"] = space.astype(np.float32)
        rates = np.where(kinds[:, None], [40.0, 4.0], [4.0, 40.0])
        file.create_group("layers")["counts"] = rng.poisson(rates).astype(np.float32)
    return donors
