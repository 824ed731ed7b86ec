"""Discriminator and OracleDiscriminator as scikit-learn classifiers of domains."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import shoal.stages.discriminate as discriminate
from shoal.exceptions import DomainMissingError, FoldsReducedWarning
from shoal.probability import balance_domains, mean_log_likelihood, normalize_rows
from shoal.stages.discriminate import (
    Discriminator,
    EarlyStoppedMLP,
    OracleDiscriminator,
    fit_calibration,
)
from support.data import Says

NAMES = np.array(["east", "north", "west"])
COUNTS = (150, 60, 90)


def problem(seed, counts=COUNTS):
    """Unit Gaussians: log q(d|x) is linear in x."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return np.eye(3, 4)[codes] + rng.normal(size=(len(codes), 4)), NAMES[codes]


def oracle(X):
    """The true q(d|x) of the problem above, domains in equal shares."""
    density = [np.exp(-0.5 * ((X - c) ** 2).sum(axis=1)) for c in np.eye(3, 4)]
    return normalize_rows(np.column_stack(density))


def two_columns(X):
    return np.tile([0.25, 0.75], (len(X), 1))


# ---- what is learned -----------------------------------------------------------------


def test_out_of_fold_probabilities_are_near_the_truth(seed):
    X, domains = problem(seed, counts=(1500, 600, 900))
    model = Discriminator(LogisticRegression(), random_state=seed).fit(X, domains)
    assert_array_equal(model.classes_, NAMES)
    assert_allclose(model.domain_weight_, 1 / 3)
    assert np.abs(model.domain_given_x_ - oracle(X)).mean() < 0.03
    assert np.abs(model.predict_proba(X) - oracle(X)).mean() < 0.03
    best = -mean_log_likelihood(oracle(X), np.searchsorted(NAMES, domains))
    assert abs(model.held_out_loss_ - best) < 0.03


def test_held_out_loss_against_a_slow_formula(seed):
    X, domains = problem(seed)
    model = Discriminator("logistic", random_state=seed).fit(X, domains)
    q = model.domain_given_x_
    per_domain = [
        np.mean([-np.log(q[row, d]) for row in np.flatnonzero(domains == name)])
        for d, name in enumerate(NAMES)
    ]
    assert_allclose(model.held_out_loss_, np.mean(per_domain))
    assert model.losses_ == {"logistic": pytest.approx(model.held_out_loss_)}
    assert model.n_folds_ == 5


def test_in_sample(seed):
    X, domains = problem(seed)
    for cross_fit in (None, 0, 1):
        model = Discriminator(KNeighborsClassifier(1), cross_fit=cross_fit)
        model.fit(X, domains)
        assert_array_equal(model.domain_given_x_, model.predict_proba(X))
        assert_array_equal(model.predict(X), domains)  # each row is its own neighbour
        assert model.held_out_loss_ is None
        assert model.n_folds_ == 0


def test_final_model_is_refitted_on_all_rows(seed):
    X, domains = problem(seed)
    crossed = Discriminator(LogisticRegression(), random_state=seed).fit(X, domains)
    plain = Discriminator(LogisticRegression(), cross_fit=None).fit(X, domains)
    assert_array_equal(crossed.predict_proba(X), plain.predict_proba(X))
    assert (crossed.domain_given_x_ != plain.domain_given_x_).any()


@pytest.mark.parametrize("kind", [KNeighborsClassifier, GaussianNB])
@pytest.mark.parametrize(
    ("domain_weight", "expected"),
    [
        ("equal", [1 / 3, 1 / 3, 1 / 3]),
        ("size", [150 / 300, 60 / 300, 90 / 300]),
        ({"east": 1, "west": 2, "north": 1}, [0.25, 0.25, 0.5]),
    ],
    ids=["equal", "size", "mapping"],
)
def test_shares_of_domains(seed, kind, domain_weight, expected):
    # Naive Bayes takes sample_weight, nearest neighbours do not; both are generative
    # enough that changing the shares is Bayes' rule on the output.
    X, domains = problem(seed)
    model = Discriminator(kind(), domain_weight=domain_weight, cross_fit=None)
    model.fit(X, domains)
    assert_allclose(model.domain_weight_, expected)
    bare = kind().fit(X, domains).predict_proba(X)
    moved = balance_domains(bare, np.array(COUNTS) / 300, expected)
    assert_allclose(model.predict_proba(X), moved, atol=1e-6)
    corrected = kind is KNeighborsClassifier and domain_weight != "size"
    assert (model.fitted_weight_ is not None) == corrected


