"""scikit-learn's own checks of every estimator of the stage, their number asserted."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from shoal.stages.discriminate import (
    Discriminator,
    EarlyStoppedBoosting,
    EarlyStoppedMLP,
    OracleDiscriminator,
)
from shoal.stages.discriminate._named import LeadingComponents, RBFFeatures

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.SkipTestWarning",
    "ignore::shoal.exceptions.FoldsReducedWarning",  # some checks have tiny classes
)


def two_columns(X):
    return np.tile([0.25, 0.75], (len(X), 1))


def three_columns(X):
    return np.tile([0.2, 0.3, 0.5], (len(X), 1))


def four_columns(X):
    return np.full((len(X), 4), 0.25)


def statuses(results):
    by_status: dict = {"passed": [], "failed": [], "skipped": []}
    for result in results:
        by_status[result["status"]].append(result["check_name"])
    return by_status


@pytest.mark.parametrize(
    ("estimator", "n_passed"),
    [
        (Discriminator(LogisticRegression()), 62),
        (Discriminator(LogisticRegression(), cross_fit=None), 62),
        (Discriminator("auto"), 61),
        (EarlyStoppedMLP((32,), batch_size=32), 54),
        (EarlyStoppedBoosting(), 54),
        (RBFFeatures(), 46),
        (LeadingComponents(), 46),
    ],
    ids=["logistic", "in-sample", "auto", "mlp", "lightgbm", "rbf", "components"],
)
def test_no_check_fails(estimator, n_passed):
    if isinstance(estimator, EarlyStoppedBoosting):
        pytest.importorskip("lightgbm")
    by_status = statuses(check_estimator(estimator, on_fail=None))
    assert by_status["failed"] == []
    # Other versions of scikit-learn may have a few more or fewer.
    assert len(by_status["passed"]) >= n_passed - 5
    assert set(by_status["skipped"]) <= {"check_array_api_input"}


def test_every_check_passes_for_an_oracle_that_fits_it():
    # A function has a fixed number of columns, a check its own number of domains.
    passed, tried = set(), set()
    for function in (two_columns, three_columns, four_columns):
        by_status = statuses(
            check_estimator(OracleDiscriminator(function), on_fail=None)
        )
        passed.update(by_status["passed"])
        tried.update(by_status["passed"], by_status["failed"])
    # These two try two and three domains within one check.
    assert tried - passed == {"check_classifiers_classes", "check_classifiers_train"}
    assert len(passed) >= 50
