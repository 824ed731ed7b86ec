"""Checks for estimators with ``fit(X, domains)``: one promise of the contract each."""

import copy
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from shoal.exceptions import DomainMissingError, UnseenDomainWarning
from shoal.probability import (
    canonical_order,
    domain_given_class,
    match_rows,
    shift_prior,
)
from support.battery import Check, must_raise, parametrize, run_checks

__all__ = [
    "DomainProblem",
    "check_domain_estimator",
    "domain_checks",
    "make_domain_problem",
    "parametrize_with_domain_checks",
]

Array = np.ndarray[Any, Any]

# Solvers that stop when a whole batch has converged may differ in late digits.
SAME_ROW = 1e-6
# Renaming domains may reorder folds and starts; the solution must be the same one.
SAME_SOLUTION = 0.05


@dataclass(frozen=True)
class DomainProblem:
    """Rows and where they come from; domains are 0, 1, ..., each with several rows."""

    X: Array
    domains: Array


def make_domain_problem(n_classes: int = 2, *, seed: int = 0) -> DomainProblem:
    """Draw well separated blobs in ``n_classes + 2`` domains, on a grid of steps 0.5.

    The grid gives estimators for finite inputs words that occur again and again.
    """
    rng = np.random.default_rng(seed)
    n_domains, n_rows = n_classes + 2, 60
    prevalence = rng.dirichlet(np.ones(n_classes), size=n_domains)
    prevalence[:n_classes] = 0.8 * np.eye(n_classes) + 0.2 / n_classes
    domains = rng.permutation(np.repeat(np.arange(n_domains), n_rows))
    labels = np.array([rng.choice(n_classes, p=prevalence[d]) for d in domains])
    centers = 6 * np.eye(n_classes)
    noise = 0.8 * rng.normal(size=(len(labels), n_classes))
    return DomainProblem(np.round(2 * (centers[labels] + noise)) / 2, domains)


def domain_checks() -> list[Check]:
    """List the checks of the battery, so that a test can count what ran."""
    return [
        check_fitted_attributes,
        check_fit_by_position_and_keyword,
        check_domains_of_any_kind,
        check_renaming_domains_permutes_prevalence,
        check_labels_and_predict_agree,
        check_predict_is_the_most_probable_class,
        check_probabilities_sum_to_one,
        check_scalar_and_array_domain_agree,
        check_missing_domain_is_the_equal_mix,
        check_posteriors_follow_bayes_rule,
        check_unseen_domain_raises,
        check_fit_without_domains_raises,
        check_fit_with_one_domain_raises,
        check_lengths_that_differ_raise,
        check_predict_before_fit_raises,
        check_transform_is_predict_proba,
        check_feature_names_out,
        check_score_is_a_finite_float,
        check_classes_are_in_canonical_order,
        check_clone_and_refit,
        check_set_output,
        check_deepcopy_predicts_alike,
        check_input_is_not_modified,
        check_row_alone_and_in_batch,
    ]


def check_domain_estimator(
    estimator: Any, *, problem: DomainProblem | None = None
) -> list[str]:
    """Hold an estimator to shoal's contract; the first broken promise raises.

    Parameters
    ----------
    estimator : estimator instance
        With its seed set; it is cloned, never changed.
    problem : DomainProblem, default=None
        Rows to fit; :func:`make_domain_problem` for its ``n_classes`` when None.

    Returns
    -------
    list of str
        Names of the checks that ran.
    """
    return run_checks(domain_checks(), estimator, problem)


def parametrize_with_domain_checks(
    estimators: Iterable[Any], *, problem: DomainProblem | None = None
) -> Any:
    """Decorate a test so that it runs once for each estimator and check.

    The test takes ``estimator`` and ``check`` and calls ``check(estimator)``.
    """
    return parametrize(domain_checks(), estimators, problem)


def _problem(estimator: Any, problem: DomainProblem | None) -> tuple[Array, Array]:
    if problem is None:
        n_classes = getattr(estimator, "n_classes", None)
        problem = make_domain_problem(n_classes or 2)
    return problem.X.copy(), problem.domains.copy()


# ---- fit --------------------------------------------------------------------------


