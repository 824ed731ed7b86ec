"""Bad values from Python: one line that names the argument, never a foreign error.

A table of more than 230 inputs. None may raise anything else, end the process, or be
taken for what it is not.
"""

import io
import re
import types
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from shoal import DDFA, DomainMixture

RNG = np.random.default_rng(0)
DOMAINS = np.repeat(["a", "b", "c"], 40)
NAMES = DOMAINS.tolist()
CLASS = RNG.random(120) < np.repeat([0.9, 0.5, 0.1], 40)
X = RNG.normal(size=(120, 3)) + 4 * CLASS[:, None]
QUICK = {"search": False, "random_state": 0, "max_iter": 5}

# ---- rows ----------------------------------------------------------------------------


class Refusing:
    """Fails at whatever is asked of it."""

    def __array__(self, *args, **kwargs):
        raise RuntimeError("no array\nat all")

    def __float__(self):
        raise ZeroDivisionError("no number")

    def __len__(self):
        return 120

    def __getitem__(self, index):
        raise KeyError(index)


class Unnamed:
    def __repr__(self):
        raise RuntimeError("no name")


class Unequal:
    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    __hash__ = object.__hash__


class Unhashed:
    def __hash__(self):
        raise RuntimeError("not to be counted")


def cell(value):
    bad = X.astype(object)
    bad[7, 1] = value
    return bad


def csr(part, index, value):
    """A matrix whose ``part`` points where there is nothing."""
    bad = sparse.csr_array(X)
    getattr(bad, part)[index] = value
    return bad


def masked():
    bad = np.ma.masked_array(X, mask=False)
    bad[3, 1] = np.ma.masked
    return bad


def tensor(kind):
    torch = pytest.importorskip("torch")
    return {
        "grad": lambda: torch.tensor(X, requires_grad=True),
        "sparse": lambda: torch.tensor(X).to_sparse(),
        "meta": lambda: torch.empty(120, 3, device="meta"),
        "deep": lambda: torch.zeros(120, 3, 2),
        "flat": lambda: torch.ones(120, requires_grad=True),
    }[kind]()


