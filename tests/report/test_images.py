"""Pictures: small, without metadata, and the first to go when space is short."""

import base64
import io
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from shoal.report import render, summarize
from shoal.report._gather import shrink, thumbnail
from shoal.report._html import _fit


def noise(row: int, side: int = 200) -> np.ndarray:
    return np.random.default_rng(row).integers(0, 256, (side, side, 3), dtype=np.uint8)


def open_address(address: str) -> Image.Image:
    head, _, content = address.partition(",")
    assert head == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.mark.parametrize(
    ("shape", "size"),
    [((200, 100, 3), (48, 96)), ((30, 40, 3), (40, 30)), ((50, 50), (50, 50)),
     ((96, 96, 1), (96, 96)), ((20, 300, 4), (96, 6))],
)  # fmt: skip
def test_arrays_become_small_pictures(shape, size):
    made = open_address(thumbnail(np.full(shape, 200, dtype=np.uint8)))
    assert made.size == size
    assert np.abs(np.asarray(made).astype(int) - 200).max() <= 4


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_files_lose_their_metadata(kind):
    buffer = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "taken at Zebedee's house"
    Image.fromarray(noise(0)).save(buffer, format=kind, exif=exif)
    assert b"Zebedee" in buffer.getvalue()
    address = thumbnail(buffer.getvalue())
    assert b"Zebedee" not in base64.b64decode(address.partition(",")[2])
    assert open_address(address).size == (96, 96)


def test_shrink_keeps_the_picture():
    image = np.zeros((90, 90, 3), dtype=np.uint8)
    image[:, :45] = 255
    small = np.asarray(open_address(shrink(thumbnail(image), 40)))
    assert small.shape == (40, 40, 3)
    assert small[:, :15].mean() > 240
    assert small[:, 25:].mean() < 15


def test_sixteen_bits_keep_their_shades():
    buffer = io.BytesIO()
    shades = np.full((40, 40), 100 * 257, dtype=np.uint16)
    Image.fromarray(shades).save(buffer, format="PNG")
    made = np.asarray(open_address(thumbnail(buffer.getvalue()))).astype(int)
    assert np.abs(made - 100).max() <= 4


def test_floats_are_refused():
    with pytest.raises(TypeError, match="arrays of uint8, got an array of float64"):
        thumbnail(np.zeros((4, 4)))


@pytest.fixture(scope="module")
def gallery(penguins):
    data = penguins.data
    return summarize(penguins.model, data.X, data.domains, images=noise)


def test_gallery_shows_the_pictures_of_its_rows(gallery, parse):
    page = parse(render(gallery))
    for y, card in enumerate(gallery["cards"]):
        rows = [row for home in card["exemplars"] for row in home["rows"]]
        article = page.one("article", id=f"c{y}")
        shown = [img["src"] for img in article.all("img")]
        expected = [row["image"] for row in [*rows, *card["borderline"]]]
        assert shown == expected
        assert all(img["alt"] for img in article.all("img"))
        assert rows[0]["image"] == thumbnail(noise(rows[0]["row"]))


def test_pictures_go_in_the_stated_order(gallery):
    full = len(render(gallery).encode())
    seen, size = [], full
    while len(seen) < 6:
        _, left_out = _fit(gallery, (size - 1) / 1e6, None)
        assert left_out[: len(seen)] == seen
        seen = left_out
        size = len(render(gallery, max_mb=(size - 1) / 1e6).encode())
    assert seen[0] == "all but 2 pictures of borderline rows per class"
    assert seen[1] == "the pictures of borderline rows"
    assert seen[2].startswith("half of the surest rows")
    assert seen[3].startswith("most of the surest rows")
    assert seen[4] == "size of the pictures (64 pixels)"
    assert size < full / 2


def test_images_of_the_rows_themselves():
    """A model whose rows are images shows them without being told how."""
    from shoal.base import LatentShiftEstimator

    class Brightness(LatentShiftEstimator):
        def fit(self, X, y=None, *, domains=None):
            self.n_features_in_ = 3
            names = np.unique(domains)
            self._store(np.array([[0.8, 0.2], [0.3, 0.7]]), names, np.full(2, 0.5))
            return self

        def _check_rows(self, X):
            return np.asarray(X)

        def _class_given_x(self, X):
            bright = X.reshape(len(X), -1).mean(axis=1) / 255
            return np.column_stack([1 - bright, bright])

    rng = np.random.default_rng(0)
    level = np.where(rng.random(40) < 0.5, 30, 220).astype(np.uint8)
    X = np.broadcast_to(level[:, None, None, None], (40, 6, 6, 3))
    domains = np.repeat(["a", "b"], 20)
    model = Brightness().fit(X, domains=domains)
    summary = summarize(model, X, domains, kind="images")
    assert summary["size"]["features"] is None
    assert [record["view"] for record in summary["maps"]] == ["domains"]
    record = summary["cards"][1]["exemplars"][0]["rows"][0]
    assert np.asarray(open_address(record["image"])).mean() > 200
    assert "<img" in render(summary)


def test_pillow_is_imported_only_for_pictures():
    code = (
        "import sys, shoal.report._html, shoal.report._summary; "
        "print('PIL' in sys.modules, 'matplotlib' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False"]
