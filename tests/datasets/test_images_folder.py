import numpy as np
import pytest
from PIL import Image

from shoal.datasets._files import load_image_folder, read_class_folders
from shoal.exceptions import IdentifiabilityWarning, InputError, ShoalWarning
from shoal.io._images import check_image


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


def test_domains_with_one_image_and_folders_with_none_are_named(folder):
    for domain in ("north", "south"):
        save(folder / domain / "only.png")
    (folder / "upper").mkdir()
    (folder / "lower").mkdir()
    with pytest.warns(ShoalWarning) as caught:
        load_image_folder(folder)
    assert [str(one.message) for one in caught] == [
        'folders "lower", "upper" hold no image that can be read; add images there if '
        "it should be a domain",
        'domains "north", "south" have one image each, which says nothing of its class '
        "mix; add images or move it into another domain",
    ]


@pytest.mark.parametrize(
    ("kind", "form", "mode"),
    [
        ("<u2", "png", ("I;16", "I")),  # I in older pillow
        ("<u2", "tif", ("I;16",)),
        (">u2", "tif", ("I;16B",)),
        ("<i4", "tif", ("I",)),
    ],
)
def test_a_ramp_of_16_bits_keeps_its_shape(tmp_path, kind, form, mode):
    ramp = np.linspace(0, 65535, 64 * 64).round().astype(kind).reshape(64, 64)
    for domain in ("a", "b"):
        for number in range(2):
            (tmp_path / domain).mkdir(exist_ok=True)
            Image.fromarray(ramp).save(tmp_path / domain / f"{number}.{form}")
    with Image.open(tmp_path / "a" / f"0.{form}") as image:
        assert image.mode in mode
    expected = np.round(ramp.astype(np.float64) / 257)
    assert (expected.min(), expected.max()) == (0, 255)
    pixels = load_image_folder(tmp_path).X
    assert (pixels == expected[None, :, :, None]).all()


def test_images_of_floats_are_refused_or_left_out(folder):
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    Image.fromarray(values).save(folder / "west" / "float.tif")
    with pytest.raises(InputError) as caught:
        load_image_folder(folder)
    assert caught.value.code == "E143"
    assert str(caught.value) == (
        "1 of 7 images cannot be read (west/float.tif); in west/float.tif, pixels must "
        "be whole numbers of 8 or 16 bits, got floats (mode F); save them with 8 or 16 "
        "bits, or --skip-bad (skip_bad=True) to leave them out"
    )
    with pytest.warns(ShoalWarning, match=r"got floats \(mode F\); they are left out"):
        bunch = load_image_folder(folder, skip_bad=True)
    assert bunch.skipped == ["west/float.tif"]
    assert len(bunch.X) == 6


@pytest.mark.parametrize("value", [-1, 65536])
def test_whole_numbers_beyond_16_bits_are_refused_or_left_out(folder, value):
    wide = np.zeros((8, 8), dtype=np.int32)
    wide[0, 0] = value
    Image.fromarray(wide).save(folder / "west" / "wide.tif")
    low, high = sorted((0, value))
    said = rf"pixels must lie in 0 to 65535, got {low} to {high} \(mode I\); "
    with pytest.raises(InputError, match=f"{said}save them"):
        load_image_folder(folder)
    with pytest.warns(ShoalWarning, match=f"{said}they are left out; save them"):
        bunch = load_image_folder(folder, skip_bad=True)
    assert bunch.skipped == ["west/wide.tif"]


def test_a_single_image_of_floats(tmp_path):
    path = tmp_path / "float.tif"
    Image.fromarray(np.zeros((8, 8), dtype=np.float32)).save(path)
    with pytest.raises(
        InputError, match=r"as an image; pixels must .*; save it with 8"
    ):
        check_image(path)


def test_where_all_images_are_bad_nothing_is_left(tmp_path):
    for domain in ("a", "b"):
        (tmp_path / domain).mkdir()
        wide = np.full((8, 8), -1, dtype=np.int32)
        Image.fromarray(wide).save(tmp_path / domain / "wide.tif")
    for skip_bad in (False, True):
        with (
            pytest.warns(IdentifiabilityWarning),
            pytest.raises(InputError, match="2 of 2 images cannot") as caught,
        ):
            load_image_folder(tmp_path, skip_bad=skip_bad)
        assert caught.value.hint == "save them with 8 or 16 bits"


def test_class_folders_of_bad_images_are_refused(tmp_path):
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "torn.png").write_bytes(b"torn")
    for skip_bad in (False, True):
        with pytest.raises(InputError, match=r"1 of 1 image cannot .*; replace them$"):
            read_class_folders(tmp_path, ["cat"], 8, skip_bad=skip_bad)


def test_images_in_no_folder_of_a_domain(tmp_path):
    save(tmp_path / "a.png")
    save(tmp_path / "b.png")
    with pytest.raises(InputError, match=r"2 images lie directly in .*one folder per"):
        load_image_folder(tmp_path)


def test_truncated_files_stop_or_are_left_out(folder):
    rng = np.random.default_rng(0)
    broken = folder / "west" / "broken.png"
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(broken)
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.raises(InputError, match=r"1 of 7 images cannot be read \(.*broken"):
        load_image_folder(folder)
    with pytest.warns(ShoalWarning, match=r"cannot be read \(west/broken") as said:
        bunch = load_image_folder(folder, skip_bad=True)
    assert [one.filename for one in said] == [__file__]  # told to who called
    assert len(bunch.X) == len(bunch.domains) == 6
    assert bunch.skipped == ["west/broken.png"]


def test_bad_heads_and_bad_pixels_count_together(folder):
    (folder / "west" / "text.jpg").write_text("not an image")
    rng = np.random.default_rng(0)
    broken = folder / "west" / "broken.png"
    Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(broken)
    broken.write_bytes(broken.read_bytes()[:100])
    with pytest.warns(ShoalWarning) as said:
        bunch = load_image_folder(folder, skip_bad=True)
    texts = [str(one.message) for one in said]
    assert "1 of 8 images cannot be read" in texts[0]
    assert "2 of 8 images cannot be read" in texts[1]
    assert len(bunch.skipped) == 2


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
