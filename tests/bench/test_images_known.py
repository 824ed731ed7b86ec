import re
import shutil

import numpy as np
import pytest
from PIL import Image

from shoal_bench.datasets import known as images_known
from shoal_bench.datasets.known import (
    IMAGENET50,
    load_cinic10,
    load_fieldguide,
    load_imagenet50,
    load_waterbirds,
)


def save(path, value=0, size=6):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((size, size, 3), value, dtype=np.uint8)).save(path)


def test_cinic10(tmp_path):
    for split in ("train", "valid", "test"):
        for label, name in enumerate(("cat", "dog")):
            save(tmp_path / "CINIC-10" / split / name / "cifar10-train-1.png", label)
            save(tmp_path / "CINIC-10" / split / name / "n0123_4.png", label)
    for path in (tmp_path, tmp_path / "CINIC-10"):
        bunch = load_cinic10(path, "valid", size=6)
        assert bunch.X.shape == (4, 6, 6, 3)
        assert bunch.labels.tolist() == [0, 0, 1, 1]
        assert (bunch.X[:, 0, 0, 0] == bunch.labels).all()
        assert bunch.label_names == ["cat", "dog"]
        assert bunch.sources.tolist() == ["cifar10", "imagenet"] * 2
    # With the files there, nothing is fetched.
    assert len(load_cinic10(tmp_path, size=6, download=True).X) == 4
    with pytest.raises(ValueError, match="split must be one of train, valid, test"):
        load_cinic10(tmp_path, "val")


@pytest.fixture
def imagenet(tmp_path):
    for name in ("n00000001", *IMAGENET50):
        save(tmp_path / "train" / name / "a.JPEG", size=16)
        save(tmp_path / "train" / name / "b.JPEG", size=16)
    return tmp_path


def test_the_class_ids_of_imagenet50():
    assert len(set(IMAGENET50)) == 50
    assert list(IMAGENET50) == sorted(IMAGENET50)
    assert all(re.fullmatch(r"n\d{8}", name) for name in IMAGENET50)


def test_imagenet50_is_its_fifty_classes(imagenet):
    bunch = load_imagenet50(imagenet, size=8)
    assert bunch.X.shape == (100, 8, 8, 3)
    assert bunch.label_names == list(IMAGENET50)
    assert np.bincount(bunch.labels).tolist() == [2] * 50
    shutil.rmtree(imagenet / "train" / IMAGENET50[7])
    with pytest.raises(ValueError, match=f"lacks 1 of the 50.*'{IMAGENET50[7]}'"):
        load_imagenet50(imagenet, size=8)
    with pytest.raises(FileNotFoundError, match=r"imagenet is not at .*image-net\.org"):
        load_imagenet50(imagenet, "val")


def test_other_classes_of_imagenet(imagenet, tmp_path):
    ids = ["n00000001", IMAGENET50[3]]
    listing = tmp_path / "ids.txt"
    listing.write_text("\n".join(f"{name} some words" for name in ids) + "\n")
    for class_ids in (ids, listing, str(listing)):
        bunch = load_imagenet50(imagenet, class_ids=class_ids, size=8)
        assert bunch.label_names == ids
        assert np.bincount(bunch.labels).tolist() == [2, 2]
    with pytest.raises(ValueError, match="lacks 1 of the 1 class folders, such as 'n9"):
        load_imagenet50(imagenet, class_ids=["n99"])


@pytest.fixture
def fieldguide(tmp_path, monkeypatch):
    monkeypatch.setattr(images_known, "SPECIES_IMAGES", 10)
    monkeypatch.setattr(images_known, "SPECIES_TEST", 4)
    for species, count in (("atlas", 10), ("brimstone", 9), ("comma", 10), ("dot", 12)):
        for number in range(count):
            save(tmp_path / species / f"{number:02d}.jpg", 10 * number)
    return tmp_path


def test_fieldguide_takes_full_species_and_holds_some_out(fieldguide):
    train = load_fieldguide(fieldguide, n_classes=2, size=6)
    test = load_fieldguide(fieldguide, "test", n_classes=2, size=6)
    assert train.label_names == ["atlas", "comma"]
    assert np.bincount(train.labels).tolist() == [6, 6]
    assert np.bincount(test.labels).tolist() == [4, 4]
    every = sorted([*train.files, *test.files])
    assert every == sorted({*train.files, *test.files})
    assert len(every) == 20
    again = load_fieldguide(fieldguide, "test", n_classes=2, size=6)
    assert again.files.tolist() == test.files.tolist()
    # A species has the same split whichever others are asked for.
    alone = load_fieldguide(fieldguide, "test", species=["comma"], size=6)
    assert alone.files.tolist() == test.files[test.labels == 1].tolist()


def test_fieldguide_that_is_too_small_or_absent(fieldguide, monkeypatch):
    with pytest.raises(
        ValueError, match="3 folders of at least 10 images, n_classes=28"
    ):
        load_fieldguide(fieldguide)
    monkeypatch.delenv("SHOAL_DATA_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match=r"\$SHOAL_DATA_DIR/fieldguide.*Kaggle"):
        load_fieldguide()


def test_waterbirds(tmp_path, monkeypatch):
    root = tmp_path / "waterbird_complete95_forest2water2"
    lines = ["img_id,img_filename,y,split,place,place_filename"]
    for number, (y, split, place) in enumerate([(0, 0, 0), (1, 0, 1), (1, 2, 0)]):
        save(root / "001.Bird" / f"{number}.jpg", 10 * number)
        lines.append(f"{number},001.Bird/{number}.jpg,{y},{split},{place},x")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    monkeypatch.setenv("SHOAL_DATA_DIR", str(tmp_path))
    train, test = load_waterbirds(size=6), load_waterbirds(split="test", size=6)
    assert train.labels.tolist() == [0, 1]
    assert train.backgrounds.tolist() == ["land", "water"]
    assert train.X.shape == (2, 6, 6, 3)
    assert test.files.tolist() == ["001.Bird/2.jpg"]
    monkeypatch.delenv("SHOAL_DATA_DIR")
    with pytest.raises(FileNotFoundError, match=r"unpack https://nlp\.stanford\.edu"):
        load_waterbirds()