def test_sample_weight_counts_within_the_domain(seed):
    X, domains = problem(seed)
    weight = np.where(domains == "east", 100.0, 1.0)  # the same for a whole domain
    options = {"estimator": LogisticRegression(tol=1e-8), "random_state": seed}
    plain = Discriminator(**options).fit(X, domains)
    weighted = Discriminator(**options).fit(X, domains, sample_weight=weight)
    assert_allclose(weighted.held_out_loss_, plain.held_out_loss_, atol=0.02)
    by_size = Discriminator(**options, domain_weight="size")
    by_size.fit(X, domains, sample_weight=weight)
    assert by_size.domain_weight_[0] > 0.98


def test_labels_elsewhere_change_nothing(seed):
    X, domains = problem(seed)
    labels = np.random.default_rng(seed).integers(0, 3, size=len(X))
    expected = Discriminator("logistic", random_state=seed).fit(X, domains=domains)
    got = Discriminator("logistic", random_state=seed).fit(X, labels, domains=domains)
    alias = Discriminator("logistic", random_state=seed).fit(X, domains)
    for model in (got, alias):
        assert_array_equal(model.classes_, expected.classes_)
        assert_array_equal(model.domain_given_x_, expected.domain_given_x_)
        assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_same_seed_same_bits_for_any_number_of_jobs(seed):
    X, domains = problem(seed)
    net = EarlyStoppedMLP((8,), max_epochs=5)  # its seed comes from the discriminator
    serial, again, parallel, other = (
        Discriminator(
            ["logistic", net], cross_fit=3, random_state=random_state, n_jobs=n_jobs
        ).fit(X, domains)
        for random_state, n_jobs in ((0, None), (0, 1), (0, 2), (1, None))
    )
    for model in (again, parallel):
        assert model.losses_ == serial.losses_
        assert_array_equal(model.domain_given_x_, serial.domain_given_x_)
        assert_array_equal(model.predict_proba(X), serial.predict_proba(X))
    assert (other.domain_given_x_ != serial.domain_given_x_).any()
    assert net.random_state is None


def test_unseeded_estimators_follow_the_seed_of_the_discriminator(seed):
    X, domains = problem(seed)
    forest = RandomForestClassifier(5)
    first, again = (
        Discriminator(forest, random_state=3).fit(X, domains) for _ in range(2)
    )
    assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert_array_equal(first.domain_given_x_, again.domain_given_x_)


# ---- the choice ----------------------------------------------------------------------


def test_auto_sees_a_product_of_columns(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2100, 2))
    domains = rng.random(2100) < 1 / (1 + np.exp(-3 * X[:, 0] * X[:, 1]))
    model = Discriminator("auto", cross_fit=3, random_state=seed).fit(X, domains)
    assert list(model.losses_) == ["logistic", "quadratic", "rbf", "mlp"]
    assert model.chosen_ in {"quadratic", "rbf"}
    assert model.losses_["logistic"] > model.losses_[model.chosen_] + 0.05
    assert model.held_out_loss_ == pytest.approx(model.losses_[model.chosen_])


def test_auto_keeps_to_lines_where_lines_are_true(seed):
    X, domains = problem(seed, counts=(800, 600, 700))
    model = Discriminator("auto", cross_fit=3, random_state=seed).fit(X, domains)
    assert model.chosen_ == "logistic"


def test_a_list_is_a_choice(seed):
    X, domains = problem(seed)
    model = Discriminator(
        ["logistic", GaussianNB(), GaussianNB(var_smoothing=1e3)], random_state=seed
    ).fit(X, domains)
    assert list(model.losses_) == ["logistic", "GaussianNB", "GaussianNB 3"]
    assert model.chosen_ != "GaussianNB 3"


def test_auto_with_weights_leaves_out_what_cannot_use_them(seed):
    X, domains = problem(seed, counts=(800, 600, 700))
    model = Discriminator("auto", cross_fit=2, random_state=seed)
    model.fit(X, domains, sample_weight=np.ones(2100))
    assert "mlp" not in model.losses_


