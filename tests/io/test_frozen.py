"""Models that somebody saved long ago. Nothing here saves one again.

``tests/io/models/make.py`` made them, once for each format; a test that re-saves would
only show that today's code agrees with itself.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal
from shoal.io import Schema, read_manifest
from shoal.io.model import _probe as history

MODELS = Path(__file__).parent / "models"
FOLDERS = sorted(path.parent for path in MODELS.glob("format*/*/expected.npz"))
NAMES = {
    "mixture",
    "mixture_rbf",
    "ddfa",
    "discrete_words",
    "discrete_counts",
    "merged",
}


def test_every_kind_is_there() -> None:
    assert {path.name for path in FOLDERS if path.parent.name == "format1"} == NAMES


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_predictions_of_old_models(folder: Path, tmp_path: Path) -> None:
    """Loaded from a folder that cannot be written to."""
    copied = shutil.copytree(folder / "model", tmp_path / "model")
    for path in copied.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    with np.load(folder / "expected.npz", allow_pickle=False) as expected:
        model = shoal.load(copied)
        X, domains = expected["X"], expected["domains"]
        close = {"rtol": 1e-6, "atol": 1e-9}
        assert_allclose(model.predict_proba(X), expected["pooled"], **close)
        assert_allclose(model.predict_proba(X, domains), expected["by_domain"], **close)
        assert_array_equal(model.prevalence_, expected["prevalence"])
        assert_array_equal(model.labels_, expected["labels"])
    assert {path: path.read_bytes() for path in before} == before
    for path in copied.rglob("*"):
        path.chmod(0o700)


def test_what_travelled_with_them() -> None:
    folder = MODELS / "format1"
    manifest = read_manifest(folder / "mixture")
    assert manifest["summary"]["verdict"] == "clear"
    schema = Schema.from_dict(shoal.load(folder / "mixture").schema_)
    assert schema.feature_names == ["size", "mass", "colour=blue", "colour=red"]
    merged = shoal.load(folder / "merged")
    assert sorted(merged.class_names_) == ["both", "c1"]
    assert history.undo(merged).class_names_ == ["first", "c1", "third"]
    assert "| domain |" in (folder / "ddfa" / "model" / "README.md").read_text()
