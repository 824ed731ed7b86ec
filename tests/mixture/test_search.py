"""How a search chooses: starts without a leak, penalties, features, empty classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    anchor_starts,
    class_share,
    empty_classes,
    fill_empty_classes,
    optimize_from,
    softmax_of_partition,
)
from shoal.metrics import matched_accuracy
from shoal.mixture._options import Folds, SearchOptions, Trial, beats
from shoal.mixture._search import race_clusters, step_gain, weight_steps
from shoal.mixture._starts import Partition, Reanchored, kmeans_labels, look_starts
from shoal.probability import HeldOut, domain_given_class
from shoal.validation._rows import fold_of_rows

WEIGHT = np.full(4, 0.25)


def constant(mean):
    """A held-out score that is the same for every row."""
    return HeldOut(np.full(4, mean), WEIGHT)


def trial(mean, spread=0.0, **penalties):
    score = HeldOut(mean + spread * np.array([1.0, -1.0, 1.0, -1.0]), WEIGHT)
    return Trial(None, Penalties(**{"ridge": 1.0, **penalties}), [], score)


@pytest.fixture(scope="module")
def clouds():
    return make_latent_shift(
        1200, n_classes=4, n_domains=6, n_features=5, separation=2.0, alpha=1.0,
        random_state=3, return_bunch=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def problem(clouds):
    order = np.argsort(clouds.domains, kind="stable")
    even = np.full(len(order), 1 / len(order))
    return MixtureProblem(clouds.X[order], clouds.domains[order], even, 6)


def all_starts(problem, n_classes=4):
    rng = np.random.default_rng(0)
    anchors = anchor_starts(problem, n_classes, rng)
    again = Reanchored(anchors[0], Penalties(1e-3), n_classes, 0)
    return [*anchors, again, *look_starts(problem, n_classes, 1e-3, rng)]


# ---- starts --------------------------------------------------------------------------


def test_no_start_sees_the_domains_of_rows_left_out(problem):
    """Made from a table where these are shuffled, starts say the same of the rest."""
    rng = np.random.default_rng(1)
    left_out = rng.random(problem.n_rows) < 0.3
    shuffled = MixtureProblem(
        problem.design, problem.codes.copy(), problem.row_weight, problem.n_domains
    )
    shuffled.codes[left_out] = rng.permutation(shuffled.codes[left_out])
    rows = np.flatnonzero(~left_out)
    train = problem.take(rows)
    for start, other in zip(all_starts(problem), all_starts(shuffled), strict=True):
        if isinstance(start, Partition) and start.name.startswith("gaussian"):
            # EM of one mix for all: the order of sums may differ in the last digit
            assert np.mean(start.labels == other.labels) > 0.999
            continue
        one, two = start.guess(train, rows), other.guess(train, rows)
        assert_allclose(one.domain_given_class, two.domain_given_class, atol=1e-6)
        assert_allclose(one.domain_given_class.sum(axis=1), 1)


def test_looks_of_clouds_far_apart_are_the_classes(clouds, problem):
    starts = {start.name: start for start in all_starts(problem)}
    truth = domain_given_class(clouds.prevalence)
    names = ("k-means", "gaussian-diag", "gaussian-tied", "density-diag")
    assert {*names, "density-tied"} <= set(starts)
    for name in names:
        guess = starts[name].guess(problem).domain_given_class
        nearest = np.abs(guess[:, None] - truth).sum(axis=2).min(axis=0)
        assert nearest.max() < 0.25, name


def test_sparse_rows_have_anchors_and_k_means(problem):
    from scipy import sparse

    thin = MixtureProblem(
        sparse.csr_array(problem.design), problem.codes, problem.row_weight, 6
    )
    names = [s.name for s in look_starts(thin, 4, 1e-3, np.random.default_rng(0))]
    assert names == ["k-means"]


def test_a_softmax_tells_the_parts_of_a_partition(problem):
    labels = kmeans_labels(
        problem.design, 4, problem.row_weight, np.random.default_rng(0)
    )
    weights = softmax_of_partition(problem, labels, 4, 1e-4)
    told = problem.class_given_x(weights).argmax(axis=1)
    assert np.mean(told == labels) > 0.95


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "n_domains", "counts"),
    [(3000, 10, 14, [40, 80]), (10_000, 50, 50, [150]), (300, 3, 6, [20, 25])],
)
def test_clusters_suit_rows_classes_and_domains(n_rows, n_classes, n_domains, counts):
    codes = np.sort(np.arange(n_rows) % n_domains)
    even = np.full(n_rows, 1 / n_rows)
    rows = MixtureProblem(np.zeros((n_rows, 1)), codes, even, n_domains)
    assert race_clusters(rows, n_classes) == counts


# ---- folds ---------------------------------------------------------------------------


def test_folds_judge_by_rows_that_took_no_part(problem):
    folds = Folds(problem, fold_of_rows(problem.codes, 3, np.random.default_rng(0)))
    problem = problem.in_single_precision()
    start = all_starts(problem)[0]
    penalties = Penalties(1e-3, dirichlet=1e-2)
    found = folds.start([start], penalties, n_frozen=5, n_joint=5)[0]
    for part, fit in zip(folds.parts, found.fits, strict=True):
        assert not set(part.rows) & set(part.held_out)
        train = problem.take(part.rows)
        slow = optimize_from(
            train,
            start.guess(train, part.rows).domain_given_class,
            penalties,
            n_frozen=5,
            n_joint=5,
        )
        assert_allclose(fit.weights, slow.weights)
        rest = problem.take(part.held_out)
        each = rest.log_likelihood(slow.weights, slow.domain_given_class)
        assert_allclose(found.score.each[part.held_out], each)
    further = folds.go_on(found, [penalties], n_joint=20)[0]
    assert all(
        new.objective <= old.objective
        for new, old in zip(further.fits, found.fits, strict=True)
    )
    gains = [gain for gain, _, _ in folds.solutions([found, further])]
    assert gains == sorted(gains, reverse=True)
    assert_allclose(sum(gains), 0, atol=1e-9)  # each is beside the mean of its fold


# ---- choices -------------------------------------------------------------------------


def test_columns_that_gain_next_to_nothing_are_left_out():
    simple = constant(-1.0)
    assert not beats(constant(-1.0 + SETTINGS.least_gain / 2), simple)
    assert beats(constant(-1.0 + 2 * SETTINGS.least_gain), simple)


def test_more_ridge_must_gain_beyond_an_error():
    here = trial(-1.0)
    error = trial(-0.9, spread=1.0).score.standard_error(here.score)
    assert step_gain(trial(-0.9, ridge=0.3), here) == pytest.approx(0.1)
    assert step_gain(trial(-0.9, 1.0, ridge=3.0), here) == pytest.approx(0.1 - error)
    assert trial(-0.9).beats(here, 2.0)
    assert not trial(-0.9, 1.0).beats(here, 2.0)


def test_steps_go_up_and_down_by_one_factor():
    steps = weight_steps(Penalties(1.0, dirichlet=2.0), ["ridge", "dirichlet"])
    assert [s.ridge for s in steps] == pytest.approx([3, 1 / 3, 1, 1])
    assert [s.dirichlet for s in steps] == pytest.approx([2, 2, 6, 2 / 3])


def test_starts_are_compared_under_penalties_for_their_rows(problem):
    race = SearchOptions().race_penalties(problem, 4)
    assert race.ridge == SETTINGS.race_ridge_times_rows / problem.n_rows
    assert race.dirichlet == 4 * 6 / problem.n_rows
    given = SearchOptions(ridge=1e-7, dirichlet=0.0).race_penalties(problem, 4)
    assert (given.ridge, given.dirichlet) == (1e-7, 0.0)


def test_given_penalties_are_those_of_the_fit(clouds):
    model = DomainMixture(
        4,
        by="shift",
        ridge=1e-3,
        dirichlet=0.3,
        max_search_rows=300,
        random_state=0,
    ).fit(clouds.X, clouds.domains)
    assert model.penalties_.ridge == 1e-3
    assert model.penalties_.dirichlet * 1200 == pytest.approx(0.3 * 4 * 6)


def test_a_search_never_ends_below_the_single_optimization(clouds):
    """By its own record; and where nothing beats that one, it is the fit."""
    found = DomainMixture(4, by="shift", random_state=0)
    found.fit(clouds.X, clouds.domains)
    quick = DomainMixture(4, search=False, random_state=0)
    quick.fit(clouds.X, clouds.domains)
    before = found.held_out_["search=False"][0]
    best = max(mean for mean, _ in found.held_out_.values())
    if found.penalties_ == quick.penalties_:
        assert_array_equal(found.weights_, quick.weights_)
    else:
        assert best > before


def test_a_search_on_a_sample_keeps_the_better_objective(clouds):
    options = {"max_search_rows": 300, "expansion": "linear", "random_state": 0}
    found = DomainMixture(4, **options).fit(clouds.X, clouds.domains)
    quick = DomainMixture(4, search=False, **options).fit(clouds.X, clouds.domains)
    assert found.penalties_ == quick.penalties_
    assert found.objective_ <= quick.objective_


def test_a_single_optimization_that_cannot_be_beaten_is_the_fit(clouds, monkeypatch):
    monkeypatch.setattr(Trial, "beats", lambda *_: False)
    found = DomainMixture(4, by="shift", random_state=0)
    found.fit(clouds.X, clouds.domains)
    quick = DomainMixture(4, search=False, random_state=0)
    assert_array_equal(found.weights_, quick.fit(clouds.X, clouds.domains).weights_)


# ---- empty classes -------------------------------------------------------------------


def test_an_empty_class_takes_a_half_of_another(clouds, problem):
    """From a planted trap, two classes in one and one empty, back to the optimum."""
    truth = domain_given_class(clouds.prevalence)
    penalties = Penalties(1e-3, dirichlet=1e-3)
    best = optimize_from(problem, truth, penalties)
    trap = optimize_from(problem, truth[:3], penalties)
    weights = np.vstack([trap.weights, trap.weights.mean(axis=0)])
    weights[3, -1] = -50  # no row is in this class
    stuck = type(trap)(weights, np.vstack([trap.domain_given_class, truth[3]]), np.inf)
    assert list(empty_classes(problem, stuck)) == [3]
    rng = np.random.default_rng(0)
    filled = fill_empty_classes(problem, stuck, penalties, rng)
    assert not len(empty_classes(problem, filled))
    assert class_share(problem, filled).min() > 0.1
    assert_allclose(filled.objective, best.objective, atol=2e-3)


def test_many_classes_are_found_and_none_is_empty():
    X, domains, labels = make_latent_shift(
        1500, n_classes=12, n_domains=12, n_features=8, separation=2.0, alpha=2.0,
        max_condition=1e6, random_state=0,
    )  # fmt: skip
    model = DomainMixture(12, expansion="linear", random_state=0).fit(X, domains)
    sizes = np.bincount(model.labels_, minlength=12)
    assert sizes.min() > np.bincount(labels).min() / 2
    assert matched_accuracy(labels, model.labels_) > 0.95