# ---- models that are given -----------------------------------------------------------


def test_oracle_is_used_as_it_is(seed):
    X, domains = problem(seed)
    for model in (
        OracleDiscriminator(oracle),
        Discriminator(oracle),
        Discriminator(OracleDiscriminator(oracle), domain_weight="size"),
    ):
        model.fit(X, domains)
        assert_array_equal(model.domain_given_x_, oracle(X))
        assert_array_equal(model.predict_proba(X), oracle(X))
        assert_array_equal(model.predict(X), NAMES[oracle(X).argmax(axis=1)])
    codes = np.searchsorted(NAMES, domains)
    model = Discriminator(oracle).fit(X, domains)
    assert model.chosen_ == "oracle"
    assert_allclose(model.held_out_loss_, -mean_log_likelihood(oracle(X), codes))


def test_frozen_estimator_is_used_as_it_is(seed):
    X, domains = problem(seed)
    fitted = LogisticRegression().fit(X, domains)
    before = joblib.hash(fitted)
    model = Discriminator(FrozenEstimator(fitted)).fit(X[::2], domains[::2])
    assert_array_equal(model.predict_proba(X), fitted.predict_proba(X))
    assert_array_equal(model.domain_given_x_, fitted.predict_proba(X[::2]))
    assert joblib.hash(fitted) == before
    assert model.n_folds_ == 0
    assert model.held_out_loss_ is not None
    assert model.chosen_ == "LogisticRegression"


def test_frozen_estimator_of_other_domains(seed):
    X, domains = problem(seed)
    elsewhere = np.array(["a", "b", "c"])[np.searchsorted(NAMES, domains)]
    fitted = LogisticRegression().fit(X, elsewhere)
    with pytest.raises(ValueError, match="no column for domain 'east'"):
        Discriminator(FrozenEstimator(fitted)).fit(X, domains)
    with pytest.raises(NotFittedError):
        Discriminator(FrozenEstimator(LogisticRegression())).fit(X, domains)


# ---- calibration ---------------------------------------------------------------------


@pytest.mark.parametrize("calibration", ["temperature", "vector"])
def test_calibration_uses_out_of_fold_rows(seed, calibration):
    X, domains = problem(seed)
    codes = np.searchsorted(NAMES, domains)
    options = {"estimator": KNeighborsClassifier(3), "random_state": seed}
    plain = Discriminator(**options).fit(X, domains)
    model = Discriminator(**options, calibration=calibration).fit(X, domains)
    expected = fit_calibration(plain.domain_given_x_, codes, method=calibration)
    assert_allclose(model.calibration_.slope, expected.slope)
    assert_allclose(model.domain_given_x_, expected.apply(plain.domain_given_x_))
    assert_allclose(model.predict_proba(X), expected.apply(plain.predict_proba(X)))
    assert model.held_out_loss_ == plain.held_out_loss_  # honest: before calibration
    assert model.calibration_.loss_before <= plain.held_out_loss_ + 1e-9
    assert model.calibration_.loss_after < plain.held_out_loss_ - 0.5


def test_calibration_of_a_frozen_estimator(seed):
    X, domains = problem(seed)
    overfitted = KNeighborsClassifier(1).fit(X[:100], domains[:100])
    model = Discriminator(FrozenEstimator(overfitted), calibration="temperature")
    model.fit(X[100:], domains[100:])
    assert model.calibration_.temperature > 10
    assert model.score(X[100:], domains[100:]) > -1.2


# ---- inside scikit-learn -------------------------------------------------------------


def test_score_is_the_mean_log_likelihood(seed):
    X, domains = problem(seed)
    model = Discriminator("logistic", random_state=seed).fit(X, domains)
    proba = model.predict_proba(X)
    codes = np.searchsorted(NAMES, domains)
    assert_allclose(model.score(X, domains), mean_log_likelihood(proba, codes))
    assert model.score(X, domains=domains) == model.score(X, domains)
    only = domains == "west"
    assert_allclose(model.score(X[only], domains[only]), np.log(proba[only, 2]).mean())
    with pytest.raises(DomainMissingError, match="pass the domain of each row"):
        model.score(X)
    with pytest.raises(ValueError, match="'mars'"):
        model.score(X[:1], ["mars"])


