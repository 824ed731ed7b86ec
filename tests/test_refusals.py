"""Bad input to DDFA and DomainMixture: one clear line each."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from shoal import DDFA, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.exceptions import (
    ConstantColumnWarning,
    FoldsReducedWarning,
    IdentifiabilityWarning,
    ShoalWarning,
    UnseenDomainWarning,
)
from shoal.stages.adjust import Adjuster
from shoal.stages.discretize import GivenClusters, KMeansDiscretizer
from shoal_bench.paper import ddfa as published

RNG = np.random.default_rng(0)
DOMAINS = np.repeat(["a", "b", "c"], 40)
# two classes whose mix moves from domain to domain
CLASS = RNG.random(120) < np.repeat([0.9, 0.5, 0.1], 40)
X = RNG.normal(size=(120, 3)) + 4 * CLASS[:, None]


def with_cell(value):
    bad = X.copy()
    bad[7, 1] = value
    return bad


def text():
    table = pd.DataFrame(X, columns=["x", "y", "z"]).astype(object)
    table.loc[3, "y"] = "heavy"
    return table


CASES = {
    "no domains": (X, None, "requires y to be passed, but the target y is None"),
    "one domain": (X, ["a"] * 120, "all rows come from one domain"),
    "lengths differ": (X, DOMAINS[:-1], "X has 120 rows, domains has 119"),
    "missing domain": (X, [None, *DOMAINS[1:]], "domains has 1 missing values"),
    "inf": (
        with_cell(np.inf), DOMAINS,
        r"NaN or infinite values in 1 columns \(first: row 7, column 1\)"),
    "text": (text(), DOMAINS, "X has text in column 'y'"),
    "all constant": (np.ones((120, 2)), DOMAINS, "only constant columns"),
    "empty": (np.empty((0, 3)), [], "X: Found array with 0 sample"),
    "one row": (X[:1], ["a"], "X: Found array with 1 sample"),
    "one dimension": (X[:, 0], DOMAINS, "X must have two dimensions"),
    "too large": (X * 1e300, DOMAINS, "too large to square"),
    "twin names": (
        pd.DataFrame(X, columns=["x", "x", "z"]), DOMAINS, "duplicate column names"),
}  # fmt: skip
ESTIMATORS = {
    "ddfa": lambda k=2: DDFA(k, discriminator="logistic", random_state=0),
    "mixture": lambda k=2: DomainMixture(k, search=False, random_state=0),
}


@pytest.fixture(params=ESTIMATORS.values(), ids=ESTIMATORS.keys())
def make(request):
    return request.param


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_and_domains(make, case):
    rows, domains, message = CASES[case]
    with pytest.raises(ValueError, match=message) as caught:
        make().fit(rows, domains=domains)
    assert "\n" not in str(caught.value).strip()


def test_ddfa_takes_no_gaps():
    with pytest.raises(
        ValueError, match=r"NaN or infinite values in 1 columns \(first"
    ):
        ESTIMATORS["ddfa"]().fit(with_cell(np.nan), DOMAINS)


@pytest.mark.parametrize("n_classes", [1, 0, -2, 2.0, "two", True])
def test_number_of_classes(make, n_classes):
    with pytest.raises(ValueError, match="n_classes must be a whole number from 2"):
        make(n_classes).fit(X, DOMAINS)


def test_fewer_domains_than_classes(make):
    with pytest.raises(ValueError, match="n_classes=4 cannot be told apart with 3"):
        make(4).fit(X, DOMAINS)


def test_objects_that_are_not_numbers(make):
    rows = np.array([[1], [{}], [2], [3]], dtype=object)
    with pytest.raises(TypeError, match=r"X has a dict in column 0 \(row 1: {}\)"):
        make().fit(rows, list("aabb"))


def test_unseen_domain_at_predict(make):
    model = make().fit(X, DOMAINS)
    with pytest.raises(ValueError, match="has not seen: 'd'"):
        model.predict(X[:2], ["a", "d"])
    warned = pytest.warns(UnseenDomainWarning, match="no score")
    with pytest.raises(ValueError, match="has not seen: 'd'"), warned:
        model.score(X[:2], ["a", "d"])


def test_other_columns_at_predict(make):
    with pytest.raises(ValueError, match="2 features"):
        make().fit(X, DOMAINS).predict(X[:, :2])


def test_constant_columns_are_set_aside(make):
    padded = np.c_[X, np.ones(120)]
    with pytest.warns(ConstantColumnWarning, match="1 constant columns"):
        model = make().fit(padded, DOMAINS)
    assert np.array_equal(model.labels_, make().fit(X, DOMAINS).labels_)


def test_huge_integer_domains(make):
    names = np.array([2**70, 2**71, 2**72], dtype=object)
    model = make().fit(X, np.repeat(names, 40))
    assert model.domains_.tolist() == names.tolist()


def test_prevalences_that_do_not_sum_to_one(make):
    model = make().fit(X, DOMAINS)
    with pytest.raises(ValueError, match="sum to 1, sums to 0.6"):
        model.predict_proba(X, prevalence=[0.3, 0.3])


def test_small_domains_and_folds():
    few = np.r_[DOMAINS[:-3], ["d"] * 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        with pytest.warns(FoldsReducedWarning, match="domain 'd' has only 3 rows"):
            ESTIMATORS["ddfa"]().fit(X, few)
    with pytest.raises(ValueError, match="domain 'd' has 1 row: none can be held out"):
        ESTIMATORS["ddfa"]().fit(X, np.r_[DOMAINS[:-1], ["d"]])


def test_fewer_rows_than_classes_in_a_domain(make):
    few = np.r_[DOMAINS[:-2], ["d"] * 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model = make(3).fit(X, few)
    assert_allclose(model.prevalence_.sum(axis=1), 1)


def test_more_classes_than_domains_are_said_once(make):
    model = make(4).set_params(check_identifiable=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, DOMAINS)
    texts = [str(warning.message) for warning in caught]
    said = [text for text in texts if "n_classes=4 cannot be told apart" in text]
    assert len(said) == 1
    assert model.prevalence_.shape == (3, 4)


def test_separable_data(make):
    """Every class in a domain of its own, and far from all others."""
    rows = X[:, :2] * 0.1 + np.repeat(np.arange(3), 40)[:, None] * 50
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model = make(3).fit(rows, DOMAINS)
    assert_allclose(model.prevalence_.max(axis=1), 1, atol=0.02)
    assert len({tuple(row.round()) for row in model.prevalence_}) == 3
    assert np.isfinite(model.score(rows, DOMAINS))
    assert np.isfinite(model.predict_proba(rows[::-1], DOMAINS)).all()


# ---- stages of DDFA that cannot serve ---------------------------------------------


class Forgetful(LogisticRegression):
    """Says NaN of every third row."""

    def predict_proba(self, X):
        proba = super().predict_proba(X)
        proba[::3] = np.nan
        return proba


@pytest.mark.parametrize(
    ("discriminator", "message"),
    [
        (LinearSVC(), "LinearSVC has no predict_proba"),
        (LogisticRegression, "an object, not its class"),
        (Forgetful(), r"Forgetful.predict_proba has NaN .* \(first in row 0\)"),
        (lambda X: np.full((len(X), 3), np.nan), "function has NaN or infinite"),
        (lambda X: np.full((len(X), 3), 0.3), "must sum to 1, row 0 sums to 0.9"),
        (lambda X: np.full((len(X), 2), 0.5), "returned 2 columns for 3 domains"),
        (
            FrozenEstimator(
                LogisticRegression().fit(X, np.repeat(["a", "b", "z"], 40))
            ),
            "no column for domain 'c', it knows",
        ),
        ("forest", "unknown discriminator 'forest'"),
    ],
    ids=[
        "no proba",
        "class",
        "NaN",
        "NaN function",
        "0.9",
        "columns",
        "frozen",
        "name",
    ],
)
def test_discriminators_that_cannot_serve(discriminator, message):
    with pytest.raises((TypeError, ValueError), match=message) as caught:
        DDFA(2, discriminator=discriminator).fit(X, DOMAINS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("discretizer", "message"),
    [
        (2, "discretizer makes 2 clusters, too few for n_classes=3"),
        (KMeansDiscretizer(2), "discretizer makes 2 clusters, too few for n_classes=3"),
        (DOMAINS == "a", "2 clusters are too few for n_classes=3"),
        (0, "discretizer makes 0 clusters"),
        (4.0, "must be a whole number of clusters, got 4.0"),
        (True, "must be a whole number of clusters, got True"),
        (DOMAINS[:-1], "has 119 clusters for 120 rows of X"),
        ([*DOMAINS, "a"], "has 121 clusters for 120 rows of X"),
        (GivenClusters(DOMAINS[1:]), "has 119 clusters for 120 rows of X"),
        (np.c_[DOMAINS, DOMAINS], "clusters must be one-dimensional"),
        ("spectral", "discretizer must be 'kmeans', None, a number"),
        (KMeansDiscretizer, "an object, a function or the cluster of each row, got <c"),
        (object(), "an object, a function or the cluster of each row, got <object"),
    ],
    ids=range(13),
)
def test_discretizers_that_cannot_serve(discretizer, message):
    model = DDFA(3, discriminator="logistic", discretizer=discretizer, random_state=0)
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(X, DOMAINS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["magic", 3, ["em"], Adjuster], ids=str)
@pytest.mark.parametrize("name", ["factorizer", "adjuster"])
def test_stages_that_are_none(name, value):
    message = f"{name} must be .* or an object, got {re.escape(repr(value))}"
    with pytest.raises(ValueError, match=message):
        DDFA(2, **{name: value}).fit(X, DOMAINS)


def test_fewer_clusters_than_classes_only_as_published():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("always", IdentifiabilityWarning)
        with pytest.warns(IdentifiabilityWarning):
            published(3, n_clusters=2, discriminator="logistic", random_state=0).fit(
                X, DOMAINS
            )


@pytest.mark.parametrize("case", ["identical rows", "k = r", "k = r = 2", "outlier"])
def test_the_mixture_at_its_limits(case):
    rows, domains, k = X, DOMAINS, 2
    if case == "k = r":
        k = 3
    elif case == "k = r = 2":
        rows, domains = X[:80], DOMAINS[:80]
    elif case == "outlier":
        rows = with_cell(1e12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        if case == "identical rows":
            with pytest.raises(ValueError, match="only constant columns"):
                ESTIMATORS["mixture"]().fit(np.ones_like(X), domains)
            return
        model = ESTIMATORS["mixture"](k).fit(rows, domains)
    assert np.isfinite(model.weights_).all()
    assert np.abs(model.weights_).max() < 1e3
    assert model.prevalence_.shape == (len(np.unique(domains)), k)


def test_a_thousand_domains_of_five_rows():
    rng = np.random.default_rng(1)
    domains = np.repeat(np.arange(1000), 5)
    hidden = rng.random(5000) < np.repeat(rng.random(1000), 5)
    rows = rng.normal(size=(5000, 2)) + 5 * hidden[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        model = ESTIMATORS["mixture"]().fit(rows, domains)
    assert (
        np.mean(model.labels_ == hidden) > 0.95
        or np.mean(model.labels_ != hidden) > 0.95
    )


@pytest.mark.parametrize(
    ("prevalence", "message"),
    [
        ([-0.2, 0.7, 0.5], "prevalence must not be negative, got -0.2"),
        ([0.5, 0.4, 0.2], "prevalence must sum to 1, sums to 1.1"),
        ([0.5, 0.5], "one finite entry per class \\(3\\), got shape \\(2,\\)"),
        ("abc", "prevalence must be one number per class, got 'abc'"),
    ],
)
def test_prevalences_that_are_none(prevalence, message):
    rows, domains, _ = make_latent_shift(200, n_classes=3, n_domains=4, random_state=0)
    model = DomainMixture(3, search=False, random_state=0).fit(rows, domains)
    with pytest.raises(ValueError, match=message):
        model.predict_proba(rows[:2], prevalence=prevalence)
