"""Tables as half of the world writes them: 3,5 and semicolons, "-" and "n/a"."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shoal.exceptions import InputError
from shoal.io import Schema, batches, read
from shoal.io._notation import GAPS, MISSING

N_ROWS = 642


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "site": np.resize(["Moor", "Heide", "Wald"], N_ROWS),
            "soil": np.resize(["sand", "clay", "-", "peat"], N_ROWS),
            "mass": rng.normal(30, 5, N_ROWS).round(2),
            "depth": rng.normal(3, 1, N_ROWS).round(1),
            "shoots": rng.integers(0, 50, N_ROWS),
        }
    )


def with_commas(frame: pd.DataFrame, **gaps: str) -> pd.DataFrame:
    """The table with decimal commas, and a gap of each column in every tenth row."""
    text = frame.astype(str)
    for name in ("mass", "depth"):
        text[name] = text[name].str.replace(".", ",")
    for place, (name, gap) in enumerate(gaps.items()):
        text.loc[place::10, name] = gap
    return text


def write(frame: pd.DataFrame, path: Path, sep: str = ";") -> Path:
    frame.to_csv(path, sep=sep, index=False)
    return path


def refusal(data: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(data, domain="site", **options)
    return caught.value


# ---- separators and decimals ---------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252", "cp1251"])
def test_the_encoding_of_a_spreadsheet_is_found(
    encoding: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Of an alphabet that nothing in the file can name, it must be told."""
    west = encoding != "cp1251"
    names = {"Wald": "Böschung" if west else "Берег", "Heide": "Heide"}
    frame = frame.assign(site=frame["site"].replace(names))
    mass = {"mass": "Größe" if west else "вес"}
    path = tmp_path / "x.csv"
    written = with_commas(frame).rename(columns=mass)
    written.to_csv(path, sep=";", index=False, encoding=encoding)
    if not west:
        assert "is not UTF-8; add --encoding" in str(refusal(path))
    told = {} if west else {"encoding": encoding}
    table = read(path, domain="site", **told)
    expected = read(frame.rename(columns=mass), domain="site")
    assert_array_equal(table.X, expected.X)
    assert table.feature_names == expected.feature_names
    assert_array_equal(table.domains, expected.domains)
    guessed = ["W147"] if encoding == "cp1252" else []
    assert [one.code for one in table.messages] == guessed
    pieces = list(batches(path, expected.schema, batch_rows=100, **told))
    assert_array_equal(np.concatenate([one.domains for one in pieces]), table.domains)
    assert [one.code for piece in pieces for one in piece.messages] == guessed
    renamed = path.rename(tmp_path / "x.txt")  # as a spreadsheet calls "Unicode text"
    assert_array_equal(read(renamed, domain="site", **told).X, expected.X)
    several = read([renamed, renamed], domain="site", **told)
    assert {one.code for one in several.messages} == set(guessed)


