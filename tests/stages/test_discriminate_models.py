"""The classifiers behind the short names, and the choice among them."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from shoal.stages.discriminate import (
    Discriminator,
    EarlyStoppedBoosting,
    EarlyStoppedMLP,
    choose_discriminator,
    named_discriminator,
)
from shoal.stages.discriminate._candidates import (
    simplest_within_error,
    with_seeds,
    worth_trying,
)
from shoal.stages.discriminate._early_stopping import cross_entropy, hold_out_rows
from shoal.stages.discriminate._named import MAKERS, LeadingComponents, RBFFeatures

FAST_MLP = EarlyStoppedMLP((8,), max_epochs=20, random_state=0)


class Counting(LogisticRegression):
    """Writes down how many rows it was given."""

    sizes: list = []

    def fit(self, X, y, sample_weight=None):
        Counting.sizes.append(len(y))
        return super().fit(X, y, sample_weight)


def moons(seed, n_samples=300):
    """Two interleaved arcs, far from linear, with some noise."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.arange(n_samples) % 2)
    angle = rng.uniform(0, np.pi, n_samples) + np.pi * codes
    X = np.column_stack([np.cos(angle) + codes, np.sin(angle) + codes / 2])
    return X + 0.2 * rng.normal(size=X.shape), codes


# ---- held-out rows -------------------------------------------------------------------


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=5),
    st.sampled_from([0.05, 0.1, 0.3, 0.9]),
    st.integers(0, 99),
)
def test_held_out_rows(counts, fraction, seed):
    counts = np.array(counts)
    codes = np.random.default_rng(seed).permutation(
        np.repeat(range(len(counts)), counts)
    )
    held_out = hold_out_rows(codes, fraction, np.random.RandomState(seed))
    number = np.bincount(codes[held_out], minlength=len(counts))
    assert (number < counts).all()  # every class keeps a row to train on
    assert (number[counts > 1] >= 1).all()
    roomy = (counts > 1) & (number < counts - 1) & (number > 1)
    assert (np.abs(number - fraction * counts)[roomy] <= 0.5).all()


# ---- the network ---------------------------------------------------------------------


def test_network_keeps_its_best_epoch(seed):
    X, y = moons(seed)
    net = EarlyStoppedMLP((16,), max_epochs=40, patience=None, random_state=seed)
    net.fit(X, y)
    assert net.n_iter_ == len(net.held_out_losses_) == 40  # all epochs, as published
    assert net.best_epoch_ == net.held_out_losses_.argmin()
    held_out = hold_out_rows(y, 0.1, np.random.RandomState(seed))
    kept = cross_entropy(net.predict_proba(X[held_out]), y[held_out])
    assert_allclose(kept, net.held_out_losses_.min())


def test_patience_stops_early_at_the_same_best(seed):
    X, y = moons(seed)
    # A large step overfits soon, so that there is something to stop.
    options = {"learning_rate_init": 0.03, "alpha": 0, "random_state": seed}
    full = EarlyStoppedMLP((64,), max_epochs=60, patience=None, **options).fit(X, y)
    early = EarlyStoppedMLP((64,), max_epochs=60, patience=6, **options).fit(X, y)
    assert early.n_iter_ == min(60, early.best_epoch_ + 7)
    assert_array_equal(early.held_out_losses_, full.held_out_losses_[: early.n_iter_])


def test_early_stopping_beats_the_last_epoch_on_new_rows(seed):
    # Labels with much noise: late epochs learn it by heart.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 5))
    y = (X[:, 0] + 2 * rng.normal(size=2000) > 0).astype(int)
    options = {"learning_rate_init": 0.01, "alpha": 0, "random_state": seed}
    net = EarlyStoppedMLP((64,), validation_fraction=0.3, **options)
    best = net.fit(X[:600], y[:600]).predict_proba(X[600:])
    last = MLPClassifier((64,), max_iter=200, tol=0, n_iter_no_change=200, **options)
    with pytest.warns(ConvergenceWarning):
        last = last.fit(X[:600], y[:600]).predict_proba(X[600:])
    assert cross_entropy(best, y[600:]) < cross_entropy(last, y[600:])


def test_rows_are_shuffled_anew_in_every_epoch(seed):
    X, y = moons(seed)
    net = EarlyStoppedMLP((8,), max_epochs=3, random_state=seed).fit(X, y)
    stream = np.random.RandomState(seed)
    train = ~hold_out_rows(y, 0.1, stream)
    options = {"alpha": 0.1, "batch_size": 128, "learning_rate_init": 3e-3}
    moving = MLPClassifier((8,), random_state=stream, **options)
    stuck = MLPClassifier((8,), random_state=seed, **options)
    for _ in range(3):
        for plain in (moving, stuck):  # a number as seed repeats one order
            plain.partial_fit(X[train], y[train], classes=[0, 1])
    assert_array_equal(net.network_.loss_curve_, moving.loss_curve_)
    assert (np.array(net.network_.loss_curve_) != stuck.loss_curve_).any()


