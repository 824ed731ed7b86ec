import numpy as np
import pytest
from PIL import Image

from shoal.datasets.images_folder import load_image_folder
from shoal.exceptions import IdentifiabilityWarning, InputError, ShoalWarning


def save(path, value=0, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((size[1], size[0], 3), value, dtype=np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)


@pytest.fixture
def folder(tmp_path):
    for number, domain in enumerate(("east", "west")):
        for i in range(3):
            save(tmp_path / "photos" / domain / f"{i}.png", value=100 * number + i)
    return tmp_path / "photos"


def test_one_folder_for_each_domain(folder):
    bunch = load_image_folder(folder)
    assert bunch.X.shape == (6, 8, 8, 3)
    assert bunch.X.dtype == np.uint8
    assert bunch.X[:, 0, 0, 0].tolist() == [0, 1, 2, 100, 101, 102]
    assert bunch.domains.tolist() == ["east"] * 3 + ["west"] * 3
    assert bunch.labels is None
    assert bunch.files[0] == "east/0.png"
    assert bunch.skipped == []


def test_class_folders_are_labels(tmp_path):
    for domain in ("a", "b"):
        for name in ("cat", "dog"):
            for i in range(2):
                save(tmp_path / domain / name / f"{i}.jpg")
    bunch = load_image_folder(tmp_path)
    assert bunch.labels.tolist() == ["cat", "cat", "dog", "dog"] * 2
    assert bunch.domains.tolist() == ["a"] * 4 + ["b"] * 4


def test_grey_palette_and_transparent_images_become_rgb(folder):
    save(folder / "east" / "grey.png", 7, mode="L")
    save(folder / "east" / "palette.png", 7, mode="P")
    save(folder / "west" / "transparent.png", 7, mode="RGBA")
    bunch = load_image_folder(folder)
    added = bunch.X[np.isin(bunch.files, ["east/grey.png", "west/transparent.png"])]
    assert (added == 7).all()
    assert bunch.X.shape == (9, 8, 8, 3)


def test_several_sizes_need_a_size(folder):
    save(folder / "east" / "wide.png", size=(20, 10))
    save(folder / "west" / "wide.png", size=(20, 10))
    with pytest.raises(InputError, match=r"one size; found 8 x 8, 20 x 10; give size"):
        load_image_folder(folder)
    assert load_image_folder(folder, size=5).X.shape == (8, 5, 5, 3)


def test_an_empty_folder(tmp_path):
    with pytest.raises(InputError, match=r"no images below .*expected .*<domain>"):
        load_image_folder(tmp_path)
    with pytest.raises(InputError, match='no folder ".*absent"'):
        load_image_folder(tmp_path / "absent")


def test_a_domain_with_one_image_is_warned_of(folder):
    save(folder / "north" / "only.png")
    with pytest.warns(IdentifiabilityWarning, match='domain "north" has one image'):
        bunch = load_image_folder(folder)
    assert len(bunch.X) == 7


def test_truncated_files_stop_or_are_left_out(folder):
    rng = np.random.default_rng(0)
    broken = folder / "west" / "broken.png"
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(broken)
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.raises(InputError, match=r"1 of 7 images cannot be read \(.*broken"):
        load_image_folder(folder)
    bunch = load_image_folder(folder, skip_bad=True)
    assert len(bunch.X) == len(bunch.domains) == 6
    assert bunch.skipped == ["west/broken.png"]


def test_files_that_are_no_images_are_named(folder):
    (folder / "west" / "text.jpg").write_text("not an image")
    with pytest.warns(ShoalWarning, match=r"1 of 7 images cannot be read \(west/text"):
        bunch = load_image_folder(folder, skip_bad=True)
    assert bunch.skipped == ["west/text.jpg"]


def test_domains_from_the_file_name(tmp_path):
    for site in ("s1", "s2"):
        for i in range(2):
            save(tmp_path / f"{site}_{i}.png")
    bunch = load_image_folder(tmp_path, domain_from=r"^(s\d)_")
    assert bunch.domains.tolist() == ["s1", "s1", "s2", "s2"]
    assert bunch.labels is None
