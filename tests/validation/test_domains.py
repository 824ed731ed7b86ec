"""Domains of every kind, at fit and at predict, and what is refused."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from shoal import validation
from shoal.exceptions import DomainMissingError
from shoal.validation._domains import encode_column, encode_domains

GOOD = [[1.0, 2.0], [3.0, 4.0]]
NAMES = np.array(["a", "b", "c"])


class Toy(BaseEstimator):
    """Something for error messages and ``n_features_in_`` to hang on to."""


def check(X, domains=("a", "b"), **options):
    return validation.check_X_domains(Toy(), X, domains, **options)


# ---- at fit -----------------------------------------------------------------------

COLUMNS = [
    (["b", "a", "b"], ["a", "b"]),
    (("b", "a", "b"), ["a", "b"]),
    (np.array(["b", "a", "b"]), ["a", "b"]),
    (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
    (pd.Series(["b", "a", "b"], index=[9, 7, 5]), ["a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="string"), ["a", "b"]),
    (pd.Categorical(["b", "a", "b"]), ["a", "b"]),
    (pd.Series([2**53 + 1, 2**53, 2**53 + 1], dtype="Int64"), [2**53, 2**53 + 1]),
    (pd.Series([True, False, True], dtype="boolean"), [False, True]),
    (pd.Index(["b", "a", "b"]), ["a", "b"]),
    (pl.Series(["b", "a", "b"]), ["a", "b"]),
    (pl.Series(["b", "a", "b"], dtype=pl.Categorical), ["a", "b"]),
    (np.array([7, -1, 7], dtype=np.int8), [-1, 7]),
    ([2**63, -1, 2**63], [-1, 2**63]),
    ([2**200, 2**200 - 1, 2**200], [2**200 - 1, 2**200]),
    (pd.Series([7, 1, 7], dtype="Int64"), [1, 7]),
    ([0.5, 0.25, 0.5], [0.25, 0.5]),
    ([True, False, True], [False, True]),
    ([("b", 1), ("a", 2), ("b", 1)], [("a", 2), ("b", 1)]),
    (["1", 1, "1"], [1, "1"]),
]


@pytest.mark.parametrize(("domains", "names"), COLUMNS)
def test_domains_of_every_kind(domains, names):
    codes, got = validation.check_domains(domains, n_samples=3)
    assert_array_equal(codes, [1, 0, 1])
    assert got.tolist() == names
    again = encode_domains(domains, got, n_samples=3)
    assert_array_equal(again, codes)
    for code, name in enumerate(names):
        if isinstance(name, tuple):
            continue  # a tuple alone would be a column of domains
        assert_array_equal(encode_domains(name, got, n_samples=3), [code] * 3)


def test_names_keep_a_plain_dtype():
    for domains, kind in [
        (pd.Series([1, 2], dtype="Int64"), "i"),
        (pd.Series([1, 2], dtype="int64[pyarrow]"), "i"),
        (pd.Series([True, False], dtype="boolean"), "b"),
        (["a", "b"], "U"),
        ([1, 2], "i"),
        ([0.5, 1.5], "f"),
        ([True, False], "b"),
        ([1, "a"], "O"),
        ([2**99, 1], "O"),
    ]:
        _, names = validation.check_domains(domains, n_samples=2)
        assert names.dtype.kind == kind


def test_dates_match_whatever_they_came_in():
    days = pd.to_datetime(["2021-03-04", "2020-01-02"])
    for column in (days, days.as_unit("ns"), list(days), days.to_numpy()):
        codes, names = validation.check_domains(column, n_samples=2)
        assert_array_equal(codes, [1, 0])
        for scalar in (days[0], days[0].to_pydatetime(), days.to_numpy()[0]):
            assert_array_equal(encode_domains(scalar, names, n_samples=1), 1)
        assert_array_equal(encode_domains(list(days), names, n_samples=2), codes)


@given(
    st.lists(
        st.one_of(
            st.text(max_size=3),
            st.integers(),
            st.floats(allow_nan=False),
            st.tuples(st.integers(0, 1), st.text(max_size=1)),
        ),
        min_size=2,
        max_size=12,
    ).filter(lambda values: len(set(values)) > 1)
)
def test_codes_give_the_domains_back(values):
    codes, names = validation.check_domains(values, n_samples=len(values))
    assert [names.tolist()[code] for code in codes] == values
    assert len(names) == len(set(values))
    assert_array_equal(np.unique(codes), np.arange(len(names)))
    shuffled_codes, same_names = validation.check_domains(
        values[::-1], n_samples=len(values)
    )
    assert same_names.tolist() == names.tolist()
    assert_array_equal(shuffled_codes, codes[::-1])


def test_domains_must_be_there():
    with pytest.raises(DomainMissingError, match=r"Toy estimator requires y to be pas"):
        check(GOOD, None)
    assert issubclass(DomainMissingError, ValueError)


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        (["a", "b", "c"], "X has 2 rows, domains has 3; pass both from the same table"),
        ([], "X has 2 rows, domains has 0"),
        (["a", "a"], r"only one class of value \('a'\): all rows come from one domain"),
        ("ab", "must have one entry per row, got the single value 'ab'"),
        (3, "must have one entry per row, got the single value 3"),
        (["a", None], r"domains has 1 missing values \(NaN or None, first in row 1\)"),
        ([np.nan, 1.0], "domains has 1 missing values .* first in row 0"),
        (pd.Series(["a", None], dtype="string"), "1 missing values"),
        (pd.Series([1, None], dtype="Int64"), "1 missing values"),
        (pd.to_datetime(["2020-01-01", None]), "1 missing values"),
        (pl.Series(["a", None]), "1 missing values"),
        ([["a", "b"], ["c", "d"]], "domains must be one-dimensional.*2 rows"),
        (np.ones((2, 2)), "domains must be one-dimensional"),
        ([["a"], ["c", "d"]], "domains must be one-dimensional"),
        (np.array([1j, 2]), "Complex data not supported: domains must not be complex"),
        ([1j, 2], "Complex data not supported: domains must not be complex"),
    ],
)
def test_bad_domains(domains, message):
    with pytest.raises(ValueError, match=message):
        check(GOOD, domains)


def test_values_that_do_not_hash():
    with pytest.raises(
        TypeError, match="domains must be strings, numbers or other has"
    ):
        check(GOOD, [{"a": 1}, {"b": 2}])


def test_a_column_vector_is_taken_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector"):
        _, codes, _ = check(GOOD, np.array([["a"], ["b"]]))
    assert_array_equal(codes, [0, 1])


# ---- at predict -------------------------------------------------------------------


def test_no_domain_stays_none():
    assert encode_domains(None, NAMES, n_samples=4) is None


@pytest.mark.parametrize("scalar", ["b", np.str_("b"), np.array("b")])
def test_one_domain_for_all_rows(scalar):
    assert_array_equal(encode_domains(scalar, NAMES, n_samples=4), [1, 1, 1, 1])


@pytest.mark.parametrize("scalar", [2, 2.0, np.int8(2), np.array(2)])
def test_numbers_match_by_value(scalar):
    names = np.array([1, 2])
    assert_array_equal(encode_domains(scalar, names, n_samples=2), [1, 1])


@pytest.mark.parametrize("dtype", [int, np.int8, float, object])
def test_columns_of_numbers_match_by_value(dtype):
    column = np.array([2, 1], dtype=dtype)
    got = encode_domains(column, np.array([1, 2]), n_samples=2)
    assert_array_equal(got, [1, 0])


@pytest.mark.parametrize(
    ("domains", "message"),
    [
        (["a", "z", "b"], r"not seen: 'z'; known: 'a', 'b', 'c'\. Use adapt\(X\)"),
        (["y", "z", "b"], "not seen: 'y' and 1 more; known"),
        ("z", "domains has values that fit has not seen: 'z'"),
        (["a", "b"], "X has 3 rows, domains has 2; pass one domain per row, one scal"),
        (["a", "b", None], "not seen: None"),
    ],
)
def test_bad_domains_at_predict(domains, message):
    with pytest.raises(ValueError, match=message):
        encode_domains(domains, NAMES, n_samples=3)


def test_long_lists_of_known_domains_are_abbreviated():
    with pytest.raises(
        ValueError, match=r"known: 0, 1, 2, 3, 4, 5, \.\.\.\. Use adapt"
    ):
        encode_domains(99, np.arange(50), n_samples=1)


@pytest.mark.parametrize(
    "values",
    [
        np.array([-128, 127, 0] * 100, dtype=np.int8),
        np.array([2**64 - 1, 2**64 - 3] * 3, dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 5], dtype=np.int64),
        np.array([200, 3, 255, 3], dtype=np.uint8),
        np.array(["b", "", "aa", "b"]),
    ],
    ids=["int8", "uint64", "int64", "uint8", "text"],
)
def test_columns_of_one_kind_are_coded_as_unique_does(values):
    codes, names = encode_column(values, name="domains")
    expected, inverse = np.unique(values, return_inverse=True)
    assert names.dtype == values.dtype
    assert names.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()
