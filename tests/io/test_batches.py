import io
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from tests.io.conftest import rows

import shoal
from shoal.exceptions import CodedError, InputError, ModelFileError
from shoal.io import Schema, assign, batches, read, write_assignments
from support.data import write_table

write = partial(write_table, chunk_rows=150)
ENDINGS = ["csv", "csv.gz", "tsv", "parquet", "feather"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    place = rng.choice(["north", "south", "west"], 500, p=[0.3, 0.3, 0.4])
    share = pd.Series(place).map({"north": 0.9, "south": 0.5, "west": 0.1}).to_numpy()
    kind = rng.random(500) < share
    return pd.DataFrame(
        {
            "name": [f"bird {index}" for index in range(500)],
            "colour": np.where(rng.random(500) < 0.8, kind, ~kind),
            "place": place,
            "size": rng.normal(size=500) + 3 * kind,
            "weight": rng.normal(size=500) - 3 * kind,
        }
    ).assign(colour=lambda frame: frame["colour"].map({True: "red", False: "blue"}))


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> Any:
    return read(frame, domain="place", id="name")


@pytest.fixture(scope="module")
def model(table: Any) -> Any:
    mixture = shoal.DomainMixture(2, search=False, random_state=0)
    return mixture.fit(table.X, table.domains)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("batch_rows", [64, 10_000])
def test_batches_are_the_table_in_pieces(
    ending: str, batch_rows: int, frame: pd.DataFrame, table: Any, tmp_path: Path
) -> None:
    shuffled = frame[["weight", "size", "place", "colour", "name"]].assign(more="x")
    path = write(shuffled, tmp_path / f"x.{ending}")
    pieces = list(batches(path, table.schema.to_dict(), batch_rows=batch_rows))
    assert max(piece.X.shape[0] for piece in pieces) <= batch_rows
    X = np.concatenate([piece.X for piece in pieces])
    np.testing.assert_allclose(X, table.X, rtol=1e-12)
    assert_array_equal(
        np.concatenate([piece.domains for piece in pieces]), table.domains
    )
    assert_array_equal(np.concatenate([piece.ids for piece in pieces]), table.ids)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_in_memory(kind: str, frame: pd.DataFrame, table: Any) -> None:
    columns = frame.to_dict("list")
    data = {"pandas": frame, "polars": pl.DataFrame(columns),
            "pyarrow": pl.DataFrame(columns).to_arrow()}[kind]  # fmt: skip
    pieces = list(batches(data, table.schema, batch_rows=200))
    assert [piece.n_rows for piece in pieces] == [200, 200, 100]
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), table.X)


def test_standard_input(
    frame: pd.DataFrame, table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = frame.to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    pieces = list(batches("-", table.schema, batch_rows=200))
    X = np.concatenate([piece.X for piece in pieces])
    np.testing.assert_allclose(X, table.X, rtol=1e-12)


def test_numpy_files_are_mapped(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    domains = np.arange(500) % 3
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "d.npy", domains)
    given = {"domain_file": tmp_path / "d.npy"}
    schema = read(tmp_path / "x.npy", **given).schema
    pieces = list(batches(tmp_path / "x.npy", schema, batch_rows=128, **given))
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), X)
    assert_array_equal(np.concatenate([piece.domains for piece in pieces]), domains)
    assert pieces[1].ids[0] == 129


def test_files_that_were_domains_are_again(frame: pd.DataFrame, tmp_path: Path) -> None:
    paths = [
        write(part.drop(columns=["place", "name"]), tmp_path / f"{name}.csv")
        for name, part in frame.groupby("place")
    ]
    schema = read(paths).schema
    assert {str(piece.domains[0]) for piece in batches(paths, schema)} == {
        "north", "south", "west",
    }  # fmt: skip
    alone = next(iter(batches(paths[0], schema)))
    assert set(alone.domains) == {"north"}


def test_kinds_do_not_change_from_batch_to_batch(tmp_path: Path) -> None:
    """Numbers, categories and domains that look like something else in one batch."""
    n_rows = 90
    frame = pd.DataFrame(
        {
            "site": ["1"] * 40 + ["2"] * 40 + ["10"] * 10,
            "grade": (["1", "2"] * 30 + ["A", "B"] * 15),
            "size": np.arange(n_rows) + np.where(np.arange(n_rows) < 50, 0, 0.5),
        }
    )
    path = write(frame, tmp_path / "x.csv")
    table = read(path, domain="site", features=["size", "grade"], merge_small=None)
    pieces = list(batches(path, table.schema, batch_rows=20))
    assert_array_equal(np.concatenate([piece.X for piece in pieces]), table.X)
    assert_array_equal(
        np.concatenate([piece.domains for piece in pieces]), table.domains
    )
    assert {piece.domains.dtype.kind for piece in pieces} == {"i"}


