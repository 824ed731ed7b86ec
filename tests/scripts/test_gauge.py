"""The gauge counts what it says, and what was agreed on stays met."""

import pytest

from support.scripts import script

with script("scripts/gauge.py") as gauge:
    pass

TOY = '''"""A module.

With two lines."""

__all__ = ["short", "Long"]

# why
def short(x):  # two lines of code
    return x


class Long:
    """A class."""

    def method(self):
        """A docstring
        of two lines."""
        text = """not
        a docstring"""

        return text
'''
# Of the goals, those that are met; the others join when they are.
MET = {
    "shoal": ["longest module", "median function", "p90 function", "largest function"],
    "shoal_bench": list(gauge.GOALS["shoal_bench"]),
}


def test_a_toy_by_hand(tmp_path):
    package = tmp_path / "toy"
    package.mkdir()
    (package / "__init__.py").write_text(TOY)
    (package / "empty.py").write_text('"""Nothing."""\n')
    found = gauge.measure(package)
    values = {what: number.value for what, number in found.items()}
    assert values == {
        "files": 2,
        "lines of code": 8,
        "names in __all__": 2,
        "longest module": 21,
        "median function": 3,
        "p90 function": 5,
        "largest function": 5,
        "pairs of like logic": 0,
    }
    assert found["largest function"].place == "toy/__init__.py:method"


def test_logic_that_is_written_twice_is_found_under_other_names(tmp_path):
    body = """
def {0}(rows, most):
    found = []
    for row in rows:
        if row.{0} > most:
            found.append({0}_of(row, {1}))
    if not found:
        raise ValueError("no row of {0}")
    return sorted(found, key=len)
"""
    fields = "".join(f"    field{i}: int = {i}\n" for i in range(20))
    for name, number in (("mass", 1), ("length", 2)):
        text = body.format(name, number) + f"class {name.title()}:\n{fields}"
        (tmp_path / f"{name}.py").write_text(text)
    assert gauge.measure(tmp_path)["pairs of like logic"].value == 1
    once = (tmp_path / "mass.py").read_text()
    (tmp_path / "length.py").write_text(f"class Length:\n{fields}")
    assert gauge.measure(tmp_path)["pairs of like logic"].value == 0
    (tmp_path / "mass.py").write_text(once + body.format("width", 3))
    assert gauge.measure(tmp_path)["pairs of like logic"].value == 1


@pytest.mark.parametrize("package", gauge.PACKAGES)
def test_what_was_met_stays_met(package):
    found = gauge.measure(gauge.SOURCE / package)
    over = [
        f"{what}: {found[what].value}, at most {gauge.GOALS[package][what]}, "
        f"{found[what].place}"
        for what in MET[package]
        if found[what].value > gauge.GOALS[package][what]
    ]
    assert over == []


def test_a_trace_notes_functions_that_run_and_not_what_is_imported():
    from shoal.probability import normalize_rows

    with gauge.traced() as found:
        normalize_rows([[1.0, 1.0]])
    assert {path.removeprefix(str(gauge.SOURCE)) for path in found} == {
        "/shoal/probability.py"
    }
