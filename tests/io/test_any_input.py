"""Whatever a file or table holds: a Table that a model can take, or a coded error."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.io import mmwrite

from shoal.exceptions import CodedError
from shoal.io import Schema, batches, read

several = settings(
    max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

cells = st.one_of(
    st.integers(-5, 5),
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.sampled_from(["", "NA", "n/a", "a", "b", "yes", "2020-01-01", "1,5", "x y z w"]),
    st.none(),
    st.booleans(),
    st.text(max_size=4),
)
columns = st.one_of(
    st.lists(cells, min_size=1, max_size=4),
    st.lists(st.integers(-3, 9), min_size=1, max_size=9),
    st.lists(st.floats(-5, 5), min_size=1, max_size=40),
    st.lists(st.sampled_from("abc"), min_size=1, max_size=5),
)
names = st.sampled_from(["x", "y", "species", "id", "when", "note", " ", "Ü", "file"])
tables = st.dictionaries(names, columns, min_size=1, max_size=5)


def frame_of(content: dict[str, list[Any]], site: list[Any]) -> pd.DataFrame:
    n_rows = 40
    stretched = {name: (values * n_rows)[:n_rows] for name, values in content.items()}
    return pd.DataFrame({"site": (site * n_rows)[:n_rows], **stretched})


def table_or_error(data: Any, **given: Any) -> Any:
    try:
        return read(data, domain="site", **given)
    except CodedError as error:
        return error


def check(data: Any, **given: Any) -> bool:
    """Assert a table that holds what it should, or an error that a person can use.

    True for a table.
    """
    table = table_or_error(data, **given)
    if isinstance(table, CodedError):
        assert table.code.startswith("E1")
        assert table.text
        assert table.hint
        assert "\n" not in str(table)
        return False
    n_rows, n_columns = table.X.shape
    dense = table.X.toarray() if sparse.issparse(table.X) else table.X
    assert np.isfinite(dense).all()
    assert len(table.domains) == n_rows
    assert len(set(table.domains.tolist())) >= 2
    assert len(table.feature_names) == n_columns
    again = Schema.from_dict(table.schema.to_dict())
    assert again == table.schema
    if table.frame is not None:
        np.testing.assert_array_equal(again.encode(table.frame), dense)
    return True


@several
@given(
    content=tables,
    site=st.lists(cells, min_size=1, max_size=4),
    impute=st.sampled_from([None, "median", "mean", "drop"]),
    given_options=st.fixed_dictionaries(
        {},
        optional={
            "drop_missing_domain": st.booleans(),
            "merge_small": st.just("other"),
            "counts": st.booleans(),
            "domain_bins": st.integers(2, 4),
            "sample": st.integers(2, 50),
            "na": st.just(["a", "1", "yes"]),
            "text": names,
            "features": st.lists(names, max_size=3),
            "drop": st.lists(names, max_size=2),
            "id": names,
        },
    ),
)
def test_any_table(
    content: dict[str, list[Any]],
    site: list[Any],
    impute: Any,
    given_options: dict[str, Any],
) -> None:
    frame = frame_of(content, site)
    check(frame, impute=impute, **given_options)
    assert frame.equals(frame_of(content, site))  # it is the caller's


@several
@given(content=tables, site=st.lists(st.sampled_from("ab1"), min_size=2, max_size=4))
def test_a_table_and_its_file_are_read_alike(
    content: dict[str, list[Any]], site: list[Any], tmp_path: Path
) -> None:
    """What a CSV file can say at all is understood as in the table it came from."""
    frame = frame_of(content, site)
    frame.to_csv(tmp_path / "x.csv", index=False)
    check(tmp_path / "x.csv", impute="median")
    as_text = pd.read_csv(
        tmp_path / "x.csv", dtype=str, keep_default_na=False, encoding="utf-8"
    )
    found = []
    for data in (tmp_path / "x.csv", as_text):
        table = table_or_error(data, impute="median")
        found.append(
            table.code
            if isinstance(table, CodedError)
            else (table.feature_names, table.X.tolist(), list(table.domains))
        )
    # The file reader strips names, and takes True and False for what they say.
    flags = any(type(cell) is bool for column in content.values() for cell in column)
    if frame.columns.str.strip().all() and not flags:
        assert type(found[0]) is type(found[1])
        if isinstance(found[0], str):
            assert found[0] == found[1]
        else:
            assert found[0][::2] == found[1][::2]
            np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def contents() -> dict[str, bytes]:
    """Small sound files of every format."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"site": ["a", "b"] * 40, "x": rng.normal(size=80)})
    made = {"csv": frame.to_csv(index=False).encode()}
    made["csv.gz"] = gzip.compress(made["csv"], mtime=0)
    for ending, write in (("parquet", frame.to_parquet), ("feather", frame.to_feather)):
        buffer = io.BytesIO()
        write(buffer)
        made[ending] = buffer.getvalue()
    arrays = {"X": rng.normal(size=(80, 2)), "site": np.array(["a", "b"] * 40)}
    for ending, save in (
        ("npy", lambda buffer: np.save(buffer, arrays["X"])),
        ("npz", lambda buffer: np.savez(buffer, **arrays)),
        ("mtx", lambda buffer: mmwrite(buffer, sparse.eye_array(80))),
    ):
        buffer = io.BytesIO()
        save(buffer)
        made[ending] = buffer.getvalue()
    return made


CONTENTS = contents()


@pytest.mark.parametrize("ending", CONTENTS)
def test_damaged_files(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = tmp_path / f"x.{ending}"
    (tmp_path / "d.txt").write_text("\n".join(["a", "b"] * 40))
    given: dict[str, Any] = {}
    if ending in ("npy", "mtx"):
        given = {"domain_file": tmp_path / "d.txt"}
    path.write_bytes(CONTENTS[ending])
    assert check(path, **given)  # whole, it is a table
    for _ in range(40):
        content = bytearray(CONTENTS[ending])
        if rng.random() < 0.3:
            content = content[: int(rng.integers(len(content)))]
        for _ in range(int(rng.integers(1, 4))):
            if content:
                content[int(rng.integers(len(content)))] = int(rng.integers(256))
        path.write_bytes(content)
        check(path, **given)


def test_rows_of_any_width(tmp_path: Path) -> None:
    """Short rows are missing values, long rows are errors, in every batch."""
    lines = ["site,x,z"] + [f"{'ab'[n % 2]},{n},{n * n}" for n in range(100)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join(lines))
    schema = read(path, domain="site", features=["x", "z"]).schema
    for place, text, code in ((50, "a,1", "E115"), (80, "a,1,2,3", "E143")):
        spoiled = [*lines[:place], text, *lines[place:]]
        path.write_text("\n".join(spoiled))
        with pytest.raises(CodedError) as caught:
            list(batches(path, schema, batch_rows=10))
        assert caught.value.code == code
        assert str(place if code == "E115" else place + 1) in str(caught.value)