# ---- what predict refuses ------------------------------------------------------------


def test_columns_that_the_model_needs(
    frame: pd.DataFrame, table: Any, tmp_path: Path
) -> None:
    for ending in ENDINGS:
        path = write(frame.drop(columns=["size", "weight"]), tmp_path / f"x.{ending}")
        with pytest.raises(ModelFileError, match='"size" .and 1 more') as caught:
            next(batches(path, table.schema))
        assert caught.value.code == "E133"
    with pytest.raises(ModelFileError, match='model needs the column "size"'):
        table.schema.encode(frame.drop(columns="size"))


def test_a_domain_file_beside_named_columns(
    frame: pd.DataFrame, table: Any, tmp_path: Path
) -> None:
    path = write(frame, tmp_path / "x.csv")
    with pytest.raises(InputError, match="domain_file says nothing") as caught:
        next(batches(path, table.schema, domain_file=tmp_path / "d.txt"))
    assert caught.value.code == "E002"


def test_text_where_fit_saw_numbers(
    frame: pd.DataFrame, table: Any, tmp_path: Path
) -> None:
    spoiled = frame.astype({"size": object})
    spoiled.loc[321, "size"] = "about 3"
    path = write(spoiled, tmp_path / "x.csv")
    with pytest.raises(InputError, match='row 322 holds "about 3"') as caught:
        list(batches(path, table.schema, batch_rows=100))
    assert caught.value.code == "E119"


def test_missing_values_at_predict(
    frame: pd.DataFrame, table: Any, tmp_path: Path
) -> None:
    gaps = frame.copy()
    gaps.loc[321, "size"] = np.nan
    path = write(gaps, tmp_path / "x.parquet")
    with pytest.raises(InputError, match="first: row 322, size") as caught:
        list(batches(path, table.schema, batch_rows=100))
    assert caught.value.code == "E115"
    schema = read(frame, domain="place", id="name", impute="median").schema
    pieces = list(batches(path, schema, batch_rows=100))
    X = np.concatenate([piece.X for piece in pieces])
    assert X[321, schema.feature_names.index("size")] == frame["size"].median()


def test_values_of_a_category_that_fit_has_not_seen(
    frame: pd.DataFrame, table: Any
) -> None:
    other = frame.assign(colour=frame["colour"].replace("red", "green"))
    messages: list[Any] = []
    X = table.schema.encode(other, messages)
    names = table.schema.feature_names
    green = (other["colour"] == "green").to_numpy()
    assert not X[green][
        :, [names.index("colour=blue"), names.index("colour=red")]
    ].any()
    assert [message.code for message in messages] == ["W143"]
    assert '"colour" has' in messages[0].text
    assert '"green"' in messages[0].text


def test_rows_without_domain_at_predict(frame: pd.DataFrame, table: Any) -> None:
    other = frame.assign(place=frame["place"].where(frame.index != 7))
    with pytest.raises(InputError, match='row 8 of "place".*--pooled') as caught:
        list(batches(other, table.schema))
    assert caught.value.code == "E115"
    without = list(batches(frame.drop(columns="place"), table.schema))
    assert without[0].domains is None


# ---- assignments ---------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_assignments_are_the_predictions(
    ending: str, frame: pd.DataFrame, table: Any, model: Any, tmp_path: Path
) -> None:
    named = model.set_names({"c0": "plain", "c1": "odd, very"})
    source = write(frame, tmp_path / "x.parquet")
    path = tmp_path / f"out.{ending}"
    pieces = assign(named, batches(source, table.schema, batch_rows=130))
    assert write_assignments(path, pieces) == 500
    found = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    proba = model.predict_proba(table.X, table.domains)
    assert list(found.columns) == [
        "row_id", "domain", "class", "p_plain", "p_odd, very", "margin", "fit_score",
    ]  # fmt: skip
    np.testing.assert_allclose(found[["p_plain", "p_odd, very"]], proba, rtol=1e-12)
    names = np.array(named.class_names_)
    assert_array_equal(found["class"], names[model.predict(table.X, table.domains)])
    np.testing.assert_allclose(
        found["margin"], abs(proba[:, 0] - proba[:, 1]), atol=1e-9
    )
    assert_array_equal(found["row_id"], frame["name"])
    assert_array_equal(found["domain"], frame["place"])
    assert found["fit_score"].between(0, 1).all()
    assert 0.3 < found["fit_score"].mean() < 0.7  # uniform for rows like those of fit


