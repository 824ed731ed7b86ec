"""Batteries of checks for estimators that keep shoal's contract.

Beside scikit-learn's own ``check_estimator`` they hold our estimators, and those of
others, to what this library promises: domains of any kind, classes in a canonical
order, posteriors that follow Bayes' rule from domain to domain, and so on.

Examples
--------
In a test module::

    @parametrize_with_domain_checks([MyMixture(n_classes=2, random_state=0)])
    def test_domain_contract(estimator, check):
        check(estimator)

    def test_how_many_checks_there_are():
        assert len(domain_checks()) == 24
"""

from support.battery import EXPECTED_FAILURES
from support.domain import (
    DomainProblem,
    check_domain_estimator,
    domain_checks,
    make_domain_problem,
    parametrize_with_domain_checks,
)
from support.table import (
    TableProblem,
    check_table_estimator,
    make_table_problem,
    parametrize_with_table_checks,
    table_checks,
)

__all__ = [
    "EXPECTED_FAILURES",
    "DomainProblem",
    "TableProblem",
    "check_domain_estimator",
    "check_table_estimator",
    "domain_checks",
    "make_domain_problem",
    "make_table_problem",
    "parametrize_with_domain_checks",
    "parametrize_with_table_checks",
    "table_checks",
]
