"""A disk that is full at any write leaves the old results or the new ones, whole."""

import shutil
import sys

import pytest
from tests.attack.full_disk import CASES, attack

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not shutil.which("cc"), reason="needs a C compiler"
)
#: A few writes of each way to write: one folder for another, Arrow's, files beside.
QUICK = {"fit": 18, "name": 9, "predict parquet": 5}


@pytest.mark.parametrize("case", QUICK)
def test_some_writes_of_commands(case: str) -> None:
    found = attack(case, every=QUICK[case])
    assert found["faults"] == []
    assert found["writes"] > 20
    assert found["ends"] == {"E140": -(-found["writes"] // QUICK[case])}


@pytest.mark.slow
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_write_of_every_command(case: str, once: bool) -> None:
    assert attack(case, once=once)["faults"] == []
