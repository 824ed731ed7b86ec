"""AnnData files: cells.h5ad was written by anndata 0.12 from the arrays made here."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from shoal.exceptions import InputError
from shoal.io import batches, read

h5py = pytest.importorskip("h5py")

CELLS = Path(__file__).parent / "data" / "cells.h5ad"
N_CELLS = 24


def arrays() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    counts = rng.poisson(2, (N_CELLS, 5))
    return counts, rng.normal(size=(N_CELLS, 2)).astype(np.float32)


DONORS = [f"p{index % 3}" for index in range(N_CELLS)]


def test_x_of_a_real_file() -> None:
    counts, _ = arrays()
    table = read(CELLS, domain="donor", label="cell_type")
    np.testing.assert_allclose(table.X.toarray(), np.log1p(counts), rtol=1e-6)
    assert sparse.issparse(table.X)
    assert table.X.dtype == np.float32
    assert table.domains.tolist() == DONORS
    assert table.labels[:2].tolist() == ["B", "T"]
    assert table.ids[0] == "cell0"
    assert table.feature_names == [f"gene{index}" for index in range(5)]
    assert table.kind == "table"
    assert len(table.source["fingerprint"]) == 64


def test_layers_and_embeddings() -> None:
    counts, embedding = arrays()
    by_columns = read(CELLS, domain="donor", layer="counts", counts=True)
    assert_array_equal(by_columns.X.toarray(), counts)
    assert by_columns.kind == "counts"
    dense = read(CELLS, domain="donor", layer="dense")
    assert_array_equal(dense.X, counts)
    space = read(CELLS, domain="donor", use_rep="X_pca")
    assert_array_equal(space.X, embedding)
    assert space.kind == "embedding"
    assert space.feature_names == ["x0", "x1"]


def test_genes_describe_the_classes_of_an_embedding() -> None:
    table = read(CELLS, domain="donor", use_rep="X_pca", sample=20)
    matrix, genes = table.described
    assert genes == [f"gene{index}" for index in range(5)]
    whole = read(CELLS, domain="donor")
    assert_array_equal(matrix.toarray(), whole.X.toarray()[table.places])
    assert whole.described is None


def test_many_genes_are_wide() -> None:
    whole = read(CELLS, domain="donor")
    assert not whole.is_wide
    genes = [f"gene{index}" for index in range(60)]
    cells = SimpleNamespace(
        X=np.ones((30, 60)) * np.arange(60),
        obs=pd.DataFrame({"donor": list("abc") * 10}),
        obs_names=[f"cell{index}" for index in range(30)],
        var_names=genes,
        layers={},
        obsm={"X_pca": np.random.default_rng(0).normal(size=(30, 3))},
    )
    assert read(cells, domain="donor").is_wide
    space = read(cells, domain="donor", use_rep="X_pca")
    assert not space.is_wide
    assert space.described[1] == genes


@pytest.mark.parametrize("given", [{}, {"layer": "counts"}, {"use_rep": "X_pca"}])
def test_batches_of_a_file(given: dict[str, Any]) -> None:
    table = read(CELLS, domain="donor", **given)
    pieces = list(batches(CELLS, table.schema, batch_rows=10))
    assert [piece.n_rows for piece in pieces] == [10, 10, 4]
    dense = [getattr(piece.X, "toarray", lambda x=piece.X: x)() for piece in pieces]
    whole = getattr(table.X, "toarray", lambda: table.X)()
    assert_array_equal(np.concatenate(dense), whole)
    assert_array_equal(np.concatenate([piece.domains for piece in pieces]), DONORS)
    assert pieces[2].ids[0] == "cell20"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"domain": "Donor"}, 'no "Donor" in obs; available: donor, cell_type, batch'),
        ({"domain": "donor", "layer": "raw"}, 'no "raw" in layers; available: counts'),
        ({"domain": "donor", "use_rep": "X_u"}, 'no "X_u" in obsm; available: X_pca'),
        ({"domain": "donor", "label": "kind"}, 'no "kind" in obs'),
    ],
)
def test_keys_that_are_not_there(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read(CELLS, **given)
    assert caught.value.code == "E107"


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="candidates: donor .3 values") as caught:
        read(CELLS)
    assert caught.value.code == "E106"
    with pytest.raises(InputError, match="8 rows have no domain"):
        read(CELLS, domain="batch")
    with pytest.raises(InputError, match="layer and use_rep both name a matrix"):
        read(CELLS, domain="donor", layer="counts", use_rep="X_pca")
    with pytest.raises(InputError, match="values are fractional") as caught:
        read(CELLS, domain="donor", counts=True)
    assert caught.value.code == "E130"


def test_a_nullable_column() -> None:
    table = read(CELLS, domain="batch", drop_missing_domain=True)
    assert sorted(set(table.domains.tolist())) == [1, 2]
    assert table.X.shape[0] == 16


def test_an_object_in_memory() -> None:
    """Whatever has obs, X and the rest, as AnnData objects do."""
    counts, embedding = arrays()
    obs = pd.DataFrame({"donor": DONORS}, index=[f"cell{n}" for n in range(N_CELLS)])
    cells = SimpleNamespace(
        X=sparse.csr_matrix(counts),
        obs=obs,
        obs_names=obs.index,
        var_names=pd.Index([f"gene{n}" for n in range(5)]),
        layers={},
        obsm={"X_pca": embedding},
    )
    table = read(cells, domain="donor")
    assert_array_equal(table.X.toarray(), counts)
    assert table.domains.tolist() == DONORS
    assert_array_equal(read(cells, domain="donor", use_rep="X_pca").X, embedding)
    with pytest.raises(InputError, match='no "X_umap" in obsm; available: X_pca'):
        read(cells, domain="donor", use_rep="X_umap")


def test_the_older_layout(tmp_path: Path) -> None:
    """Before 0.8: categories beside the columns, no encoding attributes."""
    path = tmp_path / "old.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = arrays()[0].astype(np.float32)
        obs = file.create_group("obs")
        obs.attrs["_index"] = "index"
        obs.attrs["column-order"] = ["donor"]
        obs["index"] = [f"cell{n}" for n in range(N_CELLS)]
        obs["donor"] = np.arange(N_CELLS, dtype=np.int8) % 3
        obs.create_group("__categories")["donor"] = ["p0", "p1", "p2"]
        var = file.create_group("var")
        var.attrs["_index"] = "index"
        var["index"] = [f"gene{n}" for n in range(5)]
    table = read(path, domain="donor")
    assert_array_equal(table.X, arrays()[0])
    assert table.domains.tolist() == DONORS


def test_a_matrix_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "odd.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.zeros(3)
    with pytest.raises(InputError, match="not rows x features") as caught:
        read(path, domain="donor")
    assert caught.value.code == "E124"
