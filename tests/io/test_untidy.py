"""Files as people keep them: blanks, 3.0 for 3, other separators, wrong names."""

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shoal.exceptions import InputError
from shoal.io import Schema, batches, read
from shoal.io.table._missing import count_filled
from support.data import write_table

N_ROWS = 120


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "site": np.resize(["Site 0", "Site 1", "Site 2"], N_ROWS),
            "sex": np.resize(["M", "F"], N_ROWS),
            "Hb": rng.normal(13, 2, N_ROWS).round(3),
        }
    )


def refusal(data: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(data, domain="site", **options)
    return caught.value


# ---- missing values at predict -------------------------------------------------------


def test_the_hint_of_fit_is_not_that_of_predict(frame: pd.DataFrame) -> None:
    gaps = frame.assign(Hb=frame["Hb"].where(frame.index != 4))
    hint = "--impute median, or drop the rows (--impute drop)"
    assert refusal(gaps, impute="stop").hint == hint
    with pytest.raises(InputError) as caught:
        list(batches(gaps, read(frame, domain="site").schema))
    assert caught.value.code == "E115"
    assert caught.value.hint == (
        "fill or remove the rows, or fit again with --impute median, which the model "
        "then keeps"
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_what_fit_left_out_is_left_out_again(
    ending: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    gaps = frame.assign(
        Hb=frame["Hb"].where(~frame.index.isin([4, 60]), -999),
        sex=frame["sex"].where(frame.index != 7),
    )
    path = write_table(gaps, tmp_path / f"x.{ending}")
    table = read(path, domain="site", impute="drop", na=["-999"])
    assert table.n_rows == N_ROWS - 3
    schema = Schema.from_dict(table.schema.to_dict())
    pieces = list(batches(path, schema, batch_rows=50))
    assert_array_equal(np.concatenate([one.X for one in pieces]), table.X)
    assert_array_equal(np.concatenate([one.domains for one in pieces]), table.domains)
    ids = np.concatenate([one.ids for one in pieces])
    assert_array_equal(ids, 1 + np.delete(np.arange(N_ROWS), [4, 7, 60]))
    assert_array_equal(np.concatenate([one.places for one in pieces]), ids - 1)
    said = [one for piece in pieces for one in piece.messages]
    assert [one.code for one in said] == ["W144", "W144"]
    assert "first: row 5" in said[0].text
    empty = gaps.assign(Hb=np.nan)
    with pytest.raises(InputError, match="every row has a missing value") as caught:
        list(batches(empty, schema))
    assert caught.value.code == "E115"
    # text among the numbers is still an error, not a gap
    spoiled = gaps.astype({"Hb": object})
    spoiled.loc[9, "Hb"] = "about 3"
    with pytest.raises(InputError, match='row 10 holds "about 3"'):
        list(batches(spoiled, schema))


# ---- blanks --------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [" ", "   ", "\t"])
@pytest.mark.parametrize("source", ["csv", "parquet", "memory"])
def test_blank_cells_are_missing(
    cell: str, source: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    blank = frame.astype({"Hb": str})
    blank.loc[[5, 9], "Hb"] = cell
    blank.loc[11, "sex"] = cell
    data: Any = blank
    if source != "memory":
        data = write_table(blank, tmp_path / f"x.{source}")
    error = refusal(data, impute="stop")
    assert error.code == "E115"
    assert "3 missing values in 2 columns" in error.text
    table = read(data, domain="site", impute="median")
    rest = frame["Hb"].drop(index=[5, 9])
    assert table.X[5, table.feature_names.index("Hb")] == rest.median()
    assert table.feature_names == ["sex=F", "sex=M", "Hb"]
    assert read(data, domain="site", impute="drop").n_rows == N_ROWS - 3
    blank.loc[3, "site"] = cell
    assert refusal(blank).code == "E115"


def test_words_for_missing_may_have_blanks_around_them(frame: pd.DataFrame) -> None:
    other = frame.astype({"Hb": str})
    other.loc[[5, 9], "Hb"] = " broken"
    assert refusal(other).hint == "--na broken or clean the rows"
    for na in ("broken", " broken"):
        assert refusal(other, na=[na], impute="stop").code == "E115"
    # a cell that cannot be shown as it is must not be repeated in a hint
    other.loc[[5, 9], "Hb"] = "not  measured"
    assert refusal(other).hint == "clean the rows"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_blanks_around_words_mean_nothing(
    ending: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    label = np.resize(["ill", "well"], N_ROWS)
    plain = frame.assign(diagnosis=label, grp=frame["site"].str[-1])
    untidy = plain.copy()
    for name in ("site", "sex", "diagnosis", "grp"):
        untidy.loc[::5, name] = untidy.loc[::5, name] + " "
        untidy.loc[::7, name] = "\t" + untidy.loc[::7, name]
    told: dict[str, Any] = {"domain": "site", "label": "diagnosis", "group": "grp"}
    expected = read(plain, **told)
    path = write_table(untidy, tmp_path / f"x.{ending}")
    categories = untidy.astype(dict.fromkeys(["site", "sex"], "category"))
    for data in (path, untidy, categories, untidy.astype(object)):
        table = read(data, **told)
        assert table.feature_names == expected.feature_names
        assert_array_equal(table.X, expected.X)
        assert_array_equal(table.domains, expected.domains)
        assert_array_equal(table.labels, expected.labels)
        assert table.groups == expected.groups
        piece = next(iter(batches(data, expected.schema)))
        assert_array_equal(piece.X, expected.X)
        assert_array_equal(piece.domains, expected.domains)
        assert_array_equal(piece.labels, expected.labels)
        assert not piece.messages


@pytest.mark.parametrize("content", [
    {"rules": 2},
    {"drop_incomplete": 1},
    {"domain": {"column": "a", "rules": None}},
])  # fmt: skip
def test_damaged_schemas(content: Any) -> None:
    with pytest.raises(Exception, match="schema of the model"):
        Schema.from_dict(content)


# ---- domains that are numbers --------------------------------------------------------


@pytest.mark.parametrize("n_bins", [6, 12])
def test_bins_are_in_the_order_of_their_numbers(n_bins: int) -> None:
    weight = np.random.default_rng(0).permutation(np.arange(5.0, 3_000.0, 5.0))
    frame = pd.DataFrame({"weight": weight, "x": weight % 7})
    table = read(frame, domain="weight", domain_bins=n_bins)
    names = np.unique(table.domains.astype(str))
    assert len(names) == n_bins
    lowest = [weight[table.domains == name].min() for name in names]
    assert lowest == sorted(lowest)
    first = "1" if n_bins < 10 else "01"
    assert names[0].startswith(f"{first}: below ")
    assert " to " in names[1]
    piece = next(iter(batches(frame, table.schema.to_dict())))
    assert_array_equal(piece.domains, table.domains)


@pytest.mark.parametrize("fitted", ["csv", "parquet"])
def test_whole_domains_stored_as_floats(
    fitted: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    floats = frame.assign(site=np.resize([0.0, 1.0, 10.0], N_ROWS))
    table = read(write_table(floats, tmp_path / f"x.{fitted}"), domain="site")
    assert table.domains[:3].tolist() == [0, 1, 10]
    for other in ("csv", "parquet"):
        path = write_table(floats, tmp_path / f"y.{other}")
        piece = next(iter(batches(path, table.schema)))
        assert_array_equal(piece.domains, table.domains)
        loose = next(iter(batches(path, table.schema, require_domain=False)))
        assert loose.domains[:3].tolist() == ["0", "1", "10"]


def test_numbers_that_are_names_stay_names(frame: pd.DataFrame) -> None:
    padded = frame.assign(site=np.resize(["01.0", "02.0"], N_ROWS))
    assert set(read(padded, domain="site").domains) == {"01.0", "02.0"}


def test_whole_numbers_are_taken_as_words_are(frame: pd.DataFrame) -> None:
    many = pd.concat([frame] * 30, ignore_index=True)
    site = np.resize(np.arange(1, 1_201), len(many))
    assert len(np.unique(read(many.assign(site=site), domain="site").domains)) == 1_200
    error = refusal(many.assign(site=np.arange(len(many)) // 1.9 // 1))
    assert error.text == '"site" has 1,895 values in 3,600 rows'


@pytest.mark.parametrize("source", ["csv", "parquet", "text"])
def test_few_fractions_are_names(
    source: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    depths = frame.assign(site=np.resize([0.5, 1.0, 2001.5, 7.0, 12.25], N_ROWS))
    data: Any = depths.astype({"site": str})
    if source != "text":
        data = write_table(depths, tmp_path / f"x.{source}")
    table = read(data, domain="site")
    assert table.domains[:5].tolist() == ["0.5", "1", "2001.5", "7", "12.25"]
    # the same names where no fraction is among the rows, and in other formats
    some = depths[depths["site"] % 1 == 0]
    for other in ("csv", "parquet"):
        path = write_table(some, tmp_path / f"some.{other}")
        piece = next(iter(batches(path, table.schema)))
        assert piece.domains[:2].tolist() == ["1", "7"]


def test_many_fractions_measure_something(frame: pd.DataFrame) -> None:
    thin = refusal(frame.assign(site=np.resize(np.arange(13) + 0.5, N_ROWS)))
    assert thin.code == "E109"
    assert thin.text == '"site" holds fractions and has 13 values in 120 rows'
    many = pd.concat([frame] * 30, ignore_index=True)
    levels = np.arange(21) / 2
    assert refusal(many.assign(site=np.resize(levels, len(many)))).code == "E109"
    few = read(many.assign(site=np.resize(levels[:20], len(many))), domain="site")
    assert len(np.unique(few.domains)) == 20


# ---- domains that are dates ----------------------------------------------------------


def dated(kind: str, frame: pd.DataFrame, folder: Path) -> Path:
    """A file in which the site is a day, or a day and an hour."""
    days = pd.Series(np.resize(pd.date_range("2020-01-02", periods=3), N_ROWS))
    if "hours" in kind:  # only some are midnights
        days += pd.to_timedelta(np.resize([0, 0, 0, 6, 6, 6], N_ROWS), unit="h")
    if kind.startswith("date32"):
        days = days.dt.date
    if kind.startswith("text"):
        days = days.astype(str)
    return write_table(
        frame.assign(site=days), folder / f"{kind}.{kind.split('.')[-1]}"
    )


@pytest.mark.parametrize("hours", ["", "hours."])
def test_days_are_the_same_domains_in_every_format(
    hours: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    kinds = ["time.parquet", "text.parquet", "text.csv", "time.csv"]
    if hours:
        kinds = [kind.replace(".", ".hours.") for kind in kinds]
    else:
        kinds.append("date32.parquet")
    paths = [dated(kind, frame, tmp_path) for kind in kinds]
    expected = ["2020-01-02", "2020-01-03", "2020-01-04"]
    for fitted in paths:
        table = read(fitted, domain="site")
        assert table.domains[:3].tolist() == expected
        if hours:
            assert table.domains[3] == "2020-01-02 06:00:00"
        for path in paths:
            for piece in batches(path, table.schema, batch_rows=3):
                assert set(piece.domains) <= set(table.domains)


# ---- separators and formats ----------------------------------------------------------


def test_a_comma_in_a_name_does_not_hide_semicolons(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "x.csv"
    named = frame.rename(columns={"Hb": "Hb, g/dl"})
    named.to_csv(path, sep=";", index=False, quoting=3)
    for sep in (None, ";"):
        assert "Hb, g/dl" in read(path, domain="site", sep=sep).feature_names


def test_names_with_other_separators_in_them(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    """Taxa are called k__Bacteria|p__Firmicutes|..., also with semicolons."""
    for separator in "|;":
        name = separator.join(["k__Bacteria", "p__Firmicutes", "c__Clostridia", "o__"])
        path = write_table(frame.rename(columns={"Hb": name}), tmp_path / "x.csv")
        assert name in read(path, domain="site").feature_names
        lists = frame.assign(sex=frame["sex"] + ';"x";y')
        path = write_table(
            lists.rename(columns={"sex": 'a;"b";c;d;e'}), tmp_path / "x.csv"
        )
        assert read(path, domain="site").X.shape == (N_ROWS, 3)


def test_a_separator_that_was_named_is_believed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"{row % 2};{row};1,{row * row % 7}\n" for row in range(N_ROWS))
    path.write_text("site;b;c,d\n" + rows)
    assert read(path, domain="site").feature_names == ["c,d"]
    assert refusal(path, sep=",").code == "E107"


def workbook(name: str = "xl/workbook.xml") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "<workbook/>")
    return buffer.getvalue()


def packed(kind: str, frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    if kind == "parquet":
        frame.to_parquet(buffer)
    elif kind == "npz":
        np.savez(buffer, X=np.eye(3))
    elif kind == "gzip":
        buffer.write(gzip.compress(frame.to_csv(index=False).encode(), mtime=0))
    elif kind in ("xz", "bzip2"):
        pack = lzma.compress if kind == "xz" else bz2.compress
        buffer.write(pack(frame.to_csv(index=False).encode()))
    elif kind == "zstd":
        buffer.write(b"\x28\xb5\x2f\xfd" + bytes(40))
    elif kind == "xls":
        buffer.write(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(40))
    else:
        buffer.write(workbook("xl/workbook.xml" if kind == "xlsx" else "notes.txt"))
    return buffer.getvalue()


DISGUISES = [
    ("xlsx", "is an Excel workbook", "end its name with .xlsx"),
    ("xls", "is an old Excel workbook", "save the sheet as CSV"),
    ("zip", "is a zip archive", "unpack it"),
    ("npz", "is an archive of numpy arrays", "--format npz"),
    ("parquet", "is a Parquet file", "--format parquet"),
    ("gzip", "is packed by gzip", "unpack it, or end its name with .csv.gz"),
    ("xz", "is packed by xz", "unpack it"),
    ("bzip2", "is packed by bzip2", "unpack it"),
    ("zstd", "is packed by zstd", "unpack it"),
]


@pytest.mark.parametrize(("kind", "text", "hint"), DISGUISES)
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.dat", "x.ods"])
def test_disguised_files(
    kind: str, text: str, hint: str, name: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(packed(kind, frame))
    error = refusal(path)
    assert error.code == "E102"
    assert f'"{path}" {text}' in error.text
    assert hint in error.hint
    with pytest.raises(InputError) as caught:
        list(batches(path, read(frame, domain="site").schema))
    assert caught.value.text == error.text
    if kind == "parquet":
        assert read(path, domain="site", format="parquet").n_rows == N_ROWS


@pytest.mark.parametrize(("kind", "text", "hint"), DISGUISES)
def test_disguised_standard_input(
    kind: str,
    text: str,
    hint: str,
    frame: pd.DataFrame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = io.BytesIO(packed(kind, frame))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(content))
    error = refusal("-")
    assert error.code == "E102"
    assert f'"standard input" {text}' in error.text
    # --format would be refused: standard input is read as CSV
    piped = "pass the file by its name, or unpack it first"
    assert error.hint == (hint if hint.startswith("save") else piped)


def test_a_column_may_be_called_like_a_format(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    named = frame.rename(columns={"Hb": "PAR1"})[["PAR1", "site"]]
    path = write_table(named, tmp_path / "x.csv")
    assert read(path, domain="site").feature_names == ["PAR1"]
    path.write_bytes(b"PK")
    assert refusal(path).code == "E114"


# ---- numbers that only people read ---------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("form", "text", "hint"),
    [
        ("{:,.1f}", 'thousands separators (row 2: "1,092.0")',
         "write 1092.0 instead of 1,092.0"),
        ("{:.1f}%", 'percent signs (row 1: "1000.0%")',
         "write 1000.0 instead of 1000.0%"),
        ("{:.1f} %", 'percent signs (row 1: "1000.0 %")',
         "write 1000.0 instead of 1000.0 %"),
    ],
)  # fmt: skip
def test_numbers_for_people(
    form: str, text: str, hint: str, ending: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    values = 1_000 + 92.0 * np.arange(N_ROWS)
    spelled = [form.format(value) for value in values]
    if "," in form:
        spelled[0] = "999.5"  # as small numbers are written
    path = write_table(frame.assign(Hb=spelled), tmp_path / f"x.{ending}")
    error = refusal(path)
    assert error.code == "E119"
    assert error.text == f'"Hb" has {text}'
    assert error.hint == hint


def test_commas_of_two_meanings(frame: pd.DataFrame) -> None:
    values = [f"{1 + row},{100 + row}" for row in range(N_ROWS)]
    error = refusal(frame.assign(Hb=values))
    assert error.hint == (
        "--decimal , if that is 1.100, or write 1100 or 1.100 instead of 1,100"
    )


def test_few_shares_are_grades(frame: pd.DataFrame) -> None:
    doses = frame.assign(dose=np.resize(["5%", "10%", "none"], N_ROWS))
    assert "dose=10%" in read(doses, domain="site").feature_names
    doses = frame.assign(dose=np.resize(["5%", "10%"], N_ROWS))
    assert "dose=10%" in read(doses, domain="site").feature_names


def test_filled_cells_are_counted_by_column(tmp_path):
    path = tmp_path / "birds.csv"
    rows = range(40)
    size, sex = (
        ["NA" if n % 5 == 0 else n % 11 for n in rows],
        ["", "m", "f", "f", "m"] * 8,
    )
    lines = [f"{'ab'[n % 2]},{size[n]},{sex[n]}" for n in rows]
    path.write_text("\n".join(["site,size,sex", *lines]) + "\n")
    filled = read(path, domain="site", impute="median")
    assert count_filled(filled.frame, filled.schema) == {"size": 8, "sex": 8}
    assert count_filled(None, None) == {}
