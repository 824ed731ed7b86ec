"""Small, degenerate and wild tables: a sound answer or a clear refusal."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import shoal
from shoal import DDFA, DomainMixture
from shoal.analysis.diagnose import diagnose
from shoal.datasets import make_latent_shift
from shoal.exceptions import ShoalWarning
from shoal.metrics import matched_accuracy
from shoal.probability import match_rows
from support.data import clouds


@pytest.fixture(params=[False, True], ids=["quick", "searched"])
def make(request):
    def make(n_classes, **options):
        return DomainMixture(n_classes, search=request.param, random_state=0, **options)

    return make


def quietly(model, X, domains):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return model.fit(X, domains)


def matched(model, truth):
    return model.prevalence_[:, match_rows(truth.T, model.prevalence_.T)]


THREE = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.4, 0.3, 0.3]]
TWO = [[0.8, 0.2], [0.3, 0.7]]


def test_as_many_classes_as_domains(make):
    X, domains, labels = clouds(THREE[:3])
    model = quietly(make(3), X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.97
    assert_allclose(matched(model, np.array(THREE[:3])), THREE[:3], atol=0.1)


def test_two_classes_in_two_domains(make):
    X, domains, labels = clouds(TWO)
    model = quietly(make(2), X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.98
    assert_allclose(matched(model, np.array(TWO)), TWO, atol=0.08)


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_tiny_domains_get_no_class_of_their_own(make, n_rows):
    """Fewer rows than classes: the other domains keep their prevalences."""
    X, domains, labels = clouds(THREE)
    keep = (domains < 3) | (np.cumsum(domains == 3) <= n_rows)
    X, domains, labels = X[keep], domains[keep], labels[keep]
    model = quietly(make(3), X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.97
    assert_allclose(matched(model, np.array(THREE))[:3], THREE[:3], atol=0.1)
    assert_allclose(model.prevalence_.sum(axis=1), 1)
    assert_allclose(model.domain_weight_[:3], (1 - model.domain_weight_[3]) / 3)
    mean_row, tiny_row = 1 / len(X), model.domain_weight_[3] / n_rows
    assert 2.5 * mean_row < tiny_row < 4.5 * mean_row


def test_weights_of_domains_are_taken_as_given(make):
    X, domains, _ = clouds(THREE)
    keep = (domains < 3) | (np.cumsum(domains == 3) <= 5)
    weight = {0: 1, 1: 1, 2: 1, 3: 5}
    model = quietly(make(3, domain_weight=weight), X[keep], domains[keep])
    assert_allclose(model.domain_weight_, [0.125, 0.125, 0.125, 0.625])


def test_identical_rows_are_refused(make):
    with pytest.raises(ValueError, match="only constant columns"):
        make(2).fit(np.ones((40, 3)), np.repeat([0, 1], 20))


def test_two_distinct_rows(make):
    """As few as can be told apart: each is a class."""
    X = np.repeat([[0.0, 1.0], [1.0, 0.0]], 50, axis=0)
    domains = np.r_[np.zeros(40), np.ones(60)].astype(int)
    model = quietly(make(2), X, domains)
    assert matched_accuracy(X[:, 0].astype(int), model.labels_) == 1
    assert_allclose(np.sort(model.prevalence_[1]), [1 / 6, 5 / 6], atol=0.03)


@pytest.mark.parametrize("distance", [50.0, 1e6])
def test_weights_of_separable_data_stay_bounded(make, distance):
    """No row is in doubt, so the likelihood alone would have the weights grow."""
    X, domains, labels = clouds(THREE, distance=distance)
    model = quietly(make(3), X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.97
    assert np.abs(model.weights_).max() < 100
    proba = model.predict_proba(X, domains)
    assert np.isfinite(proba).all()
    free = quietly(make(3, ridge=0.0, confidence=0.0, dirichlet=0.0), X, domains)
    assert np.isfinite(free.weights_).all()
    assert np.isfinite(free.predict_proba(X, domains)).all()


@pytest.mark.parametrize("value", [1e6, -1e12, 1e100])
def test_one_huge_outlier_moves_nobody_else(make, value):
    X, domains, labels = clouds(THREE)
    before = quietly(make(3), X, domains)
    X = X.copy()
    X[7, 1] = value
    after = quietly(make(3), X, domains)
    rest = np.arange(len(X)) != 7
    assert matched_accuracy(before.labels_[rest], after.labels_[rest]) > 0.98
    assert_allclose(matched(after, before.prevalence_), before.prevalence_, atol=0.03)
    assert np.isfinite(after.predict_proba(X, domains)).all()


def test_a_thousand_domains_of_five_rows():
    rng = np.random.default_rng(1)
    domains = np.repeat(np.arange(1000), 5)
    hidden = rng.random(5000) < np.repeat(rng.random(1000), 5)
    X = rng.normal(size=(5000, 2)) + 4 * hidden[:, None]
    model = quietly(DomainMixture(2, search=False, random_state=0), X, domains)
    assert matched_accuracy(hidden, model.labels_) > 0.97
    assert model.prevalence_.shape == (1000, 2)
    counted = np.bincount(domains, hidden) / 5
    ours = matched(model, np.column_stack([1 - counted, counted]))[:, 1]
    assert np.corrcoef(ours, counted)[0, 1] > 0.95


def test_a_class_of_a_single_row(make):
    """More classes than there are: nothing breaks, and the true ones are not torn."""
    X, domains, _ = make_latent_shift(60, n_classes=2, n_domains=6, random_state=0)
    model = quietly(make(5), X, domains)
    assert np.isfinite(model.score(X, domains))
    assert_allclose(model.prevalence_.sum(axis=1), 1)


# ---- more columns than the rows can carry --------------------------------------------


def wide(n_rows, n_columns, seed=0):
    """Three classes that twenty of the columns tell apart; the others are noise."""
    rng = np.random.default_rng(seed)
    _, domains, labels = clouds(np.array(THREE)[:3], n_rows, seed=seed)
    X = rng.normal(size=(n_rows, n_columns))
    X[:, :20] += 1.5 * rng.normal(size=(3, 20))[labels]
    return X, domains, labels


@pytest.mark.parametrize(
    ("shape", "thin"),
    [((240, 40), True), ((240, 40), False), ((240, 400), False), ((600, 300), False)],
)
def test_classes_of_wide_tables_are_not_the_domains(make, shape, thin):
    """Any few rows can be told apart by chance in so many columns."""
    X, domains, labels = wide(*shape)
    rows = sparse.csr_array(X) if thin else X
    model = quietly(make(3), rows, domains)
    assert model.features_.expansion == "components"
    assert model.weights_.shape == (3, shape[0] // 40 + 1)
    assert matched_accuracy(labels, model.labels_) > 0.9
    if model.search:  # a search chooses the ridge for so few rows, and may do without
        return
    columns = quietly(make(3, expansion="linear"), rows, domains)
    assert matched_accuracy(domains, columns.labels_) > 0.85
    assert matched_accuracy(labels, columns.labels_) < 0.9


def test_large_tables_are_not_wide_though_their_samples_are(make):
    X, domains, _ = wide(3_000, 100)
    model = quietly(make(3, max_search_rows=600), X, domains)
    assert model.features_.expansion == "linear"
    few = quietly(make(3), X[::20], domains[::20])
    assert few.features_.expansion == "components"


def test_columns_win_where_components_miss_the_classes(make):
    """Forty pairs of noisy columns have the variance, and one column the classes."""
    rng = np.random.default_rng(0)
    _, domains, labels = clouds(np.array(THREE)[:3], 1_200)
    pairs = np.repeat(rng.normal(size=(1_200, 40)), 2, axis=1)
    one = 6.0 * labels[:, None] + rng.normal(size=(1_200, 1))
    X = np.c_[one / one.std(), pairs + 0.1 * rng.normal(size=pairs.shape)]
    model = quietly(make(3), X, domains)
    assert {"column components", "column linear"} <= set(model.held_out_)
    assert model.features_.expansion == "linear"
    assert matched_accuracy(labels, model.labels_) > 0.85


def test_ddfa_sees_components_of_wide_tables_too(tmp_path):
    X, domains, labels = wide(300, 60)
    model = quietly(DDFA(3, random_state=0), X, domains)
    assert model.discriminator_.chosen_ == "components"
    assert matched_accuracy(labels, model.labels_) > 0.9
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert_array_equal(again.predict_proba(X, domains), model.predict_proba(X, domains))


def test_a_model_of_components_is_saved_asked_and_fitted_again(tmp_path):
    X, domains, labels = wide(300, 60)
    model = quietly(DomainMixture(3, search=False, random_state=0), X, domains)
    assert model.features_.expansion == "components"
    again = shoal.load(shoal.save(model, tmp_path / "model"))
    assert_array_equal(again.predict_proba(X, domains), model.predict_proba(X, domains))
    other = model.refit(X, domains, n_classes=2)
    assert other.features_.expansion == "components"
    assert other.n_classes_ == 2
    chosen = quietly(DomainMixture(search=False, random_state=0), X, domains)
    assert chosen.n_classes_ == 3
    assert matched_accuracy(labels, chosen.labels_) > 0.9
    assert diagnose(model, X, domains).verdict != "do not use"
