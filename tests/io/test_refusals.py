"""Bad input of every kind: the code, the column or file, the row, the fix."""

import gzip
import io
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shoal.exceptions import CodedError, InputError
from shoal.io import read

CELLS = Path(__file__).parent / "data" / "cells.h5ad"
N_ROWS = 60
SITES = ["a", "b", "c"] * 20


def table(**columns: Any) -> pd.DataFrame:
    size = np.random.default_rng(0).normal(size=N_ROWS)
    frame = pd.DataFrame({"site": SITES, "size": size})
    return frame.assign(**columns)


def text(frame: pd.DataFrame | None = None, **columns: Any) -> str:
    frame = table(**columns) if frame is None else frame
    return frame.to_csv(index=False)


def changed(column: str, row: int, value: Any, **columns: Any) -> pd.DataFrame:
    frame = table(**columns)
    frame[column] = frame[column].astype(object)
    frame.loc[row - 1, column] = value
    return frame


PROSE = [f"the bird {n} was seen by the lake" for n in range(N_ROWS)]


# name, content of the file (or table), arguments, code, words of the message
Case = tuple[str, Any, dict[str, Any], str, str]
SITE: dict[str, Any] = {"domain": "site"}

# no time of making in it: the name of a test must be the same in every process
TORN = gzip.compress(text().encode(), mtime=0)[:60]
TEXT_FILES: list[Case] = [
    ("x.dat", text(), SITE, "E102", 'format of ".*x.dat"; add --format csv'),
    ("x", text(), SITE, "E102", "cannot tell the format"),
    ("x.csv", text(), SITE | {"format": "docx"}, "E102", 'no format "docx"'),
    ("x.csv", "", SITE, "E114", "x.csv\" is empty"),
    ("x.csv", "\n\n", SITE, "E114", "is empty"),
    ("x.csv", "site,size\n", SITE, "E114", "has a header but no rows"),
    ("x.csv", text().replace(",", ";"), SITE | {"sep": ","}, "E143",
     "holds 1 semicolons; add --sep"),
    ("x.tsv", text(), SITE | {"sep": "\t"}, "E143", "line 1 holds 1 commas"),
    ("x.csv", text().replace(",", "\t"), SITE | {"sep": ","}, "E143", r"--sep '\\t'"),
    ("x.csv", text(), SITE | {"decimal": ";"}, "E002", "';' is no decimal sign"),
    ("x.csv", text(town="Москва").encode("cp1251"), SITE, "E143",
     "byte 0xCC at line 2 is not UTF-8; add --encoding "),
    ("x.csv", text(town="Orl\x81ans").encode("latin-1"), SITE, "E143", "byte 0x81"),
    ("x.csv", text(town="東京").encode("shift_jis"), SITE, "E143", "is not UTF-8"),
    ("x.csv", text(), SITE | {"encoding": "klingon"}, "E143", "no encoding 'klingon'"),
    ("x.csv", text(), {}, "E106", r"candidates: site \(3 values\)"),
    ("x.csv", text(), {"domain": "sight"}, "E107", 'no column "sight".*: "site"'),
    ("x.csv", text(), SITE | {"features": ["sizes"]}, "E107", 'nearest: "size"'),
    ("x.csv", text(), SITE | {"drop": ["zzz"]}, "E107", "columns: site, size"),
    ("x.csv", text(), SITE | {"id": "Site_"}, "E107", 'nearest: "site"'),
    ("x.csv", text(site="only"), SITE, "E112", "one domain .site is \"only\" every"),
    ("x.csv", text(site=range(N_ROWS)), SITE, "E109", '"site" has 60 values in 60'),
    ("x.csv", text(site=np.linspace(0, 1, 20).repeat(3)), SITE, "E109",
     "has 20 values in 60 rows; group it .--domain-bins 10"),
    ("x.csv", text(), SITE | {"domain_bins": 3}, "E109", "cannot be cut .* not a num"),
    ("x.csv", text(changed("site", 7, None)), SITE, "E115",
     "1 row has no domain .first: row 7 of \"site\""),
    ("x.csv", text(changed("site", 7, "NA")), SITE, "E115", "row 7"),
    ("x.csv", text(site=None), SITE, "E115", "no row has a domain"),
    ("x.csv", text(table(flat=1)[["site", "flat"]]), SITE, "E114",
     r"all 1 columns were set aside \(1 constant\)"),
    ("x.csv", text(table()[["site"]]), SITE, "E114", "no column beside the domain"),
    ("x.csv", text(), SITE | {"drop": ["size"]}, "E114", "1 dropped"),
    ("x.csv", text(changed("size", 9, None)), SITE | {"impute": "stop"}, "E115",
     r"1 missing value in 1 column \(most: size, 1; first: row 9, size\); --impute"),
    ("x.csv", text(changed("size", 9, "inf")), SITE, "E115", "1 infinite value"),
    ("x.csv", text(notes=PROSE), SITE, "E116",
     'column "notes" holds free text .row 1: .*; --text notes or --drop notes'),
    ("x.csv", text(changed("size", 18, "broken")), SITE, "E119",
     r'"size" is a number except row 18 \("broken"\); --na broken'),
    ("x.csv", text(size=["1,5", "2,5"] * 30), SITE, "E119", "decimal commas .row 1"),
    ("x.csv", text(species=["x", "y"] * 30), SITE, "E120", '"species" looks like a'),
    ("x.csv", text(size=-1.0 * np.arange(N_ROWS)), SITE | {"counts": True}, "E130",
     "values are negative, such as -1 .first: row 2, \"size\""),
    ("x.csv", text(), SITE | {"counts": True}, "E130", "values are (negative|frac)"),
    ("x.csv", "site,a,a\n1,2,3\n", SITE, "E107", "several columns called a"),
    ("x.csv", "site,size\na,1\nb,2,3\n", SITE, "E143", "line 3 has 3 cells, the head"),
    ("x.csv", 'site,size\na,"1\nb,2\n', SITE, "E143", "cannot be split"),
    ("x.csv", "1,2.5\n3,4\n", SITE, "E143", "first line .* holds numbers, not column"),
    ("x.csv.gz", b"not gzip", SITE, "E143", "x.csv.gz\" cannot be read"),
    ("x.csv.gz", TORN, SITE, "E143", "cannot be read"),
    ("x.parquet", b"PAR1 broken", SITE, "E143", "cannot be read as parquet"),
    ("x.feather", b"broken", SITE, "E143", "cannot be read as feather"),
    ("x.h5ad", b"broken", SITE, "E143", "cannot be read as h5ad"),
    ("x.npy", b"broken", SITE, "E143", "is not an np[yz] file"),
    ("x.npz", b"broken", SITE, "E143", "is not an np[yz] file"),
    ("x.mtx", b"broken", SITE, "E143", "cannot be read"),
    ("x.csv", text(), SITE | {"impute": "magic"}, "E002", "impute='magic'"),
    ("x.csv", text(), SITE | {"sample": 0}, "E002", "sample=0"),
    ("x.csv", text(), SITE | {"domain_bins": 1}, "E002", "domain_bins=1"),
    ("x.csv", text(), SITE | {"sep": "::"}, "E002", "sep='::' is not one character"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "given", "code", "words"), TEXT_FILES)
