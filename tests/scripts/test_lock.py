"""The locks: every pin has hashes, no host is named, and the SBOM tells the same."""

import json
import re
from pathlib import Path

import pytest

LOCKS = Path(__file__).resolve().parents[2] / "locks"


def entries(name):
    return re.findall(r"(?m)^\S+==.*(?:\n    .*)*", (LOCKS / name).read_text())


@pytest.mark.parametrize("name", ["demo.txt", "test.txt"])
def test_every_pin_has_hashes_and_no_host_is_named(name):
    text = (LOCKS / name).read_text()
    assert "//" not in text
    assert "--only-binary :all:" in text
    pins = entries(name)
    assert len(pins) > 20
    for entry in pins:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}$", entry, re.M), entry


def test_the_test_lock_holds_what_the_demo_lock_does():
    assert set(entries("demo.txt")) <= set(entries("test.txt"))


def test_the_bill_tells_what_the_lock_holds():
    bill = json.loads((LOCKS / "sbom.cdx.json").read_text())
    told = {f"{one['name']}=={one['version']}" for one in bill["components"]}
    assert told == {entry.split()[0] for entry in entries("test.txt")}
