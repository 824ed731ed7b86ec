"""Draw docs/images/report-desktop.png, -narrow.png and -features.png: the penguins.

Run from the root of the repository, with the extra ``dev`` and Chromium installed:

    python scripts/figures/report.py
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

from shoal import DomainMixture, choose_n_classes
from shoal.datasets import load_penguins
from shoal.report import summarize, write

IMAGES = Path("docs/images")
NAMES = {"c0": "Adelie", "c1": "Gentoo", "c2": "Chinstrap"}
# Width and height of the window, and pixels of the picture for each of its pixels.
WINDOWS = {"desktop": (1280, 1760, 1.0), "narrow": (390, 1560, 1.5)}
COLOURS = 128


def make_summary() -> dict[str, Any]:
    """Everything that a report can show of the penguins."""
    data = load_penguins()
    rows = data.X, data.domains
    model = DomainMixture(3, random_state=0).fit(*rows).set_names(NAMES)
    others = [(3, 1), (3, 2), (2, 0)]
    refits = [DomainMixture(k, random_state=s).fit(*rows) for k, s in others]
    return summarize(
        model,
        *rows,
        feature_names=data.feature_names,
        labels=data.labels,
        intervals=model.bootstrap(*rows, random_state=0),
        diagnosis=model.diagnose(*rows, random_state=0),
        choice=choose_n_classes(*rows, range(2, 6), random_state=0),
        refits=refits,
        columns=[{"name": data.label_name, "role": "label", "reason": ""}],
        title="Penguins of three islands",
    )


def photograph(page: Path) -> None:
    """The top of the page in a wide and a narrow window, and features of one island."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, (width, height, scale) in WINDOWS.items():
            tab = browser.new_page(
                viewport={"width": width, "height": height}, device_scale_factor=scale
            )
            tab.goto(page.as_uri())
            path = IMAGES / f"report-{name}.png"
            tab.screenshot(path=path)
            pack(path)
            if name == "desktop":
                tab.locator("#features label", has_text="Dream").click()
                path = IMAGES / "report-features.png"
                tab.locator("#features").screenshot(path=path)
                pack(path)
        browser.close()


def pack(path: Path) -> None:
    """Fewer colours make a smaller file."""
    picture = Image.open(path, formats=["PNG"]).convert("RGB")
    picture = picture.quantize(COLOURS, dither=Image.Dither.NONE)
    picture.save(path, optimize=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write(make_summary(), page)
        photograph(page)
