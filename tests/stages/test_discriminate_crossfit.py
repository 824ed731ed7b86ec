"""Out-of-fold q(d|x): who trains on what, weights, columns and shares."""

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from threadpoolctl import threadpool_info, threadpool_limits

from shoal.exceptions import FoldsReducedWarning
from shoal.probability import balance_domains, mean_log_likelihood, normalize_rows
from shoal.stages.discriminate._crossfit import (
    assign_folds,
    cross_fit_proba,
    domain_proba,
    fit_domain_model,
    takes_sample_weight,
    usable_folds,
)
from support.data import Says


class Unweightable(LogisticRegression):
    """A logistic regression whose fit takes no sample_weight."""

    def fit(self, X, y):
        return super().fit(X, y)


class Witness(ClassifierMixin, BaseEstimator):
    """Says "domain 0" about rows it was trained on and "domain 1" about others."""

    asked: list = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.seen_ = set(X[:, 0].tolist())
        return self

    def predict_proba(self, X):
        Witness.asked.append(X[:, 0].tolist())
        seen = np.array([row in self.seen_ for row in X[:, 0].tolist()], dtype=float)
        return np.column_stack([seen, 1 - seen])


class Backwards(LogisticRegression):
    """Lists its classes, and their columns, from last to first."""

    def fit(self, X, y):
        super().fit(X, y)
        self.classes_ = self.classes_[::-1]
        return self

    def predict_proba(self, X):
        self.classes_ = self.classes_[::-1]
        proba = super().predict_proba(X)[:, ::-1]
        self.classes_ = self.classes_[::-1]
        return proba


def linear_problem(rng, counts=(300, 100, 200), shift=1.0):
    """Unit Gaussians around different means: log q(d|x) is linear in x."""
    codes = np.repeat(np.arange(len(counts)), counts)
    centers = shift * np.eye(len(counts), 4)
    return centers[codes] + rng.normal(size=(len(codes), 4)), codes


def slow_domain_given_x(X, shift, domain_weight):
    """The true q(d|x) of the problem above, density by density."""
    centers = shift * np.eye(len(domain_weight), 4)
    density = [np.exp(-0.5 * ((X - center) ** 2).sum(axis=1)) for center in centers]
    return normalize_rows(np.column_stack(density) * domain_weight)


# ---- the minimizer of the cross-entropy (Appendix C) ---------------------------------


@pytest.mark.parametrize("weighting", ["rows", "wanted"])
def test_saturated_logistic_reaches_the_empirical_q(seed, weighting):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 40, size=(4, 3))  # rows of each input in each domain
    inputs, codes = (part.ravel() for part in np.indices(counts.shape))
    X = np.eye(4)[np.repeat(inputs, counts.ravel())]
    codes = np.repeat(codes, counts.ravel())
    share = counts.sum(axis=0) / counts.sum()
    wanted = None if weighting == "rows" else np.array([0.5, 0.2, 0.3])
    saturated = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-9)
    model, fitted = fit_domain_model(saturated, X, codes, 3, domain_weight=wanted)
    got = domain_proba(model, np.eye(4), np.arange(3), fitted_weight=fitted)
    target = share if wanted is None else wanted
    assert_allclose(got, normalize_rows(counts / share * target), atol=1e-5)


@given(
    st.lists(st.integers(1, 9), min_size=6, max_size=6),
    st.lists(st.floats(0.05, 1), min_size=6, max_size=6),
)
def test_no_table_beats_the_empirical_q(counts, other):
    counts = np.array(counts).reshape(2, 3)
    inputs, codes = (
        np.repeat(part.ravel(), counts.ravel()) for part in np.indices((2, 3))
    )
    share = counts.sum(axis=0) / counts.sum()
    best = mean_log_likelihood(normalize_rows(counts)[inputs], codes, share)
    other = normalize_rows(np.reshape(other, (2, 3)))[inputs]
    assert best >= mean_log_likelihood(other, codes, share) - 1e-12


# ---- weights and shares --------------------------------------------------------------


