"""Classes in AnnData: added to objects and to copies of files, and nothing else."""

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from shoal import DomainMixture
from shoal.exceptions import InputError, ModelFileError
from shoal.io import annotate, annotate_h5ad, read
from shoal.io.source._anndata import _read_frame
from shoal.io.table._schema import Schema

h5py = pytest.importorskip("h5py")

CELLS = Path(__file__).parent / "data" / "cells.h5ad"
N_CELLS = 24
HOW = {"domain": "donor", "use_rep": "X_pca"}

# A few made-up cells, whose donors do not differ.
pytestmark = pytest.mark.filterwarnings(
    "ignore::shoal.exceptions.IdentifiabilityWarning"
)


@pytest.fixture(scope="module")
def model() -> Any:
    table = read(CELLS, **HOW)
    fitted = DomainMixture(2, search=False, random_state=0).fit(table.X, table.domains)
    return fitted.set_names({"c0": "T cells", "c1": "beta (β)"})


@pytest.fixture(scope="module")
def proba(model: Any) -> Any:
    table = read(CELLS, **HOW)
    return model.predict_proba(table.X, table.domains)


def in_memory() -> Any:
    """What AnnData is to us: obs, X, layers, obsm and uns."""
    table = read(CELLS, domain="donor")
    with h5py.File(CELLS) as file:
        obs = _read_frame(file["obs"])
    return SimpleNamespace(
        X=sparse.csr_matrix(table.X),
        obs=obs,
        obs_names=obs.index,
        var_names=pd.Index(table.feature_names),
        layers={"counts": read(CELLS, domain="donor", layer="counts").X},
        obsm={"X_pca": read(CELLS, **HOW).X},
        uns={},
    )


def test_names_that_are_stored_as_bytes(model: Any, tmp_path: Path):
    """Fixed-length text is bytes to h5py; some writers use it for attributes."""
    source, out = tmp_path / "bytes.h5ad", tmp_path / "out.h5ad"
    shutil.copy(CELLS, source)

    def as_bytes(_: str, node: Any) -> None:
        for name, value in list(node.attrs.items()):
            if isinstance(value, str) or np.asarray(value).dtype == object:
                node.attrs[name] = np.asarray(value).astype("S")

    with h5py.File(source, "a") as file:
        file.visititems(as_bytes)
        assert isinstance(file["obs"].attrs["column-order"][0], bytes)
    assert_array_equal(read(source, **HOW).X, read(CELLS, **HOW).X)
    annotate_h5ad(source, out, model, **HOW)
    with h5py.File(CELLS) as before, h5py.File(out) as after:
        known = list(before["obs"].attrs["column-order"])
        new = ["shoal_class", "shoal_confidence"]
        assert list(after["obs"].attrs["column-order"]) == [*known, *new]


def datasets(file: Any) -> dict[str, Any]:
    """Every array of a file as it is stored."""
    found: dict[str, Any] = {}

    def note(name: str, node: Any) -> None:
        if hasattr(node, "dtype"):
            found[name] = (str(node.dtype), np.asarray(node[()]).tolist())

    file.visititems(note)
    return found


def test_an_object_in_memory(model: Any, proba: Any) -> None:
    cells = in_memory()
    assert annotate(cells, model, **HOW) is None
    column = cells.obs["shoal_class"]
    assert column.cat.categories.tolist() == ["T cells", "beta (β)"]
    assert_array_equal(column.cat.codes, proba.argmax(axis=1))
    assert cells.obsm["X_shoal"].dtype == np.float32
    assert_allclose(cells.obsm["X_shoal"], proba, atol=1e-6)
    assert_array_equal(cells.obs["shoal_confidence"], cells.obsm["X_shoal"].max(axis=1))
    facts = cells.uns["shoal"]
    assert_array_equal(facts["prevalence"], model.prevalence_)
    assert facts["domains"].tolist() == ["p0", "p1", "p2"]
    assert json.loads(facts["about"])["estimator"] == "DomainMixture"
    assert cells.uns["shoal_class_colors"].tolist() == ["#0072B2", "#E69F00"]


def test_nothing_is_of_mixed_type(model: Any) -> None:
    cells = in_memory()
    annotate(cells, model, **HOW)
    for value in [*cells.uns["shoal"].values(), cells.uns["shoal_class_colors"]]:
        if isinstance(value, str):
            continue
        kinds = {type(one) for one in value.ravel()}
        assert len(kinds) == 1
        assert kinds <= {str, np.float64}


