"""Genes are found by name: their order in a file says nothing to a model."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

import shoal
from shoal import DomainMixture
from shoal.exceptions import InputError, ModelFileError
from shoal.io import Schema, batches, read

h5py = pytest.importorskip("h5py")

N_CELLS, N_GENES = 90, 6
GENES = [f"gene{index}" for index in range(N_GENES)]
ORDER = [4, 0, 5, 2, 1, 3]
KINDS = ("dense", "rows", "columns")

# A few made-up cells, whose donors do not differ much.
pytestmark = pytest.mark.filterwarnings(
    "ignore::shoal.exceptions.IdentifiabilityWarning"
)


def values() -> Any:
    rng = np.random.default_rng(0)
    return rng.poisson(1.5, (N_CELLS, N_GENES)).astype(np.float32)


def put(home: Any, key: str, matrix: Any, kind: str) -> None:
    """A matrix as anndata stores it: dense, CSR or CSC."""
    if kind == "dense":
        home[key] = matrix
        return
    make = sparse.csr_array if kind == "rows" else sparse.csc_array
    stored, node = make(matrix), home.create_group(key)
    node.attrs["encoding-type"] = "csr_matrix" if kind == "rows" else "csc_matrix"
    node.attrs["shape"] = stored.shape
    for name in ("data", "indices", "indptr"):
        node[name] = getattr(stored, name)


def save(path: Path, matrix: Any, genes: Any, kind: str = "dense") -> Path:
    """The same cells with these columns; layer "twice" holds twice as much."""
    with h5py.File(path, "w") as file:
        put(file, "X", matrix, kind)
        put(file.create_group("layers"), "twice", 2 * matrix, kind)
        file.create_group("obsm")["X_pca"] = values()[:, :2]
        obs = file.create_group("obs")
        obs.attrs["_index"], obs.attrs["column-order"] = "index", ["donor"]
        obs["index"] = [f"cell{index}" for index in range(N_CELLS)]
        obs["donor"] = [f"p{index % 3}" for index in range(N_CELLS)]
        var = file.create_group("var")
        var.attrs["_index"] = "index"
        var["index"] = list(genes)
    return path


def shuffled(path: Path, kind: str = "dense") -> Path:
    """All genes in another order."""
    return save(path, values()[:, ORDER], [GENES[index] for index in ORDER], kind)


def asked(data: Any, schema: Any) -> Any:
    """X as a model with the schema takes it, in several batches."""
    parts: list[Any] = [table.X for table in batches(data, schema, batch_rows=40)]
    assert len(parts) > 1
    dense = [getattr(part, "toarray", lambda x=part: x)() for part in parts]
    return np.concatenate(dense)


@pytest.fixture
def schema(tmp_path: Path) -> Schema:
    table = read(save(tmp_path / "fit.h5ad", values(), GENES), domain="donor")
    return table.schema


@pytest.mark.parametrize("kind", KINDS)
def test_order_does_not_change_a_bit(kind: str, tmp_path: Path) -> None:
    path = save(tmp_path / "fit.h5ad", values(), GENES, kind)
    table = read(path, domain="donor")
    model = DomainMixture(2, search=False, random_state=0)
    shoal.save(model.fit(table.X, table.domains), tmp_path / "m", schema=table.schema)
    model = shoal.load(tmp_path / "m")
    (same,) = batches(path, model.schema_)
    (other,) = batches(shuffled(tmp_path / "new.h5ad", kind), model.schema_)
    assert type(other.X) is type(same.X)
    assert other.feature_names == GENES
    assert_array_equal(model.predict_proba(other.X), model.predict_proba(same.X))
    if kind == "dense":
        assert other.X.flags.c_contiguous
    else:
        assert_array_equal(other.X.indices, same.X.indices)


@pytest.mark.parametrize("kind", KINDS)
def test_further_genes_are_ignored(kind: str, schema: Schema, tmp_path: Path) -> None:
    """Also those that hold no numbers, or share a name."""
    further = np.full((N_CELLS, 2), np.nan, dtype=np.float32)
    matrix = np.hstack([further, values()[:, ORDER]])
    genes = ["other", "other", *(GENES[index] for index in ORDER)]
    path = save(tmp_path / "new.h5ad", matrix, genes, kind)
    assert_array_equal(asked(path, schema), values())


def test_an_absent_gene_is_named(schema: Schema, tmp_path: Path) -> None:
    kept = [0, 2, 3, 5]
    genes = [GENES[index] for index in kept]
    path = save(tmp_path / "new.h5ad", values()[:, kept], genes)
    with pytest.raises(ModelFileError, match='"gene1" .and 1 more') as caught:
        next(batches(path, schema))
    assert caught.value.code == "E133"
    renamed = save(tmp_path / "renamed.h5ad", values(), [*GENES[:5], "GENE5"])
    with pytest.raises(ModelFileError, match='model needs the column "gene5";'):
        next(batches(renamed, schema))


@pytest.mark.parametrize("kind", KINDS)
def test_layers_too(kind: str, tmp_path: Path) -> None:
    path = save(tmp_path / "fit.h5ad", values(), GENES, kind)
    schema = read(path, domain="donor", layer="twice", counts=True).schema
    found = asked(shuffled(tmp_path / "new.h5ad", kind), schema)
    assert_array_equal(found, 2 * values())


def test_an_object_in_memory(schema: Schema) -> None:
    obs = pd.DataFrame({"donor": [f"p{index % 3}" for index in range(N_CELLS)]})
    cells = SimpleNamespace(
        X=sparse.csr_matrix(values()[:, ORDER]),
        obs=obs,
        obs_names=obs.index,
        var_names=pd.Index(GENES)[ORDER],
        layers={},
        obsm={},
    )
    before = cells.X.copy()
    assert_array_equal(asked(cells, schema), values())
    assert_array_equal(cells.X.toarray(), before.toarray())
    assert read(cells, domain="donor").schema.names == tuple(cells.var_names)


# ---- where there are no names, columns go by position --------------------------------


def test_models_saved_before(schema: Schema, tmp_path: Path) -> None:
    content = json.loads(json.dumps(schema.to_dict()))
    assert content["names"] == GENES
    assert Schema.from_dict(content) == schema
    del content["names"]
    before = Schema.from_dict(content)
    assert before == replace(schema, names=())
    new = shuffled(tmp_path / "new.h5ad")
    assert_array_equal(asked(new, content), values()[:, ORDER])
    wide = save(tmp_path / "wide.h5ad", np.hstack([values()] * 2), range(2 * N_GENES))
    with pytest.raises(ModelFileError, match="model needs 6 columns") as caught:
        next(batches(wide, content))
    assert caught.value.code == "E133"


def test_arrays_and_embeddings(schema: Schema, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", values())
    assert_array_equal(asked(tmp_path / "x.npy", schema), values())
    assert_array_equal(asked(values(), schema), values())
    new = shuffled(tmp_path / "new.h5ad")
    space = read(new, domain="donor", use_rep="X_pca").schema
    assert space.names == ()
    assert_array_equal(asked(new, space), values()[:, :2])


def test_made_up_names_are_not_kept(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=values(), donor=np.arange(N_CELLS) % 3)
    table = read(tmp_path / "x.npz", domain="donor")
    assert table.feature_names[0] == "x0"
    assert table.schema.names == ()


# ---- what cannot be told apart -------------------------------------------------------


def test_repeated_names(tmp_path: Path) -> None:
    genes = ["a", "a", *GENES[2:]]
    path = save(tmp_path / "fit.h5ad", values(), genes)
    schema = read(path, domain="donor").schema
    assert_array_equal(asked(path, schema), values())
    other = [genes[index] for index in ORDER]
    for named in (other, ["b", *genes[1:]]):  # both, or only one of them
        new = save(tmp_path / "new.h5ad", values(), named)
        with pytest.raises(InputError, match="several columns are called a,") as caught:
            next(batches(new, schema))
        assert caught.value.code == "E107"


def test_a_needed_gene_that_the_file_has_twice(schema: Schema, tmp_path: Path) -> None:
    matrix = np.hstack([values(), values()[:, :1]])
    path = save(tmp_path / "new.h5ad", matrix, [*GENES, "gene0"])
    with pytest.raises(InputError, match="several columns are called gene0,"):
        next(batches(path, schema))


def test_damaged_names(schema: Schema) -> None:
    content = schema.to_dict()
    for names in (GENES[:2], [1] * N_GENES, "genes1"):
        with pytest.raises(ModelFileError) as caught:
            Schema.from_dict({**content, "names": names})
        assert caught.value.code == "E135"


def test_a_file_with_too_few_names(tmp_path: Path) -> None:
    path = save(tmp_path / "new.h5ad", values(), GENES[:2])
    with pytest.raises(InputError, match="6 columns, 2 names in var") as caught:
        read(path, domain="donor")
    assert caught.value.code == "E143"
