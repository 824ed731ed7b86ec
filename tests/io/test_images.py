import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shoal.exceptions import InputError
from shoal.io import batches, read, read_pixels
from shoal.io._images import list_images
from shoal.io.table._schema import Schema


def picture(path: Path, size: tuple[int, int] = (40, 30), colour: Any = 90) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (colour, 10, 20)).save(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for domain in ("hill", "lake"):
        for number in range(60):
            picture(tmp_path / domain / f"{number:02d}.png")
    return tmp_path


def test_a_folder_of_images(root: Path) -> None:
    picture(root / "lake" / "deep" / "x.JPG")
    (root / "lake" / "notes.txt").write_text("not an image")
    table = read(root)
    assert table.kind == "images"
    assert table.X is None
    assert table.n_rows == 121
    assert table.ids[0] == "hill/00.png"
    assert set(table.domains) == {"hill", "lake"}
    assert table.frame["width"].unique().tolist() == [40]
    assert table.messages == []
    assert table.source["rows"] == 121
    assert Schema.from_dict(table.schema.to_dict()).kind == "images"
    assert read([root]).n_rows == 121
    assert list_images(root).fingerprint == table.source["fingerprint"]


def test_pixels_are_those_of_the_middle(tmp_path: Path) -> None:
    wide = np.zeros((20, 60, 3), dtype=np.uint8)
    wide[:, 20:40] = [200, 100, 50]
    Image.fromarray(wide).save(tmp_path / "wide.png")
    Image.fromarray(wide[:, 20:40, 0]).save(tmp_path / "grey.png")
    images, readable = read_pixels([tmp_path / "wide.png", tmp_path / "grey.png"], 20)
    assert images.dtype == np.uint8
    assert images.shape == (2, 20, 20, 3)
    assert readable.all()
    assert (images[0] == [200, 100, 50]).all()
    assert (images[1] == 200).all()


def test_a_domain_in_the_file_name(tmp_path: Path) -> None:
    for camera in ("cam1", "cam2"):
        for number in range(30):
            picture(tmp_path / f"{camera}-{number}.png")
    images = list_images(tmp_path, domain_from=r"(cam\d)-")
    assert set(images.domains) == {"cam1", "cam2"}
    assert set(read(tmp_path, domain_from=r"(cam\d)-").domains) == {"cam1", "cam2"}
    with pytest.raises(InputError, match="--domain-from REGEX .domain_from=") as caught:
        read(tmp_path)
    assert caught.value.code == "E101"
    with pytest.raises(InputError, match="finds no domain in"):
        list_images(tmp_path, domain_from=r"(lens\d)")


@pytest.mark.parametrize("domain_from", [None, "(.)"])
def test_where_no_images_are_no_expression_helps(
    tmp_path: Path, domain_from: str | None
) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(InputError, match="no images below") as caught:
        list_images(tmp_path, domain_from=domain_from)
    assert caught.value.code == "E101"
    assert caught.value.hint == "put images there, or check the path"


def test_a_loose_image_is_named(root: Path) -> None:
    picture(root / "stray.png")
    with pytest.raises(InputError, match='"stray.png" lies outside') as caught:
        read(root)
    assert caught.value.code == "E109"
    assert "--domain-from REGEX (domain_from=" in caught.value.hint


def test_broken_images(root: Path) -> None:
    (root / "hill" / "00.png").write_bytes(b"\x89PNG broken")
    table = read(root)
    assert [message.code for message in table.messages] == ["W128"]
    assert "1 of 120 images cannot be read (hill/00.png)" in table.messages[0].text
    assert table.source["skipped"] == ["hill/00.png"]
    assert table.n_rows == 119
    for number in range(1, 9):
        (root / "hill" / f"{number:02d}.png").write_bytes(b"")
    with pytest.raises(InputError, match="9 of 120 images.*--skip-bad") as caught:
        read(root)
    assert caught.value.code == "E143"
    assert read(root, skip_bad=True).n_rows == 111


def test_images_that_end_too_early(root: Path) -> None:
    """The head is whole, the rest is not: found when pixels are read."""
    rng = np.random.default_rng(0)
    noise = Image.fromarray(rng.integers(256, size=(30, 40, 3), dtype=np.uint8))
    noise.save(root / "hill" / "00.png")
    content = (root / "hill" / "00.png").read_bytes()
    (root / "hill" / "00.png").write_bytes(content[: len(content) // 2])
    paths = list_images(root).paths
    pixels, readable = read_pixels(paths, 8)
    assert pixels.shape == (119, 8, 8, 3)
    assert not readable[0]
    assert readable[1:].all()


def test_the_format_tells_the_domain(tmp_path: Path) -> None:
    for number in range(40):
        picture(tmp_path / "A" / f"{number}.png", (64, 64))
        picture(tmp_path / "B" / f"{number}.jpg", (32, 32))
    message = read(tmp_path).messages[0]
    assert message.code == "W121"
    assert "A is PNG 64 x 64 px, B is JPEG 32 x 32 px" in message.text
    for number in range(20):  # as many of each kind in both: nothing to tell
        picture(tmp_path / "A" / f"more{number}.jpg", (32, 32))
        picture(tmp_path / "B" / f"more{number}.png", (64, 64))
    assert read(tmp_path).messages == []


def test_a_huge_image_is_not_unpacked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)  # 40 x 30 is twice as much
    with pytest.raises(InputError, match="120 of 120 images cannot be read"):
        read_pixels(list_images(root, skip_bad=True).paths)


def test_pillow_is_named_when_absent(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(InputError, match="needs the package") as caught:
        read(root)
    assert (caught.value.code, caught.value.hint) == (
        "E132", 'pip install "shoal[vision]"',
    )  # fmt: skip


def test_a_model_of_numbers_takes_no_images(root: Path) -> None:
    with pytest.raises(ValueError, match="takes numbers, not images"):
        list(batches(root, Schema(n_columns=3)))
