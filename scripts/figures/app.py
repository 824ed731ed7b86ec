"""Draw docs/images/app-ask.png: the page of ``shoal app``, penguins dropped on it.

Run from the root of the repository, with the extra ``dev`` and Chromium installed:

    python scripts/figures/app.py
"""

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from report import pack
from shoal.datasets import load_penguins

IMAGE = Path("docs/images/app-ask.png")


def photograph(address: str, table: Path) -> None:
    """The page once it has read the table, and asks where a row comes from."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        tab = browser.new_page(viewport={"width": 1100, "height": 800})
        tab.goto(address)
        tab.set_input_files("#file", table)
        tab.wait_for_selector("#ask:visible")
        tab.locator("#ask").screenshot(path=IMAGE)
        browser.close()
    pack(IMAGE)


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.split("\n")[0]).parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data, path = load_penguins(as_frame=True), Path(folder) / "penguins.csv"
        data.X.assign(island=data.domains).to_csv(path, index=False)
        command = [sys.executable, "-m", "shoal", "app", f"--out={folder}/kept"]
        served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            photograph(served.stdout.readline().split()[1], path)
        finally:
            served.send_signal(signal.SIGINT)
            served.wait()
