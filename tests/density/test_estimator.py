"""DensityMixture: recovery, gaps, wide tables, invariances, the contract, refusals."""

import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

import shoal
from shoal import DensityMixture, choose_n_classes
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import CollapseWarning, ConstantColumnWarning, SubsampleWarning
from shoal.metrics import match_classes, matched_accuracy, prevalence_error
from shoal.probability import match_rows

QUICK = {"n_init": 4, "drift": False, "covariance": "full", "random_state": 0}


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def gaussians():
    return make_latent_shift(
        3000, n_classes=3, n_domains=5, n_features=4, separation=3.0, alpha=2.0,
        random_state=3, return_bunch=True,
    )  # fmt: skip


# ---- recovery --------------------------------------------------------------------


def test_both_factors_are_recovered(gaussians):
    model = DensityMixture(3, n_init=6, random_state=0)
    model.fit(gaussians.X, gaussians.domains)
    assert matched_accuracy(gaussians.labels, model.labels_) > 0.97
    error = prevalence_error(
        gaussians.prevalence,
        model.prevalence_,
        matching=match_classes(gaussians.labels, model.labels_),
    )
    assert error < 0.03
    truth = [gaussians.X[gaussians.labels == y].mean(axis=0) for y in range(3)]
    found = model.means_[match_rows(np.array(truth), model.means_)]
    assert_allclose(found, truth, atol=0.2)


def test_penguins_are_their_species(penguins, seed):
    model = DensityMixture(3, random_state=seed).fit(penguins.X, penguins.domains)
    assert matched_accuracy(penguins.labels, model.labels_) > 0.985
    assert model.drift_ is None
    assert model.identified_by_ == "looks and shift"


def test_more_classes_than_domains():
    """Looks tell five classes apart in two domains, and that is said."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 600)
    X = (
        rng.normal(size=(600, 2))
        + 9 * np.array([[0, 0], [1, 0], [0, 1], [1, 1], [2, 2]])[labels]
    )
    model = DensityMixture(5, **QUICK).fit(X, np.arange(600) % 2)
    assert matched_accuracy(labels, model.labels_) == 1
    assert model.identified_by_ == "looks"


def test_curved_classes_need_several_components(seed):
    """Two rings' halves: one Gaussian a class fails, three a class do not."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, 2000)
    angle = np.pi * rng.random(2000)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.where(labels[:, None], [1, 0.5] - X, X) * 10 + rng.normal(size=(2000, 2))
    domains = (rng.random(2000) < 0.15 + 0.7 * labels).astype(int)
    options = {**QUICK, "n_init": 8, "random_state": seed}
    one, three = (
        DensityMixture(2, n_components=count, **options).fit(X, domains)
        for count in (1, 3)
    )
    assert three.log_likelihood(X, domains) > one.log_likelihood(X, domains) + 0.2
    assert len(three.density_.owner) == 6
    assert matched_accuracy(labels, three.labels_) > 0.9


# ---- what the numbers mean -------------------------------------------------------


def test_log_likelihood_is_in_the_units_of_the_table(gaussians):
    X, domains = gaussians.X * [1, 10, 0.1, 3], gaussians.domains
    model = DensityMixture(3, tail=np.inf, **QUICK).fit(X, domains)
    density, columns = model.density_, model.columns_
    expected = np.zeros((len(X), 3))
    for y in range(3):
        S = density.covariance[y] * np.outer(columns.scale, columns.scale)
        normal = multivariate_normal(model.means_[y], S)
        own = model.prevalence_[np.searchsorted(model.domains_, domains), y]
        expected[:, y] = normal.logpdf(X) + np.log(own)
    assert_allclose(
        model.log_likelihood(X, domains), logsumexp(expected, axis=1).mean()
    )
    apart = np.exp(expected - logsumexp(expected, axis=1)[:, None])
    assert_allclose(model.predict_proba(X, domains), apart, atol=1e-8)


def test_probabilities_with_drift_are_bayes_rule():
    """Without a domain, p(x|y) is its mean over domains as the class has them."""
    rng = np.random.default_rng(1)
    domains = np.arange(600) % 3
    X = rng.normal(size=(600, 2)) + 4 * (rng.random(600) < 0.5)[:, None]
    X[:, 1] += 2.0 * domains
    model = DensityMixture(2, **{**QUICK, "drift": True}).fit(X, domains)
    given = np.stack(
        [np.exp(model._class_logs(X, np.full(600, code))) for code in range(3)]
    )  # (d, n, y)
    joint = given * model.prevalence_[:, None, :] / 3
    pooled = joint.sum(axis=0)
    assert_allclose(model.predict_proba(X), pooled / pooled.sum(axis=1, keepdims=True))
    own = joint[domains, np.arange(600)]
    assert_allclose(
        model.predict_proba(X, domains), own / own.sum(axis=1, keepdims=True)
    )
    assert_array_equal(model.labels_, model.predict(X, domains))