def test_files(
    name: str,
    content: Any,
    given: dict[str, Any],
    code: str,
    words: str,
    tmp_path: Path,
) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(InputError, match=words) as caught:
        read(path, **given)
    assert caught.value.code in code.split("|")
    assert "\n" not in str(caught.value)


LISTS = [[1.0, 2.0]] * N_ROWS


@pytest.mark.parametrize(
    ("data", "given", "code", "words"),
    [
        (table()[:0], SITE, "E114", "the table has no rows"),
        (table(vector=LISTS), SITE, "E124", 'column "vector" holds a list'),
        (table(vector=[{"a": 1}] * N_ROWS), SITE, "E124", "holds a dict"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), SITE, "E107", "called a"),
        (np.zeros((5, 2, 2)), SITE, "E124", r"got \(5, 2, 2\)"),
        (np.zeros(5), SITE, "E124", r"rows x features, got \(5,\)"),
        (np.zeros((5, 3, 32, 32)), {}, "E124", "for pictures, a folder"),
        (np.array([["a"]]), {"domain": ["x"]}, "E102", "not an array of numbers"),
        (np.eye(5), {"domain": ["x"] * 4}, "E124", "X has 5 rows, domains 4"),
        (table(), {"domain": ["x"] * 4}, "E124", "X has 60 rows, domains 4"),
        (np.eye(6), {}, "E106", "--domain-file"),
        (np.ones((6, 2)), {"domain": list("ababab")}, "E124", "100% of vectors"),
        (np.full((6, 2), np.nan), {"domain": list("ababab")}, "E115", "row 1, column"),
        (table(extra=[np.inf] + [1.0, 2.0] * 29 + [0.5]), SITE, "E115", "row 1, extra"),
        (table(), {"domain_file": "d.txt"}, "E002", "domain_file says nothing about"),
        (table(), SITE | {"layer": "raw"}, "E002", "layer says nothing about a table"),
        (np.eye(6), {"domain": list("ababab"), "drop": ["x"]}, "E002", "drop says not"),
        (np.eye(6), {"domain": list("ababab"), "text": "x"}, "E002", "text says noth"),
        (table(size=None), SITE, "E114", "1 empty"),
        (table(size=pd.Series([np.nan] * N_ROWS)), SITE, "E114", "1 empty"),
        (table(when=pd.date_range("2024", periods=N_ROWS))[["site", "when"]], SITE,
         "E114", "1 dates"),
        (table().assign(size=np.where(np.arange(N_ROWS) % 2, np.nan, 1.5),
                        other=np.where(np.arange(N_ROWS) % 2, 1.5, np.nan),
                        third=np.arange(N_ROWS) / 7), SITE | {"impute": "drop",
         "features": ["size", "other", "third"]}, "E115|W", ""),
    ],
)  # fmt: skip
def test_tables(data: Any, given: dict[str, Any], code: str, words: str) -> None:
    if code == "E115|W":  # constant columns go first: nothing is missing in the third
        assert read(data, **given).feature_names == ["third"]
        return
    with pytest.raises(CodedError, match=words) as caught:
        read(data, **given)
    assert caught.value.code == code


