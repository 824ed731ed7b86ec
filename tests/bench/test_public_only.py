"""The benchmark uses what any other package can use: public names of shoal."""

import ast
from pathlib import Path

import pytest

import shoal_bench

ROOT = Path(shoal_bench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def names_used(path: Path) -> list[str]:
    """Every name that a file imports from shoal, in full."""
    used = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            used += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            used += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in used if name.split(".")[0] == "shoal"]


def test_files_are_found():
    assert len(FILES) > 20
    assert "shoal.metrics.match_classes" in names_used(ROOT / "panel.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_private_name_is_imported(path: Path):
    private = [
        name
        for name in names_used(path)
        if any(part.startswith("_") for part in name.split("."))
    ]
    assert private == []