@pytest.mark.parametrize("drift", [False, True])
def test_rows_without_drift_keep_their_classes(drift):
    """A diagnosis judges what drift leaves: the same classes, domains alike."""
    rng = np.random.default_rng(1)
    domains = np.arange(600) % 3
    X = rng.normal(size=(600, 2)) + 4 * (rng.random(600) < 0.5)[:, None]
    X[:, 1] += 2.0 * domains
    model = DensityMixture(2, **{**QUICK, "drift": drift}).fit(X, domains)
    model = model._with_domain(np.arange(4), np.full((1, 2), 0.5))
    still, left = model._without_drift(X, domains)
    if not drift:
        assert still is model
        assert left is X
        return
    assert still.density_.drift is None
    assert_allclose(
        still._posterior(left, domains, None), model._posterior(X, domains, None)
    )
    means = [left[domains == code].mean(axis=0) for code in range(3)]
    assert np.ptp(means, axis=0).max() < 0.5 < np.ptp(model.drift_, axis=0).max()


def test_the_weight_of_domains_does_not_enter_the_fit(gaussians):
    rows = gaussians.X[:1000], gaussians.domains[:1000]
    even, sized = (
        DensityMixture(3, domain_weight=weight, **QUICK).fit(*rows)
        for weight in ("equal", "size")
    )
    assert_allclose(even.prevalence_, sized.prevalence_)
    assert np.ptp(even.domain_weight_) < 1e-12 < np.ptp(sized.domain_weight_)


# ---- gaps ------------------------------------------------------------------------


@pytest.mark.parametrize("covariance", ["tied", "diag", "full"])
def test_values_that_miss_at_random_cost_little(gaussians, covariance):
    rng = np.random.default_rng(2)
    X = gaussians.X[:900].copy()
    domains, labels = gaussians.domains[:900], gaussians.labels[:900]
    X[rng.random(X.shape) < 0.15] = np.nan
    options = {**QUICK, "covariance": covariance}
    model = DensityMixture(3, **options).fit(X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.92
    assert np.isfinite(model.log_likelihood(X, domains))
    empty = np.full((1, 4), np.nan)
    first = model.domains_[0]
    assert_allclose(model.predict_proba(empty, first)[0], model.prevalence_[0])


def test_a_column_that_one_domain_lacks():
    """No imputation: what was never measured there says nothing about its mix."""
    rng = np.random.default_rng(3)
    domains = np.arange(1200) % 3
    labels = rng.random(1200) < np.array([0.2, 0.5, 0.8])[domains]
    X = rng.normal(size=(1200, 3)) + 4 * labels[:, None]
    X[domains == 2, 0] = np.nan
    model = DensityMixture(2, **QUICK).fit(X, domains)
    assert matched_accuracy(labels.astype(int), model.labels_) > 0.98


# ---- wide tables -----------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("n_columns", [30, 120])
def test_more_columns_than_rows(missing, n_columns):
    rng = np.random.default_rng(4)
    labels = np.arange(24) % 2
    X = rng.normal(size=(24, n_columns)) + 2.0 * labels[:, None]
    X[rng.random(X.shape) < missing] = np.nan
    domains = np.repeat([0, 1, 2], 8)
    model = DensityMixture(2, n_init=4, drift=False, random_state=0).fit(X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.95
    assert np.isfinite(model.log_likelihood(X, domains))
    assert model.means_.shape == (2, n_columns)


def test_components_stand_for_the_columns_of_wide_tables():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 70)) @ np.diag(np.linspace(1, 5, 70))
    domains = np.arange(200) % 2
    model = DensityMixture(2, n_init=2, random_state=0).fit(X, domains)
    assert model.columns_.components.shape == (70, 20)
    assert_allclose(model.means_.mean(axis=0), X.mean(axis=0), atol=1.5)
    evidence = shoal.density.shift_and_drift(X, domains, estimator=model)
    assert np.isnan(evidence.drift_by_column).all()
    assert evidence.offset.shape == (2, 70)


