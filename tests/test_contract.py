"""scikit-learn's battery and our own on the estimators of rows."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

from shoal import DDFA, DomainMixture
from shoal.testing import domain_checks, parametrize_with_domain_checks


@pytest.mark.parametrize(
    ("estimator", "least"),
    [
        (DDFA(), 54),
        (DDFA(2, discriminator="logistic", random_state=0), 54),
        (DDFA(2, discriminator="logistic", discretizer=None, random_state=0), 54),
        (DomainMixture(2, search=False, random_state=0), 55),
    ],
    ids=["ddfa, k chosen", "ddfa", "ddfa, corners", "mixture"],
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


@parametrize_with_domain_checks(
    [
        DDFA(2, discriminator="logistic", random_state=0),
        DomainMixture(2, search=False, random_state=0),
    ]
)
def test_domain_contract(estimator, check):
    check(estimator)


def test_the_battery_is_not_empty():
    assert len(domain_checks()) == 24
