"""DDFA and DomainMixture inside scikit-learn's tools."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DDFA, DomainMixture
from shoal.datasets import make_latent_shift


@pytest.fixture(scope="module")
def rows():
    return make_latent_shift(
        900, n_classes=2, n_domains=4, n_features=3, separation=2.0, random_state=1
    )[:2]


@pytest.fixture(params=["ddfa", "mixture"])
def estimator(request):
    if request.param == "ddfa":
        return DDFA(2, discriminator="logistic", cross_fit=2, random_state=0)
    return DomainMixture(2, search=False, random_state=0)


def test_pipeline(estimator, rows):
    X, domains = rows
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, domains)
    assert pipeline.predict(X).shape == (900,)
    assert np.isfinite(pipeline.score(X, domains))
    framed = make_pipeline(StandardScaler(), estimator).set_output(transform="pandas")
    table = framed.fit(X, domains).transform(X)
    assert list(table.columns) == ["class0", "class1"]


def test_search_stratified_by_domain(estimator, rows):
    X, domains = rows
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(estimator, {"n_classes": [2, 3]}, cv=folds).fit(X, domains)
    assert search.best_params_["n_classes"] in (2, 3)
    assert search.predict(X).shape == (900,)
    scores = cross_validate(estimator, X, domains, cv=folds)["test_score"]
    assert np.isfinite(scores).all()


def test_domains_by_metadata_routing(estimator, rows):
    X, domains = rows
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler(), estimator.set_fit_request(domains=True)
        ).fit(X, domains=domains)
    plain = make_pipeline(StandardScaler(), sklearn.base.clone(estimator))
    plain.fit(X, domains)
    assert_allclose(routed[-1].prevalence_, plain[-1].prevalence_)