# ---- invariances -----------------------------------------------------------------


def test_order_of_rows_does_not_matter(penguins):
    order = np.random.default_rng(6).permutation(len(penguins.X))
    X = penguins.X.copy()
    X[::7, 1] = np.nan
    first = DensityMixture(3, **QUICK).fit(X, penguins.domains)
    second = DensityMixture(3, **QUICK).fit(X[order], penguins.domains[order])
    assert_allclose(first.prevalence_, second.prevalence_, atol=1e-8)
    assert_array_equal(first.labels_[order], second.labels_)


def test_units_and_names_do_not_matter(penguins):
    first = DensityMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    other = DensityMixture(3, **QUICK).fit(penguins.X * 1e3 - 5, penguins.domains)
    assert_allclose(first.prevalence_, other.prevalence_, atol=1e-6)
    turned = {"Biscoe": "z", "Dream": "y", "Torgersen": "x"}
    names = [turned[name] for name in penguins.domains]
    renamed = DensityMixture(3, **QUICK).fit(penguins.X, names)
    assert_allclose(renamed.prevalence_[::-1], first.prevalence_, atol=0.01)


def test_single_precision(penguins):
    double = DensityMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    X = penguins.X.astype(np.float32)
    single = DensityMixture(3, **QUICK).fit(X, penguins.domains)
    assert_allclose(single.prevalence_, double.prevalence_, atol=1e-3)
    assert single.predict_proba(X).dtype == np.float64


def test_weights_of_rows_are_copies(gaussians):
    X, domains = gaussians.X[:300], gaussians.domains[:300]
    weight = np.random.default_rng(7).integers(0, 3, 300)
    weighted = DensityMixture(3, **QUICK).fit(X, domains, sample_weight=weight)
    copies = np.repeat(np.arange(300), weight)
    repeated = DensityMixture(3, **QUICK).fit(X[copies], domains[copies])
    assert_allclose(weighted.prevalence_, repeated.prevalence_)


# ---- after the fit ---------------------------------------------------------------


def test_a_new_domain(gaussians):
    known = gaussians.domains != gaussians.domains[0]
    X, domains = gaussians.X[known], gaussians.domains[known]
    for drift in (False, True):
        model = DensityMixture(3, **{**QUICK, "drift": drift}).fit(X, domains)
        new = model.adapt(gaussians.X[~known], random_state=0)
        labels = gaussians.labels[~known]
        matching = match_classes(gaussians.labels[known], model.labels_)
        truth = [np.mean(labels == matching[y]) for y in range(3)]
        assert_allclose(new.prevalence, truth, atol=0.05)
        assert new.fit_score > 0.8
        extended = (
            new.as_domain("new") if domains.dtype.kind == "U" else (new.as_domain(99))
        )
        last = extended.domains_[-1]
        assert_array_equal(extended.predict(X[:9], last), new.predict(X[:9]))


def test_strange_rows_are_noticed(gaussians):
    model = DensityMixture(3, **QUICK).fit(gaussians.X, gaussians.domains)
    assert model.adapt(gaussians.X[:50] + 40, random_state=0).fit_score < 0.05


def test_intervals(gaussians):
    X, domains = gaussians.X[:800], gaussians.domains[:800]
    for drift in (False, True):
        model = DensityMixture(3, **{**QUICK, "drift": drift}).fit(X, domains)
        intervals = model.bootstrap(X, domains, n_resamples=20, random_state=0)
        assert (intervals.low <= model.prevalence_).all()
        assert (intervals.high >= model.prevalence_).all()
        order = np.random.default_rng(8).permutation(800)
        again = model.bootstrap(
            X[order], domains[order], n_resamples=20, random_state=0
        )
        assert_allclose(again.low, intervals.low, atol=1e-6)
        assert intervals.co_assignment.mean() > 0.95


def test_diagnosis_of_rows_with_gaps(penguins):
    X = penguins.X.copy()
    X[::5, 0] = np.nan
    model = DensityMixture(3, **QUICK).fit(X, penguins.domains)
    diagnosis = model.diagnose(X, penguins.domains, random_state=0)
    assert diagnosis.verdict in ("clear", "caution")
    assert diagnosis["E138"].status == "ok"


def test_choose_n_classes(penguins):
    model = DensityMixture(**{**QUICK, "n_init": 2})
    X = penguins.X.copy()
    X[0, 0] = np.nan
    choice = choose_n_classes(
        X, penguins.domains, range(2, 5), estimator=model, n_resamples=1,
        random_state=0,
    )  # fmt: skip
    assert choice.n_classes == 3
    assert (choice.stability[:2] > 0.8).all()


