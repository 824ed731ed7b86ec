import dataclasses
import gzip
import inspect
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from scipy.io import mmread, mmwrite

import shoal.io
from shoal.datasets import load_penguins
from shoal.exceptions import InputError
from shoal.io import read
from shoal.io._options import SourceOptions
from shoal.io._settings import READING
from shoal.io.source._arrays import read_matrix_market
from shoal.io.source._open import guess_rows
from shoal.io.table._schema import Schema
from support.data import write_table

PENGUINS = Path(shoal.io.__file__).parents[1] / "datasets" / "data" / "penguins.csv"


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n_rows = 120
    return pd.DataFrame(
        {
            "site": rng.choice(["north", "south", "west"], n_rows),
            "size": rng.normal(size=n_rows),
            "count": rng.integers(0, 9, n_rows),
            "sick": rng.random(n_rows) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], n_rows),
        }
    )


def by_hand(frame: pd.DataFrame) -> Any:
    """X as the rules of the documentation give it."""
    columns = [frame["size"], frame["count"], frame["sick"]]
    columns += [frame["colour"] == level for level in ("blue", "green", "red")]
    return np.column_stack([column.to_numpy(float) for column in columns])


# ---- one table, many forms -----------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "tsv.gz", "parquet",
                                    "feather", "arrow"])  # fmt: skip
def test_every_format_gives_the_same_table(
    ending: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    path = write_table(frame, tmp_path / f"data.{ending}")
    table = read(path, domain="site")
    np.testing.assert_allclose(table.X, by_hand(frame), rtol=0)
    assert table.X.dtype == np.float64
    assert_array_equal(table.domains, frame["site"].to_numpy(object))
    assert table.feature_names == [
        "size", "count", "sick", "colour=blue", "colour=green", "colour=red",
    ]  # fmt: skip
    assert table.kind == "table"
    assert table.source["rows"] == len(frame)
    assert table.source["bytes"] == path.stat().st_size
    assert len(table.source["fingerprint"]) == 64
    assert list(table.frame.columns) == ["size", "count", "sick", "colour"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "lazy", "pyarrow"])
def test_tables_in_memory(kind: str, frame: pd.DataFrame) -> None:
    columns = frame.to_dict("list")
    data = {
        "pandas": frame,
        "polars": pl.DataFrame(columns),
        "lazy": pl.DataFrame(columns).lazy(),
        "pyarrow": pa.table(columns),
    }[kind]
    table = read(data, domain="site")
    assert_array_equal(table.X, by_hand(frame))
    assert_array_equal(table.domains, frame["site"].to_numpy(object))