ROWS = {
    "generator": (lambda: (row for row in X), r"a generator, .* pass list\(X\)"),
    "iterator": (lambda: iter(X), "can be read only once"),
    "map": (lambda: map(list, X), r"a map, .* pass list\(X\)"),
    "zip": (lambda: zip(X[:, 0], X[:, 1], strict=True), "a zip"),
    "open file": (lambda: io.StringIO("1,2"), "a StringIO"),
    "dict": (lambda: {"x": X[:, 0]}, "X is a dict; pass a DataFrame"),
    "empty dict": (dict, "X is a dict"),
    "mapping": (lambda: types.MappingProxyType({}), "X is a mappingproxy"),
    "set": (lambda: {1.0, 2.0}, "X is a set, which has no order; pass a list"),
    "frozenset": (lambda: frozenset({1.0}), "X is a frozenset"),
    "text": (lambda: "table.csv", "X is the text 'table.csv'; read the file first"),
    "bytes": (lambda: b"1,2", "X is the text b'1,2'"),
    "bytearray": (lambda: bytearray(b"1,2"), "X is the text bytearray"),
    "path": (lambda: Path("table.csv"), r"X is the text .*table\.csv"),
    "None": (lambda: None, "X must have two dimensions"),
    "int": (lambda: 5, "X must have two dimensions"),
    "float": (lambda: 1.5, "X must have two dimensions"),
    "bool": (lambda: True, "X must have two dimensions"),
    "complex": (lambda: 1j, "of numbers, got a complex"),
    "function": (lambda: len, "X is a builtin_function_or_method, .*pass an array"),
    "class": (lambda: DomainMixture, "X is a type, "),
    "estimator": (lambda: DomainMixture(2), "of numbers, got a DomainMixture"),
    "module": (lambda: np, "of numbers, got a module"),
    "object": (object, "of numbers, got a object"),
    "refusing": (Refusing, "X cannot be read as a table of numbers: no array at all"),
    "range": (lambda: range(120), "X must have two dimensions"),
    "memory": (lambda: memoryview(b"abcd"), "X must have two dimensions"),
    "one column": (lambda: X[:, 0], "X must have two dimensions"),
    "Series": (lambda: pd.Series(X[:, 0]), "X must have two dimensions"),
    "polars Series": (lambda: pl.Series(X[:, 0]), "X must have two dimensions"),
    "three axes": (lambda: X[None], "X: Found array with dim 3"),
    "no axes": (lambda: np.array(3.0), "X must have two dimensions"),
    "no rows": (lambda: X[:0], r"X: Found array with 0 sample"),
    "one row": (lambda: X[:1], r"X: Found array with 1 sample"),
    "two rows": (lambda: X[:2], "X has 2 rows, domains has 120"),
    "no columns": (lambda: X[:, :0], "X: Found array with 0 feature"),
    "ragged": (lambda: [[1, 2], [3]] * 60, "X has rows of different lengths"),
    "inf": (lambda: cell(np.inf), "1 NaN or infinite values .*row 7, column 1"),
    "-inf": (lambda: cell(-np.inf), "X has 1 NaN or infinite values"),
    "all NaN": (lambda: X * np.nan, "X has only constant columns"),
    "complex array": (lambda: X + 1j, "X must be real"),
    "dates": (lambda: np.full((120, 3), "2020-01-01", "M8[D]"), "X holds dates"),
    "spans": (lambda: np.full((120, 3), 5, "m8[s]"), "X holds dates"),
    "words": (lambda: np.full((120, 3), "x"), "X has text in column 0"),
    "raw words": (lambda: np.full((120, 3), b"x"), "X has text in column 0"),
    "word": (lambda: cell("x"), r"X has text in column 1 \(row 7: 'x'\)"),
    "dict inside": (lambda: cell({}), r"X has a dict in column 1 \(row 7: {}\)"),
    "object inside": (lambda: cell(object()), "X has a object in column 1"),
    "array inside": (lambda: cell(Refusing()), "X cannot be read|X has no number"),
    "loud NaN": (lambda: cell(Decimal("sNaN")), "X has no number in column 1"),
    "400 digits": (lambda: cell(10**400), "number too large in column 1 .* rescale"),
    "too large": (lambda: X * 1e300, "X has values of size .*too large to square"),
    "constant": (lambda: np.ones((120, 3)), "X has only constant columns"),
    "structured": (lambda: np.zeros(120, [("a", float)]), "X must have two dimensio"),
    "void": (lambda: np.zeros((120, 3), "V8"), "X has text in column 0"),
    "matrix": (lambda: np.matrix(X), "X cannot be read .* np.matrix is not supported"),
    "masked": (masked, r"X has 1 masked values \(first in row 3\); fill them in"),
    "index above": (lambda: csr("indices", 5, 99), "X is a sparse .*must be < 3"),
    "index below": (lambda: csr("indices", 5, -1), "X is a sparse .*must be >= 0"),
    "pointer above": (lambda: csr("indptr", 3, 10**6), "X is a sparse .*not sound"),
    "pointer back": (lambda: csr("indptr", 3, 0), "X is a sparse .*non-decreasing"),
    "pointer end": (lambda: csr("indptr", -1, 10**6), "X is a sparse .*not sound"),
    "sparse NaN": (lambda: csr("data", 5, np.nan), "X has 1 NaN or infinite values"),
    "gradient": (lambda: tensor("grad"), r"pass X\.detach\(\)\.numpy\(\)"),
    "sparse tensor": (lambda: tensor("sparse"), r"X cannot be read .*to_dense"),
    "meta tensor": (lambda: tensor("meta"), "X cannot be read .*meta"),
    "deep tensor": (lambda: tensor("deep"), "X: Found array with dim 3"),
    "twin names": (
        lambda: pd.DataFrame(X, columns=list("aab")), "X has duplicate column names"),
    "mixed names": (
        lambda: pd.DataFrame(X, columns=[1, "a", 2.0]), "X: Feature names .*rename"),
    "lazy": (
        lambda: pl.DataFrame({"x": [1.0] * 120}).lazy(), r"LazyFrame.*X\.collect\(\)"),
    "pandas NA": (
        lambda: pd.DataFrame({"x": pd.array([1, None] * 60)}), "only constant"),
    "pandas dates": (
        lambda: pd.DataFrame({"x": pd.date_range("2020", periods=120)}), "X holds d"),
    "polars dates": (
        lambda: pl.DataFrame({"x": pd.date_range("2020", periods=120)}), "X holds d"),
    "pandas spans": (
        lambda: pd.DataFrame({"x": pd.interval_range(0, 120)}), "X has a Interval"),
    "pandas complex": (lambda: pd.DataFrame(X + 1j), "X must be real"),
    "polars null": (lambda: pl.DataFrame({"x": [None, 1.0] * 60}), "only constant"),
    "polars list": (lambda: pl.DataFrame({"x": [[1.0]] * 120}), "X has a ndarray in"),
}  # fmt: skip


