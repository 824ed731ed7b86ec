"""The batteries pass on correct toys, and each check catches its broken toy."""

import copy

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

from shoal.base import LatentShiftEstimator
from shoal.probability import canonical_order, normalize_rows
from shoal.validation import check_X_domains
from support import (
    EXPECTED_FAILURES,
    DomainProblem,
    TableProblem,
    battery,
    check_domain_estimator,
    check_table_estimator,
    domain,
    domain_checks,
    make_domain_problem,
    make_table_problem,
    parametrize_with_domain_checks,
    parametrize_with_table_checks,
    table,
    table_checks,
)

# ---- a correct estimator of domains, and how to break it ---------------------------


class Toy(LatentShiftEstimator):
    """Two classes, told apart by the difference of the first and the last column."""

    def __init__(self, n_classes=2, random_state=None):
        self.n_classes = n_classes
        self.random_state = random_state

    def fit(self, X, y=None, *, domains=None):
        X, codes, names = check_X_domains(self, X, y if domains is None else domains)
        self.middle_ = (X[:, 0] - X[:, -1]).mean()
        soft = self._soft(X)
        prevalence = np.stack(
            [soft[codes == c].mean(axis=0) for c in range(len(names))]
        )
        self.order_ = self._order(prevalence)
        equal = np.full(len(names), 1 / len(names))
        self._store(prevalence[:, self.order_], names, equal)
        self.labels_ = LatentShiftEstimator.predict(self, X, names[codes])
        return self

    def _order(self, prevalence):
        return canonical_order(prevalence)

    def _soft(self, X):
        first = expit(X[:, 0] - X[:, -1] - self.middle_)
        return np.column_stack([first, 1 - first])

    def _class_given_x(self, X):
        return self._soft(X)[:, self.order_]


def no_self(self, X, y=None, *, domains=None):
    Toy.fit(self, X, y, domains=domains)


def other_by_keyword(self, X, y=None, *, domains=None):
    return Toy.fit(self, X, y if domains is None else np.roll(domains, 7))


def numbered_domains(self, X, y=None, *, domains=None):
    Toy.fit(self, X, y, domains=domains)
    self.domains_ = np.arange(len(self.domains_))
    return self


def sorted_prevalence(self, prevalence, domains, domain_weight):
    Toy._store(self, np.sort(prevalence, axis=0), domains, domain_weight)


def swapped_labels(self, X, y=None, *, domains=None):
    Toy.fit(self, X, y, domains=domains)
    self.labels_ = 1 - self.labels_
    return self


def least_probable(self, X, domains=None):
    return self.predict_proba(X, domains).argmin(axis=1)


def doubled(self, X, domains=None, *, prevalence=None):
    return 2 * Toy.predict_proba(self, X, domains, prevalence=prevalence)


def deaf_to_scalars(self, X, domains=None, *, prevalence=None):
    domains = None if np.ndim(domains) == 0 else domains
    return Toy.predict_proba(self, X, domains, prevalence=prevalence)


def first_domain_when_missing(self, X, domains=None, *, prevalence=None):
    if domains is None and prevalence is None:
        domains = self.domains_[0]
    return Toy.predict_proba(self, X, domains, prevalence=prevalence)


def deaf_to_domains(self, X, domains=None, *, prevalence=None):
    return Toy.predict_proba(self, X, prevalence=prevalence)


def forgiving(self, X, domains=None, *, prevalence=None):
    try:
        return Toy.predict_proba(self, X, domains, prevalence=prevalence)
    except ValueError:
        return Toy.predict_proba(self, X)


def invents_domains(self, X, y=None, *, domains=None):
    given = y if domains is None else domains
    return Toy.fit(self, X, np.arange(len(X)) % 3 if given is None else given)


def splits_one_domain(self, X, y=None, *, domains=None):
    given = y if domains is None else domains
    if given is not None and len(set(given)) == 1:
        given = np.arange(len(X)) % 2
    return Toy.fit(self, X, given)


