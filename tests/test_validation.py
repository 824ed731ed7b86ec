"""Every error and warning of the door through which X and domains enter."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from shoal import validation
from shoal.exceptions import (
    ConstantColumnWarning,
    DomainMissingError,
    IdentifiabilityWarning,
)


class Toy(BaseEstimator):
    """Something for error messages and ``n_features_in_`` to hang on to."""


def check(X, domains=("a", "b"), **options):
    return validation.check_X_domains(Toy(), X, domains, **options)


# ---- X ----------------------------------------------------------------------------

GOOD = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        list,
        lambda rows: pd.DataFrame(rows, columns=["u", "v"]),
        lambda rows: pl.DataFrame(rows, schema=["u", "v"], orient="row"),
        lambda rows: np.array(rows, dtype=object),
        lambda rows: np.array(rows, dtype=int),
    ],
    ids=["array", "list", "pandas", "polars", "object", "int"],
)
def test_containers_of_numbers_are_all_the_same(make):
    X, codes, names = check(make(GOOD))
    assert_array_equal(X, GOOD)
    assert X.dtype == np.float64
    assert_array_equal(codes, [0, 1])
    assert_array_equal(names, ["a", "b"])


def test_single_precision_and_the_input_are_kept():
    rows = np.array(GOOD, dtype=np.float32)
    before = rows.copy()
    X, _, _ = check(rows)
    assert X.dtype == np.float32
    assert_array_equal(rows, before)


def test_feature_names_and_counts_are_remembered():
    toy = Toy()
    validation.check_X(toy, pd.DataFrame(GOOD, columns=["u", "v"]), reset=True)
    assert_array_equal(toy.feature_names_in_, ["u", "v"])
    with pytest.raises(ValueError, match="feature names should match those"):
        validation.check_X(toy, pd.DataFrame(GOOD, columns=["v", "u"]))
    validation.check_X(toy, GOOD, reset=True)
    with pytest.raises(ValueError, match="X has 1 features, but Toy is expecting 2"):
        validation.check_X(toy, [[1.0]])


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csr_array])
def test_sparse_only_where_accepted(make):
    X, _, _ = check(make(GOOD), accept_sparse=True)
    assert_array_equal(X.toarray(), GOOD)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        check(make(GOOD))
    bad = make([[1.0, np.nan], [0.0, np.inf]])
    with pytest.raises(ValueError, match="X has 2 NaN or infinite values; impute or"):
        check(bad, accept_sparse=True)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_first_bad_number_is_located(value):
    rows = np.array([[1.0, 2.0], [3.0, value]])
    message = (
        r"X has 1 NaN or infinite values in 1 columns \(first: row 1, column {}\); "
        "impute them or drop the rows"
    )
    with pytest.raises(ValueError, match=message.format("1")):
        check(rows)
    with pytest.raises(ValueError, match=message.format("'v'")):
        check(pd.DataFrame(rows, columns=["u", "v"]))


def test_infinities_that_cancel_and_missing_values_are_found():
    with pytest.raises(ValueError, match="X has 2 NaN or infinite values in 2 columns"):
        check([[np.inf, 1.0], [1.0, -np.inf]])
    frame = pd.DataFrame({"u": pd.array([1, None], dtype="Int64"), "v": [1, 2]})
    with pytest.raises(ValueError, match="row 1, column 'u'"):
        check(frame)


def test_finite_numbers_whose_sum_overflows_are_fine():
    X, _, _ = check([[1e308, 1e308], [1e308, 1e308]])
    assert X.max() == 1e308


def test_text_is_located():
    frame = pd.DataFrame({"u": [1, 2], "v": ["3", "heavy"]})
    message = r"X has text in column 'v' \(row 1: 'heavy'\); encode it as numbers"
    with pytest.raises(ValueError, match=message):
        check(frame)
    with pytest.raises(ValueError, match=r"X has text in column 1 \(row 1: 'heavy'\)"):
        check([[1, 3], [2, "heavy"]])


def test_duplicate_column_names():
    frame = pd.DataFrame(GOOD, columns=["u", "u"])
    with pytest.raises(ValueError, match="duplicate column names: 'u'; rename or drop"):
        check(frame)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.empty((0, 2)), "Found array with 0 sample"),
        (np.empty((2, 0)), "Found array with 0 feature"),
        ([[1.0, 2.0]], "a minimum of 2 is required"),
        ([1.0, 2.0], "Expected 2D array, got 1D array instead"),
        (np.array([[1j, 2], [3, 4]]), "Complex data not supported"),
    ],
)
def test_shapes_and_kinds(X, message):
    with pytest.raises(ValueError, match=message):
        check(X)


def test_one_row_is_enough_at_predict():
    toy = Toy()
    validation.check_X(toy, GOOD, reset=True)
    assert_array_equal(validation.check_X(toy, GOOD[:1]), GOOD[:1])


# ---- columns that never vary ------------------------------------------------------


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csr_array])
def test_constant_columns_are_said_and_masked(make):
    X = make([[0.0, 1.0, 5.0], [0.0, 2.0, 5.0]])
    message = r"X has 2 constant columns \(index 0, 2\); set aside"
    with pytest.warns(ConstantColumnWarning, match=message):
        varies = validation.varying_columns(X)
    assert_array_equal(varies, [False, True, False])
    with pytest.raises(ValueError, match=r"X has only constant columns \(3\)"):
        validation.varying_columns(make([[0.0, 1.0, 5.0]] * 2))


def test_many_constant_columns_are_abbreviated():
    X = np.zeros((2, 8))
    X[1, 7] = 1
    with pytest.warns(ConstantColumnWarning, match="0, 1, 2, 3, 4, ..."):
        validation.varying_columns(X)


def test_varying_columns_are_silent():
    assert validation.varying_columns(np.array(GOOD)).all()


# ---- domains at fit ---------------------------------------------------------------

COLUMNS = [
    (["b", "a", "b"], ["a", "b"]),
    (("b", "a", "b"), ["a", "b"]),
    (np.array(["b", "a", "b"]), ["a", "b"]),
    (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
    (pd.Series(["b", "a", "b"], index=[9, 7, 5]), ["a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
    (pd.Series(["b", "a", "b"], dtype="string"), ["a", "b"]),
    (pd.Categorical(["b", "a", "b"]), ["a", "b"]),
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
    again = validation.encode_domains(domains, got, n_samples=3)
    assert_array_equal(again, codes)
    for code, name in enumerate(names):
        if isinstance(name, tuple):
            continue  # a tuple alone would be a column of domains
        assert_array_equal(
            validation.encode_domains(name, got, n_samples=3), [code] * 3
        )


def test_names_keep_a_plain_dtype():
    for domains, kind in [
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
        for scalar in (days[0], days[0].to_pydatetime()):
            assert_array_equal(validation.encode_domains(scalar, names, n_samples=1), 1)
        assert_array_equal(
            validation.encode_domains(list(days), names, n_samples=2), codes
        )


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


# ---- domains at predict -----------------------------------------------------------

NAMES = np.array(["a", "b", "c"])


def test_no_domain_stays_none():
    assert validation.encode_domains(None, NAMES, n_samples=4) is None


@pytest.mark.parametrize("scalar", ["b", np.str_("b"), np.array("b")])
def test_one_domain_for_all_rows(scalar):
    assert_array_equal(
        validation.encode_domains(scalar, NAMES, n_samples=4), [1, 1, 1, 1]
    )


@pytest.mark.parametrize("scalar", [2, 2.0, np.int8(2), np.array(2)])
def test_numbers_match_by_value(scalar):
    names = np.array([1, 2])
    assert_array_equal(validation.encode_domains(scalar, names, n_samples=2), [1, 1])


@pytest.mark.parametrize("dtype", [int, np.int8, float, object])
def test_columns_of_numbers_match_by_value(dtype):
    column = np.array([2, 1], dtype=dtype)
    got = validation.encode_domains(column, np.array([1, 2]), n_samples=2)
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
        validation.encode_domains(domains, NAMES, n_samples=3)


def test_long_lists_of_known_domains_are_abbreviated():
    with pytest.raises(
        ValueError, match=r"known: 0, 1, 2, 3, 4, 5, \.\.\.\. Use adapt"
    ):
        validation.encode_domains(99, np.arange(50), n_samples=1)


# ---- n_classes --------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, "3", None, True, np.float64(3)])
def test_n_classes_must_be_a_whole_number(value):
    with pytest.raises(ValueError, match="n_classes must be a whole number from 2, or"):
        validation.check_n_classes(value, 5)


def test_n_classes_and_domains():
    assert validation.check_n_classes(np.int64(3), 3) == 3
    message = "n_classes=4 cannot be told apart with 3 domains"
    with pytest.raises(ValueError, match=f"{message}.*use n_classes=3 or less"):
        validation.check_n_classes(4, 3)
    with pytest.warns(IdentifiabilityWarning, match=message):
        assert validation.check_n_classes(4, 3, check_identifiable=False) == 4


def test_is_whole():
    assert validation.is_whole(3)
    assert validation.is_whole(np.uint8(3))
    for value in (3.0, True, np.True_, "3", None):
        assert not validation.is_whole(value)


# ---- weights ----------------------------------------------------------------------


def test_domain_weight_by_name_and_by_mapping():
    mass = np.array([10, 30, 60])
    resolve = validation.resolve_domain_weight
    assert_allclose(resolve("equal", NAMES, mass), 1 / 3)
    assert_allclose(resolve("size", NAMES, mass), [0.1, 0.3, 0.6])
    assert_allclose(resolve({"c": 2, "b": 1, "a": 1}, NAMES, mass), [0.25, 0.25, 0.5])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            "even",
            "must be 'equal', 'size' or a mapping of domain to weight; got 'even'",
        ),
        (np.ones(3), "must be 'equal', 'size' or a mapping"),
        (None, "must be 'equal', 'size' or a mapping"),
        ({"a": 1, "b": 1}, "domain_weight has no entry for domain 'c'"),
        ({"a": 1, "b": 0, "c": 1}, "must be positive and finite everywhere"),
        ({"a": 1, "b": np.nan, "c": 1}, "must be positive and finite everywhere"),
    ],
)
def test_bad_domain_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        validation.resolve_domain_weight(weight, NAMES, np.ones(3))


@given(st.integers(0, 2**31), st.integers(2, 5), st.booleans())
def test_row_weights_sum_to_the_domain_weight(seed, n_domains, weighted):
    rng = np.random.default_rng(seed)
    codes = rng.permutation(
        np.r_[np.arange(n_domains), rng.integers(n_domains, size=9)]
    )
    domain_weight = rng.dirichlet(np.ones(n_domains))
    sample_weight = rng.uniform(0.1, 1, len(codes)) if weighted else None
    got = validation.row_weights(codes, domain_weight, sample_weight)
    assert_allclose(np.bincount(codes, weights=got), domain_weight)
    for domain in range(n_domains):  # inside a domain only the given weights matter
        relative = np.ones(len(codes)) if sample_weight is None else sample_weight
        ratio = got[codes == domain] / relative[codes == domain]
        assert_allclose(ratio, ratio[0])


def test_a_domain_without_weight():
    with pytest.raises(ValueError, match="leaves domain number 1 without weight"):
        validation.row_weights(np.array([0, 1]), np.array([0.5, 0.5]), [1.0, 0.0])


def test_good_input_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(GOOD)
