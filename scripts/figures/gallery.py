"""Run the gallery, each script copied alone; keep what it prints and draws.

Run from the root of the repository:

    python scripts/figures/gallery.py [NAME ...]

Writes docs/gallery/NAME.txt and, for those that draw, docs/images/gallery-NAME.png and
its thumbnail, docs/images/thumb-NAME.png. Without names: all whose data come along.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image

EXAMPLES = Path("examples")
SHIPPED = ("01", "02", "03", "04", "05", "06", "10", "20", "65", "80")
THUMB = (300, 210)


def printed(example: Path, folder: Path) -> str:
    """What an example prints when it is copied into an empty folder and run there."""
    alone = Path(shutil.copy(example, folder))
    done = subprocess.run(
        [sys.executable, "-W", "error", alone.name],
        cwd=folder,
        env=os.environ | {"SHOAL_DATA_DIR": str(example.parent.resolve() / "data")},
        check=True,
        capture_output=True,
        text=True,
    )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def thumbnail(picture: Path, place: Path) -> None:
    """The picture, small and in the middle of white, so that all are of one size."""
    with Image.open(picture) as drawn:
        small = drawn.convert("RGB")
    small.thumbnail((THUMB[0] - 16, THUMB[1] - 16), Image.Resampling.LANCZOS)
    card = Image.new("RGB", THUMB, "white")
    card.paste(
        small, tuple((a - b) // 2 for a, b in zip(THUMB, small.size, strict=True))
    )
    card.quantize(64).save(place, optimize=True)


def keep(example: Path) -> None:
    """Run an example and put its results where the docs show them."""
    with TemporaryDirectory() as folder:
        said = Path("docs/gallery") / f"{example.stem}.txt"
        said.write_text(printed(example, Path(folder)), encoding="utf-8")
        drawn = Path(folder) / f"{example.stem}.png"
        if drawn.exists():
            picture = Path("docs/images") / f"gallery-{drawn.name}"
            shutil.copy(drawn, picture)
            thumbnail(picture, picture.with_name(f"thumb-{drawn.name}"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=SHIPPED)
    for name in parser.parse_args().names:
        keep(next(EXAMPLES.glob(f"{name}*.py")))
