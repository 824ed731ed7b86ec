"""The reader of pickled frames runs nothing that a pickle names."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from support.scripts import script


@pytest.fixture(scope="module")
def pickled() -> Iterator[ModuleType]:
    with script("scripts/data/_pickled.py") as module:
        yield module


class MakesFolder:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return os.mkdir, (str(self.path),)


def test_calls_are_refused_before_they_happen(pickled: ModuleType, tmp_path: Path):
    trap = tmp_path / "sprung"
    content = pickle.dumps({"harmless": 1, "trap": MakesFolder(trap)})
    with pytest.raises(pickle.UnpicklingError, match="mkdir is not allowed"):
        pickled.read_pickled(content)
    assert not trap.exists()


def test_plain_values_come_through(pickled: ModuleType):
    values = {"user 1": [1, 2.5, None], "user 2": ("a", slice(0, 3))}
    assert pickled.read_pickled(pickle.dumps(values)) == values


def test_a_frame_is_read_without_pandas(pickled: ModuleType):
    """As pandas 2 writes it: blocks of columns, each with its places."""
    shell = pickled._Shell
    frame = shell()
    values = np.array([[1, 2], [3, 4]])
    names = [{"data": ["x", "y", "z"]}, {"start": 0}]
    blocks = (shell(values, slice(0, 3, 2), 2), shell([["s", "t"]], slice(1, 2), 2))
    frame.__setstate__({"_mgr": shell(blocks, names)})
    columns = pickled.columns_of(frame)
    assert {name: list(column) for name, column in columns.items()} == {
        "x": [1, 2],
        "z": [3, 4],
        "y": ["s", "t"],
    }
