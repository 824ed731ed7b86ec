"""Parts cover every row once, whatever their size."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.exceptions import InputError
from shoal.scale._parts import holds_parquet, list_parts


@given(part_rows=st.integers(1, 20_000))
def test_parts_cover_every_row_once(world, part_rows):
    parts = list_parts(world.folder, part_rows=part_rows).parts
    assert [part.number for part in parts] == list(range(len(parts)))
    assert parts[0].start == 0
    for before, after in zip(parts, parts[1:], strict=False):
        assert after.start == before.start + before.n_rows
    assert sum(part.n_rows for part in parts) == len(world.frame)
    # a part is one row group, or no more rows than asked for
    assert all(len(p.row_groups) == 1 or p.n_rows <= part_rows for p in parts)


def test_rows_come_as_they_are_stored(world):
    parts = list_parts(world.folder, part_rows=1_500)
    frames = [frame for part in parts.parts for frame in part.frames(parts.columns)]
    pd.testing.assert_frame_equal(
        pd.concat(frames), world.frame[list(parts.columns)], check_dtype=False
    )


def test_a_file_a_folder_a_pattern_and_a_list_are_the_same_rows(world):
    first, second = sorted(world.folder.iterdir())
    for data in (str(world.folder), f"{world.folder}/*.parquet", [first, second]):
        parts = list_parts(data)
        assert parts.n_rows == 12_000
        assert [one[0] for one in parts.files] == [first.name, second.name]
    assert list_parts(first).n_rows == 7_000


def test_folders_name_columns(world, tmp_path):
    for site, rows in world.frame.groupby("site"):
        (tmp_path / f"site={site}").mkdir()
        stored = rows.drop(columns="site")
        stored.to_parquet(tmp_path / f"site={site}" / "rows.parquet")
    parts = list_parts(tmp_path)
    assert "site" in parts.columns
    found = pd.concat(f for part in parts.parts for f in part.frames(["x0", "site"]))
    sizes = world.frame["site"].value_counts()
    assert found["site"].value_counts().to_dict() == sizes.to_dict()
    only = pd.concat(f for part in parts.parts for f in part.frames(["site"]))
    assert np.array_equal(only["site"], found["site"])


def test_hidden_files_are_no_data(world, tmp_path):
    world.frame.to_parquet(tmp_path / "rows.parquet")
    world.frame.to_parquet(tmp_path / "_old.parquet")
    (tmp_path / ".part").mkdir()
    world.frame.to_parquet(tmp_path / ".part" / "rows.parquet")
    assert list_parts(tmp_path).n_rows == len(world.frame)


def test_which_data_are_read_in_parts(world, tmp_path):
    assert holds_parquet(world.folder)
    assert holds_parquet(f"{world.folder}/*.parquet")
    assert not holds_parquet(world.folder / "first.parquet")  # may fit into memory
    assert not holds_parquet(tmp_path)
    assert not holds_parquet(world.frame)


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda folder: folder, "E002"),
        (lambda folder: folder / "absent.parquet", "E101"),
        (lambda folder: f"{folder}/*.parquet", "E101"),
        (lambda folder: "-", "E002"),
        (lambda folder: _write(folder / "rows.csv", "x\n1\n"), "E002"),
        (lambda folder: _write(folder / "rows.parquet", "no parquet"), "E143"),
    ],
    ids=["empty", "absent", "no match", "stdin", "csv", "damaged"],
)
def test_what_cannot_be_read_in_parts_is_said(tmp_path, make, code):
    with pytest.raises(InputError) as error:
        list_parts(make(tmp_path))
    assert error.value.code == code
    assert "\n" not in str(error.value)


def test_files_with_other_columns_are_refused(tmp_path):
    pd.DataFrame({"x": [1.0], "y": [1.0]}).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"x": [1.0]}).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r'b.parquet" has no column "y"') as error:
        list_parts(tmp_path)
    assert error.value.code == "E107"


def _write(path, text):
    path.write_text(text)
    return path
