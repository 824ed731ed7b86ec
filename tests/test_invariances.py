"""What must not matter does not: names and order of domains, rows, columns, units."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from shoal import DDFA, DensityMixture, DomainMixture
from shoal.probability import match_rows
from shoal.stages.discretize import KMeansDiscretizer

MIXES = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.1, 0.9]])
ROWS_PER_DOMAIN = 100
# Without folds and with one number of clusters: these are drawn, and with a hundred
# rows a domain another draw moves DDFA's prevalences by .1.
ESTIMATORS = {
    "ddfa": DDFA(
        2,
        discriminator="logistic",
        discretizer=KMeansDiscretizer(2, metric="hellinger"),
        cross_fit=0,
        random_state=0,
    ),
    "mixture": DomainMixture(2, search=False, random_state=0),
    "density": DensityMixture(
        2, covariance="tied", drift=False, n_init=4, random_state=0
    ),
}
# What a change may move where it must not change anything but which rows are drawn
# for folds, samples and centres; seen on 25 problems: half of this.
TOLERANCE = {"ddfa": 0.05, "mixture": 0.02, "density": 0.02}
FEW = settings(max_examples=4)
seeds = st.integers(0, 2**16)


@pytest.fixture(scope="module", params=ESTIMATORS)
def name(request):
    return request.param


def fit(name, X, domains, **options):
    return clone(ESTIMATORS[name]).set_params(**options).fit(X, domains)


def draw(seed):
    """Two clouds three standard deviations apart, in four domains."""
    rng = np.random.default_rng(seed)
    domains = np.repeat(np.arange(4), ROWS_PER_DOMAIN)
    second = rng.random(len(domains)) < MIXES[domains, 1]
    direction = rng.normal(size=3)
    direction *= 3 / np.linalg.norm(direction)
    X = rng.normal(size=(len(domains), 3)) + second[:, None] * direction
    order = rng.permutation(len(X))
    return X[order], domains[order]


def shares(fitted, reference):
    """Prevalences with classes in the order of a reference."""
    return fitted.prevalence_[:, match_rows(reference.T, fitted.prevalence_.T)]


def agreement(first, second):
    """Share of rows in the same class, whatever its number."""
    same = np.mean(first == second)
    return max(same, 1 - same)


@FEW
@given(seeds)
def test_order_of_rows(name, seed):
    X, domains = draw(seed)
    order = np.random.default_rng(seed).permutation(len(X))
    first = fit(name, X, domains)
    second = fit(name, X[order], domains[order])
    assert np.mean(second.labels_ == first.labels_[order]) >= 0.999
    assert_allclose(second.prevalence_, first.prevalence_, rtol=0, atol=1e-4)


@FEW
@given(seeds)
def test_names_of_domains(name, seed):
    """Names that sort alike change nothing at all, others permute rows."""
    X, domains = draw(seed)
    first = fit(name, X, domains)
    alike = fit(name, X, np.array(["aa", "b", "cc", "d"])[domains])
    assert_array_equal(alike.prevalence_, first.prevalence_)
    assert_array_equal(alike.labels_, first.labels_)
    turn = np.random.default_rng(seed).permutation(4)
    turned = fit(name, X, turn[domains])
    table = shares(turned, first.prevalence_[np.argsort(turn)])
    assert_allclose(table[turn], first.prevalence_, rtol=0, atol=TOLERANCE[name])
    assert agreement(turned.labels_, first.labels_) > 0.98


@FEW
@given(seeds)
def test_order_of_columns(name, seed):
    X, domains = draw(seed)
    columns = np.random.default_rng(seed).permutation(X.shape[1])
    first = fit(name, X, domains)
    second = fit(name, X[:, columns], domains)
    table = shares(second, first.prevalence_)
    assert_allclose(table, first.prevalence_, rtol=0, atol=1e-3)
    assert agreement(second.labels_, first.labels_) >= 0.99


@FEW
@given(seeds, st.sampled_from([1e-3, 0.5, 8.0, 1e4]), st.sampled_from([0.0, -7.0]))
def test_units_of_columns(name, seed, factor, offset):
    X, domains = draw(seed)
    scale = np.array([factor, 1.0, 3.0])
    first = fit(name, X, domains)
    second = fit(name, X * scale + offset, domains)
    table = shares(second, first.prevalence_)
    assert_allclose(table, first.prevalence_, rtol=0, atol=1e-3)
    assert agreement(second.labels_, first.labels_) >= 0.99


@FEW
@given(seeds)
def test_all_rows_twice(name, seed):
    """The same shares of everything: the same classes, but for penalties."""
    X, domains = draw(seed)
    first = fit(name, X, domains)
    second = fit(name, np.vstack([X, X]), np.tile(domains, 2))
    table = shares(second, first.prevalence_)
    assert_allclose(table, first.prevalence_, rtol=0, atol=TOLERANCE[name])
    assert_array_equal(second.labels_[: len(X)], second.labels_[len(X) :])
    assert agreement(second.labels_[: len(X)], first.labels_) > 0.98


@FEW
@given(seeds)
def test_a_domain_that_repeats_another(name, seed):
    """It gets the other's prevalence, and the others keep theirs.

    Not exactly: the rows of both now count twice in what a class looks like.
    """
    X, domains = draw(seed)
    twin = domains == 1
    first = fit(name, X, domains)
    second = fit(
        name,
        np.vstack([X, X[twin]]),
        np.concatenate([domains, np.full(twin.sum(), 4)]),
    )
    reference = np.vstack([first.prevalence_, first.prevalence_[1]])
    table = shares(second, reference)
    # of 151 seeds, the worst moved the mixture by 3.3 tolerances, the median by 0.2
    assert_allclose(table, reference, rtol=0, atol=4 * TOLERANCE[name])
    assert_allclose(table[1], table[4], rtol=0, atol=1e-3)
    assert agreement(second.labels_[: len(X)], first.labels_) > 0.95


@FEW
@given(seeds)
def test_predictions_follow_the_rows(name, seed):
    """Alone, in a batch, in another order: a row has one prediction."""
    X, domains = draw(seed)
    model = fit(name, X, domains)
    proba = model.predict_proba(X, domains)
    order = np.random.default_rng(seed).permutation(len(X))
    shuffled = model.predict_proba(X[order], domains[order])
    assert_allclose(shuffled, proba[order], atol=1e-6)
    for row in order[:3]:
        alone = model.predict_proba(X[row : row + 1], domains[row : row + 1])
        assert_allclose(alone[0], proba[row], atol=1e-6)


def test_number_of_workers(name, seed):
    if "n_jobs" not in ESTIMATORS[name].get_params():
        pytest.skip("works alone")
    X, domains = draw(seed)
    one, two = (fit(name, X, domains, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert_array_equal(one.prevalence_, two.prevalence_)
    assert_array_equal(one.labels_, two.labels_)
    assert_array_equal(one.predict_proba(X, domains), two.predict_proba(X, domains))


def test_number_of_threads(name, seed):
    X, domains = draw(seed)
    models = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            models.append(fit(name, X, domains))
    one, two = models
    assert np.mean(one.labels_ == two.labels_) >= 0.999
    assert_allclose(two.prevalence_, one.prevalence_, rtol=0, atol=1e-4)