def test_weighting_and_correcting_agree_where_the_model_is_exact(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(5, 40, size=(4, 3))
    inputs, codes = (
        np.repeat(part.ravel(), counts.ravel()) for part in np.indices((4, 3))
    )
    X = np.eye(4)[inputs]
    wanted = np.array([0.6, 0.3, 0.1])
    results = []
    for kind in (LogisticRegression, Unweightable):
        saturated = kind(C=np.inf, fit_intercept=False, tol=1e-9)
        model, fitted = fit_domain_model(saturated, X, codes, 3, domain_weight=wanted)
        assert (fitted is None) == (kind is LogisticRegression)
        results.append(
            domain_proba(
                model,
                np.eye(4),
                np.arange(3),
                fitted_weight=fitted,
                domain_weight=wanted,
            )
        )
    assert_allclose(*results, atol=1e-5)


def test_weighting_and_correcting_approach_the_truth(seed):
    rng = np.random.default_rng(seed)
    wanted = np.array([0.2, 0.3, 0.5])
    errors = []
    for scale in (1, 64):
        X, codes = linear_problem(rng, counts=(300 * scale, 100 * scale, 200 * scale))
        truth = slow_domain_given_x(X, 1.0, wanted)
        both = [
            cross_fit_proba(model, X, codes, 3, 2, domain_weight=wanted, random_state=0)
            for model in (LogisticRegression(), Unweightable())
        ]
        errors.append([np.abs(got - truth).mean() for got in both])
        between = np.abs(both[0] - both[1]).mean()
    assert between < 0.01
    # 64 times the rows: an eighth of the error, give or take.
    assert (np.array(errors[1]) < np.array(errors[0]) / 3).all()


def test_rows_that_have_the_shares_already_are_left_alone(seed):
    X, codes = linear_problem(np.random.default_rng(seed), counts=(60, 60, 60))
    bare = LogisticRegression().fit(X, codes)
    model, fitted = fit_domain_model(
        LogisticRegression(), X, codes, 3, domain_weight=np.full(3, 1 / 3)
    )
    assert fitted is None
    assert_array_equal(model.coef_, bare.coef_)


@pytest.mark.parametrize("domain_weight", [None, np.array([0.5, 0.25, 0.25])])
def test_integer_weights_are_copies(seed, domain_weight):
    rng = np.random.default_rng(seed)
    X, codes = linear_problem(rng, counts=(40, 30, 20))
    weight = rng.integers(0, 4, size=len(codes))
    estimator = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-8))
    weighted, _ = fit_domain_model(
        estimator,
        X,
        codes,
        3,
        domain_weight=domain_weight,
        sample_weight=weight.astype(float),
    )
    copied, _ = fit_domain_model(
        estimator,
        X.repeat(weight, axis=0),
        codes.repeat(weight),
        3,
        domain_weight=domain_weight,
    )
    assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), atol=1e-6)


def test_every_able_step_of_a_pipeline_gets_the_weights(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    estimator = make_pipeline(
        StandardScaler(), PolynomialFeatures(1), LogisticRegression()
    )
    equal = np.full(3, 1 / 3)
    model, _ = fit_domain_model(estimator, X, codes, 3, domain_weight=equal)
    by_domain = [X[codes == code].mean(axis=0) for code in range(3)]
    assert_allclose(model[0].mean_, np.mean(by_domain, axis=0))


def test_takes_sample_weight():
    assert takes_sample_weight(LogisticRegression())
    assert takes_sample_weight(make_pipeline(StandardScaler(), LogisticRegression()))
    assert takes_sample_weight(make_pipeline("passthrough", LogisticRegression()))
    assert not takes_sample_weight(KNeighborsClassifier())
    # A weighted scaler in front of an unweighted model is neither one nor the other.
    assert not takes_sample_weight(
        make_pipeline(StandardScaler(), KNeighborsClassifier())
    )


def test_weights_that_cannot_be_used_are_refused(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    with pytest.raises(ValueError, match="KNeighborsClassifier.fit does not take it"):
        fit_domain_model(
            KNeighborsClassifier(), X, codes, 3, sample_weight=np.ones(len(codes))
        )


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(LogisticRegression(), cv=2),
    ],
    ids=["plain", "pipeline", "meta"],
)
def test_metadata_routing_changes_nothing(seed, estimator):
    X, codes = linear_problem(np.random.default_rng(seed), counts=(40, 20, 30))
    results = []
    for enabled in (False, True):
        with config_context(enable_metadata_routing=enabled):
            results.append(
                cross_fit_proba(
                    estimator,
                    X,
                    codes,
                    3,
                    3,
                    domain_weight=np.full(3, 1 / 3),
                    random_state=seed,
                )
            )
    assert_array_equal(*results)


# ---- folds ---------------------------------------------------------------------------


def test_every_row_is_judged_once_by_a_model_that_has_not_seen_it(seed):
    X = np.arange(30.0)[:, None]
    codes = np.arange(30) % 2
    Witness.asked.clear()
    got = cross_fit_proba(Witness(), X, codes, 2, 5, random_state=seed)
    assert_array_equal(got[:, 0], 0)
    assert len(Witness.asked) == 5  # one predict_proba a fold
    assert sorted(sum(Witness.asked, [])) == X[:, 0].tolist()