def save_npy(path: Path) -> None:
    np.save(path, np.array([{}, []], dtype=object), allow_pickle=True)


def save_npz(path: Path) -> None:
    np.savez(path, a=np.eye(3), b=np.eye(3))


def save_uneven(path: Path) -> None:
    np.savez(path, X=np.eye(3), site=np.arange(4))


@pytest.mark.parametrize(
    ("name", "maker", "code", "words"),
    [
        ("x.npy", save_npy, "E102", "needs pickle, which shoal never loads"),
        ("x.npz", save_npz, "E124", "2 arrays with two dimensions, none called X"),
        ("x.npz", save_uneven, "E124", "X has 3 rows, site 4"),
        ("x.npy", lambda path: np.save(path, np.zeros((0, 3))), "E114", "has no rows"),
    ],
)
def test_arrays(
    name: str, maker: Callable[[Path], None], code: str, words: str, tmp_path: Path
) -> None:
    maker(tmp_path / name)
    with pytest.raises(InputError, match=words) as caught:
        read(tmp_path / name, domain="site")
    assert caught.value.code == code


def test_a_mistyped_path_is_corrected(tmp_path: Path) -> None:
    (tmp_path / "penguins.csv").write_text(text())
    with pytest.raises(InputError, match='did you mean ".*penguins.csv"') as caught:
        read(tmp_path / "penguin.cvs", domain="site")
    assert caught.value.code == "E101"
    with pytest.raises(InputError, match="no file or folder .*; check the path"):
        read(tmp_path / "nowhere" / "x.csv")


def test_a_domain_file_that_does_not_fit(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(5))
    (tmp_path / "d.txt").write_text("a\nb\n")
    with pytest.raises(InputError, match="X has 5 rows, domains 2") as caught:
        read(tmp_path / "x.npy", domain_file=tmp_path / "d.txt")
    assert caught.value.code == "E124"
    with pytest.raises(InputError, match="domain_file"):
        read(tmp_path / "x.npy", domain_file=tmp_path / "absent.txt")


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    (tmp_path / "b.csv").write_text("x,z\n1,2\n")
    with pytest.raises(InputError, match='b.csv" has no column "y", which') as caught:
        read([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert caught.value.code == "E107"
    np.save(tmp_path / "c.npy", np.eye(3))
    (tmp_path / "texts" / "a").mkdir(parents=True)
    (tmp_path / "texts" / "a" / "x.txt").write_text("some words")
    for other in ("c.npy", "texts"):
        with pytest.raises(InputError, match="several files must be tables"):
            read([tmp_path / "a.csv", tmp_path / other])


def test_too_big_for_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.io._files.available_memory", lambda: 3_000.0)
    table().to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text(text(extra="some more words"))
    np.save(tmp_path / "x.npy", np.ones((500, 3)))
    shutil.copy(CELLS, tmp_path / "x.h5ad")
    for name in ("x.parquet", "x.csv", "x.npy", "x.h5ad"):
        big = pd.concat([table()] * 20)
        big.to_parquet(tmp_path / "x.parquet")
        big.to_csv(tmp_path / "x.csv", index=False)
        with pytest.raises(InputError, match="needs about .* GiB.*--sample") as caught:
            read(tmp_path / name, domain="site")
        assert caught.value.code == "E137"
    assert read(tmp_path / "x.csv", domain="site", sample=40).X.shape == (40, 1)


@pytest.mark.parametrize(("name", "package", "extra"), [
    ("x.parquet", "pyarrow", "parquet"),
    ("x.feather", "pyarrow", "parquet"),
    ("x.h5ad", "h5py", "anndata"),
])  # fmt: skip
def test_a_missing_package_is_named(
    name: str, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(b"anything")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=f"needs the package {package}") as caught:
        read(tmp_path / name, domain="site")
    assert caught.value.code == "E132"
    assert caught.value.hint == f'pip install "shoal[{extra}]"'


def test_standard_input_is_csv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(InputError, match="standard input.* is empty"):
        read("-", domain="site")
    with pytest.raises(InputError, match="read as CSV, not parquet"):
        read("-", domain="site", format="parquet")


def test_something_else_entirely() -> None:
    with pytest.raises(TypeError, match="data must be a path.*got int"):
        read(7)
