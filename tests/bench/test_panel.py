"""The tabular panel: problems from their seeds, labels only for scores."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from shoal.metrics import majority_accuracy
from shoal_bench.panel import METHODS, PROBLEMS, gaussian, run_method, xor
from shoal_bench.published import paper_prevalence

GENERATED = ["gauss k10 a0.5", "gauss k20 a10", "penguins", "xor", "multimodal"]


@pytest.fixture(scope="module")
def small():
    """Ten round clouds in 2,000 rows."""
    return gaussian(10, 0.5, 2000, seed=0)


# ---- problems ---------------------------------------------------------------------


@pytest.mark.parametrize("name", GENERATED)
def test_a_problem_is_a_function_of_its_name_and_seed(name):
    first, again, other = (PROBLEMS[name](seed) for seed in (1, 1, 2))
    for field in fields(first):
        value = getattr(first, field.name)
        assert_array_equal(getattr(again, field.name), value)
    if name != "penguins":  # their rows are what they are
        assert not np.array_equal(first.X, other.X)
    assert len(np.unique(first.labels)) == first.n_classes
    assert set(first.domains_test) <= set(first.domains)
    assert_allclose(first.prevalence.sum(axis=1), 1)


def test_rows_to_fit_and_rows_to_score_are_different_rows(small):
    fitted = {row.tobytes() for row in small.X}
    assert not any(row.tobytes() in fitted for row in small.X_test)
    assert len(small.X) == len(small.X_test) == 1000
    assert_array_equal(np.bincount(small.domains), np.bincount(small.domains_test))


def test_clouds_are_mixed_by_the_papers_matrices():
    problem = gaussian(10, 3, 12_000, seed=6)  # wave 1: there are five
    wanted = paper_prevalence("cifar10", 10, 3, 1)
    assert np.abs(problem.prevalence - wanted).max() < 0.08


# ---- methods ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["mixture, no search", "ddfa", "ddfa published, logit", "k-means", "gmm"]
)
@pytest.mark.filterwarnings("ignore::shoal.exceptions.ShoalWarning")
def test_labels_do_not_reach_a_method(name, small):
    """Rule of evidence 1: with shuffled labels, every method says what it said."""
    rng = np.random.default_rng(0)
    planted = replace(
        small,
        labels=rng.permutation(small.labels),
        labels_test=rng.permutation(small.labels_test),
    )
    classes, prevalence = METHODS[name](small, 0)
    again, again_prevalence = METHODS[name](planted, 0)
    assert_array_equal(again, classes)
    if prevalence is not None:
        assert_array_equal(again_prevalence, prevalence)


def test_scores_are_of_the_test_rows_under_one_matching(small):
    found = run_method("mixture, no search", small, 0)
    classes, prevalence = METHODS["mixture, no search"](small, 0)
    agreement = np.zeros((10, 10))
    np.add.at(agreement, (small.labels_test, classes), 1)
    label, matched = linear_sum_assignment(-agreement)
    share = agreement[label, matched].sum() / len(classes)
    assert_allclose(found["accuracy"], share)
    errors = np.abs(prevalence[:, matched] - small.prevalence)
    assert_allclose(found["prevalence_error"], errors.mean())


def test_floor_and_ceiling(small):
    floor = run_method("majority", small, 0)["accuracy"]
    assert floor == majority_accuracy(small.labels_test, small.domains_test)
    ceiling = run_method("reference", small, 0)["accuracy"]
    assert floor < run_method("mixture, no search", small, 0)["accuracy"] <= ceiling
    # opposite clouds need quadratic features, also with labels
    circle = xor(0)
    assert run_method("reference", circle, 0)["accuracy"] > 0.95
    linear = replace(circle, reference="linear")
    assert run_method("reference", linear, 0)["accuracy"] < 0.7