def pads_domains(self, X, y=None, *, domains=None):
    given = y if domains is None else domains
    return Toy.fit(self, X, None if given is None else np.resize(given, len(X)))


def guesses_before_fit(self, X, domains=None):
    if not hasattr(self, "prevalence_"):
        return np.zeros(len(X), dtype=int)
    return Toy.predict(self, X, domains)


def hardened(self, X):
    return np.round(self.predict_proba(X))


def short_names(self, input_features=None):
    return np.array([f"c{index}" for index in range(self.n_classes_)], dtype=object)


def positive_score(self, X, y=None, *, domains=None, sample_weight=None):
    return -Toy.score(self, X, y, domains=domains, sample_weight=sample_weight)


def reversed_order(self, prevalence):
    return canonical_order(prevalence)[::-1]


def jittered(self, prevalence, domains, domain_weight):
    noise = np.random.default_rng().uniform(0, 1e-3, size=prevalence.shape)
    Toy._store(self, normalize_rows(prevalence + noise), domains, domain_weight)


def no_frames(self, *, transform=None):
    return self


def myself(self, memo):
    return self


def scales_in_place(self, X, y=None, *, domains=None):
    X -= X.mean(axis=0)
    return Toy.fit(self, X, y, domains=domains)


def centres_each_batch(self, X):
    first = expit(X[:, 0] - X[:, -1] - (X[:, 0] - X[:, -1]).mean())
    return np.column_stack([first, 1 - first])


BROKEN = {
    "check_fitted_attributes": {"fit": no_self},
    "check_fit_by_position_and_keyword": {"fit": other_by_keyword},
    "check_domains_of_any_kind": {"fit": numbered_domains},
    "check_renaming_domains_permutes_prevalence": {"_store": sorted_prevalence},
    "check_labels_and_predict_agree": {"fit": swapped_labels},
    "check_predict_is_the_most_probable_class": {"predict": least_probable},
    "check_probabilities_sum_to_one": {"predict_proba": doubled},
    "check_scalar_and_array_domain_agree": {"predict_proba": deaf_to_scalars},
    "check_missing_domain_is_the_equal_mix": {
        "predict_proba": first_domain_when_missing
    },
    "check_posteriors_follow_bayes_rule": {"predict_proba": deaf_to_domains},
    "check_unseen_domain_raises": {"predict_proba": forgiving},
    "check_fit_without_domains_raises": {"fit": invents_domains},
    "check_fit_with_one_domain_raises": {"fit": splits_one_domain},
    "check_lengths_that_differ_raise": {"fit": pads_domains},
    "check_predict_before_fit_raises": {"predict": guesses_before_fit},
    "check_transform_is_predict_proba": {"transform": hardened},
    "check_feature_names_out": {"get_feature_names_out": short_names},
    "check_score_is_a_finite_float": {"score": positive_score},
    "check_classes_are_in_canonical_order": {"_order": reversed_order},
    "check_clone_and_refit": {"_store": jittered},
    "check_set_output": {"set_output": no_frames},
    "check_deepcopy_predicts_alike": {"__deepcopy__": myself},
    "check_input_is_not_modified": {"fit": scales_in_place},
    "check_row_alone_and_in_batch": {"_soft": centres_each_batch},
}


@parametrize_with_domain_checks([Toy(), Toy(random_state=1)])
def test_a_correct_toy_passes(estimator, check):
    check(estimator)
    assert battery.fitted_state(estimator) == {}  # a copy was looked at


def test_the_toy_passes_scikit_learn_too():
    results = check_estimator(Toy(), on_fail=None, on_skip=None)
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert len(results) > 40


@pytest.mark.parametrize("check", domain_checks(), ids=lambda check: check.__name__)
def test_a_broken_toy_fails_the_check_meant_for_it(check):
    toy = type("BrokenToy", (Toy,), BROKEN[check.__name__])()
    check(Toy())
    with pytest.raises(AssertionError):
        check(toy)


