"""Pages made from the command line are those in docs/."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from typer.main import get_command

from shoal.cli._app import EXAMPLES, app
from shoal.cli._messages import EXIT_CODES, catalogue, sections

ROOT = Path(__file__).parents[2]


def load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "cli_pages", ROOT / "scripts" / "cli_pages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli.md", "messages.md"])
def test_pages_are_current(name: str):
    """If not: python scripts/cli_pages.py."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == load_script().PAGES[name]()


def test_every_command_and_option_is_on_the_page():
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    group = get_command(app)
    assert set(group.commands) == {function.__name__ for function in EXAMPLES}
    for name, command in group.commands.items():
        assert f"## shoal {name}\n" in page
        for option in command.params:
            for spelling in option.opts:
                if spelling.startswith("--") and spelling != "--help":
                    assert f"`{spelling}`" in page
    for code in EXIT_CODES:
        assert f"| {code} |" in page


def test_every_code_has_one_entry():
    page = (ROOT / "docs" / "messages.md").read_text(encoding="utf-8")
    codes = re.findall(r"^### ([\w-]+): ", page, flags=re.MULTILINE)
    assert codes == list(catalogue())
    assert len(catalogue()) == sum(map(len, sections().values()))


def test_codes_in_the_source_are_explained():
    """Whatever code the source names, a user can look it up."""
    named = {
        code
        for path in (ROOT / "src").rglob("*.py")
        for code in re.findall(r'"([EW]\d{3})"', path.read_text(encoding="utf-8"))
    }
    checks = {code for code in catalogue() if not re.fullmatch(r"[EW]\d{3}", code)}
    assert named == set(catalogue()) - checks


def test_exit_codes_are_documented():
    assert {one.exit for one in catalogue().values()} | {7} == set(EXIT_CODES)
    for code, explanation in catalogue().items():
        assert (explanation.exit > 0) == bool(re.fullmatch(r"E\d{3}", code))
