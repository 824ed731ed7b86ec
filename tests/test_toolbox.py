"""Every estimator of rows inside scikit-learn's tools."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DDFA, DiscreteMixture, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.exceptions import UnseenDomainWarning


@pytest.fixture(scope="module")
def rows():
    return make_latent_shift(
        900, n_classes=2, n_domains=4, n_features=3, separation=2.0, random_state=1
    )[:2]


@pytest.fixture(params=["ddfa", "clusters", "mixture"])
def estimator(request):
    if request.param == "ddfa":
        return DDFA(2, discriminator="logistic", cross_fit=2, random_state=0)
    if request.param == "clusters":
        return DiscreteMixture(2, n_words=6, random_state=0)
    return DomainMixture(2, search=False, random_state=0)


def test_pipeline(estimator, rows):
    X, domains = rows
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, domains)
    assert pipeline.predict(X).shape == (900,)
    assert np.isfinite(pipeline.score(X, domains))
    expected = pipeline.transform(X)
    for kind in ("pandas", "polars"):
        framed = make_pipeline(StandardScaler(), estimator).set_output(transform=kind)
        table = framed.fit(X, domains).transform(X)
        assert type(table).__module__.startswith(kind)
        assert list(table.columns) == ["c0", "c1"]
        assert_allclose(table.to_numpy(), expected)


def test_tables_of_any_kind_are_the_same_rows(estimator, rows):
    X, domains = rows
    model = estimator.fit(X, domains)
    expected = model.prevalence_
    names = ["a", "b", "c"]
    pandas_X = pd.DataFrame(X, columns=names)
    polars_X = pl.DataFrame(X, schema=names)
    for table, column in (
        (pandas_X, pd.Series(domains)),
        (polars_X, pl.Series(domains)),
        (polars_X, pl.Series([f"site {domain}" for domain in domains])),
    ):
        fitted = sklearn.base.clone(estimator).fit(table, column)
        assert_allclose(fitted.prevalence_, expected)
        assert fitted.feature_names_in_.tolist() == names
        assert_allclose(fitted.predict_proba(table), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(polars_X.rename({"a": "z"}))


def test_search_stratified_by_domain(estimator, rows):
    """Scores are those of fits by hand, and the best of them is taken."""
    X, domains = rows
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(estimator, {"n_classes": [2, 3]}, cv=folds).fit(X, domains)
    by_hand = {
        k: np.mean(
            [
                sklearn.base.clone(estimator)
                .set_params(n_classes=k)
                .fit(X[train], domains[train])
                .score(X[test], domains[test])
                for train, test in folds.split(X, domains)
            ]
        )
        for k in (2, 3)
    }
    assert_allclose(search.cv_results_["mean_test_score"], list(by_hand.values()))
    assert search.best_params_["n_classes"] == max(by_hand, key=by_hand.get)
    assert search.predict(X).shape == (900,)
    scores = cross_validate(estimator, X, domains, cv=folds)["test_score"]
    assert_allclose(scores.mean(), by_hand[2])


def test_plain_folds_of_a_sorted_table_leave_whole_domains_out(estimator, rows):
    X, domains = rows
    order = np.argsort(domains, kind="stable")
    message = r"not seen: 0; known: 1, 2, 3\. .* StratifiedKFold\(shuffle=True\)"
    told = pytest.warns(UnseenDomainWarning, match=r"StratifiedKFold\(shuffle=True\)")
    with pytest.raises(ValueError, match=message), told:
        cross_validate(
            estimator, X[order], domains[order], cv=KFold(4), error_score="raise"
        )


@pytest.mark.filterwarnings("ignore:Scoring failed", "ignore:One or more of the test")
def test_a_search_over_sorted_rows_warns(estimator, rows):
    """By default it goes on without scores, and takes the first of its settings."""
    X, domains = rows
    order = np.argsort(domains, kind="stable")
    search = GridSearchCV(estimator, {"n_classes": [2, 3]}, cv=4)
    with pytest.warns(UnseenDomainWarning, match="no score: domains has values"):
        search.fit(X[order], domains[order])
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


def test_domains_by_metadata_routing(estimator, rows):
    X, domains = rows
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler(), estimator.set_fit_request(domains=True)
        ).fit(X, domains=domains)
    plain = make_pipeline(StandardScaler(), sklearn.base.clone(estimator))
    plain.fit(X, domains)
    assert_allclose(routed[-1].prevalence_, plain[-1].prevalence_)


def test_search_by_metadata_routing(estimator, rows):
    """Also where y is not there at all, inside a pipeline and out of it."""
    X, domains = rows
    folds = KFold(2, shuffle=True, random_state=0)
    grid = {"n_classes": [2, 3]}
    with sklearn.config_context(enable_metadata_routing=True):
        asking = estimator.set_fit_request(domains=True).set_score_request(domains=True)
        plain = GridSearchCV(asking, grid, cv=folds).fit(X, domains=domains)
        name = type(estimator).__name__.lower()
        piped = GridSearchCV(
            make_pipeline(StandardScaler(), asking),
            {f"{name}__{key}": values for key, values in grid.items()},
            cv=folds,
        ).fit(X, domains=domains)
    for search in (plain, piped):
        scores = search.cv_results_["mean_test_score"]
        assert np.isfinite(scores).all()
        assert (scores > -np.log(4) - 0.1).all()
        assert search.predict(X).shape == (900,)
