"""Rows of features: every kind of table that is taken, every error and warning."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator

from shoal import validation
from shoal.exceptions import ConstantColumnWarning
from shoal.validation._rows import varying_columns


class Toy(BaseEstimator):
    """Something for error messages and ``n_features_in_`` to hang on to."""


def check(X, domains=("a", "b"), **options):
    return validation.check_X_domains(Toy(), X, domains, **options)


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
    how = r"or drop it: table = shoal\.io\.read\(X, domain=domains\), then fit\("
    with pytest.raises(ValueError, match=how):
        check(frame.astype({"v": "category"}))
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
        (np.ones((2, 2, 2)), "X: Found array with dim 3"),
        ([1.0, 2.0], r"X must have two dimensions, got shape \(2,\)"),
        ([[1.0], [2.0, 3.0]], "X has rows of different lengths"),
        (np.array([[1j, 2], [3, 4]]), "Complex data not supported: X must be real"),
        ([[1.0, None], [2.0, {}]], r"X has a dict in column 1 \(row 1: {}\)"),
        (
            pd.DataFrame({"u": [1, 2], "day": pd.to_datetime(["2020", "2021"])}),
            r"X has a Timestamp in column 'day' \(row 0: Timestamp",
        ),
    ],
    ids=[
        "rows",
        "columns",
        "one row",
        "3-D",
        "1-D",
        "ragged",
        "complex",
        "dict",
        "day",
    ],
)
def test_shapes_and_kinds(X, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        check(X)
    assert "\n" not in str(caught.value)


def test_one_row_is_enough_at_predict():
    toy = Toy()
    validation.check_X(toy, GOOD, reset=True)
    assert_array_equal(validation.check_X(toy, GOOD[:1]), GOOD[:1])


def test_good_input_never_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(GOOD)


# ---- columns that never vary ------------------------------------------------------


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.csr_array])
def test_constant_columns_are_said_and_masked(make):
    X = make([[0.0, 1.0, 5.0], [0.0, 2.0, 5.0]])
    message = r"X has 2 constant columns \(index 0, 2\); set aside"
    with pytest.warns(ConstantColumnWarning, match=message):
        varies = varying_columns(X)
    assert_array_equal(varies, [False, True, False])
    with pytest.raises(ValueError, match=r"X has only constant columns \(3\)"):
        varying_columns(make([[0.0, 1.0, 5.0]] * 2))


def test_numbers_that_cannot_be_squared_are_refused():
    message = r"X has values of size 1e\+200 in column 1, too large to square; rescale"
    with pytest.raises(ValueError, match=message):
        varying_columns(np.array([[1.0, 1.0], [2.0, -1e200]]))
    assert varying_columns(np.array([[1.0, 1.0], [2.0, -1e100]])).all()


def test_many_constant_columns_are_abbreviated():
    X = np.zeros((2, 8))
    X[1, 7] = 1
    with pytest.warns(ConstantColumnWarning, match="0, 1, 2, 3, 4, ..."):
        varying_columns(X)


def test_varying_columns_are_silent():
    assert varying_columns(np.array(GOOD)).all()


def test_the_columns_of_an_arrow_table_are_its_names():
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert_array_equal(validation.check_X(Toy(), table, reset=True), [[1, 3], [2, 4]])
    twice = arrow.Table.from_arrays([[1.0], [2.0]], names=["a", "a"])
    with pytest.raises(ValueError, match="X has duplicate column names: 'a'"):
        validation.check_X(Toy(), twice, reset=True)
