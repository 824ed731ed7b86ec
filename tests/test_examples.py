"""Every example runs, and says what its page says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.datasets._io import DATA_DIR

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("[0-9]*.py"))
needs_data = pytest.mark.skipif(
    DATA_DIR not in os.environ, reason=f"{DATA_DIR} is not set"
)


def run(example: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", example],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_penguins_example():
    text = run(EXAMPLES[0])
    accuracy = {
        line[:28].strip(): float(line[28:].split()[0])
        for line in text.splitlines()[2:6]
    }
    assert accuracy["shoal"] >= 0.985
    assert accuracy["shoal"] > accuracy["k-means"] > 0
    assert "verdict: caution" in text


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize("example", EXAMPLES[1:], ids=lambda path: path.stem)
def test_other_examples_run(example: Path):
    text = run(example)
    assert "verdict: " in text
    assert ("verdict: do not use" in text) >= ("activities" in example.stem)
