"""Run examples/0*.py, each copied alone; keep what they print and draw for the docs.

Run from the root of the repository:

    python scripts/figures/gallery.py

Writes docs/gallery/NAME.txt and docs/images/gallery-NAME.png.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

EXAMPLES = sorted(Path("examples").glob("0*.py"))


def run(example: Path) -> None:
    """Copy an example into an empty folder, run it there, and keep its results."""
    with TemporaryDirectory() as folder:
        alone = Path(shutil.copy(example, folder))
        command = [sys.executable, "-W", "error", alone.name]
        done = subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True
        )
        lines = [line.rstrip() for line in done.stdout.splitlines()]
        said = Path("docs/gallery") / f"{example.stem}.txt"
        said.parent.mkdir(exist_ok=True)
        said.write_text("\n".join(lines) + "\n", encoding="utf-8")
        picture = Path("docs/images") / f"gallery-{example.stem}.png"
        shutil.copy(Path(folder) / f"{example.stem}.png", picture)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    for one in EXAMPLES:
        run(one)