def test_network_follows_its_seed(seed):
    X, y = moons(seed, 40)
    first, again, other = (
        clone(FAST_MLP).set_params(random_state=s).fit(X, y).predict_proba(X)
        for s in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert (first != other).any()


def test_network_takes_names_and_single_precision(seed):
    X, y = moons(seed)
    names = np.array(["sun", "moon"])[y]
    net = clone(FAST_MLP).fit(X.astype(np.float32), names)
    assert net.classes_.tolist() == ["moon", "sun"]
    assert net.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert set(net.predict(X)) <= {"moon", "sun"}


def test_one_row_per_class_still_trains():
    net = clone(FAST_MLP).fit([[0.0], [1.0]], ["a", "b"])
    assert_allclose(net.predict_proba([[0.5]]).sum(), 1)


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1])
def test_validation_fraction_out_of_range(fraction):
    net = EarlyStoppedMLP(validation_fraction=fraction)
    with pytest.raises(ValueError, match="validation_fraction must be between 0 and 1"):
        net.fit([[0.0], [1.0]], [0, 1])


# ---- trees ---------------------------------------------------------------------------


def test_boosting_stops_before_it_overfits(seed):
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 5))
    y = (X[:, 0] + 2 * rng.normal(size=2000) > 0).astype(int)
    trees = EarlyStoppedBoosting(random_state=seed).fit(X[:1000], y[:1000])
    assert 1 <= trees.n_iter_ < 100
    assert cross_entropy(trees.predict_proba(X[1000:]), y[1000:]) < np.log(2) + 0.02


def test_boosting_without_lightgbm_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"pip install \"shoal\[boost\]\""):
        EarlyStoppedBoosting().fit([[0.0], [1.0], [0.5], [2.0]], [0, 1, 0, 1])


# ---- RBF -----------------------------------------------------------------------------


def test_rbf_against_the_formula(seed):
    X, _ = moons(seed, 80)
    rbf = RBFFeatures(7, random_state=seed).fit(X)
    got = rbf.transform(X)
    centers = rbf.centers_
    distances = [
        np.linalg.norm(a - b) for i, a in enumerate(centers) for b in centers[:i]
    ]
    assert_allclose(rbf.width_, np.median(distances) / 2)
    for row, x in enumerate(X):
        expected = [
            np.exp(-((x - c) ** 2).sum() / (2 * rbf.width_**2)) for c in centers
        ]
        assert_allclose(got[row], [*x, *expected], atol=1e-12)


def test_rbf_with_few_distinct_rows():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 10, axis=0)
    assert RBFFeatures(50, random_state=0).fit_transform(X).shape == (20, 4)
    assert RBFFeatures(50).fit_transform(X[:4]).shape == (4, 3)


def test_rbf_from_a_sample_of_rows(seed):
    X, _ = moons(seed, 300)
    rbf = RBFFeatures(10, max_samples=100, random_state=seed)
    assert rbf.fit_transform(X).shape == (300, 12)
    assert_array_equal(rbf.transform(X), rbf.fit(X).transform(X))


# ---- short names ---------------------------------------------------------------------


@pytest.mark.parametrize("name", MAKERS)
def test_every_name_makes_a_classifier_that_beats_chance(seed, name):
    if name == "lightgbm":
        pytest.importorskip("lightgbm")
    X, codes = moons(seed, 500)
    model = with_seeds(named_discriminator(name, np.bincount(codes)), seed)
    proba = model.fit(X[:300], codes[:300]).predict_proba(X[300:])
    assert_allclose(proba.sum(axis=1), 1, rtol=1e-6)
    assert cross_entropy(proba, codes[300:]) < np.log(2)


@pytest.mark.parametrize("name", ["logistic", "quadratic", "rbf", "mlp"])
def test_units_of_columns_do_not_matter(seed, name):
    X, codes = moons(seed)
    results = [
        with_seeds(named_discriminator(name, np.bincount(codes)), seed)
        .fit(X * units, codes)
        .predict_proba(X * units)
        for units in (1, np.array([1024, 1 / 1024]))  # powers of two keep every bit
    ]
    assert_array_equal(*results)


def test_boost_with_domains_too_small_to_hold_out_of(seed):
    X, codes = moons(seed, 30)
    codes[:3] = 2
    model = named_discriminator("boost", np.bincount(codes))
    assert not model.early_stopping
    model.fit(X, codes)
    assert named_discriminator("boost", np.array([300, 300])).early_stopping


def test_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match="unknown discriminator 'svm'") as caught:
        named_discriminator("svm", np.array([10, 10]))
    assert all(repr(name) in str(caught.value) for name in ("auto", *MAKERS))


