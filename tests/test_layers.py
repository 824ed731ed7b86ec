"""Data flows one way: nothing lower imports anything higher, lazily or not."""

import ast
from functools import cache
from pathlib import Path

import pytest

import shoal

SRC = Path(shoal.__file__).parents[1]
# From the ground up; a module may import from its own floor and those below.
FLOORS = (
    ("exceptions", "probability", "_lazy", "_palette", "_work"),
    ("validation",),
    ("stages",),
    ("likelihood",),
    ("analysis",),
    ("plots",),
    ("base",),
    ("ddfa", "discrete", "mixture", "density"),
    ("counts",),
    ("metrics", "engine", "io"),
    ("datasets", "report"),
    ("scale", "vision", "app"),
    ("cli",),
    ("shoal_bench",),
    ("shoal", "__main__"),  # the doors
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}


def room(module):
    """The part of the house that a module is in: the name after ``shoal``."""
    parts = module.split(".")
    return parts[1] if parts[0] == "shoal" and len(parts) > 1 else parts[0]


def modules():
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), path


def home(name):
    """The module behind a public name of ``shoal``; None of its version."""
    value = getattr(shoal, name)
    return getattr(value, "__module__", getattr(value, "__name__", None))


def imported(path):
    """Modules of ours that a file imports or reaches through ``shoal``, anywhere."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module="shoal", names=names):
                yield from (home(alias.name) for alias in names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Import(names=names):
                yield from (alias.name for alias in names if alias.name != "shoal")
            case ast.Attribute(value=ast.Name(id="shoal"), attr=name):
                yield home(name)


@cache
def edges():
    """Pairs of rooms, the first of which imports from the second."""
    found = set()
    for module, path in modules():
        ours = {name for name in imported(path) if str(name).startswith("shoal")}
        lower = {room(name) for name in ours} - {room(module)}
        found |= {(room(module), name) for name in lower}
    return found


def test_every_module_has_a_floor():
    assert {room(module) for module, _ in modules()} <= set(FLOOR_OF)


@pytest.mark.parametrize(("upper", "lower"), sorted(edges()))
def test_no_room_reaches_up(upper, lower):
    assert FLOOR_OF[lower] <= FLOOR_OF[upper], f"{upper} imports {lower}"


def test_rooms_form_no_cycle():
    above = {}
    for upper, lower in edges():
        above.setdefault(upper, set()).add(lower)
    while above:
        free = [name for name in above if not above[name] & set(above)]
        assert free, f"a cycle among {sorted(above)}"
        for name in free:
            del above[name]


def test_what_is_reached_through_the_package_counts(tmp_path):
    path = tmp_path / "module.py"
    path.write_text(
        "import shoal\nfrom shoal import DDFA, __version__\n"
        "def lazy():\n    from shoal.cli import main\n    return shoal.load\n"
    )
    found = {room(name) for name in imported(path) if name is not None}
    assert found == {"ddfa", "cli", "io"}


def test_a_class_name_means_one_thing():
    homes = {}
    for module, path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(module)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}
