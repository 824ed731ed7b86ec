"""What DiscreteMixture cannot work with: one clear line each."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from shoal import DiscreteMixture
from shoal.exceptions import DomainMissingError, UnseenDomainWarning

GOOD = np.array([[5, 1, 0], [1, 5, 2], [2, 2, 2]])


def error_of(X, domains=None, **params):
    params = {"n_classes": 2} | params
    with pytest.raises((ValueError, TypeError)) as caught:
        DiscreteMixture(**params).fit(X, domains)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (-GOOD, "negative counts (smallest -5)"),
        (GOOD / 2, "not whole numbers (such as 2.5)"),
        (sparse.csr_array(GOOD / 2), "not whole numbers (such as 2.5)"),
        (GOOD * [[1], [0], [1]], "1 rows without any word (first: row 1)"),
        (GOOD.astype(object), "dtype object"),
        (np.where(GOOD == 0, np.nan, GOOD), "1 NaN or infinite values"),
        (sparse.csr_array(np.where(GOOD == 5, np.inf, GOOD)), "2 NaN or infinite"),
        (np.empty((0, 3)), "0 sample(s)"),
        (np.empty((3, 0)), "0 feature(s)"),
        (np.array([["a", "b"], ["c", "d"]]), "X has text in column 0 (row 0: 'a')"),
        (pd.DataFrame(GOOD, columns=["a", "b", "a"]), "duplicate column names: 'a'"),
        (GOOD[:, :1] + 1, "X has 1 distinct words, too few for n_classes=2"),
    ],
)
def test_bad_counts(X, message):
    assert message in error_of(X, input="counts")


@pytest.mark.parametrize(
    ("X", "domains", "message"),
    [
        (GOOD, None, "pass domains="),
        (GOOD, [0, 0, 0], "only one class of value (0)"),
        (GOOD, [0, 1], "X has 3 rows, domains has 2"),
        (GOOD, [0, 1, None], "domains has 1 missing values"),
        (GOOD + np.nan, [0, 1, 2], "9 NaN or infinite values"),
        ([["a"], [None], ["b"]], [0, 1, 2], "column 0, has 1 missing values"),
        (pd.DataFrame({"s": ["a", None, "b"]}), [0, 1, 2], "column 's', has 1 missing"),
        (pl.DataFrame({"s": ["a", None, "b"]}), [0, 1, 2], "column 's', has 1 missing"),
        ([[{"a": 1}], ["b"], ["c"]], [0, 1, 2], "must be strings, numbers"),
        (np.empty((0, 3)), [], "0 sample(s)"),
        (pd.DataFrame(GOOD, columns=["a", "b", "a"]), [0, 1, 2], "duplicate column"),
        (np.ones((3, 2)), [0, 1, 2], "X has 1 distinct words"),
        (sparse.csr_array(GOOD), [0, 1, 2], "Sparse data was passed"),
    ],
)
def test_bad_rows(X, domains, message):
    assert message in error_of(X, domains)


def test_a_single_word_holds_no_classes():
    X, domains = [["a"]] * 6, [0, 0, 0, 1, 1, 1]
    for n_classes in (None, 2):
        message = error_of(X, domains, n_classes=n_classes)
        assert message.startswith("X has 1 distinct words, too few for n_classes=2")


@pytest.mark.parametrize("n_classes", [1, 0, -2, 2.0, "3", True])
@pytest.mark.parametrize("input", ["rows", "counts"])
def test_bad_number_of_classes(n_classes, input):
    message = error_of(GOOD, [0, 1, 2], n_classes=n_classes, input=input)
    assert message.startswith("n_classes must be a whole number from 2")
    assert repr(n_classes) in message


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"input": "words"}, "input must be one of ('rows', 'counts'), got 'words'"),
        ({"representation": "tsne"}, "representation must be None, one of"),
        ({"representation": "pca", "input": "counts"}, "they need input='rows'"),
        ({"n_words": 5, "input": "counts"}, "they need input='rows'"),
        (
            {"n_words": 2, "n_classes": 3},
            "n_words must be None or a whole number",
        ),
        ({"n_words": 4.0}, "got 4.0"),
        ({"factorizer": "magic"}, "factorizer must be one of ['em', "),
        ({"factorizer": ["em"]}, "factorizer must be one of ['em', "),
        ({"n_classes": 4}, "n_classes=4 cannot be told apart with 3 domains"),
        ({"domain_weight": "even"}, "domain_weight must be 'equal', 'size' or a mapp"),
        ({"domain_weight": {0: 1.0}}, "domain_weight has no entry for domain 1"),
    ],
)
def test_bad_parameters(params, message):
    assert message in error_of(GOOD, [0, 1, 2], **params)


def test_text_where_numbers_are_needed():
    X = [["a", 1.0], ["b", 2.0], ["c", 0.0]]
    assert "text in column 0" in error_of(X, [0, 1, 2], representation="pca")


@pytest.mark.filterwarnings("ignore::shoal.exceptions.IdentifiabilityWarning")
def test_errors_after_the_fit():
    words, codes = np.repeat([[3], [4], [5]], 2, axis=0), np.repeat([0, 1, 2], 2)
    fitted = DiscreteMixture(3, random_state=0).fit(words, codes)
    with pytest.raises(ValueError, match="values that fit has not seen: 'Mars'"):
        fitted.predict([[3]], "Mars")
    with pytest.raises(ValueError, match="score requires y to be passed"):
        fitted.score([[3]])
    with (
        pytest.raises(ValueError, match="not seen: 9"),
        pytest.warns(UnseenDomainWarning, match="no score"),
    ):
        fitted.score([[3]], [9])
    with pytest.raises(
        ValueError, match="2 features, but DiscreteMixture is expecting 1"
    ):
        fitted.predict([[3, 4]])
    with pytest.raises(ValueError, match="pass domains or prevalence, not both"):
        fitted.predict_proba([[3]], 0, prevalence=[0.2, 0.3, 0.5])
    model = DiscreteMixture(2, input="counts", random_state=0).fit(GOOD)
    with pytest.raises(ValueError, match="negative counts"):
        model.predict(-GOOD)
    with pytest.raises(TypeError, match="dtype object"):
        model.predict(GOOD.astype(object))


@pytest.mark.parametrize("input", ["rows", "counts"])
def test_what_scikit_learn_refuses(input):
    model = DiscreteMixture(2, input=input)
    with pytest.raises(ValueError, match="X must have two dimensions"):
        model.fit(GOOD[0], [0, 1, 2])
    with pytest.raises(ValueError, match="Complex data not supported"):
        model.fit(GOOD * 1j, [0, 1, 2])


def test_missing_domains_have_their_own_error():
    with pytest.raises(
        DomainMissingError, match="DiscreteMixture estimator requires y"
    ):
        DiscreteMixture(2).fit(GOOD)