def test_grid_search_picks_by_likelihood(seed):
    X, domains = problem(seed)
    search = GridSearchCV(
        Discriminator(LogisticRegression(), cross_fit=None),
        {"estimator__C": [1e-6, 1.0], "domain_weight": ["equal"]},
        cv=StratifiedKFold(3, shuffle=True, random_state=seed),
    ).fit(X, domains)
    assert search.best_params_["estimator__C"] == 1.0
    assert_allclose(search.cv_results_["mean_test_score"][0], -np.log(3), atol=1e-3)


def test_pipeline_with_and_without_metadata_routing(seed):
    X, domains = problem(seed)
    pipeline = make_pipeline(StandardScaler(), Discriminator("logistic", cross_fit=2))
    pipeline.set_params(discriminator__random_state=0)
    plain = clone(pipeline).fit(X, domains).predict_proba(X)
    by_name = clone(pipeline).fit(X, discriminator__domains=domains).predict_proba(X)
    with config_context(enable_metadata_routing=True):
        routed = clone(pipeline)
        routed[-1].set_fit_request(domains=True)
        routed = routed.fit(X, domains=domains).predict_proba(X)
    assert_array_equal(by_name, plain)
    assert_array_equal(routed, plain)


def test_cross_validate(seed):
    X, domains = problem(seed)
    scores = cross_validate(Discriminator("logistic"), X, domains, cv=3)
    assert (scores["test_score"] > -np.log(3)).all()


def test_clone_and_pickle(seed):
    X, domains = problem(seed)
    model = Discriminator(
        LogisticRegression(C=0.5), calibration="vector", random_state=seed
    )
    twin = clone(model)
    assert joblib.hash(twin) == joblib.hash(model)
    expected = model.fit(X, domains).predict_proba(X)
    assert not hasattr(model.estimator, "coef_")
    restored = pickle.loads(pickle.dumps(model))
    assert_array_equal(restored.predict_proba(X), expected)
    assert_array_equal(twin.fit(X, domains).predict_proba(X), expected)


def test_tables_with_names(seed):
    X, domains = problem(seed)
    table = pd.DataFrame(X, columns=list("abcd"))
    model = Discriminator("logistic", random_state=0).fit(table, pd.Series(domains))
    assert model.feature_names_in_.tolist() == list("abcd")
    plain = Discriminator("logistic", random_state=0).fit(X, domains)
    assert_allclose(model.predict_proba(table), plain.predict_proba(X), rtol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(table[["b", "a", "c", "d"]])


def test_sparse_rows_where_the_estimator_takes_them(seed):
    X, domains = problem(seed)
    X[np.abs(X) < 0.5] = 0
    dense = Discriminator(LogisticRegression(), random_state=0).fit(X, domains)
    rows = sparse.csr_array(X)
    model = Discriminator(LogisticRegression(), random_state=0).fit(rows, domains)
    assert_allclose(model.domain_given_x_, dense.domain_given_x_, atol=1e-3)
    assert_allclose(model.predict_proba(rows), dense.predict_proba(X), atol=1e-3)
    with pytest.raises(TypeError, match="[Ss]parse"):
        Discriminator("logistic").fit(rows, domains)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_of_the_input_is_kept(seed, dtype):
    X, domains = problem(seed)
    model = Discriminator("logistic", calibration="temperature", random_state=seed)
    model.fit(X.astype(dtype), domains)
    assert model.domain_given_x_.dtype == dtype
    assert model.predict_proba(X.astype(dtype)).dtype == dtype


def test_public_names():
    for name in discriminate.__all__:
        assert getattr(discriminate, name).__doc__


# ---- errors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        (
            {"estimator": LinearSVC()},
            TypeError,
            r"LinearSVC has no predict_proba.*CalibratedClassifierCV\(LinearSVC",
        ),
        ({"estimator": LogisticRegression}, TypeError, "an object, not its class"),
        ({"estimator": 7}, TypeError, "got 7"),
        ({"estimator": []}, ValueError, "empty list"),
        ({"estimator": "forest"}, ValueError, "unknown discriminator 'forest'.*'rbf'"),
        (
            {"estimator": LogisticRegression(class_weight="balanced")},
            ValueError,
            "class_weight='balanced' of LogisticRegression.*set domain_weight",
        ),
        ({"estimator": Says([0.5, np.nan, 0.5])}, ValueError, "predict_proba has NaN"),
        ({"estimator": Says([0.5, 0.4, 0.2])}, ValueError, "must sum to 1"),
        ({"estimator": Says([0.5, 0.5])}, ValueError, "2 columns for 3 domains"),
        ({"estimator": two_columns}, ValueError, "function returned 2 columns for 3"),
        (
            {"calibration": "isotonic"},
            ValueError,
            "'temperature', 'vector'.*'isotonic'",
        ),
        ({"cross_fit": 2.5}, ValueError, "cross_fit must be a number of folds.*2.5"),
        ({"cross_fit": -1}, ValueError, "got -1"),
        ({"cross_fit": None}, ValueError, "need held-out rows.*pass cross_fit=5"),
        (
            {"estimator": "logistic", "cross_fit": 0, "calibration": "vector"},
            ValueError,
            "need held-out rows, and cross_fit=0 holds out none",
        ),
        ({"domain_weight": "rows"}, ValueError, "'equal', 'size' or a mapping.*'rows'"),
        ({"domain_weight": {"east": 1}}, ValueError, "no entry for domain 'north'"),
    ],
)
def test_bad_parameters(parameters, error, message):
    X, domains = problem(0)
    with pytest.raises(error, match=message):
        Discriminator(**parameters).fit(X, domains)