def test_polars_needs_no_pyarrow(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, expected = pl.DataFrame(frame.to_dict("list")), by_hand(frame)
    for name in [name for name in sys.modules if name.startswith("pyarrow")]:
        monkeypatch.setitem(sys.modules, name, None)
    assert_array_equal(read(data, domain="site").X, expected)


def test_standard_input(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    content = frame.to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    table = read("-", domain="site")
    np.testing.assert_allclose(table.X, by_hand(frame), rtol=0)
    assert table.source["path"] == "-"


def test_several_files_are_one_domain_each(frame: pd.DataFrame, tmp_path: Path) -> None:
    paths = []
    for name, part in frame.groupby("site"):
        shuffled = part.drop(columns="site")[["colour", "size", "count", "sick"]]
        columns = shuffled if name == "west" else part.drop(columns="site")
        paths.append(write_table(columns, tmp_path / f"{name}.csv"))
    table = read(paths)
    together = pd.concat([part for _, part in frame.groupby("site")])
    np.testing.assert_allclose(table.X, by_hand(together), rtol=0)
    assert_array_equal(table.domains, together["site"].to_numpy(object))
    assert table.schema.domain.column is None
    assert table.source["paths"] == [str(path) for path in paths]


def test_several_files_with_a_domain_column_are_parts(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    halves = [
        write_table(frame[:50], tmp_path / "a.csv"),
        write_table(frame[50:], tmp_path / "b.csv"),
    ]
    table = read(halves, domain="site")
    np.testing.assert_allclose(table.X, by_hand(frame), rtol=0)
    assert_array_equal(table.domains, frame["site"].to_numpy(object))


def test_files_of_the_same_name_keep_their_folder(
    frame: pd.DataFrame, tmp_path: Path
) -> None:
    paths = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        paths.append(
            write_table(frame.drop(columns="site"), tmp_path / name / "data.csv")
        )
    assert set(read(paths).domains) == {str(tmp_path / n / "data") for n in "ab"}


def test_penguins_as_the_data_set_has_them() -> None:
    table = read(PENGUINS, domain="island", label="species", impute="drop",
                 drop=["sex", "year"])  # fmt: skip
    known = load_penguins()
    assert_array_equal(table.X, known.X)
    assert_array_equal(table.domains, known.domains)
    assert_array_equal(table.labels, known.labels)


# ---- arrays --------------------------------------------------------------------------


@pytest.fixture
def matrix() -> Any:
    return np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)


SITES = np.array(["a", "b", "c"])[np.arange(60) % 3]


def test_npy_with_a_domain_file(matrix: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", matrix)
    np.save(tmp_path / "d.npy", SITES)
    (tmp_path / "d.txt").write_text("\n".join(SITES))
    (tmp_path / "d.csv").write_text("site\n" + "\n".join(SITES) + "\n")
    for side in ("d.npy", "d.txt", "d.csv"):
        table = read(tmp_path / "x.npy", domain_file=tmp_path / side)
        assert_array_equal(table.X, matrix)
        assert table.X.dtype == np.float32
        assert_array_equal(table.domains, SITES)
        assert table.kind == "embedding"
        assert table.feature_names == ["x0", "x1", "x2", "x3"]


def test_npz_names_its_columns(matrix: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", X=matrix, site=SITES, name=np.arange(60))
    table = read(tmp_path / "x.npz", domain="site", id="name")
    assert_array_equal(table.X, matrix)
    assert_array_equal(table.domains, SITES)
    assert_array_equal(table.ids, np.arange(60))


@pytest.mark.parametrize("ending", ["npz", "mtx", "mtx.gz"])
def test_sparse_counts(ending: str, tmp_path: Path) -> None:
    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.4, (60, 9)))
    path = tmp_path / f"x.{ending}"
    if ending == "npz":
        sparse.save_npz(path, counts)
    else:
        mmwrite(tmp_path / "plain.mtx", counts)
        content = (tmp_path / "plain.mtx").read_bytes()
        path.write_bytes(gzip.compress(content) if ending == "mtx.gz" else content)
    (tmp_path / "d.txt").write_text("\n".join(SITES))
    table = read(path, domain_file=tmp_path / "d.txt")
    assert table.kind == "counts"
    assert sparse.issparse(table.X)
    assert table.X.format == "csr"
    assert_array_equal(table.X.toarray(), counts.toarray())


def test_arrays_in_memory(matrix: Any) -> None:
    table = read(matrix, domain=SITES)
    assert_array_equal(table.X, matrix)
    assert_array_equal(table.domains, SITES)
    table = read(sparse.csc_array(np.abs(matrix).round()), domain=list(SITES))
    assert table.kind == "counts"
    assert (
        table.source["fingerprint"] != read(matrix, domain=SITES).source["fingerprint"]
    )


def test_counts_of_words_in_a_table(tmp_path: Path) -> None:
    sales = pd.DataFrame({"shop": ["n", "s", "w"], "apple": [81, 18, 45],
                          "lime": [6, 48, 30], "fig": [13, 34, 25]})  # fmt: skip
    table = read(write_table(sales, tmp_path / "sales.csv"), domain="shop", counts=True)
    assert table.kind == "counts"
    assert_array_equal(table.X, sales[["apple", "lime", "fig"]])
    model = shoal.DiscreteMixture(2, input="counts", random_state=0)
    model.fit(table.X, table.domains)
    np.testing.assert_allclose(model.prevalence_[0], [0.9, 0.1], atol=1e-6)


# ---- how columns are understood ------------------------------------------------------


def roles(table: Any) -> dict[str, str]:
    return {column.name: column.role for column in table.columns}


def test_what_is_set_aside_and_why(frame: pd.DataFrame) -> None:
    n_rows = len(frame)
    frame = frame.assign(
        same=1.0,
        nothing=None,
        row_id=np.arange(1000, 1000 + n_rows)[::-1],
        code=[f"S{index:04d}" for index in range(n_rows)],
        when=pd.date_range("2024-01-01", periods=n_rows),
        day=[f"2024-01-{1 + index % 28:02d}" for index in range(n_rows)],
        city=[f"town {index % 55}" for index in range(n_rows)],
    )
    frame.insert(0, "Unnamed: 0", np.arange(n_rows))
    table = read(frame, domain="site")
    aside = {name for name, role in roles(table).items() if role == "set aside"}
    assert aside == {
        "Unnamed: 0", "same", "nothing", "row_id", "code", "when", "day", "city",
    }  # fmt: skip
    assert [message.code for message in table.messages] == [
        "W117", "W117", "W117", "W117", "W117",
    ]  # fmt: skip
    texts = [message.text for message in table.messages]
    assert '"row_id" is different in every row; not used' in texts
    assert '"city" has 55 different values, more than 50; not used' in texts


def test_asking_for_a_column_overrides_the_rules(frame: pd.DataFrame) -> None:
    n_rows = len(frame)
    frame = frame.assign(
        row_id=np.arange(n_rows)[::-1],
        species=frame["colour"],
        city=[f"town {index % 55}" for index in range(n_rows)],
        when=pd.date_range("2024-01-01", periods=n_rows),
    )
    asked = ["row_id", "species", "city", "when"]
    table = read(frame, domain="site", features=asked)
    assert table.X.shape == (n_rows, 1 + 3 + 55 + 1)
    assert np.diff(table.X[:, -1]) == pytest.approx(24 * 3600)
    assert table.messages == []


@pytest.mark.parametrize(
    ("name", "values", "alarm"),
    [
        ("species", ["a", "b", "c"], True),
        ("Class", ["a", "b", "c"], True),
        ("true_label", [0, 1, 2], True),
        ("tumour_class", ["x", "y"], True),
        ("y", [0, 1], True),
        ("cell_type", ["T", "B"], True),
        ("Diagnosis", ["M", "B"], True),
        ("classification_time", [1, 2, 3], False),
        ("yield", [1, 2, 3], False),
        ("y", np.linspace(0, 1, 120), False),
        ("target_depth", [10, 20, 30], False),
        ("outcome", np.arange(120) * 2.0, False),
        ("class_size", [10, 20, 30], False),
        ("symptom", ["a", "b"], False),
    ],
)
def test_what_looks_like_a_label(
    name: str, values: Any, alarm: bool, frame: pd.DataFrame
) -> None:
    frame = frame.assign(**{name: np.resize(values, len(frame))})
    if alarm:
        with pytest.raises(shoal.exceptions.InputError, match="looks like a label"):
            read(frame, domain="site")
    for option in ("label", "drop", "features"):
        given: Any = name if option == "label" else [name]
        read(frame, domain="site", **{option: given})


def test_y_beside_x_is_a_place(frame: pd.DataFrame) -> None:
    frame = frame.assign(y=np.resize(["a", "b"], 120), x=np.resize([1, 2, 3], 120))
    assert "y=a" in read(frame, domain="site").feature_names


def test_numbers_in_text_are_numbers(frame: pd.DataFrame) -> None:
    frame = frame.assign(size=frame["size"].map("{:.3f}".format).astype(object))
    table = read(frame, domain="site")
    np.testing.assert_allclose(table.X[:, 0], by_hand(frame)[:, 0])


def test_extension_types_and_categories(frame: pd.DataFrame) -> None:
    other = frame.assign(
        count=frame["count"].astype("Int64"),
        sick=frame["sick"].astype("boolean"),
        colour=frame["colour"].astype("category"),
        site=frame["site"].astype("category"),
    )
    assert_array_equal(read(other, domain="site").X, by_hand(frame))


# ---- missing values ------------------------------------------------------------------


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.copy()
    frame.loc[[3, 7], "size"] = np.nan
    frame.loc[[7, 9], "colour"] = None
    return frame


@pytest.mark.parametrize("impute", ["median", "mean"])
def test_missing_values_are_filled_as_told(
    impute: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    gaps = with_gaps(frame)
    middle = getattr(gaps["size"], impute)()
    filled = gaps.fillna({"size": middle, "colour": gaps["colour"].mode()[0]})
    for data in (gaps, write_table(gaps, tmp_path / "gaps.csv")):
        table = read(data, domain="site", impute=impute)
        np.testing.assert_allclose(table.X, by_hand(filled), rtol=1e-12)
    # New rows are filled with what was learned here, not with their own middle.
    again = Schema.from_dict(table.schema.to_dict()).encode(gaps[:5])
    np.testing.assert_allclose(again, by_hand(filled)[:5], rtol=1e-12)


def test_rows_with_missing_values_can_go(frame: pd.DataFrame) -> None:
    table = read(with_gaps(frame), domain="site", impute="drop")
    kept = frame.drop(index=[3, 7, 9])
    assert_array_equal(table.X, by_hand(kept))
    assert_array_equal(table.domains, kept["site"].to_numpy(object))
    assert [message.code for message in table.messages] == ["W144"]
    assert "3 rows" in table.messages[0].text


def test_words_that_mean_missing(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame = frame.assign(size=frame["size"].round(3).astype(object))
    frame.loc[4, "size"] = "n/a"
    frame.loc[5, "size"] = "NA"
    frame.loc[6, "size"] = -999
    path = write_table(frame, tmp_path / "x.csv")
    frame.loc[4:6, "size"] = np.nan
    table = read(path, domain="site", na=["n/a", "-999"], impute="median")
    filled = frame["size"].astype(float)
    np.testing.assert_allclose(table.X[:, 0], filled.fillna(filled.median()))


def test_numbers_that_mean_missing_in_typed_tables(frame: pd.DataFrame) -> None:
    frame = frame.assign(count=frame["count"].where(frame.index != 8, -999))
    table = read(frame, domain="site", na=["-999"], impute="median")
    assert table.X[8, 1] == frame["count"].drop(index=8).median()


# ---- domains -------------------------------------------------------------------------


def test_domains_keep_their_kind(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame = frame.drop(columns="site")
    for values, kind in [
        ([2007, 2008], "int"),
        (["01", "02"], "text"),
        ([True, False], "bool"),
        (["a", "7"], "text"),
    ]:
        data = frame.assign(place=np.resize(np.array(values), len(frame)))
        for source in (data, write_table(data, tmp_path / "x.csv")):
            table = read(source, domain="place")
            if kind != "bool":  # a text file does not tell True from "True"
                assert table.schema.domain.kind == kind
                assert table.domains[:2].tolist() == values


def test_domain_bins(frame: pd.DataFrame) -> None:
    table = read(frame, domain="size", domain_bins=4, drop=["site"])
    names, counts = np.unique(table.domains.astype(str), return_counts=True)
    assert counts.tolist() == [30, 30, 30, 30]
    low = frame["size"][table.domains == table.domains[frame["size"].argmin()]]
    assert low.max() < np.quantile(frame["size"], 0.26)
    assert [name.startswith("1: below ") for name in names] == [True, *[False] * 3]


def test_thin_domains(frame: pd.DataFrame) -> None:
    frame = frame.assign(site=["main"] * 60 + ["second"] * 44 + ["x"] * 9 + ["z"] * 7)
    table = read(frame, domain="site")
    assert [message.code for message in table.messages] == ["W111"]
    assert table.messages[0].text.startswith("z has 7 rows (and 1 more")
    merged = read(frame, domain="site", merge_small="other")
    assert set(merged.domains) == {"main", "second", "other"}
    assert merged.messages[0].code == "W111"
    rule = Schema.from_dict(merged.schema.to_dict()).domain
    assert set(rule.apply(frame["site"], ())[0]) == {"main", "second", "other"}


def test_rows_without_domain_can_go(frame: pd.DataFrame) -> None:
    frame = frame.assign(site=frame["site"].where(frame.index > 4))
    table = read(frame, domain="site", drop_missing_domain=True)
    assert_array_equal(table.X, by_hand(frame[5:]))
    assert table.messages[0].code == "W144"


def test_no_domain_is_fine_if_told(frame: pd.DataFrame) -> None:
    table = read(frame, require_domain=False)
    assert table.domains is None
    assert table.schema.domain is None


# ---- rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy"])
def test_a_sample_is_the_same_for_a_seed(
    ending: str, frame: pd.DataFrame, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"domain": "site"}
    if ending == "npy":
        np.save(tmp_path / "x.npy", by_hand(frame))
        (tmp_path / "d.txt").write_text("\n".join(frame["site"]))
        given = {"domain_file": tmp_path / "d.txt"}
        path = tmp_path / "x.npy"
    else:
        path = write_table(frame, tmp_path / f"x.{ending}")
    tables = [read(path, sample=50, seed=seed, **given) for seed in (0, 0, 1)]
    assert tables[0].X.shape[0] == 50
    assert_array_equal(tables[0].X, tables[1].X)
    assert not np.array_equal(tables[0].X, tables[2].X)
    # In the order of the file, without repetition.
    places = [np.flatnonzero(np.isclose(by_hand(frame)[:, 0], x))[0]
              for x in tables[0].X[:, 0]]  # fmt: skip
    assert places == sorted(set(places))


def test_the_arguments_are_the_options() -> None:
    options = {one.name: one.default for one in dataclasses.fields(SourceOptions)}
    arguments = dict(inspect.signature(read).parameters)
    assert next(iter(arguments)) == "data"
    given = {name: one.default for name, one in list(arguments.items())[1:]}
    assert given == options


def test_a_sample_of_many_batches_is_even(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = dataclasses.replace(READING, batch_rows=100)
    for home in ("_format", "_others"):
        monkeypatch.setattr(f"shoal.io.source.{home}.READING", small)
    n_rows = 20_000
    data = pd.DataFrame(
        {"place": np.arange(n_rows) % 2, "row": np.arange(n_rows) + 0.5}
    )
    table = read(
        write_table(data, tmp_path / "x.parquet"), domain="place", sample=2_000
    )
    spread = np.histogram(table.X[:, 0], bins=10, range=(0, n_rows))[0]
    assert table.X.shape[0] == 2_000
    assert (abs(spread - 200) < 60).all()  # 4.5 standard deviations


def test_rows_in_messages_are_those_of_the_source(frame: pd.DataFrame) -> None:
    frame = frame.assign(site=frame["site"].where(frame.index != 2))
    frame.loc[10, "size"] = np.nan
    with pytest.raises(shoal.exceptions.InputError, match="first: row 11, size"):
        read(frame, domain="site", drop_missing_domain=True, impute="stop")


def test_an_index_names_the_rows(frame: pd.DataFrame) -> None:
    frame.index = pd.Index([f"bird {index}" for index in range(len(frame))])
    table = read(frame, domain="site")
    assert table.ids[:2].tolist() == ["bird 0", "bird 1"]


def test_fingerprints_tell_tables_apart(frame: pd.DataFrame, tmp_path: Path) -> None:
    prints = {
        read(data, domain="site").source["fingerprint"]
        for data in (frame, frame.copy(), frame.iloc[::-1], frame.assign(size=0.5))
        if data["size"].nunique() > 1
    }
    assert len(prints) == 2


def test_the_light_door(tmp_path: Path) -> None:
    """Importing shoal.io costs neither pandas nor scikit-learn."""
    import subprocess

    code = ("import sys, shoal.io; print([name for name in ('pandas', 'sklearn', "
            "'pyarrow', 'numpy') if name in sys.modules])")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("seed", range(8))
def test_matrix_market_as_scipy_reads_it(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.5, (6, 6))
    counts = counts + counts.T if seed % 2 else counts
    kinds: list[Any] = [
        sparse.coo_array(counts),
        sparse.coo_array(counts.astype(float) / 3),
        counts.astype(float),
        sparse.coo_array((6, 6)),
    ]
    for number, matrix in enumerate(kinds):
        path = tmp_path / f"{number}.mtx"
        symmetry = "general" if isinstance(matrix, np.ndarray) else None
        mmwrite(path, matrix, symmetry=symmetry)
        expected, found = mmread(path), read_matrix_market(path)
        dense = [getattr(one, "toarray", lambda one=one: one)() for one in
                 (expected, found)]  # fmt: skip
        assert_array_equal(dense[1], dense[0])
        assert sparse.issparse(found) == sparse.issparse(expected)


def test_filling_gaps_leaves_the_table_alone(frame: pd.DataFrame) -> None:
    gaps = with_gaps(frame)[["site", "size"]]
    before = gaps.copy()
    read(gaps, domain="site", impute="median")
    pd.testing.assert_frame_equal(gaps, before)


@pytest.mark.parametrize("numbers", [False, True])
def test_a_group_puts_domains_together_and_is_no_feature(numbers):
    site = np.resize([1, 2, 3] if numbers else ["a", "b", "c"], 90)
    ill = np.where(site == site[1], "yes", "no")
    size = np.random.default_rng(0).normal(size=90)
    frame = pd.DataFrame({"site": site, "ill": ill, "size": size})
    table = shoal.io.read(frame, domain="site", group="ill")
    known = dict(zip(site.tolist(), ill.tolist(), strict=True))
    assert table.groups == known
    assert table.feature_names == ["size"]
    assert {one.name: one.role for one in table.columns}["ill"] == "group"
    assert shoal.io.read(frame, domain="site").groups is None


def survey(**columns):
    size = np.random.default_rng(0).normal(10, 2, size=90)
    return pd.DataFrame(
        {"site": np.resize(["a", "b", "c"], 90), "size": size, **columns}
    )


def messages_of(frame, **options):
    return {one.code: one for one in read(frame, domain="site", **options).messages}


def test_a_number_that_may_mean_missing_is_spoken_of():
    frame = survey(mass=np.random.default_rng(1).normal(50, 5, size=90))
    assert "W148" not in messages_of(frame)
    frame.loc[[3, 40], "mass"] = -999
    said = messages_of(frame)["W148"]
    assert '"mass" is -999 in 2 rows' in said.text
    assert said.hint == "--na -999 if that means missing"
    frame.loc[[3, 40], "mass"] = np.nan
    assert "W148" not in messages_of(frame, impute="median")
    # numbers that go that far by themselves are measurements
    assert "W148" not in messages_of(survey(day=np.linspace(-1500, 2000, 90)))


def test_row_numbers_with_gaps_are_ids():
    numbers = np.flatnonzero(np.random.default_rng(0).random(200) < 0.7)[:90]
    table = read(survey(ring=numbers), domain="site")
    assert table.feature_names == ["size"]
    assert table.messages[0].code == "W117"
    assert table.messages[0].hint == (
        "--id ring makes this quiet, or --features to insist"
    )
    asked = read(survey(ring=numbers), domain="site", features=["ring"])
    assert asked.feature_names == ["ring"]
    shuffled = np.random.default_rng(0).permutation(numbers)
    assert "ring" in read(survey(ring=shuffled), domain="site").feature_names


@pytest.mark.parametrize("order", ["up", "down", "shuffled"])
def test_the_order_of_rows_does_not_decide_what_numbers_them(order: str) -> None:
    numbers = {
        "up": np.arange(1, 91),
        "down": np.arange(90, 0, -1),
        "shuffled": np.random.default_rng(0).permutation(np.arange(1, 91)),
    }[order]
    table = read(survey(specimen=numbers), domain="site")
    assert table.feature_names == ["size"]
    assert [one.code for one in table.messages] == ["W117"]
    # one number twice, or one left out: no longer the numbers of the rows
    twice = np.where(numbers == 7, 8, numbers)
    apart = np.where(numbers == 90, 400, numbers)
    for others in (twice, apart, 5 - np.roll(numbers, 9)):  # rows count from 0 or up
        table = read(survey(specimen=others), domain="site")
        assert table.feature_names == ["size", "specimen"]


def test_a_measurement_that_the_table_is_sorted_by_is_a_feature():
    rng = np.random.default_rng(0)
    income = np.sort(rng.choice(np.arange(9_000, 90_000), 90, replace=False))
    table = read(survey(income=income), domain="site")
    assert table.feature_names == ["size", "income"]
    assert not table.messages


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y"])
def test_few_dates_are_dates_not_categories(form):
    days = pd.date_range("2020-05-01", periods=10).strftime(form)
    table = read(survey(day=np.resize(days, 90)), domain="site")
    assert table.feature_names == ["size"]
    assert table.messages[0].code == "W117"


def test_names_with_spaces_and_commas_come_back_in_quotes():
    text = [f"seen near the water at dawn {row}" for row in range(90)]
    with pytest.raises(InputError) as caught:
        read(survey(**{"my notes": text}), domain="site")
    assert caught.value.hint == "--text 'my notes' or --drop 'my notes'"
    with pytest.raises(InputError) as caught:
        read(survey(**{"a, b": text}), domain="site")
    assert caught.value.hint == "--text 'a, b' or --drop '\"a, b\"'"


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "feather", "npy"])
def test_rows_are_guessed_without_reading_them(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    data = pd.DataFrame({"x": np.arange(1_000, 9_000), "y": np.arange(1_000, 9_000)})
    if ending == "npy":
        np.save(path, data.to_numpy())
    else:
        write_table(data, path)
    guess = guess_rows([path, path])
    assert guess is not None
    assert abs(guess / 16_000 - 1) < 0.01
    assert guess_rows([path, tmp_path / "absent.csv"]) is None
    assert guess_rows([path, tmp_path]) is None