def test_a_file_keeps_all_it_had(model: Any, proba: Any, tmp_path: Path) -> None:
    out = annotate_h5ad(CELLS, tmp_path / "out.h5ad", model, **HOW)
    with h5py.File(CELLS) as before, h5py.File(out) as after:
        old, new = datasets(before), datasets(after)
        assert {name: new[name] for name in old} == old
        added = {name.split("/")[1] for name in new if name not in old}
        assert added == {"shoal_class", "shoal_confidence", "X_shoal", "shoal",
                         "shoal_class_colors"}  # fmt: skip
        obs = after["obs"]
        known = list(before["obs"].attrs["column-order"])
        expected = [*known, "shoal_class", "shoal_confidence"]
        assert list(obs.attrs["column-order"]) == expected
        categories = obs["shoal_class"]["categories"].asstr()[:]
        assert categories.tolist() == model.class_names_
        assert_array_equal(obs["shoal_class"]["codes"][:], proba.argmax(axis=1))
        assert after["obsm"]["X_shoal"].dtype == np.float32
        assert_allclose(after["obsm"]["X_shoal"][:], proba, atol=1e-6)
        assert_array_equal(after["uns"]["shoal"]["prevalence"][:], model.prevalence_)
        assert isinstance(after["uns"]["shoal"]["about"].asstr()[()], str)


def test_what_was_written_can_be_read_and_written_again(
    model: Any, tmp_path: Path
) -> None:
    first = annotate_h5ad(CELLS, tmp_path / "first.h5ad", model, **HOW)
    table = read(first, domain="donor", label="shoal_class")
    assert set(table.labels) <= set(model.class_names_)
    second = annotate_h5ad(first, tmp_path / "second.h5ad", model, **HOW)
    with h5py.File(first) as one, h5py.File(second) as other:
        assert datasets(one) == datasets(other)
        columns = list(other["obs"].attrs["column-order"])
    assert len(columns) == len(set(columns))


def test_a_model_that_knows_its_columns_need_not_be_told(
    model: Any, proba: Any
) -> None:
    schema = read(CELLS, **HOW).schema
    model = model.set_names({})
    model.schema_ = schema.to_dict()
    cells = in_memory()
    annotate(cells, model)
    assert_allclose(cells.obsm["X_shoal"], proba, atol=1e-6)
    assert Schema.from_dict(model.schema_).use_rep == "X_pca"


def test_without_domains(model: Any) -> None:
    cells = in_memory()
    with pytest.raises(InputError, match="which column of obs") as caught:
        annotate(cells, model, use_rep="X_pca")
    assert caught.value.code == "E106"
    annotate(cells, model, use_rep="X_pca", pooled=True)
    pooled = model.predict_proba(cells.obsm["X_pca"])
    assert_allclose(cells.obsm["X_shoal"], pooled, atol=1e-6)
    annotate(cells, model, use_rep="X_pca", prevalence=[0.25, 0.75])
    given = model.predict_proba(cells.obsm["X_pca"], prevalence=[0.25, 0.75])
    assert_allclose(cells.obsm["X_shoal"], given, atol=1e-6)


def test_what_does_not_fit_is_refused(model: Any, tmp_path: Path) -> None:
    out = tmp_path / "out.h5ad"
    with pytest.raises(ModelFileError, match="model needs 2 columns") as caught:
        annotate_h5ad(CELLS, out, model, domain="donor")
    assert caught.value.code == "E133"
    old = tmp_path / "old.h5ad"
    with h5py.File(old, "w") as file:
        file["obs"] = np.zeros(3)
    with pytest.raises(InputError, match="before 0.7") as caught:
        annotate_h5ad(old, out, model, **HOW)
    assert caught.value.code == "E143"
    assert not out.exists()


def test_without_h5py_the_extra_is_named(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = in_memory()
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"shoal\[anndata\]") as caught:
        annotate_h5ad(CELLS, tmp_path / "out.h5ad", model, **HOW)
    assert caught.value.code == "E132"
    annotate(cells, model, **HOW)  # nothing of it is needed in memory


def test_with_anndata_itself(model: Any, proba: Any, tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    path = annotate_h5ad(CELLS, tmp_path / "out.h5ad", model, **HOW)
    before, after = anndata.read_h5ad(CELLS), anndata.read_h5ad(path)
    assert (before.X != after.X).nnz == 0
    assert set(before.layers) == set(after.layers)
    assert all((before.layers[key] != after.layers[key]).sum() == 0
               for key in before.layers)  # fmt: skip
    assert_array_equal(after.obsm["X_pca"], before.obsm["X_pca"])
    pd.testing.assert_frame_equal(after.obs[before.obs.columns], before.obs)
    cells = before.copy()
    annotate(cells, model, **HOW)
    cells.write_h5ad(tmp_path / "memory.h5ad")
    for found in (after, anndata.read_h5ad(tmp_path / "memory.h5ad")):
        assert found.obs["shoal_class"].cat.categories.tolist() == model.class_names_
        assert found.obsm["X_shoal"].dtype == np.float32
        assert_allclose(found.obsm["X_shoal"], proba, atol=1e-6)
        assert_array_equal(found.uns["shoal"]["prevalence"], model.prevalence_)
        assert isinstance(found.uns["shoal"]["about"], str)