def test_the_whole_domain_battery_stops_at_a_broken_promise():
    names = check_domain_estimator(Toy())
    assert names == list(BROKEN)
    assert len(names) == len(domain_checks()) == 24
    toy = type("BrokenToy", (Toy,), {"score": positive_score})()
    with pytest.raises(AssertionError, match="mean log-likelihood"):
        check_domain_estimator(toy)


def test_another_problem_may_be_given(seed):
    problem = make_domain_problem(3, seed=seed)
    assert isinstance(problem, DomainProblem)
    assert problem.X.shape == (300, 3)
    assert len(check_domain_estimator(Toy(), problem=problem)) == 24


def test_the_problem_is_a_shift_on_a_grid(seed):
    problem = make_domain_problem(seed=seed)
    assert np.unique(problem.domains, return_counts=True)[1].tolist() == [60] * 4
    assert (problem.X * 2 == np.round(problem.X * 2)).all()
    again = make_domain_problem(seed=seed)
    np.testing.assert_array_equal(problem.X, again.X)


# ---- a correct stage estimator, and how to break it --------------------------------


class Stage(BaseEstimator):
    """Mean row of a table; rows are told apart by the nearest of its two halves."""

    def __init__(self, scale=2, random_state=None):
        self.scale = scale
        self.random_state = random_state

    def fit(self, X, y=None):
        X = self._check(X, reset=True)
        self.center_ = self.scale * X.mean(axis=0)
        return self

    def _check(self, X, reset):
        X = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        if (X < 0).any():
            raise ValueError("X has negative values")
        if (np.abs(X.sum(axis=1) - 1) > 1e-5).any():
            raise ValueError("rows of X must sum to 1")
        return X

    def predict(self, X):
        check_is_fitted(self)
        return self._answer(self._check(X, reset=False))

    def _answer(self, X):
        return (X @ self.center_ > 1).astype(int)


def returns_none(self, X, y=None):
    Stage.fit(self, X)


def squares_scale(self, scale=2, random_state=None):
    self.scale = scale**2
    self.random_state = random_state


def clone_of_itself(self):
    return copy.deepcopy(self)


def noisy(self, X, y=None):
    Stage.fit(self, X)
    self.center_ = self.center_ + np.random.default_rng().normal(size=X.shape[1])
    return self


def remembers(self, X, y=None):
    past = getattr(self, "center_", 0)
    Stage.fit(self, X)
    self.center_ = self.center_ + past
    return self


def doubles_in_place(self, X, y=None):
    Stage.fit(self, X)
    if isinstance(X, np.ndarray) and X.flags.writeable:
        X *= 2
    return self


def lost_in_single(self, X):
    answer = Stage._answer(self, X)
    return answer * np.nan if X.dtype == np.float32 else answer


def wary_of_lists(self, X, y=None):
    Stage.fit(self, X)
    self.was_array_ = isinstance(X, np.ndarray)
    return self


def shifted_copy(self, memo):
    twin = type(self)(self.scale, self.random_state)
    if hasattr(self, "center_"):
        twin.center_ = self.center_ + 1
        twin.n_features_in_ = self.n_features_in_
    return twin


def zeros_before_fit(self, X):
    return Stage.predict(self, X) if hasattr(self, "center_") else np.zeros(len(X), int)


def ranks(self, X):
    return np.argsort(np.argsort(X @ self.center_))


def fills_gaps(self, X, y=None):
    X = np.array(X, dtype=float)
    return Stage.fit(self, normalize_rows(np.nan_to_num(X, posinf=0)))


def one_row_is_a_table(self, X, y=None):
    return Stage.fit(self, np.atleast_2d(X))


def clips(self, X, y=None):
    return Stage.fit(self, normalize_rows(np.maximum(X, 0)))


def rescales(self, X, y=None):
    X = np.asarray(X)
    good = X.ndim == 2 and np.isfinite(X).all()
    return Stage.fit(self, X / X.sum(axis=1, keepdims=True) if good else X)


