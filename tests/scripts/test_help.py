"""A script that is asked for help does nothing else."""

import pytest

from support.scripts import ROOT

SCRIPTS = [
    path
    for folder in ("benchmarks", "scripts")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text()
]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_arguments_are_parsed(path):
    """Also where there are none, since ``--help`` would otherwise be overlooked."""
    text = path.read_text()
    assert ".parse_args(" in text or "output_folder(" in text  # which parses them