@pytest.mark.parametrize("sep", [";", "\t", "|", ","])
def test_separator_and_decimals_are_found(
    sep: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    expected = read(frame, domain="site")
    assert expected.schema.decimal == "."
    path = write(with_commas(frame), tmp_path / "x.csv", sep)  # quotes beside commas
    table = read(path, domain="site")
    assert_array_equal(table.X, expected.X)
    assert table.feature_names == expected.feature_names
    assert table.schema.decimal == ","
    assert not table.messages
    # in memory and from a sample of the file just as well
    assert_array_equal(read(with_commas(frame), domain="site").X, expected.X)
    drawn = read(path, domain="site", sample=50)
    assert_array_equal(drawn.X, expected.X[drawn.places])


def test_a_comma_beside_the_name_of_a_unit(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Commas split as often as semicolons: they are decimal commas."""
    path = tmp_path / "x.csv"
    lines = [f"{row.site};{row.mass};{row.depth}" for row in frame.itertuples()]
    text = "site;mass, g;depth, m\n" + "\n".join(lines).replace(".", ",")
    path.write_text(text + "\n")
    table = read(path, domain="site")
    assert table.feature_names == ["mass, g", "depth, m"]
    assert_array_equal(table.X, frame[["mass", "depth"]])


def test_decimals_that_begin_late(frame: pd.DataFrame, tmp_path: Path) -> None:
    """The first rows show nothing; the cells of the whole column do."""
    late = frame.assign(mass=frame["mass"].where(frame.index > 400, 30.0))
    text = with_commas(late).assign(depth=late["shoots"])
    text.loc[:400, "mass"] = "30"
    path = write(text, tmp_path / "x.csv")
    table = read(path, domain="site", drop=["soil"])
    assert_array_equal(table.X[:, 0], late["mass"])


def test_what_is_told_is_believed(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = write(with_commas(frame), tmp_path / "x.csv")
    error = refusal(path, decimal=".")
    assert error.code == "E119"
    cell = f"{frame['mass'][0]}".replace(".", ",")
    assert error.text == f'"mass" has decimal commas (row 1: "{cell}")'
    assert error.hint.startswith("--decimal , if that is ")
    # three decimals, or thousands: only a person knows
    thousands = frame.assign(mass=[f"{1 + row},{100 + row}" for row in frame.index])
    assert refusal(thousands).code == "E119"
    table = read(thousands, domain="site", decimal=",", features=["mass"])
    assert table.X[3, 0] == 4.103
    # where the decimal sign is a comma, a point may separate thousands
    mixed = with_commas(frame).assign(shoots=[f"1.{234 + row}" for row in frame.index])
    error = refusal(mixed, features=["mass", "shoots"])
    assert error.text.startswith('"shoots" has thousands separators (row 1')
    assert error.hint == "write 1234 or 1.234 instead of 1.234"


def test_choices_are_no_decimals(frame: pd.DataFrame) -> None:
    """1,2 may be the first two choices of a question; a few values are no evidence."""
    ticked = frame.assign(ticked=np.resize(["1", "2", "1,2", "1,3"], N_ROWS))
    assert "ticked=1,2" in read(ticked, domain="site").feature_names


# ---- gaps ----------------------------------------------------------------------------


def test_gaps_among_decimal_commas_are_gaps(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    text = with_commas(frame, mass="-", depth="n/a", shoots=" ? ")
    path = write(text, tmp_path / "x.csv")
    error = refusal(path, impute="stop")
    assert error.code == "E115"
    assert error.text.startswith("194 missing values in 3 columns")
    table = read(path, domain="site", impute="median")
    gaps = frame["mass"].mask(frame.index % 10 == 0)
    assert_array_equal(table.X[:, -3], gaps.fillna(gaps.median()))
    told = [(one.code, one.text) for one in table.messages]
    text_ = '"-", "?", "n/a" among the numbers of 3 columns mean missing'
    assert told == [("W148", text_)]
    # where words are values, "-" is one
    assert "soil=-" in table.feature_names


def test_a_column_that_is_mostly_gaps_is_no_text(frame: pd.DataFrame) -> None:
    text = with_commas(frame)
    text.loc[text.index % 5 > 0, "mass"] = "-"
    table = read(text, domain="site", impute="median")
    assert "mass" in table.feature_names
    # nor is it, with a word that nobody knows, dropped in silence
    text["mass"] = text["mass"].replace("-", "dry")
    error = refusal(text, impute="median")
    assert error.code == "E119"
    assert error.hint == "--na dry or clean the rows"


def test_all_markers_of_a_table_are_named_at_once(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    text = with_commas(frame, mass="dry", depth="not read", shoots="dry")
    text.loc[7, "mass"] = "lost"
    path = write(text, tmp_path / "x.csv")
    error = refusal(path)
    assert error.code == "E119"
    assert error.text == (
        '"mass" is a number except rows 1, 8, 11 and 63 more ("dry", "lost"); '
        '"depth" is a number except rows 2, 12, 22 and 62 more ("not read"); '
        '"shoots" is a number except rows 3, 13, 23 and 61 more ("dry")'
    )
    assert error.hint == "--na dry --na lost --na 'not read' or clean the rows"
    table = read(path, domain="site", na=["dry", "lost", "not read"], impute="median")
    assert table.n_rows == N_ROWS


def test_the_list_of_markers_can_be_replaced(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    """NA is a species of mouse, and Namibia a country."""
    mice = frame.assign(soil=np.resize(["NA", "MM", ""], N_ROWS))
    path = write(mice, tmp_path / "x.csv")
    table = read(path, domain="site", na_only=True, impute="drop")
    assert table.n_rows == N_ROWS * 2 / 3
    assert {"soil=NA", "soil=MM"} < set(table.feature_names)
    piece = next(iter(batches(path, table.schema.to_dict())))
    assert_array_equal(piece.X, table.X)
    text = with_commas(frame, mass="-")
    assert refusal(text, na_only=True).hint == "--na - or clean the rows"
    assert read(text, domain="site", na_only=True, na=["-"], impute="mean").n_rows
    country = frame.assign(site=np.resize(["NA", "ZA"], N_ROWS))
    assert set(read(write(country, path), domain="site", na_only=True).domains) == {
        "NA",
        "ZA",
    }


# ---- what predict remembers ----------------------------------------------------------


def test_new_rows_are_read_as_those_of_the_fit(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    text = with_commas(frame, mass="-", depth="dry")
    path = write(text, tmp_path / "x.csv", "^")
    table = read(path, domain="site", sep="^", na=["dry"], impute="median")
    schema = Schema.from_dict(table.schema.to_dict())
    assert (schema.sep, schema.decimal) == ("^", ",")
    assert schema.missing == (*MISSING, "dry")
    assert schema.gaps == GAPS
    for batch_rows in (100, N_ROWS):
        pieces = list(batches(path, schema, batch_rows=batch_rows))
        assert_array_equal(np.concatenate([one.X for one in pieces]), table.X)
    # what is told now goes before what was told then
    english = frame.astype(str)
    english.loc[0::10, "mass"] = "-"
    english.loc[1::10, "depth"] = "dry"
    path = write(english, tmp_path / "y.csv", ",")
    piece = next(iter(batches(path, schema, sep=",", decimal=".")))
    assert_array_equal(piece.X, table.X)


def test_a_number_of_the_other_notation_is_told(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    schema = read(with_commas(frame), domain="site").schema
    doubtful = frame.astype(str).assign(mass="1.234")
    with pytest.raises(InputError) as caught:
        list(batches(write(doubtful, tmp_path / "x.csv"), schema))
    assert caught.value.text == '"mass" was a number in fit; row 1 holds "1.234"'
    assert caught.value.hint == "--decimal . if that is a number, or clean the rows"
    schema = read(frame, domain="site").schema
    with pytest.raises(InputError) as caught:
        list(batches(with_commas(frame), schema))
    assert caught.value.hint == "--decimal , if that is a number, or clean the rows"


def test_bins_of_numbers_with_commas(frame: pd.DataFrame, tmp_path: Path) -> None:
    expected = read(frame, domain="depth", domain_bins=4)
    path = write(with_commas(frame), tmp_path / "x.csv")
    table = read(path, domain="depth", domain_bins=4)
    assert_array_equal(table.domains, expected.domains)
    piece = next(iter(batches(path, table.schema.to_dict())))
    assert_array_equal(piece.domains, expected.domains)
