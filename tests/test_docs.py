"""The site builds without a warning, and the code of its pages runs."""

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from shoal.exceptions import ShoalWarning

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PAGES = {
    page.name: "\n".join(BLOCK.findall(page.read_text()))
    for page in sorted(DOCS.glob("*.md"))
}


@pytest.mark.parametrize("page", [name for name, code in PAGES.items() if code])
def test_code_of_a_page_runs(page: str, capsys):
    with warnings.catch_warnings():
        # pages show what a user would see, and some show a failure
        warnings.simplefilter("ignore", ShoalWarning)
        exec(PAGES[page], {})
    assert capsys.readouterr().out


ROOT = DOCS.parent
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "results" / "README.md",
    ROOT / "scripts" / "data" / "README.md",
    *sorted(DOCS.glob("*.md")),
]
NAME = re.compile(r"`(shoal(?:_bench)?(?:\.\w+)+)[`(]")
FILE = re.compile(r"\b(?:src|tests|scripts|benchmarks|examples)/[\w/]+\.(?:py|sh|md)\b")


@pytest.mark.parametrize("page", PROSE, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_and_files_that_a_page_tells_of_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    assert [name for name in NAME.findall(text) if not is_public(name)] == []
    assert [name for name in FILE.findall(text) if not (ROOT / name).exists()] == []


def test_the_walk_through_the_house_passes_rooms_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    told = re.findall(r"`((?:\w+/)+\w+\.(?:py|toml))`", text)
    homes = (ROOT, ROOT / "src", ROOT / "src" / "shoal")
    assert len(told) > 25
    lost = [name for name in told if not any((home / name).exists() for home in homes)]
    assert lost == []


REFERENCE = ("datasets", "io", "metrics", "plots", "report", "scale", "vision")


@pytest.mark.parametrize("name", REFERENCE)
def test_the_reference_has_every_public_name(name: str):
    if name == "vision":
        pytest.importorskip("torch")
    told = re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text(), re.MULTILINE)
    offered = importlib.import_module(f"shoal.{name}").__all__
    assert set(offered) <= {one.removeprefix(f"{name}.") for one in told}


def is_public(name: str) -> bool:
    """Whether a dotted name leads somewhere, past no private part."""
    parts = name.split(".")
    if any(part.startswith("_") for part in parts):
        return False
    found = importlib.import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[:number]))
            except ModuleNotFoundError:
                return False
        found = getattr(found, part)
    return True


def test_site_builds_without_warnings(tmp_path: Path):
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going"]
    places = ["-d", str(tmp_path / "trees"), str(DOCS), str(tmp_path / "site")]
    done = subprocess.run([*command, *places], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site" / "generated" / "shoal.DomainMixture.html").exists()
