"""What is installed by hash is what the project asks for, and all of it has a hash."""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def locked(name: str) -> dict[str, str]:
    """Version by package, of a lock."""
    text = (ROOT / "locks" / f"{name}.txt").read_text()
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", text))


def asked(lines: Iterable[str]) -> Iterator[Requirement]:
    """Requirements, those of our own extras in their place."""
    for one in map(Requirement, lines):
        if one.name == "shoal":
            yield from asked(line for extra in one.extras for line in EXTRAS[extra])
        else:
            yield one


WANTED = {
    "demo": PROJECT["dependencies"],
    "test": [*PROJECT["dependencies"], *EXTRAS["dev"]],
}


@pytest.mark.parametrize("name", WANTED)
def test_a_lock_holds_what_is_asked_for(name: str) -> None:
    found = locked(name)
    for one in asked(WANTED[name]):
        assert Version(found[canonicalize_name(one.name)]) in one.specifier


@pytest.mark.parametrize("name", WANTED)
def test_all_of_a_lock_has_hashes_and_no_host(name: str) -> None:
    text = (ROOT / "locks" / f"{name}.txt").read_text()
    entries = re.findall(
        r"(?m)^\S+==\S+(?: \\\n {4}--hash=sha256:[0-9a-f]{64})+$", text
    )
    assert len(entries) == len(locked(name)) == len(re.findall(r"(?m)^\w", text))
    assert "--only-binary :all:" in text
    assert "://" not in text


def test_the_bill_of_materials_lists_the_lock() -> None:
    bill = json.loads((ROOT / "locks" / "sbom.cdx.json").read_text())
    listed = {one["name"]: one["version"] for one in bill["components"]}
    assert listed == locked("test")
    assert locked("demo").items() <= listed.items()
