"""Data flows one way: nothing lower imports anything higher."""

import ast
from pathlib import Path

import pytest

import shoal

HOME = Path(shoal.__file__).parent
# From the ground up; a module may import from its own floor and those below.
FLOORS = (
    ("exceptions", "probability", "validation", "bumps", "wide"),
    ("canonical", "novelty", "rank"),
    ("stages",),
    ("words", "explained"),
    ("base", "merged"),
    ("ddfa", "discrete", "mixture"),
    ("analysis",),
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# Where methods of all estimators call what is built on top of them.
DOORS = {"base.py"}


def files():
    for path in sorted(HOME.rglob("*.py")):
        where = path.relative_to(HOME)
        if where.parts[0].removesuffix(".py") in FLOOR_OF and str(where) not in DOORS:
            yield where


def imported(path):
    """Second parts of all ``shoal.x`` that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "shoal":
                names = [f"shoal.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (n.split(".")[1] for n in names if n.startswith("shoal."))


@pytest.mark.parametrize("where", list(files()), ids=str)
def test_no_file_reaches_up(where):
    own = FLOOR_OF[where.parts[0].removesuffix(".py")]
    for name in imported(HOME / where):
        # the estimators, by their public names, are on the floor of estimators
        floor = FLOOR_OF.get(name, FLOOR_OF["ddfa"] if name[0].isupper() else 99)
        assert floor <= own, f"{where} imports shoal.{name}"