def test_only_unset_seeds_are_set(seed):
    model = with_seeds(named_discriminator("rbf", np.array([10, 10])), 7)
    seeds = {k: v for k, v in model.get_params().items() if "random_state" in k}
    assert seeds == {
        "rbffeatures__random_state": 7,
        "logisticregression__random_state": 7,
    }
    own = EarlyStoppedMLP(random_state=3)
    assert with_seeds(own, 7).random_state == 3
    unset = EarlyStoppedMLP()
    assert with_seeds(unset, 7).random_state == 7
    assert unset.random_state is None


# ---- the choice ----------------------------------------------------------------------


def test_a_tie_goes_to_the_simpler(seed):
    rng = np.random.default_rng(seed)
    base = rng.exponential(size=1000)
    weight = np.full(1000, 1 / 1000)
    noise = rng.normal(size=1000)
    noise -= noise.mean()
    # Better by half a standard error is a tie, by two it is not.
    for gain, expected in ((0.5, 0), (2.0, 1)):
        better = base + noise - gain * noise.std() / np.sqrt(1000)
        index, losses = simplest_within_error(np.array([base, better]), weight)
        assert index == expected
        assert_allclose(losses, [base.mean(), better.mean()])


def test_the_best_wins_where_it_is_clear():
    losses = np.array([[3.0, 3.1, 2.9], [1.0, 1.1, 0.9], [2.0, 2.1, 1.9]])
    index, means = simplest_within_error(losses, np.array([0.5, 0.25, 0.25]))
    assert index == 1
    assert_allclose(means, [3.0, 1.0, 2.0])


def test_a_large_table_is_judged_on_a_sample(seed):
    X, codes = moons(seed, 600)
    codes[:4] = 2  # a domain that a sample of one sixth would leave too thin
    X[:4] += 9
    domain_weight = np.full(3, 1 / 3)
    candidates = [Counting(C=1e-9), Counting(C=1.0)]
    options = {"n_folds": 4, "random_state": seed}
    Counting.sizes.clear()
    choice = choose_discriminator(
        candidates, X, codes, domain_weight, max_samples=100, **options
    )
    assert choice.index == 1
    assert choice.losses[0] == pytest.approx(np.log(3), abs=1e-3)
    pilot, full = Counting.sizes[:8], Counting.sizes[8:]
    assert all(100 * 3 / 4 - 2 <= size <= 110 * 3 / 4 for size in pilot)
    assert full == [450] * 4  # the winner, on all rows
    alone = choose_discriminator([candidates[1]], X, codes, domain_weight, **options)
    assert_array_equal(choice.domain_given_x, alone.domain_given_x)


def test_equal_candidates_go_to_the_first():
    losses = np.ones((3, 4))
    assert simplest_within_error(losses, np.full(4, 0.25))[0] == 0


@pytest.mark.parametrize("shape", [(30, 4), (300, 150), (150, 300)])
def test_components_are_those_of_numpy(shape, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape) @ np.diag(np.linspace(3, 1, shape[1]))
    X -= X.mean(axis=0)
    found = LeadingComponents(3).fit(X)
    Z = found.transform(X)
    assert_allclose((Z**2).mean(), 1)
    directions = np.linalg.svd(X)[2][:3]
    cosines = directions @ found.components_
    cosines /= np.linalg.norm(found.components_, axis=0)
    assert_allclose(np.abs(cosines), np.eye(3), atol=1e-6)
    assert LeadingComponents(50).fit_transform(X[:20, :2]).shape == (20, 2)
    assert_array_equal(LeadingComponents(3).fit_transform(0 * X), 0 * Z)


def test_components_of_wide_tables_tell_classes_not_rows(seed):
    """In 300 columns 240 rows are told apart by chance; six components cannot."""
    rng = np.random.default_rng(seed)
    prevalence = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])
    domains = np.repeat(np.arange(3), 80)
    labels = np.array([rng.choice(3, p=prevalence[domain]) for domain in domains])
    X = rng.normal(size=(240, 300))
    X[:, :20] += 1.5 * rng.normal(size=(3, 20))[labels]
    model = Discriminator(random_state=0).fit(X, domains)
    assert model.chosen_ == "components"
    assert model.losses_["components"] < model.losses_["logistic"]
    truth = prevalence.T[labels] / prevalence.T[labels].sum(axis=1, keepdims=True)
    wide = Discriminator("logistic", random_state=0).fit(X, domains)
    errors = [np.abs(one.predict_proba(X) - truth).mean() for one in (model, wide)]
    assert errors[0] < errors[1] / 2


def test_what_is_worth_trying():
    assert worth_trying("components", 240, 300)
    assert not worth_trying("components", 6_000, 300)
    assert not worth_trying("components", 240, 9)
    assert worth_trying("logistic", 10, 500)
    assert worth_trying("quadratic", 100, 2)
    assert not worth_trying("quadratic", 99, 2)
    assert not worth_trying("quadratic", 200_000, 30)  # 800 MB of columns
    assert worth_trying("rbf", 50_000, 30)
    assert not worth_trying("rbf", 1000, 2)
    assert worth_trying("mlp", 5000, 2)
    assert not worth_trying("mlp", 500, 2)
