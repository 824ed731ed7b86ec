"""scikit-learn's battery and our own on every estimator of rows."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from shoal import DDFA, DensityMixture, DiscreteMixture, DomainMixture
from support import (
    check_domain_estimator,
    domain_checks,
    parametrize_with_domain_checks,
)
from support.battery import fitted_state

QUICK = [
    DDFA(2, discriminator="logistic", random_state=0),
    DensityMixture(2, n_init=4, random_state=0),
    DensityMixture(2, n_init=4, n_components=2, random_state=0),
    DiscreteMixture(2, random_state=0),
    DiscreteMixture(2, n_words=8, random_state=0),
    DomainMixture(2, search=False, random_state=0),
]


@pytest.mark.parametrize(
    ("estimator", "least"),
    [
        pytest.param(DDFA(), 54, id="ddfa, as it comes"),
        pytest.param(
            DDFA(2, discriminator="logistic", random_state=0), 54, id="ddfa, logistic"
        ),
        pytest.param(
            DDFA(2, discriminator="logistic", discretizer=None, random_state=0),
            54,
            id="ddfa, corners",
        ),
        pytest.param(
            DensityMixture(), 53, id="density, as it comes", marks=pytest.mark.slow
        ),
        pytest.param(
            DensityMixture(2, n_init=4, random_state=0), 53, id="density, k given"
        ),
        pytest.param(DiscreteMixture(), 47, id="words, as it comes"),
        pytest.param(DiscreteMixture(2), 47, id="words, k given"),
        pytest.param(DiscreteMixture(2, n_words=4), 47, id="clusters"),
        pytest.param(
            DiscreteMixture(representation="pca", n_words=6), 47, id="components"
        ),
        pytest.param(
            DomainMixture(), 54, id="mixture, as it comes", marks=pytest.mark.slow
        ),
        pytest.param(
            DomainMixture(2, search=False, random_state=0), 54, id="mixture, quick"
        ),
    ],
)
def test_no_check_of_scikit_learn_fails(estimator, least):
    with warnings.catch_warnings():
        # its random rows hold no classes, which our estimators say
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] == "failed"]
    assert failed == []
    skipped = {r["check_name"] for r in results if r["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    assert sum(r["status"] == "passed" for r in results) >= least


@parametrize_with_domain_checks(QUICK)
def test_domain_contract(estimator, check):
    check(estimator)
    assert fitted_state(estimator) == {}  # a copy was looked at


def test_the_battery_is_not_empty():
    assert len(domain_checks()) == 24


@pytest.mark.slow
def test_the_mixture_keeps_the_contract_as_it_comes():
    assert len(check_domain_estimator(DomainMixture(random_state=0))) == 24
