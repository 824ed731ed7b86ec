"""Every example runs, and says what its page says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from shoal.datasets._files import DATA_DIR
from support.scripts import ROOT, script

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))
# Their data do not come with the project.
ON_REQUEST = [
    path for path in EXAMPLES if path.stem[:2] in ("30", "40", "50", "60", "70")
]
needs_data = pytest.mark.skipif(
    DATA_DIR not in os.environ, reason=f"{DATA_DIR} is not set"
)


def run(example: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", example],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def example(stem: str) -> Path:
    return next(path for path in EXAMPLES if path.stem == stem)


with script("scripts/figures/gallery.py") as gallery:
    ALONE = [path for path in EXAMPLES if path.stem[:2] in gallery.SHIPPED]


@pytest.mark.slow
@pytest.mark.parametrize("path", ALONE, ids=lambda path: path.stem)
def test_each_runs_when_copied_alone(path: Path, tmp_path: Path):
    """What it prints is what its page shows; if not: scripts/figures/gallery.py."""
    page = ROOT / "docs" / "gallery" / f"{path.stem}.txt"
    assert gallery.printed(path, tmp_path) == page.read_text(encoding="utf-8")
    if path.stem[0] == "0":
        assert (tmp_path / f"{path.stem}.png").stat().st_size > 5_000


def test_the_page_shows_what_every_script_printed_and_drew():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    for stem in (path.stem for path in ALONE):
        assert f"gallery/{stem}.txt" in page
        assert (ROOT / "docs" / "gallery" / f"{stem}.txt").stat().st_size
    people = [path.stem for path in ALONE if path.stem[0] == "0"]
    assert len(people) == 6
    for stem in people:
        for picture in (f"images/gallery-{stem}.png", f"images/thumb-{stem}.png"):
            assert re.search(rf"!\[[\w ]+\]\({picture}\)", page)
            with Image.open(ROOT / "docs" / picture) as drawn:
                is_thumb = drawn.size == gallery.THUMB
            assert is_thumb == ("thumb" in picture)


def test_a_thumbnail_keeps_the_shape(tmp_path: Path):
    wide = Image.new("RGB", (800, 200), (200, 0, 0))
    wide.save(tmp_path / "wide.png")
    gallery.thumbnail(tmp_path / "wide.png", tmp_path / "thumb.png")
    with Image.open(tmp_path / "thumb.png") as drawn:
        red = np.asarray(drawn.convert("RGB"))[:, :, 1] < 128
    rows, columns = np.flatnonzero(red.any(axis=1)), np.flatnonzero(red.any(axis=0))
    assert len(columns) == gallery.THUMB[0] - 16
    assert len(rows) == pytest.approx(len(columns) / 4, abs=1)
    above, below = rows[0], gallery.THUMB[1] - 1 - rows[-1]
    assert abs(int(above) - int(below)) <= 1


def test_no_example_needs_a_file_of_its_neighbours():
    for path in EXAMPLES:
        imported = re.findall(r"^(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        beside = {other.stem for other in path.parent.glob("*.py")}
        assert not set(imported) & beside


def test_penguins_example():
    text = run(example("10_penguins"))
    accuracy = {
        line[:28].strip(): float(line[28:].split()[0])
        for line in text.splitlines()[2:6]
    }
    assert accuracy["shoal"] >= 0.985
    assert accuracy["shoal"] > accuracy["k-means"] > 0
    assert "verdict: caution" in text


def test_rodents_example():
    text = run(example("20_rodents"))
    plots, years = re.findall(r"verdict: (.+)", text)
    assert (plots, years) == ("caution", "do not use")  # looks drift over the years


def test_fashion_example():
    text = run(next(path for path in EXAMPLES if path.stem == "65_fashion"))
    shoal, k_means = (float(line.split()[-2]) for line in text.splitlines()[2:4])
    assert shoal >= 0.92
    assert k_means <= 0.8
    assert "verdict: caution" in text


def test_manual_example():
    text = run(next(path for path in EXAMPLES if "manual" in path.stem))
    shoal, k_means = (
        float(part.split()[-1])
        for part in text.splitlines()[1].removeprefix("right subject: ").split(",")
    )
    assert shoal >= 0.75
    assert k_means <= 0.5
    assert "statistic" in text


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("example", ON_REQUEST, ids=lambda path: path.stem)
def test_other_examples_run(example: Path):
    text = run(example)
    assert "verdict: " in text
    assert ("verdict: do not use" in text) >= ("activities" in example.stem)