def refused(call, message, *, named):
    """The call raises one line that says ``message`` and names the argument."""
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        call()
    said = str(caught.value)
    assert type(caught.value).__module__ in ("builtins", "shoal.exceptions")
    assert "\n" not in said
    assert re.search(rf"\b{named}\b", said), said
    assert len(said) < 300


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of numpy.matrix
def test_rows_of_fit(name):
    make, message = ROWS[name]
    refused(lambda: DomainMixture(2, **QUICK).fit(make(), DOMAINS), message, named="X")


@pytest.fixture(scope="module")
def model():
    return DomainMixture(2, search=False, random_state=0).fit(X, DOMAINS)


# at predict, a row may be alone and columns may be constant
FEW = {"two rows", "one row", "constant", "too large", "all NaN"}
NARROW = {name for name in ROWS if name.startswith(("pandas", "polars"))} | {"no rows"}


@pytest.mark.parametrize("name", sorted(set(ROWS) - FEW - NARROW))
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_rows_of_predict(model, name):
    make, message = ROWS[name]
    refused(lambda: model.predict(make()), message, named="X")


@pytest.mark.parametrize("value", [np.nan, None, Decimal("NaN")])
def test_gaps_are_taken(model, value):
    gap = DomainMixture(2, **QUICK).fit(cell(value), DOMAINS)
    assert gap.filling_.n_missing.tolist() == [0, 1, 0]
    masked = np.array(cell(np.delete(X[:, 1], 7).mean()), dtype=float)
    same = DomainMixture(2, **QUICK).fit(masked, DOMAINS)
    np.testing.assert_allclose(gap.prevalence_, same.prevalence_)
    assert np.isfinite(model.predict_proba(cell(value))).all()


@pytest.mark.parametrize("name", ["generator", "dict", "text", "index above", "masked"])
@pytest.mark.parametrize("call", ["adapt", "transform", "bootstrap", "diagnose"])
def test_rows_of_other_calls(model, call, name):
    make, message = ROWS[name]
    given = () if call in ("adapt", "transform") else (DOMAINS,)
    refused(lambda: getattr(model, call)(make(), *given), message, named="X")


@pytest.mark.parametrize("name", ["generator", "dict", "set", "gradient", "masked"])
def test_rows_of_the_stages(name):
    make, message = ROWS[name]
    refused(lambda: DDFA(2).fit(make(), DOMAINS), message, named="X")


def test_sparse_rows_with_wide_indices_are_taken():
    wide = sparse.coo_array(np.where(X > 3, X, 0)).tocsr()
    wide.indices, wide.indptr = wide.indices.astype("i8"), wide.indptr.astype("i8")
    found = DomainMixture(2, **QUICK).fit(wide, DOMAINS).prevalence_
    dense = DomainMixture(2, **QUICK).fit(wide.toarray(), DOMAINS).prevalence_
    np.testing.assert_allclose(found, dense, atol=1e-4)


@pytest.mark.filterwarnings("ignore::shoal.exceptions.ShoalWarning")
def test_two_rows_of_two_domains_are_answered():
    rows, domains = X[[0, -1]], ["a", "b"]
    model = DomainMixture(2, **QUICK).fit(rows, domains)
    np.testing.assert_allclose(model.prevalence_.sum(axis=1), 1)
    assert model.diagnose(rows, domains, random_state=0).verdict
    intervals = model.bootstrap(rows, domains, n_resamples=2, random_state=0)
    assert np.isfinite(intervals.low).all()


# ---- domains -------------------------------------------------------------------------


def first(value):
    return [value, *NAMES[1:]]