BROKEN_STAGES = {
    "check_fit_returns_self": {"fit": returns_none},
    "check_parameters_are_kept": {"__init__": squares_scale},
    "check_clone_is_not_fitted": {"__sklearn_clone__": clone_of_itself},
    "check_same_seed_same_result": {"fit": noisy},
    "check_fit_forgets_the_past": {"fit": remembers},
    "check_table_is_not_modified": {"fit": doubles_in_place},
    "check_single_precision": {"_answer": lost_in_single},
    "check_lists_and_frames": {"fit": wary_of_lists},
    "check_deepcopy_is_equal": {"__deepcopy__": shifted_copy},
    "check_row_methods_before_fit": {"predict": zeros_before_fit},
    "check_row_alone_and_in_table": {"_answer": ranks},
    "check_nan_raises": {"fit": fills_gaps},
    "check_wrong_shapes_raise": {"fit": one_row_is_a_table},
    "check_negative_entries_raise": {"fit": clips},
    "check_row_sums_raise": {"fit": rescales},
}


@parametrize_with_table_checks([Stage(), Stage(scale=3)])
def test_a_correct_stage_passes(estimator, check):
    check(estimator)
    assert battery.fitted_state(estimator) == {}  # a copy was looked at


@pytest.mark.parametrize("check", table_checks(), ids=lambda check: check.__name__)
def test_a_broken_stage_fails_the_check_meant_for_it(check):
    problem = make_table_problem()
    stage = type("BrokenStage", (Stage,), BROKEN_STAGES[check.__name__])()
    check(Stage(), problem)
    with pytest.raises(AssertionError):
        check(stage, problem)


def test_the_whole_table_battery():
    names = check_table_estimator(Stage())
    assert names == list(BROKEN_STAGES)
    assert len(names) == len(table_checks()) == 15
    points = make_table_problem(stochastic=False)
    assert len(check_table_estimator(Stage(), problem=points)) == 13
    assert len(table_checks(stochastic=False)) == 13
    stage = type("BrokenStage", (Stage,), {"fit": rescales})()
    check_table_estimator(stage, problem=points)
    with pytest.raises(AssertionError, match="rows that sum to 0.9 must raise"):
        check_table_estimator(stage)


def test_tables_are_exact_products_with_anchors(seed):
    for n_classes in (2, 3):
        problem = make_table_problem(n_classes, seed=seed)
        assert isinstance(problem, TableProblem)
        assert np.linalg.matrix_rank(problem.table) == n_classes
        np.testing.assert_allclose(problem.table.sum(axis=1), 1)
        assert len(np.unique(problem.table, axis=0)) == 40 - 3 * n_classes


# ---- the machinery ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "listed"), [(domain, domain_checks()), (table, table_checks())]
)
def test_no_check_is_forgotten(module, listed):
    batteries = {"check_domain_estimator", "check_table_estimator"}
    written = {
        name
        for name, value in vars(module).items()
        if name.startswith("check_")
        and callable(value)
        and value.__module__ == module.__name__
    }
    assert {check.__name__ for check in listed} == written - batteries
    assert len(listed) == len({check.__name__ for check in listed})


def test_nothing_is_excused_and_excuses_become_xfail(monkeypatch):
    assert EXPECTED_FAILURES == {}
    excuse = {("Toy", "check_set_output"): "shown here only"}
    monkeypatch.setattr(battery, "EXPECTED_FAILURES", excuse)
    mark = parametrize_with_domain_checks([Toy()])
    marked = {case.id: [m.name for m in case.marks] for case in mark.args[1]}
    assert marked.pop("Toy-check_set_output") == ["xfail"]
    assert len(marked) == 23
    assert not any(marked.values())


def test_instances_not_classes():
    with pytest.raises(TypeError, match="pass an instance, not the class Toy"):
        parametrize_with_domain_checks([Toy])


def test_estimators_are_cloned():
    toy = Toy()
    check_domain_estimator(toy)
    assert not hasattr(toy, "prevalence_")
    assert clone(toy).get_params() == toy.get_params()
