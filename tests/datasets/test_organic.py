"""The organic sets: small files in the layout of the scripts, and the real ones."""

import lzma
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import Bunch

from shoal.datasets import (
    load_activities,
    load_asteroids,
    load_hawks,
    load_thyroid,
)
from shoal.datasets._files import DATA_DIR
from shoal.datasets._tables import ACTIVITY_FEATURES

Loader = Callable[..., Bunch]
LOADERS: dict[str, Loader] = {
    "activities": load_activities,
    "asteroids": load_asteroids,
    "hawks": load_hawks,
    "thyroid": load_thyroid,
}

ASTEROIDS = """\
year,population,a,e,i
1801,main belt,2.5,.08,10.6
1906,Jupiter trojan,5.2,.15,10.3
1977,centaur,13.7,.38,6.9
1992,trans-Neptunian,44,.07,2.2
"""
THYROID = """\
source,diagnosis,TSH,T3,TT4,T4U,FTI
SVI,negative,1,2,100,1,100
STMW,binding protein,.01,2,150,1.5,100
SVI,other illness,2,,50,1,50
WEST,negative,1,2,100,1,100
other,hypothyroid,30,1,40,1,40
"""
HAWKS = """\
year,month,species,wing,weight,culmen,hallux,tail
1992,9,RT,385,920,25.7,30.1,219
1992,9,RT,376,930,,,221
1993,10,SS,200,170,10,12,150
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.csv.xz"
    path.write_bytes(lzma.compress(text.encode()))
    return path


class TestSmallFiles:
    def test_asteroids(self, tmp_path: Path) -> None:
        path = write(tmp_path, "asteroids", ASTEROIDS)
        asteroids = load_asteroids(path)
        assert_array_equal(asteroids.domains, [1860, 1900, 1990])  # 1801 is pooled
        assert_array_equal(
            asteroids.labels, ["main belt", "Jupiter trojan", "trans-Neptunian"]
        )
        assert_allclose(np.exp(asteroids.X[:, 0]), [2.5, 5.2, 44])
        assert_allclose(asteroids.X[:, 1:], [[0.08, 10.6], [0.15, 10.3], [0.07, 2.2]])

    def test_asteroids_with_centaurs(self, tmp_path: Path) -> None:
        path = write(tmp_path, "asteroids", ASTEROIDS)
        asteroids = load_asteroids(path, populations=["centaur", "trans-Neptunian"])
        assert_array_equal(asteroids.labels, ["centaur", "trans-Neptunian"])

    def test_thyroid_left_out_and_floored(self, tmp_path: Path) -> None:
        thyroid = load_thyroid(write(tmp_path, "thyroid", THYROID))
        assert_array_equal(thyroid.domains, ["SVI", "STMW"])
        assert_allclose(
            np.exp(thyroid.X), [[1, 2, 100, 1, 100], [0.05, 2, 150, 1.5, 100]]
        )

    def test_thyroid_other_diagnoses(self, tmp_path: Path) -> None:
        path = write(tmp_path, "thyroid", THYROID)
        thyroid = load_thyroid(path, diagnoses=("hypothyroid", "negative"))
        assert_array_equal(thyroid.labels, ["negative", "hypothyroid"])

    def test_hawks(self, tmp_path: Path) -> None:
        hawks = load_hawks(write(tmp_path, "hawks", HAWKS).parent)
        assert_array_equal(hawks.domains, [1992, 1993])
        assert_array_equal(hawks.labels, ["RT", "SS"])
        assert_allclose(np.exp(hawks.X[0]), [385, 920, 25.7, 30.1, 219])

    def test_activities(self, tmp_path: Path) -> None:
        header = ",".join(("user", "activity", *ACTIVITY_FEATURES))
        values = ",".join(map(str, range(12)))
        path = write(tmp_path, "activities", f"{header}\n7,walking,{values}\n")
        activities = load_activities(path)
        assert_array_equal(activities.domains, [7])
        assert_array_equal(activities.labels, ["walking"])
        assert_allclose(activities.X, [np.arange(12)])

    @pytest.mark.parametrize(
        ("load", "argument", "value"),
        [
            (load_asteroids, "populations", ("comet",)),
            (load_asteroids, "populations", "centaur"),
            (load_thyroid, "diagnoses", ()),
        ],
    )
    def test_unknown_labels(
        self, tmp_path: Path, load: Loader, argument: str, value: object
    ) -> None:
        write(tmp_path, "asteroids", ASTEROIDS)
        write(tmp_path, "thyroid", THYROID)
        with pytest.raises(
            ValueError, match=f"{argument} must be a sequence of labels"
        ):
            load(tmp_path, **{argument: value})

    def test_file_of_another_set(self, tmp_path: Path) -> None:
        path = write(tmp_path, "hawks", THYROID)
        with pytest.raises(ValueError, match="no column 'year'"):
            load_hawks(path)


@pytest.mark.parametrize("name", LOADERS)
def test_absent_file_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DATA_DIR, raising=False)
    command = rf"{name}\.csv\.xz.*python scripts/data/make_{name}\.py"
    with pytest.raises(FileNotFoundError, match=command):
        LOADERS[name]()


@pytest.mark.parametrize(
    ("name", "shape", "n_domains", "labels", "licence"),
    [
        (
            "activities",
            (5006, 12),
            30,
            {"walking", "upstairs", "downstairs", "sitting", "standing", "lying"},
            "UCI",
        ),
        (
            "asteroids",
            (6827, 3),
            17,
            {"main belt", "Jupiter trojan", "trans-Neptunian"},
            "NASA/JPL",
        ),
        ("hawks", (891, 5), 12, {"CH", "RT", "SS"}, "GPL-3.0"),
        (
            "thyroid",
            (4929, 5),
            5,
            {"negative", "binding protein", "other illness"},
            "UCI",
        ),
    ],
)
def test_real_files(
    name: str, shape: tuple[int, int], n_domains: int, labels: set[str], licence: str
) -> None:
    file = f"{name}.csv.xz"
    if DATA_DIR not in os.environ or not Path(os.environ[DATA_DIR], file).is_file():
        pytest.skip(f"{DATA_DIR} does not name a folder with {file}")
    bunch, frames = LOADERS[name](), LOADERS[name](as_frame=True)
    assert bunch.X.shape == shape
    assert bunch.X.dtype == np.float64
    assert np.isfinite(bunch.X).all()
    assert len(bunch.feature_names) == shape[1]
    assert len(np.unique(bunch.domains)) == n_domains
    assert set(bunch.labels) == labels
    assert licence in bunch.licence
    assert "Not shipped with shoal" in bunch.licence
    assert "{" not in bunch.description
    assert_array_equal(frames.X.to_numpy(), bunch.X)
    assert_array_equal(frames.domains, bunch.domains)