def test_nearest_neighbour_is_perfect_only_on_its_own_rows(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    nearest = KNeighborsClassifier(1)
    in_sample = nearest.fit(X, codes).predict_proba(X)
    assert mean_log_likelihood(in_sample, codes) == 0
    out_of_fold = cross_fit_proba(nearest, X, codes, 3, 5, random_state=seed)
    assert mean_log_likelihood(out_of_fold, codes) < -1


@given(st.lists(st.integers(5, 23), min_size=2, max_size=6), st.integers(2, 5))
def test_domains_are_spread_evenly_over_folds(counts, n_folds):
    codes = np.repeat(np.arange(len(counts)), counts)
    folds = assign_folds(codes, n_folds, random_state=0)
    table = np.zeros((n_folds, len(counts)), dtype=int)
    np.add.at(table, (folds, codes), 1)
    assert_array_equal(table.sum(axis=0), counts)
    assert (np.ptp(table, axis=0) <= 1).all()


def test_folds_follow_the_seed():
    codes = np.arange(60) % 3
    assert_array_equal(assign_folds(codes, 5, 1), assign_folds(codes, 5, 1))
    assert (assign_folds(codes, 5, 1) != assign_folds(codes, 5, 2)).any()


def test_fewer_folds_for_a_small_domain():
    codes = np.repeat([0, 1], [20, 3])
    assert usable_folds(codes, 2, 3) == 3
    with pytest.warns(FoldsReducedWarning, match="'tiny' has only 3 rows: 3 folds"):
        assert usable_folds(codes, 2, 5, np.array(["big", "tiny"])) == 3
    X = np.arange(23.0)[:, None]
    with pytest.warns(FoldsReducedWarning, match="domain 1 has only 3 rows"):
        got = cross_fit_proba(LogisticRegression(), X, codes, 2, 5, random_state=0)
    assert_allclose(got.sum(axis=1), 1)


def test_a_domain_with_one_row_is_named():
    codes = np.array([0, 0, 0, 1])
    with pytest.raises(ValueError, match="domain 'lone' has 1 row: .* cross_fit=None"):
        usable_folds(codes, 2, 5, np.array(["big", "lone"]))
    with pytest.raises(ValueError, match="domain 2 has 0 rows"):
        usable_folds(np.array([0, 0, 1, 1]), 3, 2)


def test_folds_use_one_thread_each():
    # The last bits of a sum depend on the number of threads: with one thread in every
    # fold, they cannot depend on how many folds run at the same time.
    class CountsThreads(Says):
        def fit(self, X, y):
            used.append(max(pool["num_threads"] for pool in threadpool_info()))
            return super().fit(X, y)

    used: list = []
    X, codes = np.zeros((8, 1)), np.arange(8) % 2
    with threadpool_limits(limits=2):
        cross_fit_proba(CountsThreads([0.5, 0.5]), X, codes, 2, 4)
    assert used == [1] * 4


def test_the_estimator_is_never_changed(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    before = joblib.hash(estimator)
    cross_fit_proba(estimator, X, codes, 3, 2, random_state=seed)
    assert joblib.hash(estimator) == before


@pytest.mark.parametrize("estimator", [LogisticRegression(), Unweightable()])
def test_single_precision_stays(seed, estimator):
    X, codes = linear_problem(np.random.default_rng(seed))
    options = {"domain_weight": np.full(3, 1 / 3), "random_state": seed}
    double = cross_fit_proba(estimator, X, codes, 3, 3, **options)
    single = cross_fit_proba(estimator, X.astype(np.float32), codes, 3, 3, **options)
    assert single.dtype == np.float32
    assert_allclose(single, double, atol=2e-3)


# ---- what a classifier may return ----------------------------------------------------


def test_columns_follow_the_codes(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    got = cross_fit_proba(Backwards(), X, codes, 3, 3, random_state=seed)
    expected = cross_fit_proba(LogisticRegression(), X, codes, 3, 3, random_state=seed)
    assert_array_equal(got, expected)


def test_balancing_is_bayes_rule_on_the_output(seed):
    X, codes = linear_problem(np.random.default_rng(seed))
    wanted = np.array([0.1, 0.6, 0.3])
    model, fitted = fit_domain_model(Unweightable(), X, codes, 3, domain_weight=wanted)
    assert_allclose(fitted, [1 / 2, 1 / 6, 1 / 3])
    got = domain_proba(
        model, X, np.arange(3), fitted_weight=fitted, domain_weight=wanted
    )
    assert_allclose(got, balance_domains(model.predict_proba(X), fitted, wanted))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.5, np.nan, 0.5], "Says.predict_proba has NaN"),
        ([0.5, 0.5, 0.5], "Says.predict_proba must sum to 1"),
        ([1.2, -0.4, 0.2], "Says.predict_proba has negative values"),
        ([0.5, 0.5], "Says.predict_proba returned 2 columns for 3 domains"),
    ],
)
def test_improper_probabilities_are_refused(row, message):
    X, codes = np.zeros((9, 1)), np.arange(9) % 3
    with pytest.raises(ValueError, match=message):
        cross_fit_proba(Says(row), X, codes, 3, 3, random_state=0)


def test_a_domain_without_a_column_is_named():
    model = Says([0.5, 0.5]).fit(None, ["north", "south"])
    with pytest.raises(ValueError, match="no column for domain 'east'"):
        domain_proba(model, np.zeros((2, 1)), np.array(["east", "north"]))