@pytest.mark.parametrize("drift", [False, True])
def test_saved_and_loaded(penguins, tmp_path, drift):
    options = {**QUICK, "drift": drift, "n_components": 2}
    model = DensityMixture(3, **options).fit(penguins.X, penguins.domains)
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert_array_equal(
        again.predict_proba(penguins.X, penguins.domains),
        model.predict_proba(penguins.X, penguins.domains),
    )
    assert_array_equal(again.adapt(penguins.X).prevalence, model.adapt(
        penguins.X).prevalence)  # fmt: skip
    merged = again.merge(0, 1)
    assert merged.predict_proba(penguins.X).shape[1] == 2


def test_classes_in_another_order(penguins):
    model = DensityMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    turned = copy.copy(model)
    turned._reorder_classes(np.array([2, 0, 1]))
    assert_allclose(
        turned.predict_proba(penguins.X), model.predict_proba(penguins.X)[:, [2, 0, 1]]
    )
    assert_array_equal(turned.means_, model.means_[[2, 0, 1]])


# ---- warnings and refusals -------------------------------------------------------


def test_a_sample_is_said_aloud(gaussians):
    model = DensityMixture(3, max_rows=500, **QUICK)
    with pytest.warns(SubsampleWarning, match="500 of 3000 rows"):
        model.fit(gaussians.X, gaussians.domains)
    assert len(model.labels_) == 3000
    assert matched_accuracy(gaussians.labels, model.labels_) > 0.95


def test_large_tables_are_searched_on_a_sample(gaussians, monkeypatch):
    from shoal.density import _choose, _settings

    few = _settings.Decisions(search_rows=300)
    monkeypatch.setattr(_choose, "DECISIONS", few)
    model = DensityMixture(3, **QUICK).fit(gaussians.X, gaussians.domains)
    assert matched_accuracy(gaussians.labels, model.labels_) > 0.97


def test_classes_without_rows_are_told():
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 40, axis=0)
    domains = np.tile([0, 1], 40)
    with pytest.warns(CollapseWarning, match="hold almost no rows"):
        DensityMixture(4, **QUICK).fit(X, domains)


def test_a_climb_that_is_cut_is_told(gaussians):
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        DensityMixture(3, max_iter=1, tol=0.0, **QUICK).fit(
            gaussians.X, gaussians.domains
        )


def test_columns_that_do_not_vary(penguins):
    X = np.column_stack([penguins.X, np.ones(len(penguins.X))])
    X[3, 4] = np.nan
    with pytest.warns(ConstantColumnWarning):
        model = DensityMixture(3, **QUICK).fit(X, penguins.domains)
    plain = DensityMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    assert_array_equal(model.labels_, plain.labels_)
    assert np.isnan(model.means_[:, 4]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 1}, "n_classes must be a whole number from 2, got 1"),
        ({"n_classes": 500}, "n_classes=500 needs at least 500 rows, got 342"),
        ({"covariance": "round"}, "covariance must be one of auto, tied, diag, full"),
        ({"drift": "yes"}, "drift must be one of auto, True, False, got 'yes'"),
        ({"tail": 0}, "tail must be 'auto' or a number above 0"),
        ({"tail": "heavy"}, "tail must be 'auto' or a number above 0"),
        ({"n_components": 0}, "n_components must be a whole number from 1, got 0"),
        ({"tol": -1}, "tol must be a number from 0, got -1"),
        ({"max_rows": 1.5}, "max_rows must be a whole number from 1, got 1.5"),
    ],
)
def test_refusals(penguins, options, message):
    with pytest.raises(ValueError, match=message):
        DensityMixture(**{"n_classes": 3, **options}).fit(penguins.X, penguins.domains)


def test_infinity_is_refused(penguins):
    X = penguins.X.copy()
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinite"):
        DensityMixture(3).fit(X, penguins.domains)
    model = DensityMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    with pytest.raises(ValueError, match="domains must be passed"):
        model.log_likelihood(penguins.X, None)


def test_labels_are_never_seen(penguins):
    """The same rows with other labels beside them give the same fit: none is asked."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DensityMixture(3, random_state=0).fit(penguins.X, penguins.domains)
    again = DensityMixture(3, random_state=0).fit(penguins.X, penguins.domains)
    assert_array_equal(model.labels_, again.labels_)