def check_fitted_attributes(estimator: Any, problem: Any = None) -> None:
    """Fit returns self and sets attributes of the promised shapes."""
    X, domains = _problem(estimator, problem)
    assert estimator.fit(X, domains) is estimator, "fit must return self"
    n_domains = len(np.unique(domains))
    assert_array_equal(estimator.domains_, np.unique(domains))
    prevalence = estimator.prevalence_
    assert prevalence.shape == (n_domains, estimator.n_classes_), "prevalence_.shape"
    assert (prevalence >= 0).all(), "prevalence_ has negative entries"
    assert_allclose(prevalence.sum(axis=1), 1, atol=1e-6)
    expected = domain_given_class(prevalence, estimator.domain_weight_)
    assert_allclose(estimator.domain_given_class_, expected, atol=1e-8)
    assert estimator.labels_.shape == domains.shape, "labels_.shape"
    assert estimator.n_features_in_ == X.shape[1], "n_features_in_"
    assert not hasattr(estimator, "classes_"), "classes are not labels: no classes_"


def check_fit_by_position_and_keyword(estimator: Any, problem: Any = None) -> None:
    """``fit(X, d)``, ``fit(X, y=d)`` and ``fit(X, domains=d)`` are the same."""
    X, domains = _problem(estimator, problem)
    first = clone(estimator).fit(X, domains)
    for other in (
        clone(estimator).fit(X, y=domains),
        clone(estimator).fit(X, domains=domains),
    ):
        assert_array_equal(first.prevalence_, other.prevalence_)
        assert_array_equal(first.labels_, other.labels_)


def check_domains_of_any_kind(estimator: Any, problem: Any = None) -> None:
    """Strings, integers and integers beyond 64 bits name the same domains."""
    X, codes = _problem(estimator, problem)
    plain = clone(estimator).fit(X, codes)
    kinds: list[list[Any]] = [
        [f"domain {code:03d}" for code in range(codes.max() + 1)],
        [7 * code - 3 for code in range(codes.max() + 1)],
        [10**30 + code for code in range(codes.max() + 1)],
    ]
    for names in kinds:
        domains = [names[code] for code in codes]
        fitted = clone(estimator).fit(X, domains)
        assert list(fitted.domains_) == names, f"domains_ must be {names}"
        assert_array_equal(fitted.prevalence_, plain.prevalence_)
        assert_array_equal(fitted.predict(X, domains), plain.predict(X, codes))
        alone = fitted.predict_proba(X[:3], names[0])
        assert_array_equal(alone, plain.predict_proba(X[:3], 0))


def check_renaming_domains_permutes_prevalence(
    estimator: Any, problem: Any = None
) -> None:
    """Names that sort the other way turn the rows of ``prevalence_`` around."""
    X, codes = _problem(estimator, problem)
    first = clone(estimator).fit(X, codes).prevalence_
    second = clone(estimator).fit(X, codes.max() - codes).prevalence_[::-1]
    second = second[:, match_rows(first.T, second.T)]
    assert_allclose(first, second, rtol=0, atol=SAME_SOLUTION)


def check_fit_without_domains_raises(estimator: Any, problem: Any = None) -> None:
    """Fit must be told where rows come from."""
    X, _ = _problem(estimator, problem)
    must_raise(DomainMissingError, "fit without domains", estimator.fit, X)


def check_fit_with_one_domain_raises(estimator: Any, problem: Any = None) -> None:
    """One domain has nothing to compare with."""
    X, _ = _problem(estimator, problem)
    must_raise(ValueError, "one domain", estimator.fit, X, ["a"] * len(X), match="one")


def check_lengths_that_differ_raise(estimator: Any, problem: Any = None) -> None:
    """One domain per row, in fit and in predict."""
    X, domains = _problem(estimator, problem)
    fewer = domains[:-1]
    must_raise(ValueError, "too few domains in fit", estimator.fit, X, fewer)
    fitted = clone(estimator).fit(X, domains)
    must_raise(ValueError, "too few domains in predict", fitted.predict, X, fewer)


# ---- predict ----------------------------------------------------------------------


def check_labels_and_predict_agree(estimator: Any, problem: Any = None) -> None:
    """``labels_ == fit_predict(X, d) == predict(X, d)``."""
    X, domains = _problem(estimator, problem)
    fitted = clone(estimator).fit(X, domains)
    assert_array_equal(fitted.labels_, fitted.predict(X, domains))
    assert_array_equal(fitted.labels_, clone(estimator).fit_predict(X, domains))
    by_keyword = clone(estimator).fit_predict(X, domains=domains)
    assert_array_equal(fitted.labels_, by_keyword)


