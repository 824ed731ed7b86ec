"""The benchmark uses what any other package can use: public names of shoal."""

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import shoal_bench

ROOT = Path(shoal_bench.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(BENCHMARKS.rglob("*.py"))


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


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: str(p.relative_to(BENCHMARKS)))
def test_scripts_import_names_that_exist(path: Path):
    """Scripts of benchmarks/ may use private names; those that move take them along."""
    pytest.importorskip("torch")
    absent = []
    for name in names_used(path):
        module, _, attribute = name.rpartition(".")
        if not (module and hasattr(import_module(module), attribute)):
            absent += [name] if find_spec(name) is None else []
    assert absent == []
