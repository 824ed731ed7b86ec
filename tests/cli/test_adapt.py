"""How `shoal adapt` refuses."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("name", ["", "  "])
def test_a_domain_needs_a_name(cli, fitted: Path, tmp_path: Path, name):
    ended = cli("adapt", "run", "penguins.csv", "--domain-name", name, "--out", "new")
    assert ended.code == 2
    assert "error[E002] --domain-name is empty" in ended.stderr
    assert not (tmp_path / "new").exists()