def check_predict_is_the_most_probable_class(
    estimator: Any, problem: Any = None
) -> None:
    """Predict is the arg max of predict_proba, an index from 0."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    for given in (domains, None, 0):
        predicted = fitted.predict(X, given)
        assert predicted.dtype.kind == "i", "predict must return integers"
        assert_array_equal(predicted, fitted.predict_proba(X, given).argmax(axis=1))


def check_probabilities_sum_to_one(estimator: Any, problem: Any = None) -> None:
    """Rows of predict_proba are distributions over the classes."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    for given in (domains, None, 0):
        proba = fitted.predict_proba(X, given)
        assert proba.shape == (len(X), fitted.n_classes_), "predict_proba shape"
        assert (proba >= 0).all(), "predict_proba has negative entries"
        assert_allclose(proba.sum(axis=1), 1, atol=1e-6)


def check_scalar_and_array_domain_agree(estimator: Any, problem: Any = None) -> None:
    """One domain for all rows is the same as an array that repeats it."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    for domain in np.unique(domains):
        repeated = np.full(len(X), domain)
        scalar = fitted.predict_proba(X, domain)
        assert_array_equal(scalar, fitted.predict_proba(X, repeated))
        inside = domains == domain
        mixed = fitted.predict_proba(X, domains)[inside]
        assert_allclose(scalar[inside], mixed, rtol=0, atol=SAME_ROW)


def check_missing_domain_is_the_equal_mix(estimator: Any, problem: Any = None) -> None:
    """Without domains, the class mix is the mean over the training domains."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    missing = fitted.predict_proba(X)
    assert_array_equal(missing, fitted.predict_proba(X, None))
    mix = fitted.prevalence_.mean(axis=0)
    same = fitted.predict_proba(X, prevalence=mix / mix.sum())
    assert_allclose(missing, same, rtol=1e-6, atol=1e-9)


def check_posteriors_follow_bayes_rule(estimator: Any, problem: Any = None) -> None:
    """p_d(y|x) is proportional to q(y|x) p_d(y) / q(y) in every domain (Lemma 2)."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    mix, missing = fitted.prevalence_.mean(axis=0), fitted.predict_proba(X)
    for row, domain in enumerate(fitted.domains_):
        expected = shift_prior(missing, mix, fitted.prevalence_[row])
        got = fitted.predict_proba(X, domain)
        # Bayes' rule is silent where the domain has no class that x could be.
        possible = missing @ fitted.prevalence_[row] > 1e-6
        assert_allclose(got[possible], expected[possible], rtol=1e-5, atol=1e-6)


def check_unseen_domain_raises(estimator: Any, problem: Any = None) -> None:
    """Domains that fit has not seen raise an error that names them."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    unseen = domains.copy()
    unseen[1] = 99
    for given in (99, unseen):
        for method in (fitted.predict, fitted.predict_proba, fitted.score):
            what = f"domain 99 in {method.__name__}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnseenDomainWarning)  # of score
                must_raise(ValueError, what, method, X, given, match="99")


def check_predict_before_fit_raises(estimator: Any, problem: Any = None) -> None:
    """Every method that needs a fit says so."""
    X, domains = _problem(estimator, problem)
    for name in ("predict", "predict_proba", "transform", "score"):
        arguments = (X,) if name == "transform" else (X, domains)
        method = getattr(estimator, name)
        must_raise(NotFittedError, f"{name} before fit", method, *arguments)


