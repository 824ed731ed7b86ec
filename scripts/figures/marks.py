"""Photograph the marks of the classes in a report: docs/images/texts-marks.png.

Run from the root of the repository, with the extra ``dev`` and Chromium installed, on
the run of the page (news.csv: six newsgroups dealt to eight sources as in text.py):

    shoal fit news.csv --domain source --text text --k 6 --out news
    python scripts/figures/marks.py news/report.html docs/images/texts-marks.png
"""

import argparse
import shutil
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

COLOURS = 64


def main() -> None:
    """One picture of one figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("picture", type=Path)
    args = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(args.report.resolve().as_uri())
        figure = tab.get_by_role("region", name="Marks of the classes")
        figure.screenshot(path=args.picture)
        browser.close()
    with Image.open(args.picture) as image:
        image.convert("RGB").quantize(COLOURS).save(args.picture, optimize=True)


if __name__ == "__main__":
    main()