WHERE = {
    "text": (lambda: "a", "domains must have one entry per row, got .* 'a'"),
    "raw text": (lambda: b"abc", "domains must have one entry per row"),
    "number": (lambda: 3, "domains must have one entry per row"),
    "no axes": (lambda: np.array("a"), "domains must have one entry per row"),
    "generator": (lambda: iter(NAMES), "domains is a .*pass list"),
    "map": (lambda: map(str, NAMES), r"domains is a map, .*pass list\(domains\)"),
    "zip": (lambda: zip(NAMES, NAMES, strict=True), "domains is a zip"),
    "dict": (lambda: dict(enumerate(NAMES)), "domains is a dict"),
    "set": (lambda: set(NAMES), "domains is a set"),
    "function": (lambda: len, "domains is a builtin_function"),
    "module": (lambda: np, "domains must have one entry per row"),
    "sparse": (lambda: sparse.csr_array(np.eye(120)), "domains is a sparse matrix"),
    "gradient": (lambda: tensor("flat"), r"domains is a Tensor .*detach"),
    "two columns": (lambda: np.c_[DOMAINS, DOMAINS], "domains must be one-dimensional"),
    "frame": (lambda: pd.DataFrame({"a": NAMES, "b": NAMES}), "domains must be one-d"),
    "polars": (lambda: pl.DataFrame({"a": NAMES, "b": NAMES}), "domains must be one-d"),
    "lists": (lambda: first(["x"]), "domains must be one-dimensional"),
    "arrays": (lambda: first(np.arange(2)), "domains must be one-dimensional"),
    "none": (list, "X has 120 rows, domains has 0"),
    "short": (lambda: NAMES[:5], "X has 120 rows, domains has 5"),
    "long": (lambda: [*NAMES, "a"], "X has 120 rows, domains has 121"),
    "dicts": (lambda: first({}), "domains must be strings, numbers or other hashable"),
    "sets": (lambda: first({1}), "domains must be strings, numbers or other hashable"),
    "unhashed": (lambda: first(Unhashed()), "domains must be .*hashable"),
    "unnamed": (lambda: [Unnamed() for _ in NAMES], "domains must be .*: no name"),
    "complex": (lambda: first(1j), "domains must not be complex"),
    "complex array": (lambda: np.arange(120) + 1j, "domains must not be complex"),
    "masked": (
        lambda: np.ma.masked_array(DOMAINS, mask=DOMAINS == "b"), "40 masked values"),
}  # fmt: skip
AT_FIT = {
    "one": (lambda: ["a"] * 120, "domains has only one class of value"),
    "NaN": (lambda: np.where(DOMAINS == "a", np.nan, 1), "domains has 40 missing"),
    "None": (lambda: first(None), "domains has 1 missing values"),
    "NA": (lambda: first(pd.NA), "domains has 1 missing values"),
    "NaT": (lambda: first(pd.NaT), "domains has 1 missing values"),
    "loud NaN": (lambda: first(Decimal("sNaN")), "domains has 1 missing values"),
    "unequal": (lambda: first(Unequal()), "domains has 1 missing values"),
    "arrow null": (lambda: pa.array(first(None)), "domains has 1 missing values"),
    "polars null": (lambda: pl.Series(first(None)), "domains has 1 missing values"),
    "no category": (lambda: pd.Categorical(first(None)), "domains has 1 missing"),
    "inf": (
        lambda: np.where(DOMAINS == "a", np.inf, 1),
        r"domains has 40 infinite values \(first in row 0\); give these rows a name"),
    "-inf": (lambda: first(-np.inf), "domains has 1 infinite values"),
}  # fmt: skip


@pytest.mark.parametrize("name", [*WHERE, *AT_FIT])
def test_domains_of_fit(name):
    make, message = (WHERE | AT_FIT)[name]
    refused(lambda: DomainMixture(2, **QUICK).fit(X, make()), message, named="domains")


@pytest.mark.parametrize("name", sorted(set(WHERE) - {"text", "no axes"}))
def test_domains_of_predict(model, name):
    make, message = WHERE[name]
    if "one entry per row" in message:
        message = "domains has values that fit has not seen"
    refused(lambda: model.predict(X, make()), message, named="domains")


# ---- weights -------------------------------------------------------------------------