@pytest.mark.parametrize(
    "model", [Discriminator("logistic"), OracleDiscriminator(oracle)]
)
def test_bad_domains(model):
    X, domains = problem(0)
    with pytest.raises(DomainMissingError, match="pass domains"):
        model.fit(X)
    with pytest.raises(ValueError, match="only one class of value"):
        model.fit(X, np.repeat("east", len(X)))
    with pytest.raises(ValueError, match="X has 300 rows, domains has 299"):
        model.fit(X, domains[1:])
    with pytest.raises(ValueError, match="1 missing values"):
        model.fit(X, [None, *domains[1:]])
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        model.fit(X, X[:, 0])


def test_fractions_that_come_again_are_names(seed):
    X, domains = problem(seed)
    _, codes = np.unique(domains, return_inverse=True)
    doses = np.array([0.1, 0.25, 1.5])[codes]
    named = Discriminator("logistic", random_state=0).fit(X, doses)
    assert named.classes_.tolist() == [0.1, 0.25, 1.5]
    plain = Discriminator("logistic", random_state=0).fit(X, codes)
    assert_array_equal(named.domain_given_x_, plain.domain_given_x_)


def test_oracle_must_be_callable():
    with pytest.raises(TypeError, match="function must be callable.*got 3"):
        OracleDiscriminator(3).fit([[0.0], [1.0]], ["a", "b"])


def test_domains_with_few_rows():
    X, domains = problem(0)
    keep = np.concatenate(
        [np.flatnonzero(domains != "west"), np.flatnonzero(domains == "west")[:3]]
    )
    with pytest.warns(FoldsReducedWarning, match="'west' has only 3 rows: 3 folds"):
        model = Discriminator("logistic").fit(X[keep], domains[keep])
    assert model.n_folds_ == 3
    with pytest.raises(ValueError, match="domain 'west' has 1 row"):
        Discriminator("logistic").fit(X[keep[:-2]], domains[keep[:-2]])
    lone = Discriminator("logistic", cross_fit=None).fit(
        X[keep[:-2]], domains[keep[:-2]]
    )
    assert lone.domain_given_x_.shape == (211, 3)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"one entry per row \(300\), got shape \(3,\)"),
        (np.full(300, -1.0), "not negative"),
        (np.full(300, np.nan), "finite"),
        ("east", "zero in all rows of domain 'east'"),
    ],
)
def test_bad_sample_weight(weight, message):
    X, domains = problem(0)
    weight = (domains != weight) * 1.0 if isinstance(weight, str) else weight
    with pytest.raises(ValueError, match=message):
        Discriminator("logistic").fit(X, domains, sample_weight=weight)
    with pytest.raises(ValueError, match="does not take it"):
        Discriminator(KNeighborsClassifier()).fit(
            X, domains, sample_weight=np.ones(300)
        )
