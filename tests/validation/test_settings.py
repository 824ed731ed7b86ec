"""Numbers of classes and weights of domains and rows."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from shoal import validation
from shoal.exceptions import IdentifiabilityWarning
from shoal.validation._arguments import is_whole
from shoal.validation._domains import check_n_classes, check_sample_weight

NAMES = np.array(["a", "b", "c"])

# ---- n_classes --------------------------------------------------------------------


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, "3", None, True, np.float64(3)])
def test_n_classes_must_be_a_whole_number(value):
    with pytest.raises(ValueError, match="n_classes must be a whole number from 2, or"):
        check_n_classes(value, 5)


def test_n_classes_and_domains():
    assert check_n_classes(np.int64(3), 3) == 3
    message = "n_classes=4 cannot be told apart with 3 domains"
    with pytest.raises(ValueError, match=f"{message}.*use n_classes=3 or less"):
        check_n_classes(4, 3)
    with pytest.warns(IdentifiabilityWarning, match=message):
        assert check_n_classes(4, 3, check_identifiable=False) == 4


def test_is_whole():
    assert is_whole(3)
    assert is_whole(np.uint8(3))
    for value in (3.0, True, np.True_, "3", None):
        assert not is_whole(value)


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
            "must be 'equal', 'size' or a mapping of domain to weight, got 'even'",
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


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (
            ["a", "b"],
            "sample_weight must be numbers, one per row: could not convert string",
        ),
        ([1.0], r"one entry per row \(2\), got shape \(1,\)"),
        ([1.0, -1.0], "finite and not negative"),
        ([1.0, np.inf], "finite and not negative"),
        ([0.0, 0.0], "zero everywhere"),
    ],
)
def test_bad_sample_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        check_sample_weight(weight, 2)


def test_a_domain_without_weight():
    with pytest.raises(ValueError, match="leaves domain number 1 without weight"):
        validation.row_weights(np.array([0, 1]), np.array([0.5, 0.5]), [1.0, 0.0])


# ---- other counts -----------------------------------------------------------------


def test_counts_from_the_least_on_pass():
    validation.check_whole(0, n_starts=0, n_folds=np.int64(7))
    validation.check_whole(3, n_starts=3)


def test_numbers_of_a_range():
    validation.check_real(0, rate=0, share=np.float32(0.5), weight=1e300)
    validation.check_real(0, rate=np.array(0.5), share=Fraction(1, 2), weight=10**30)
    validation.check_real(0, 1, rate=1, share=0.0)
    validation.check_real(0, 1, above=True, rate=1, share=1e-300)


@pytest.mark.parametrize(
    ("options", "expected", "values"),
    [
        ({}, "from 0", [-1e-9, np.nan, np.inf, 10**400, "1", None, True, [1.0]]),
        ({"most": 1}, "from 0 to 1", [1.1, -1]),
        ({"above": True}, "above 0", [0, -0.0]),
        ({"most": 1, "above": True}, "above 0, 1 at most", [0, 1.5]),
    ],
)
def test_other_numbers_are_named_with_what_was_given(options, expected, values):
    for value in values:
        text = f"rate must be a number {expected}, got {value!r}"
        with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
            validation.check_real(0, **options, weight=0.5, rate=value)


@pytest.mark.parametrize("value", [2, -1, 3.0, np.float64(4), "3", None, True])
def test_other_counts_are_named_with_what_was_given(value):
    message = f"^n_folds must be a whole number from 3, got {re.escape(repr(value))}$"
    with pytest.raises(ValueError, match=message):
        validation.check_whole(3, n_starts=5, n_folds=value)