ONES = np.ones(120)
WEIGHTS = {
    "text": (lambda: "heavy", "sample_weight is the text"),
    "dict": (dict, "sample_weight is a dict"),
    "set": (lambda: {1}, "sample_weight is a set"),
    "generator": (lambda: (1 for _ in NAMES), r"pass list\(sample_weight\)"),
    "number": (lambda: 1.0, r"one entry per row \(120\), got shape \(\)"),
    "short": (lambda: [1.0], r"one entry per row \(120\), got shape \(1,\)"),
    "two columns": (lambda: np.ones((120, 2)), r"got shape \(120, 2\)"),
    "words": (lambda: NAMES, "sample_weight must be numbers, one per row"),
    "objects": (lambda: [object()] * 120, "sample_weight must be numbers"),
    "refusing": (lambda: [Unhashed()] * 120, "sample_weight must be numbers"),
    "400 digits": (lambda: [10**400] * 120, "sample_weight must be numbers"),
    "complex": (lambda: ONES * 1j, "sample_weight must be numbers"),
    "dates": (lambda: np.full(120, "2020-01-01", "M8[D]"), "must be numbers"),
    "NaN": (lambda: ONES * np.nan, "finite and not negative, got nan in row 0"),
    "None": (lambda: [None] * 120, "finite and not negative, got nan in row 0"),
    "inf": (lambda: ONES * np.inf, "finite and not negative, got inf in row 0"),
    "below": (lambda: -ONES, "finite and not negative, got -1 in row 0"),
    "zero": (lambda: 0 * ONES, "sample_weight is zero everywhere"),
    "one domain": (lambda: DOMAINS != "a", "zero in all rows of domain 'a'"),
    "huge": (lambda: ONES * 1e308, "sample_weight must be 1e.100 at most"),
    "masked": (lambda: np.ma.masked_array(ONES, mask=CLASS), "masked values"),
    "gradient": (lambda: tensor("flat"), r"sample_weight is a Tensor .*detach"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name):
    make, message = WEIGHTS[name]
    refused(
        lambda: DomainMixture(2, **QUICK).fit(X, DOMAINS, sample_weight=make()),
        message,
        named="sample_weight",
    )


# ---- settings ------------------------------------------------------------------------

SETTINGS = {
    "n_classes": (0, 1, -1, 2.0, "3", True, np.nan, [2], 10**30, 4),
    "search": ("no", None, 2),
    "scale": ("row", None, 1),
    "expansion": ("cubic", None, 3),
    "ridge": (-1, "many", np.nan, np.inf, None, [1]),
    "confidence": (-1, "x", np.nan, 1j),
    "dirichlet": (-1, "x", np.inf),
    "volume": (-1, "x", None, np.nan),
    "solver": ("sgd", None),
    "max_iter": (0, -1, 1.5, "x", None),
    "tol": (-1, "x", np.nan, None, np.inf),
    "max_search_rows": (0, -5, "x", 2.5, None),
    "domain_weight": (
        "big", 3, {}, {"a": 1}, None, dict.fromkeys("abc", -1),
        dict.fromkeys("abc", "x"), dict.fromkeys("abc", np.inf)),
    "check_identifiable": ("x", None),
    "n_jobs": (0, "x", 1.5),
    "random_state": ("x", -1, 1.5, 2**40, [], {}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, values in SETTINGS.items() for v in values]
)
def test_settings(name, value):
    given = {"n_classes": 2, **QUICK, name: value}
    refused(lambda: DomainMixture(**given).fit(X, DOMAINS), name, named=name)


ASKED = {
    "prevalence": (
        "predict_proba", [0.3, 0.3], [-1, 2], "ab", [0.5], [np.nan, 1], {"a": 1},
        [[0.5, 0.5]], 1, [1j, 0]),
    "n_resamples": ("bootstrap", 0, 1, -1, "x", 1.5, None),
    "level": ("bootstrap", 0, 1, -1, "x", 2, None, np.nan),
    "n_permutations": ("diagnose", 0, 1.5, "x", None),
    "n_classes": ("refit", 1, "x", 2.5),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, (_, *values) in ASKED.items() for v in values]
)
def test_what_is_asked_of_a_model(model, name, value):
    call = ASKED[name][0]
    given = {} if call == "predict_proba" else {"domains": DOMAINS}
    if name == "level":
        given["n_resamples"] = 2
    refused(lambda: getattr(model, call)(X, **given, **{name: value}), name, named=name)


def test_the_table_is_long():
    tables = (ROWS, WHERE, AT_FIT, WEIGHTS)
    settings = sum(len(values) for values in SETTINGS.values())
    asked = sum(len(values) - 1 for values in ASKED.values())
    assert sum(map(len, tables)) + settings + asked >= 230
