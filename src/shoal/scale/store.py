"""Finished results, each in a file of its own that is whole or not there."""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shoal.io.atomic import whole_file
from shoal.io.extras import require

__all__ = ["Result", "Shelf", "digest_of", "pack_frame", "unpack_frames"]

Array = np.ndarray[Any, Any]
#: What a stage finds out about a part.
Result = dict[str, Array]


class Shelf:
    """Results of one stage, by the number of their part.

    Parameters
    ----------
    folder : Path
        The name says what the results depend on (:func:`digest_of`), so that those of
        other data or settings are never taken for them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, number: int) -> Path:
        """Where the result of a part is."""
        return self.folder / f"{number:05d}.npz"

    def __contains__(self, number: int) -> bool:
        return self.path(number).is_file()

    def write(self, number: int, result: Result) -> None:
        """Keep a result; a reader never sees half of it."""
        with whole_file(self.path(number)) as place, place.open("wb") as file:
            np.savez(file, allow_pickle=False, **result)

    def read(self, number: int) -> Result:
        """A result as it was written."""
        with np.load(self.path(number), allow_pickle=False) as content:
            return {name: content[name] for name in content.files}

    def read_all(self, n_parts: int) -> Iterator[Result]:
        """Results in the order of the parts, one in memory at a time."""
        return (self.read(number) for number in range(n_parts))


def digest_of(settings: Mapping[str, Any]) -> str:
    """A short name for settings: the same for the same content in any order.

    >>> digest_of({"a": 1, "b": [2]}) == digest_of({"b": [2], "a": 1})
    True
    """
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pack_frame(frame: pd.DataFrame) -> Array:
    """A table as bytes in an array, for a result; its index is left out."""
    pyarrow = require("pyarrow", "parquet", "reading parquet data sets")
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    sink = io.BytesIO()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return np.frombuffer(sink.getvalue(), dtype=np.uint8)


def unpack_frames(packed: list[Array]) -> pd.DataFrame:
    """Tables below each other; a column may be empty in some, or hold whole numbers."""
    pyarrow = require("pyarrow", "parquet", "reading parquet data sets")
    tables = [pyarrow.ipc.open_stream(one.tobytes()).read_all() for one in packed]
    joined = pyarrow.concat_tables(tables, promote_options="permissive")
    return joined.to_pandas(ignore_metadata=True)
