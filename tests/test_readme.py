"""What the pages show must run, and their tables must be the records'."""

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support.scripts import script

ROOT = Path(__file__).parents[1]
BLOCKS = re.findall(
    r"^```python\n(.*?)^```$",
    (ROOT / "README.md").read_text(),
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture(scope="module")
def pages() -> Iterator[ModuleType]:
    with script("scripts/update_readme.py") as module:
        yield module


def test_first_code_of_the_readme_does_what_it_says(capsys):
    assert len(BLOCKS[0].strip().splitlines()) <= 12
    scope: dict[str, object] = {}
    exec(BLOCKS[0], scope)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 classes on ['Biscoe' 'Dream' 'Torgersen']"
    assert float(lines[-1]) >= 0.985


@pytest.mark.parametrize("code", BLOCKS[1:])
def test_other_code_of_the_readme_runs(code: str, capsys):
    exec(code, {})
    assert capsys.readouterr().out


def test_readme_shows_both_commands():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


def test_links_of_the_pages_exist():
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


# ---- filled places ---------------------------------------------------------------


def test_tables_are_the_records(pages: ModuleType):
    """If this fails, run ``python scripts/update_readme.py``."""
    for page, blocks in pages.PAGES.items():
        text = (ROOT / page).read_text()
        assert pages.fill(text, blocks) == text, f"{page} is out of date"


def test_fill_replaces_only_its_place(pages: ModuleType):
    text = "before\n<!-- begin: a -->\nold\n<!-- end: a -->\nafter\n"
    filled = pages.fill(text, {"a": lambda: r"new \1"})
    assert filled == (
        "before\n<!-- begin: a -->\n\nnew \\1\n\n<!-- end: a -->\nafter\n"
    )
    assert pages.fill(filled, {"a": lambda: r"new \1"}) == filled


def test_fill_says_what_is_missing(pages: ModuleType):
    with pytest.raises(ValueError, match="exactly one place for 'a'"):
        pages.fill("no place\n", {"a": lambda: "new"})

    def absent() -> str:
        return (ROOT / "no-such-record.json").read_text()

    text = "<!-- begin: a -->\n<!-- end: a -->"
    assert "there is no no-such-record.json" in pages.fill(text, {"a": absent})


def test_tally_counts(pages: ModuleType):
    assert pages.tally([3, 3, 3]) == "3"
    assert pages.tally(["clear", "caution", "caution"]) == "caution (2×), clear (1×)"
