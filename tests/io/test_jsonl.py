"""JSON lines: keys are columns, lines are rows."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from shoal.exceptions import InputError
from shoal.io import batches, read

ROWS = [{"site": "ab"[n % 2], "size": n / 7, "kind": "xyz"[n % 3]} for n in range(90)]


def write(path: Path, rows: list) -> Path:
    text = "\n".join(json.dumps(row) for row in rows) + "\n\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson.gz"])
def test_lines_are_read_like_a_table(tmp_path: Path, name: str) -> None:
    found = read(write(tmp_path / name, ROWS), domain="site")
    expected = read(pd.DataFrame(ROWS), domain="site")
    assert (found.X == expected.X).all()
    assert found.feature_names == expected.feature_names
    pieces = list(batches(tmp_path / name, found.schema, batch_rows=40))
    assert [len(piece.X) for piece in pieces] == [40, 40, 10]


def test_some_lines_can_be_drawn(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    assert read(path, domain="site", sample=60).X.shape[0] == 60


@pytest.mark.parametrize("line", ['{"site": "a"', "[1, 2]", "7"])
def test_what_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + line + "\n")
    with pytest.raises(InputError, match="line 2 of .* is not a JSON object") as caught:
        read(path, domain="site")
    assert caught.value.code == "E143"
