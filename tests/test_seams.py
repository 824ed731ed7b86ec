"""What others add to shoal, they add in one file of theirs and one registration."""

import json

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

import shoal.io
from shoal.io.extend import Content, Format, register
from shoal.io.source._open import FORMATS

# ---- a format ------------------------------------------------------------------------


def read_lines(path, options):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return Content(frame=pd.DataFrame(rows))


@pytest.fixture
def jsonl(tmp_path):
    """A file of a format that shoal does not know, and the table that it holds."""
    frame = pd.DataFrame(
        {"size": np.arange(40) + 0.5, "site": np.resize(["a", "b"], 40)}
    )
    path = tmp_path / "rows.jsonl"
    path.write_text(frame.to_json(orient="records", lines=True))
    with pytest.raises(shoal.exceptions.InputError, match="cannot tell the format"):
        shoal.io.read(path, domain="site")
    yield path, frame
    FORMATS.pop("jsonl", None)


def test_a_format(jsonl):
    path, frame = jsonl
    register(Format("jsonl", (".jsonl",), read=read_lines))
    table, expected = (shoal.io.read(one, domain="site") for one in jsonl)
    assert_array_equal(table.X, expected.X)
    assert_array_equal(table.domains, expected.domains)
    assert table.source["path"] == str(path)
    drawn = shoal.io.read(path, domain="site", sample=10)
    assert drawn.n_rows == 10
    pieces = list(shoal.io.batches(path, table.schema, batch_rows=16))
    assert [piece.n_rows for piece in pieces] == [16, 16, 8]
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), expected.X)


def test_a_format_that_is_read_in_pieces(jsonl):
    path, frame = jsonl
    asked = []

    def pieces(path, options, *, batch_rows, columns=None, as_text=None):
        asked.append((columns, as_text))
        content = read_lines(path, options)
        for first in range(0, content.n_rows, batch_rows):
            yield content.take(slice(first, first + batch_rows))

    register(
        Format(
            "jsonl",
            (".jsonl",),
            read=read_lines,
            pieces=pieces,
            columns=lambda path, options: list(frame.columns),
        )
    )
    table = shoal.io.read(path, domain="site")
    found = list(shoal.io.batches(path, table.schema, batch_rows=16))
    assert asked == [(["size", "site"], {"site"})]
    assert_array_equal(np.concatenate([piece.X for piece in found]), table.X)
