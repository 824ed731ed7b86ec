"""Starts are recipes: each set of training rows reads them with its own domains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from shoal.datasets import make_latent_shift
from shoal.likelihood._folds import Folds
from shoal.likelihood._looks import look_starts, partition_start
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._starts import (
    anchor_starts,
    cluster_counts,
    merge_costs,
    optimize_from,
    random_starts,
    rank_starts,
)
from shoal.probability import domain_given_class, match_rows, normalize_rows
from shoal.validation._rows import fold_of_rows

PENALTIES = Penalties(1e-3, 0.03, dirichlet=0.01)


@pytest.fixture(scope="module")
def data():
    return make_latent_shift(
        1500, n_classes=4, n_domains=6, n_features=6, separation=1.5, alpha=2.0,
        random_state=3, return_bunch=True,
    )  # fmt: skip


@pytest.fixture(scope="module")
def problem(data):
    order = np.argsort(data.domains, kind="stable")
    weight = np.full(len(order), 1 / len(order))
    return MixtureProblem(data.X[order], data.domains[order], weight, 6)


def all_starts(problem, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    return [
        *anchor_starts(problem, n_classes, rng),
        *look_starts(problem, n_classes, rng),
        *random_starts(problem, n_classes, 1, rng),
    ]


def test_starts_are_stochastic_and_nearer_the_truth_than_chance(data, problem):
    truth = domain_given_class(data.prevalence)
    starts = all_starts(problem)
    assert len({start.name for start in starts}) == len(starts) == 10

    def distance(start):
        guess = start.guess(problem)
        assert_allclose(guess.sum(axis=1), 1)
        return np.abs(guess[match_rows(truth, guess)] - truth).mean()

    *found, chance = map(distance, starts)
    assert np.median(found) < chance


def test_a_partition_is_read_as_its_table(problem):
    halves = (problem.design[:, 0] > 0).astype(int)
    guess = partition_start("halves", halves, 2).guess(problem)
    counts = [
        np.bincount(problem.codes[halves == half], minlength=6) for half in (0, 1)
    ]
    assert_allclose(guess, normalize_rows(np.array(counts, dtype=float)), atol=0.01)


def test_a_class_without_rows_in_a_fold_may_come_from_anywhere(problem):
    alone = np.zeros(problem.n_rows, dtype=int)
    alone[0] = 1
    start = partition_start("one row", alone, 2)
    rows = np.arange(1, problem.n_rows)
    assert_allclose(start.guess(problem.take(rows), rows)[1], 1 / 6)


def test_sparse_rows_start_from_k_means_alone(problem):
    thin = MixtureProblem(
        sparse.csr_array(problem.design), problem.codes, problem.row_weight, 6
    )
    (only,) = look_starts(thin, 4, np.random.default_rng(0))
    assert only.name == "k-means"


def test_no_fold_sees_the_domains_of_its_held_out_rows(problem):
    """Other domains for held-out rows change no start and no fit of that fold."""
    fold_of_row = fold_of_rows(problem.codes, 3, np.random.default_rng(0))
    swapped = problem.codes.copy()
    held = np.flatnonzero(fold_of_row == 0)
    swapped[held] = np.random.default_rng(1).permutation(swapped[held])
    order = np.argsort(swapped, kind="stable")
    other = MixtureProblem(
        problem.design[order], swapped[order], problem.row_weight[order], 6
    )
    starts = all_starts(problem)
    here, there = Folds(problem, fold_of_row), Folds(other, fold_of_row[order])
    before, after = here.parts[0], there.parts[0]
    assert_array_equal(before.train.design, after.train.design)
    for start in starts:
        moved = type(start)(
            start.name, start.clusters[order], start.n_clusters, start.read
        )
        first = start.guess(before.train, before.rows)
        assert_array_equal(first, moved.guess(after.train, after.rows))
    trial = here.start([starts[0].guess], PENALTIES)[0]
    moved = type(starts[0])(
        "", starts[0].clusters[order], starts[0].n_clusters, starts[0].read
    )
    same = there.start([moved.guess], PENALTIES)[0]
    assert_allclose(
        trial.fits[0].domain_given_class, same.fits[0].domain_given_class, atol=1e-12
    )
    assert trial.mean > same.mean  # held-out rows whose domains are dealt anew


def test_held_out_rows_are_judged_by_the_fit_without_them(problem):
    fold_of_row = fold_of_rows(problem.codes, 3, np.random.default_rng(0))
    start = all_starts(problem)[0]
    trial = Folds(problem, fold_of_row).start([start.guess], PENALTIES, n_joint=7)[0]
    rows = np.flatnonzero(fold_of_row != 1)
    train = problem.take(rows)
    fit = optimize_from(train, start.guess(train, rows), PENALTIES, n_joint=7)
    test = np.flatnonzero(fold_of_row == 1)
    expected = problem.take(test).log_likelihood(fit.weights, fit.domain_given_class)
    assert_allclose(trial.score.each[test], expected)


def test_going_on_starts_from_what_each_fold_found(problem):
    folds = Folds(problem, fold_of_rows(problem.codes, 3, np.random.default_rng(0)))
    trial = folds.start([all_starts(problem)[0].guess], PENALTIES, n_joint=5)[0]
    further = folds.go_on(trial, [PENALTIES])[0]
    for before, after in zip(trial.fits, further.fits, strict=True):
        assert after.objective <= before.objective


def test_starts_are_ranked_by_the_objective_of_a_short_climb(problem):
    rng = np.random.default_rng(0)
    ranked = rank_starts(problem, all_starts(problem), PENALTIES, rng)
    objectives = [
        optimize_from(
            problem, start.guess(problem), PENALTIES, n_frozen=20, n_joint=30
        ).objective
        for start in ranked
    ]
    assert objectives == sorted(objectives)


@pytest.mark.parametrize(
    ("n_rows", "n_domains", "n_classes", "counts"),
    [
        (3000, 10, 7, [21, 42]),  # three and six a class
        (300, 6, 3, [20, 25]),  # two rows a cell
        (10_000, 50, 50, [150]),  # three a class where cells cannot be filled
        (40, 4, 4, [5]),
    ],
)
def test_the_number_of_clusters_suits_rows_and_domains(
    n_rows, n_domains, n_classes, counts
):
    codes = np.sort(np.arange(n_rows) % n_domains)
    even = np.full(n_rows, 1 / n_rows)
    problem = MixtureProblem(np.zeros((n_rows, 1)), codes, even, n_domains)
    assert cluster_counts(problem, n_classes) == counts


def test_the_pair_that_shifts_alike_is_the_cheapest_to_merge(data, problem):
    fit = optimize_from(problem, domain_given_class(data.prevalence), PENALTIES)
    fit.domain_given_class[2] = fit.domain_given_class[0]
    a, b, merged = merge_costs(problem, fit)[0]
    assert (a, b) == (0, 2)
    assert_allclose(merged, fit.domain_given_class[0])
