"""Missing values that nobody spoke of: few are filled in and counted, many stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from shoal.exceptions import InputError
from shoal.io import batches, read
from shoal.io._settings import READING
from shoal.io.table._domains import domain_candidates
from shoal.io.table._missing import legible
from shoal.io.table._schema import Schema

N_ROWS = 120


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "site": np.repeat(["a", "b", "c"], N_ROWS // 3),
            "size": rng.normal(5, 1, N_ROWS),
            "mass": rng.normal(9, 2, N_ROWS),
            "sex": np.resize(["female", "male", "female"], N_ROWS),
        }
    )


def with_gaps(frame: pd.DataFrame, name: str, rows: Any) -> pd.DataFrame:
    return frame.assign(**{name: frame[name].mask(frame.index.isin(rows))})


def refusal(data: Any, **options: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        read(data, domain="site", **options)
    assert caught.value.code == "E115"
    return caught.value


def test_a_few_gaps_are_filled_in_and_counted(frame: pd.DataFrame) -> None:
    gaps = with_gaps(with_gaps(frame, "size", [3, 50, 119]), "sex", [7])
    before = gaps.copy()
    table = read(gaps, domain="site")
    pd.testing.assert_frame_equal(gaps, before)
    told = read(gaps, domain="site", impute="median")
    assert_array_equal(table.X, told.X)
    assert table.schema == told.schema
    place = table.feature_names.index("size")
    assert_array_equal(table.X[[3, 50, 119], place], gaps["size"].median())
    assert table.X[7, table.feature_names.index("sex=female")] == 1
    (said,) = table.messages
    assert said.code == "W149"
    assert said.text == (
        "4 missing values filled in with the median or commonest of the column "
        "(size 3, sex 1)"
    )
    assert said.hint == "--impute drop leaves such rows out, --impute stop stops here"
    assert not told.messages  # what was asked for is no news


def test_a_table_without_gaps_learns_nothing_to_fill_in(frame: pd.DataFrame) -> None:
    table = read(frame, domain="site")
    assert not table.messages
    assert {one.fill for one in table.schema.features} == {None}
    # a gap in later rows is then nobody's decision
    with pytest.raises(InputError, match="1 missing value"):
        list(batches(with_gaps(frame, "size", [4]), table.schema))


def test_later_rows_are_filled_alike(frame: pd.DataFrame, tmp_path: Path) -> None:
    gaps = with_gaps(frame, "size", [3])
    schema = Schema.from_dict(read(gaps, domain="site").schema.to_dict())
    later = with_gaps(frame, "mass", [5, 6])
    later.to_csv(tmp_path / "later.csv", index=False)
    X = np.concatenate(
        [one.X for one in batches(tmp_path / "later.csv", schema, batch_rows=50)]
    )
    place = schema.feature_names.index("mass")
    assert_array_equal(X[[5, 6], place], frame["mass"].median())


def test_a_column_that_lacks_much_stops(frame: pd.DataFrame) -> None:
    most = int(READING.most_filled * N_ROWS)
    spread = np.random.default_rng(1).permutation(N_ROWS)
    assert read(with_gaps(frame, "size", spread[:most]), domain="site").messages
    error = refusal(with_gaps(frame, "size", spread[: most + 2]))
    assert error.text.startswith(f"{most + 2} missing values in 1 column (most: size")
    assert error.text.endswith("; size lacks 22% of its values")
    assert error.hint == "--impute median, or drop the rows (--impute drop)"


def test_a_column_that_a_domain_lacks_stops(frame: pd.DataFrame) -> None:
    """Its guess would be the same in all rows there, and tell the domain."""
    few = frame.assign(site=np.where(frame.index < 10, "z", frame["site"]))
    error = refusal(with_gaps(few, "mass", range(10)))
    assert error.text.endswith("; mass has no value at all in 1 domain")
    assert read(with_gaps(few, "mass", range(9)), domain="site").messages
    assert read(
        with_gaps(few, "mass", range(10)), domain="site", impute="median"
    ).n_rows
    # a domain of a few rows may lack them by chance
    tiny = frame.assign(site=np.where(frame.index < 4, "z", frame["site"]))
    assert "W149" in [
        one.code
        for one in read(with_gaps(tiny, "mass", range(4)), domain="site").messages
    ]


def test_cells_are_shown_as_the_numbers_that_they_are(frame: pd.DataFrame) -> None:
    """Also beside a gap, and a gap as one."""
    text = frame.assign(
        size=[f"{cell:.2f}".replace(".", ",") for cell in frame["size"]]
    )
    text.loc[3, "size"] = "-"
    table = read(text, domain="site")
    shown = legible(table.frame, table.schema)
    assert_array_equal(shown["size"], frame["size"].round(2).mask(frame.index == 3))
    assert shown["sex"].equals(table.frame["sex"])
    assert table.frame["size"][0] == text["size"][0]
    assert legible(None, table.schema) is None
    assert_array_equal(table.schema.encode(shown), table.X)


def test_nothing_is_filled_in_where_it_must_not_be(frame: pd.DataFrame) -> None:
    gaps = with_gaps(frame, "size", [3])
    assert refusal(gaps, impute="stop").text.startswith("1 missing value in 1 column")
    # infinite values are no gaps
    gaps.loc[5, "mass"] = np.inf
    assert "1 infinite value" in refusal(gaps).text
    # nor is a count that is not there
    counts = pd.DataFrame({"site": ["a", "b"] * 40, "ant": 2.0, "bee": [0.0, 3.0] * 40})
    counts.loc[3, "bee"] = np.nan
    refusal(counts, counts=True)
    # and a matrix has no columns that anybody named
    X = np.random.default_rng(0).normal(size=(80, 2))
    X[7, 1] = np.nan
    with pytest.raises(InputError, match="1 missing or infinite"):
        read(X, domain=["a", "b"] * 40)


def test_candidates_for_the_domain_are_those_of_the_table_as_read() -> None:
    """Decimal commas with a gap are numbers, and blanks make no place of their own."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": [f"{cell:.1f}".replace(".", ",") for cell in rng.normal(9, 2, 200)],
            "place": np.resize(["Moor", "Heath ", "Moor ", "Heath", "Wood"], 200),
        }
    )
    frame.loc[::20, "size"] = "-"
    assert domain_candidates(frame) == [("place", 3)]
    with pytest.raises(InputError, match=r"candidates: place \(3 values\)$"):
        read(frame)
    assert frame["size"][0] == "-"  # the caller's own stays as it was


def test_one_hint_is_enough_where_words_are_many() -> None:
    """A laboratory's "<3" is a quarter of its column: to be named, and filled in."""
    rng = np.random.default_rng(0)
    crp = rng.normal(9, 2, 200).round(1).astype(str)
    crp[::4] = "<3"
    frame = pd.DataFrame({"ward": np.resize(["a", "b"], 200), "CRP": crp})
    with pytest.raises(InputError) as caught:
        read(frame)  # and no candidate for where rows come from
    assert caught.value.hint == "candidates: ward (2 values)"
    with pytest.raises(InputError) as caught:
        read(frame, domain="ward")
    assert caught.value.hint == "--na '<3' --impute median or clean the rows"
    table = read(frame, domain="ward", na=["<3"], impute="median")
    assert np.isfinite(table.X).all()
    with pytest.raises(InputError, match="--na '<3' or clean"):
        read(frame, domain="ward", impute="drop")
