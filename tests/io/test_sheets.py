"""Excel sheets as people fill them, and files of Stata and SAS."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shoal.exceptions import InputError
from shoal.io import batches, read

N_ROWS = 90


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "ward": np.resize(["A", "B", "C"], N_ROWS),
            "sex": np.resize(["m", "f"], N_ROWS),
            "age": rng.integers(20, 90, N_ROWS),
            "crp": rng.gamma(2.0, 5.0, N_ROWS).round(3),
        }
    )


def workbook(path: Path, *sheets: pd.DataFrame, **changes: Any) -> Path:
    """A workbook with a sheet for each table; ``changes`` are cells of the first."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for place, frame in enumerate(sheets):
        sheet = book.create_sheet(f"sheet {place}")
        sheet.append(list(frame.columns))
        for row in frame.astype(object).itertuples(index=False):
            sheet.append([None if pd.isna(cell) else cell for cell in row])
    book.create_sheet("empty")
    for cell, value in changes.items():
        book["sheet 0"][cell] = value
    book.save(path)
    return path


def refusal(path: Path, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(path, domain="ward", **options)
    return caught.value


def test_a_sheet_is_read_like_the_table(frame: pd.DataFrame, tmp_path: Path) -> None:
    expected = read(frame, domain="ward")
    path = workbook(tmp_path / "x.xlsx", frame)
    table = read(path, domain="ward")
    assert_array_equal(table.X, expected.X)
    assert table.feature_names == expected.feature_names
    assert_array_equal(table.domains, expected.domains)
    piece = next(iter(batches(path, table.schema.to_dict())))
    assert_array_equal(piece.X, expected.X)
    assert read(path, domain="ward", sample=20).n_rows == 20


def test_one_of_several_sheets(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", frame[:30], frame)
    error = refusal(path)
    assert error.code == "E143"
    assert error.text == f'"{path}" has 2 sheets: sheet 0, sheet 1'
    assert error.hint == '--sheet "sheet 0", or the one meant'
    table = read(path, domain="ward", sheet="sheet 1")
    assert table.n_rows == N_ROWS
    piece = next(iter(batches(path, table.schema, sheet="sheet 1")))
    assert_array_equal(piece.X, table.X)
    error = refusal(path, sheet="sheet1")
    assert (error.code, error.hint) == ("E107", 'nearest: "sheet 1"')
    assert refusal(path, sheet="empty").text == 'the sheet "empty" is empty'
    plain = tmp_path / "x.csv"
    frame.to_csv(plain, index=False)
    assert refusal(plain, sheet="sheet 1").text == f'"{plain}" has no sheets'


def test_dates_gaps_and_commas(frame: pd.DataFrame, tmp_path: Path) -> None:
    day = datetime.date(2024, 5, 1)
    seen = frame.assign(
        seen=[day + datetime.timedelta(days=int(row) % 40) for row in range(N_ROWS)],
        crp=frame["crp"].astype(str).str.replace(".", ","),
    )
    path = workbook(tmp_path / "x.xlsx", seen, C3="n/a", C4=None, G1=None)
    table = read(path, domain="ward", impute="median")
    assert table.feature_names == ["sex=f", "sex=m", "age", "crp"]
    assert_array_equal(table.X[:, 3], frame["crp"])
    rest = frame["age"].drop(index=[1, 2])
    assert table.X[1, 2] == table.X[2, 2] == rest.median()
    roles = {one.name: (one.role, one.reason) for one in table.columns}
    assert roles["seen"] == ("set aside", "dates")
    dates = read(path, domain="ward", features=["seen"])
    days = dates.X[:, 0] / 86_400
    assert_array_equal(days - days[0], np.arange(N_ROWS) % 40)


def test_merged_cells_are_refused_by_name(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", frame)
    for merged, fix in (
        ("C1:D1", "unmerge them: one line, with a name of its own for each column"),
        ("A2:A5", "unmerge them, and write the value into each of them"),
    ):
        book = openpyxl.load_workbook(path)
        book["sheet 0"].merge_cells(merged)
        book.save(tmp_path / "merged.xlsx")
        error = refusal(tmp_path / "merged.xlsx")
        assert error.code == "E143"
        assert error.text == f'the cells {merged} of the sheet "sheet 0" are merged'
        assert error.hint == fix


def test_lines_above_the_names(frame: pd.DataFrame, tmp_path: Path) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "x.xlsx", frame))
    book["sheet 0"].insert_rows(1, 2)
    book.save(tmp_path / "blank.xlsx")
    assert read(tmp_path / "blank.xlsx", domain="ward").n_rows == N_ROWS
    book["sheet 0"]["A1"] = "Patients 2024"
    book.save(tmp_path / "title.xlsx")
    error = refusal(tmp_path / "title.xlsx")
    assert (
        error.text == 'line 1 of the sheet "sheet 0" holds one cell, the next ones more'
    )
    twice = workbook(tmp_path / "twice.xlsx", frame, D1="age")
    assert refusal(twice).text == 'the sheet "sheet 0" has several columns called age'
    bare = workbook(tmp_path / "bare.xlsx", frame[:0])
    assert refusal(bare).text == 'the sheet "sheet 0" has a header but no rows'


@pytest.mark.parametrize("ending", ["xlsx", "dta", "sas7bdat", "xpt"])
def test_broken_files(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{ending}"
    for content in (b"broken", b"PK\x03\x04broken", b"\0" * 5_000):
        path.write_bytes(content)
        error = refusal(path)
        assert error.code == "E143"
        assert "cannot be read as" in error.text


def test_a_file_of_stata(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "x.dta"
    frame.astype({"sex": "category"}).to_stata(path, write_index=False)
    table = read(path, domain="ward")
    assert_array_equal(table.X, read(frame, domain="ward").X)
    assert table.feature_names == ["sex=f", "sex=m", "age", "crp"]
    piece = next(iter(batches(path, table.schema)))
    assert_array_equal(piece.X, table.X)


def test_files_that_only_look_like_others(tmp_path: Path) -> None:
    survey = tmp_path / "x.sav"
    survey.write_bytes(b"$FL2@(#) SPSS DATA FILE")
    error = refusal(survey)
    assert error.code == "E102"
    assert error.hint == "save it as CSV or for Stata (.dta)"
