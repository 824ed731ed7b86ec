"""A real browser, and what axe-core says of a page in it: fixtures to import."""

import shutil
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser():
    """A real Chromium; `make test` installs it."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail("no chromium on the PATH: run scripts/install_chromium.sh")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def serious_violations():
    """Function from an open page to what axe-core finds serious or critical in it."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")

    def serious_violations(page: Any) -> list[tuple[str, list[str]]]:
        found = axe.Axe().run(page).response["violations"]
        return [
            (one["id"], [str(node["target"]) for node in one["nodes"]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    return serious_violations
