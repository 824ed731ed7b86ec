"""Data flows one way: nothing lower imports anything higher, lazily or not."""

import ast
from pathlib import Path

import pytest

import shoal

SRC = Path(shoal.__file__).parents[1]
# From the ground up; a module may import from its own floor and those below.
FLOORS = (
    ("exceptions", "probability", "_lazy", "_palette", "_threads"),
    ("validation",),
    ("_features", "_novelty"),
    ("stages",),
    ("_rank", "_words", "likelihood"),
    ("analysis",),
    ("base",),
    ("ddfa", "discrete", "mixture", "density"),
    ("metrics", "engine", "io"),
    ("datasets", "report"),
    ("plots", "scale", "vision"),
    ("cli",),
)
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}
# What every module may use: the package itself (its version and its public names).
DOORS = ("__init__", "__main__")
# Edges that are still to be cut.
STILL: set[tuple[str, str]] = set()


def room(module):
    """The part of the house that a module is in: the name after ``shoal``."""
    parts = module.split(".")
    return parts[1] if parts[0] == "shoal" and len(parts) > 1 else parts[0]


def modules():
    for path in sorted(SRC.rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        yield ".".join(parts).removesuffix(".__init__"), path


def imported(path):
    """Modules of ours that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0].startswith("shoal"))


def edges():
    """Pairs of rooms, the first of which imports from the second."""
    for module, path in modules():
        if room(module) in DOORS or module == "shoal":
            continue
        for name in imported(path):
            if name != "shoal" and room(name) != room(module):
                yield room(module), room(name)


def test_every_module_has_a_floor():
    rooms = {room(module) for module, _ in modules()} - {*DOORS, "shoal"}
    assert rooms - set(FLOOR_OF) == {"shoal_bench"}


@pytest.mark.parametrize(("upper", "lower"), sorted(set(edges())))
def test_no_room_reaches_up(upper, lower):
    if upper != "shoal_bench" and (upper, lower) not in STILL:
        assert lower != "shoal_bench", f"{upper} imports the benchmark"
        assert FLOOR_OF[lower] <= FLOOR_OF[upper], f"{upper} imports {lower}"


def test_rooms_form_no_cycle():
    above = {}
    for upper, lower in edges():
        if (upper, lower) not in STILL:
            above.setdefault(upper, set()).add(lower)
    while above:
        free = [name for name in above if not above[name] & set(above)]
        assert free, f"a cycle among {sorted(above)}"
        for name in free:
            del above[name]