def check_row_alone_and_in_batch(estimator: Any, problem: Any = None) -> None:
    """Rows get the same probabilities alone and among others."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    batch = fitted.predict_proba(X, domains)
    for row in range(0, len(X), 40):
        alone = fitted.predict_proba(X[[row]], domains[[row]])[0]
        assert_allclose(alone, batch[row], rtol=0, atol=SAME_ROW)
    half = fitted.predict_proba(X[::-2], domains[::-2])
    assert_allclose(half, batch[::-2], rtol=0, atol=SAME_ROW)


# ---- transform, score, order ------------------------------------------------------


def check_transform_is_predict_proba(estimator: Any, problem: Any = None) -> None:
    """``transform(X)`` is ``predict_proba(X)``, and so is ``fit_transform``."""
    X, domains = _problem(estimator, problem)
    fitted = clone(estimator).fit(X, domains)
    assert_array_equal(fitted.transform(X), fitted.predict_proba(X))
    together = clone(estimator).fit_transform(X, domains)
    assert_allclose(together, fitted.transform(X), rtol=1e-9)


def check_feature_names_out(estimator: Any, problem: Any = None) -> None:
    """Columns of transform are called like the classes: c0, c1, ..., or their names."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    names = fitted.get_feature_names_out()
    expected = [f"c{index}" for index in range(estimator.n_classes_)]
    named = fitted.set_names({"c0": "first"}).get_feature_names_out()
    assert list(named) == ["first", *expected[1:]], f"names given: {list(named)}"
    assert list(names) == expected, f"get_feature_names_out() is {list(names)}"


def check_score_is_a_finite_float(estimator: Any, problem: Any = None) -> None:
    """Score is a log-likelihood: a finite float, not above 0, by either name."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    score = fitted.score(X, domains)
    assert isinstance(score, float), f"score must be a float, got {type(score)}"
    assert np.isfinite(score), f"score is {score}"
    assert score <= 0, "score must be a mean log-likelihood"
    assert score == fitted.score(X, domains=domains), "score by keyword differs"
    equal = fitted.score(X, domains, sample_weight=np.full(len(X), 2.0))
    assert_allclose(score, equal)


def check_classes_are_in_canonical_order(estimator: Any, problem: Any = None) -> None:
    """Classes come in decreasing mean prevalence."""
    X, domains = _problem(estimator, problem)
    prevalence = estimator.fit(X, domains).prevalence_
    assert_array_equal(canonical_order(prevalence), np.arange(prevalence.shape[1]))


# ---- good manners -----------------------------------------------------------------


def check_clone_and_refit(estimator: Any, problem: Any = None) -> None:
    """Clones are not fitted, and learn the same from the same rows and seed."""
    X, domains = _problem(estimator, problem)
    fitted = clone(estimator).fit(X, domains)
    copied = clone(fitted)
    assert not hasattr(copied, "prevalence_"), "a clone must not be fitted"
    assert_array_equal(copied.fit(X, domains).prevalence_, fitted.prevalence_)
    assert_array_equal(fitted.fit(X, domains).prevalence_, copied.prevalence_)


def check_set_output(estimator: Any, problem: Any = None) -> None:
    """Transform gives pandas and polars frames when asked to."""
    X, domains = _problem(estimator, problem)
    plain = clone(estimator).fit(X, domains).transform(X)
    for library in ("pandas", "polars"):
        try:
            frame_type = __import__(library).DataFrame
        except ImportError:
            continue
        fitted = clone(estimator).set_output(transform=library).fit(X, domains)
        frame = fitted.transform(X)
        assert isinstance(frame, frame_type), f"transform must give a {library} frame"
        assert list(frame.columns) == list(fitted.get_feature_names_out())
        assert_allclose(frame.to_numpy(), plain)


def check_deepcopy_predicts_alike(estimator: Any, problem: Any = None) -> None:
    """Deep copies predict the same and share nothing."""
    X, domains = _problem(estimator, problem)
    fitted = estimator.fit(X, domains)
    before = fitted.predict_proba(X, domains)
    twin = copy.deepcopy(fitted)
    assert_array_equal(twin.predict_proba(X, domains), before)
    twin.prevalence_[...] = 0
    twin.domain_given_class_[...] = 0
    assert_array_equal(fitted.predict_proba(X, domains), before)


def check_input_is_not_modified(estimator: Any, problem: Any = None) -> None:
    """X and domains may be read-only, and stay what they were."""
    X, domains = _problem(estimator, problem)
    kept_X, kept_domains = X.copy(), domains.copy()
    clone(estimator).fit(X, domains).predict(X, domains)
    assert_array_equal(X, kept_X, err_msg="X was modified")
    assert_array_equal(domains, kept_domains, err_msg="domains was modified")
    X.setflags(write=False)
    domains.setflags(write=False)
    clone(estimator).fit(X, domains).predict(X, domains)