def test_pooled_and_with_a_prevalence(table: Any, model: Any, frame: Any) -> None:
    pooled = pd.concat(assign(model, batches(frame, table.schema), pooled=True))
    np.testing.assert_allclose(pooled[["p_c0", "p_c1"]], model.predict_proba(table.X))
    given = pd.concat(
        assign(model, batches(frame, table.schema), prevalence=[0.2, 0.8])
    )
    np.testing.assert_allclose(
        given[["p_c0", "p_c1"]], model.predict_proba(table.X, prevalence=[0.2, 0.8])
    )


def test_merged_classes_are_assigned() -> None:
    X, domains = rows()
    frame = pd.DataFrame(X, columns=list("xyz")).assign(place=domains)
    table = read(frame, domain="place")
    three = shoal.DomainMixture(3, search=False, random_state=0)
    merged = three.fit(table.X, table.domains).merge("c0", "c1", name="both")
    found = pd.concat(assign(merged, batches(frame, table.schema)))
    assert set(found["class"]) <= {"both", "c1"}  # c2 before the merge
    assert found["fit_score"].notna().all()


def test_domains_that_may_be_missing(tmp_path: Path) -> None:
    """Dropped with their rows, or words and None of one type in every batch."""
    frame = pd.DataFrame({"site": [1, 2] * 30, "x": np.arange(60.0), "y": 1.5})
    frame["y"] += frame["x"] % 7
    schema = read(frame, domain="site").schema
    new = frame.assign(site=frame["site"].astype("Int64"))
    new.loc[:10, "site"] = None
    new.to_csv(tmp_path / "new.csv", index=False)

    def pieces(**options: Any) -> list[Any]:
        return list(batches(tmp_path / "new.csv", schema, batch_rows=10, **options))

    kept = pieces(drop_missing_domain=True)
    assert [len(one.X) for one in kept] == [9, 10, 10, 10, 10]
    assert_array_equal(np.concatenate([one.ids for one in kept]), np.arange(12, 61))
    assert_array_equal(
        np.concatenate([one.domains for one in kept]), frame["site"][11:].to_numpy()
    )
    assert [one.code for table in kept for one in table.messages] == ["W144"]

    loose = pieces(require_domain=False)
    frames = [pd.DataFrame({"domain": one.domains}) for one in loose]
    assert write_assignments(tmp_path / "d.parquet", frames) == 60
    found = pd.read_parquet(tmp_path / "d.parquet")["domain"]
    assert found[:11].isna().all()
    assert found[11:].tolist() == [str(one) for one in frame["site"][11:]]


def test_unknown_domains(frame: pd.DataFrame, table: Any, model: Any) -> None:
    other = frame.assign(place=frame["place"].replace("north", "Site9"))
    with pytest.raises(ModelFileError, match='not seen the domain "Site9"') as caught:
        list(assign(model, batches(other, table.schema)))
    assert caught.value.code == "E134"
    assert len(list(assign(model, batches(other, table.schema), pooled=True))) == 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_broken_stream_leaves_the_old_file(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("old")

    def stream() -> Any:
        yield pd.DataFrame({"x": [1.0]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_assignments(path, stream())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_assignments_that_cannot_be_written(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"x": [1.0]})]
    with pytest.raises(InputError, match="end its name with .parquet or .csv"):
        write_assignments(tmp_path / "out.xlsx", frames)
    with pytest.raises(CodedError, match="cannot write") as caught:
        write_assignments(tmp_path / "absent" / "out.csv", frames)
    assert caught.value.code == "E140"
    with pytest.raises(InputError, match="no rows to write"):
        write_assignments(tmp_path / "out.parquet", [])


# ---- the schema itself ---------------------------------------------------------------


def test_a_schema_survives_json(table: Any, frame: pd.DataFrame) -> None:
    import json

    text = json.dumps(table.schema.to_dict(), allow_nan=False)
    again = Schema.from_dict(json.loads(text))
    assert again == table.schema
    assert_array_equal(again.encode(frame), table.X)


@pytest.mark.parametrize("content", [
    None,
    [],
    "text",
    {"kind": "sculpture"},
    {"colour": 1},
    {"features": [1]},
    {"features": [{"name": 1, "levels": []}]},
    {"features": [{"name": "a", "kind": "number", "levels": "abc"}]},
    {"vocabulary": "words"},
    {"vocabulary": [1]},
    {"missing": [None]},
    {"dtype": "object"},
    {"n_columns": "3"},
    {"domain": {"column": 3}},
    {"domain": {"column": "a", "kind": "eval"}},
    {"domain": {"column": "a", "edges": ["x"]}},
    {"id": 7},
])  # fmt: skip
def test_a_damaged_schema(content: Any) -> None:
    with pytest.raises(ModelFileError, match="schema of the model") as caught:
        Schema.from_dict(content)
    assert caught.value.code == "E135"
