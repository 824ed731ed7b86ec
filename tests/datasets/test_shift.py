"""Appendix D: well-conditioned draws, exact quotas, rows used once, hidden labels."""

import inspect
import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from shoal.datasets import draw_prevalence, plan_domains, take
from shoal.probability import condition_number

# Prevalences


@pytest.mark.parametrize(
    ("n_classes", "n_domains", "alpha", "max_condition"),
    [(2, 2, 0.5, 3), (2, 5, 10, 7), (5, 8, 3, 6), (10, 20, 0.5, 4), (20, 30, 10, 20)],
)
def test_draw_is_well_conditioned(n_classes, n_domains, alpha, max_condition, seed):
    matrix = draw_prevalence(
        n_classes, n_domains, alpha, max_condition, random_state=seed
    )
    assert matrix.shape == (n_domains, n_classes)
    assert_allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert (matrix >= 0).all()
    # Zeroing entries below 1e-7 comes after the check and moves it by as little.
    assert condition_number(matrix) <= max_condition * (1 + 1e-5)


def test_the_first_well_conditioned_draw_is_taken(seed):
    """Agree with a slow loop: one matrix at a time, numpy's own condition number."""
    generator = np.random.RandomState(seed)
    drawn = generator.dirichlet(np.full(4, 3 / 4), size=6)
    n_tries = 1
    while np.linalg.cond(drawn) > 2.5:
        drawn = generator.dirichlet(np.full(4, 3 / 4), size=6)
        n_tries += 1
    assert n_tries > 1, "the limit must bite, or this shows nothing"
    got = draw_prevalence(4, 6, 3, 2.5, random_state=seed)
    assert_allclose(got, drawn, atol=1e-6)
    assert_allclose(
        draw_prevalence(4, 6, 3, 2.5, random_state=seed, max_tries=n_tries), got
    )
    with pytest.raises(ValueError, match="max_condition=2.5 was not reached"):
        draw_prevalence(4, 6, 3, 2.5, random_state=seed, max_tries=n_tries - 1)


def test_failure_names_the_smallest_condition_number_seen(seed):
    generator = np.random.RandomState(seed)
    seen = [
        np.linalg.cond(generator.dirichlet(np.full(3, 10 / 3), size=3))
        for _ in range(300)
    ]
    with pytest.raises(ValueError, match="raise max_condition") as failure:
        draw_prevalence(3, 3, 10, 1.01, random_state=seed, max_tries=300)
    assert f"seen: {min(seen):.4g})" in str(failure.value)
    assert "300 draws" in str(failure.value)


def test_condition_one_with_two_classes_is_a_permutation(seed):
    """Appendix D: at kappa = 1 and k = 2 only the identity, rows permuted, is left.

    A finite number of draws reaches that limit when alpha is small.
    """
    found = set()
    for attempt in range(20):
        matrix = draw_prevalence(2, 2, 0.02, 1, random_state=seed + attempt)
        assert_array_equal(np.sort(matrix, axis=0), [[0, 0], [1, 1]])
        assert_array_equal(matrix.sum(axis=0), [1, 1])
        found.add(int(matrix[0, 0]))
    assert found == {0, 1}


@pytest.mark.parametrize("max_condition", [1.5, 1.1, 1.01, 1.001])
def test_condition_near_one_is_near_a_permutation(max_condition, seed):
    matrix = draw_prevalence(2, 2, 0.2, max_condition, random_state=seed)
    # Two rows (1-a, a) and (b, 1-b) have condition number at least 1/(1 - a - b).
    assert np.abs(matrix - matrix.round()).max() <= 1 - 1 / max_condition + 1e-9


def test_small_entries_are_zeroed_and_rows_sum_to_one(seed):
    rough = draw_prevalence(20, 20, 0.5, random_state=seed, threshold=0)
    matrix = draw_prevalence(20, 20, 0.5, random_state=seed)
    small = rough < 1e-7
    assert small.any()
    assert_array_equal(matrix == 0, small)
    kept = np.where(small, 0, rough)
    assert_allclose(matrix, kept / kept.sum(axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1e-2])
def test_tiny_alpha_gives_one_class_per_domain(alpha, seed):
    matrix = draw_prevalence(50, 1000, alpha, random_state=seed)
    assert np.isfinite(matrix).all()
    assert_allclose(matrix.sum(axis=1), 1)
    dominated = matrix.max(axis=1) > 0.99
    assert dominated.mean() > 0.9
    assert len(np.unique(matrix.argmax(axis=1))) == 50, "every class can dominate"


def test_mean_and_spread_are_those_of_the_dirichlet(seed):
    matrix = draw_prevalence(4, 20_000, 3, random_state=seed)
    assert_allclose(matrix.mean(axis=0), 0.25, atol=0.01)
    assert_allclose(matrix.var(axis=0), 0.25 * 0.75 / (3 + 1), atol=0.003)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": 0}, "n_classes must be a whole number from 1, got 0"),
        ({"n_domains": 2.5}, "n_domains must be a whole number from 1, got 2.5"),
        ({"alpha": 0}, "alpha must be a number above 0, got 0"),
        ({"alpha": float("nan")}, "alpha must be a number above 0, got nan"),
        ({"max_condition": 0.5}, "max_condition must be at least 1.*got 0.5"),
        ({"max_tries": 0}, "max_tries must be a whole number from 1, got 0"),
        ({"n_domains": 2}, "n_domains=2 is less than n_classes=3.*max_condition=None"),
    ],
)
def test_bad_draws_are_refused(arguments, message):
    valid = {"n_classes": 3, "n_domains": 4, "alpha": 3, "max_condition": 10}
    with pytest.raises(ValueError, match=message):
        draw_prevalence(**{**valid, **arguments})


def test_fewer_domains_than_classes_can_be_drawn_without_a_limit(seed):
    assert draw_prevalence(5, 2, 3, random_state=seed).shape == (2, 5)


# Plans


@pytest.fixture
def labelled(seed):
    """A data set of 3 unequal classes, whose only feature is the row's own position."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.repeat(["ant", "bee", "wasp"], [900, 700, 1100]))
    return np.arange(len(labels)).reshape(-1, 1), labels


def slow_quota(prevalence, counts):
    """Count rows of each class in each domain as ERRATA 13 writes it, in a loop."""
    n_domains, n_classes = prevalence.shape
    busiest = max(prevalence[:, label].mean() for label in range(n_classes))
    quota = np.zeros(prevalence.shape, dtype=int)
    for domain, label in np.ndindex(n_domains, n_classes):
        share = prevalence[domain, label] / n_domains * min(counts) / busiest
        quota[domain, label] = int(np.floor(share))
    return quota


def test_quotas_are_exact(labelled, seed):
    _, labels = labelled
    prevalence = draw_prevalence(3, 5, 3, 8, random_state=seed)
    test_rows = np.arange(500)
    plan = plan_domains(
        labels,
        prevalence,
        splits={"train": np.arange(500, 2700), "test": test_rows},
        random_state=seed,
    )
    assert list(plan.splits) == ["train", "test", "valid"]
    everyone = np.unique(labels, return_inverse=True)[1]
    valid_and_rest = [plan.splits["train"].rows, plan.splits["valid"].rows]
    assert np.concatenate(valid_and_rest).min() >= 500
    for name, split in plan.splits.items():
        codes = plan.labels(labels, name)
        assert_array_equal(codes, everyone[split.rows])
        filled = np.zeros((5, 3), dtype=int)
        np.add.at(filled, (split.domains, codes), 1)
        assert_array_equal(filled, split.quota)
        assert_allclose(split.prevalence, filled / filled.sum(axis=1, keepdims=True))
    counts = np.bincount(everyone[test_rows])
    assert_array_equal(plan.splits["test"].quota, slow_quota(prevalence, counts))


def test_validation_rows_are_a_tenth_of_train(seed):
    """With one class per domain and equal classes nothing is left out."""
    labels = np.tile([0, 1], 5000)
    plan = plan_domains(labels, np.eye(2), random_state=seed)
    n_train, n_valid = (len(plan.splits[name].rows) for name in ("train", "valid"))
    # Only the chance imbalance of the random tenth is lost.
    assert 8800 <= n_train <= 9000
    assert 880 <= n_valid <= 1000
    given = plan_domains(
        labels,
        np.eye(2),
        splits={"train": np.arange(8000), "valid": np.arange(8000, 10_000)},
        random_state=seed,
    )
    assert len(given.splits["train"].rows) == 8000
    assert_array_equal(np.sort(given.splits["valid"].rows), np.arange(8000, 10_000))


@given(
    n_classes=st.integers(2, 5),
    n_domains=st.integers(2, 7),
    alpha=st.sampled_from([0.3, 1.0, 10.0]),
    draw=st.integers(0, 10_000),
)
@settings(max_examples=60, deadline=None)
def test_no_row_is_used_twice_and_no_class_is_overdrawn(
    n_classes, n_domains, alpha, draw
):
    generator = np.random.default_rng(draw)
    counts = generator.integers(200, 400, size=n_classes)
    labels = generator.permutation(np.repeat(np.arange(n_classes), counts))
    prevalence = draw_prevalence(n_classes, n_domains, alpha, random_state=draw)
    plan = plan_domains(labels, prevalence, random_state=draw)
    rows = np.concatenate([split.rows for split in plan.splits.values()])
    assert len(np.unique(rows)) == len(rows)
    for name, split in plan.splits.items():
        assert len(plan.labels(labels, name)) == split.quota.sum()
        # Rounding down loses less than one row per class and domain.
        sizes = split.quota.sum(axis=1)
        assert sizes.max() - sizes.min() < n_classes


def test_rounding_does_not_lose_whole_rows():
    prevalence = [[0.3, 0.7], [0.7, 0.3], [0.5, 0.5]]
    plan = plan_domains(np.repeat([0, 1], 30), prevalence, valid_share=0)
    assert_array_equal(plan.splits["train"].quota, [[6, 14], [14, 6], [10, 10]])


def test_same_arguments_same_plan(labelled, seed):
    _, labels = labelled
    prevalence = draw_prevalence(3, 4, 3, 10, random_state=seed)
    first = plan_domains(labels, prevalence, random_state=seed)
    again = plan_domains(labels, prevalence, random_state=seed)
    other = plan_domains(labels, prevalence, random_state=seed + 1)
    for name in first.splits:
        assert_array_equal(first.splits[name].rows, again.splits[name].rows)
        assert_array_equal(first.splits[name].domains, again.splits[name].domains)
    assert (first.splits["train"].rows[:50] != other.splits["train"].rows[:50]).any()


# Concealment


def test_take_gives_rows_and_domains_and_no_label(labelled, seed):
    X, labels = labelled
    prevalence = draw_prevalence(3, 4, 3, 10, random_state=seed)
    plan = plan_domains(labels, prevalence, random_state=seed)
    assert "labels" not in inspect.signature(take).parameters
    got, domains = take(plan, X, "valid")
    assert_array_equal(got[:, 0], plan.splits["valid"].rows)
    assert_array_equal(domains, plan.splits["valid"].domains)
    domains[:] = -1  # a copy: the plan cannot be changed through it
    assert plan.splits["valid"].domains.min() == 0
    # The plan keeps counts of classes, but nothing that has one entry per row other
    # than the rows and their domains.
    assert [field.name for field in fields(plan.splits["train"])] == [
        "rows",
        "domains",
        "quota",
    ]
    assert plan.splits["train"].quota.shape == prevalence.shape


def test_row_order_does_not_give_the_labels_away(seed):
    """Rows sorted by class in the data set, or filled class by class, are shuffled."""
    labels = np.repeat([0, 1], 2000)
    plan = plan_domains(labels, [[0.5, 0.5], [0.5, 0.5]], random_state=seed)
    codes, domains = plan.labels(labels), plan.splits["train"].domains
    position = np.arange(len(codes))
    for domain in (0, 1):
        here = domains == domain
        assert abs(np.corrcoef(position[here], codes[here])[0, 1]) < 0.1
    assert abs(np.corrcoef(position, domains)[0, 1]) < 0.1


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, pd.DataFrame, list])
def test_take_returns_the_kind_it_is_given(make, seed):
    values = np.arange(400.0).reshape(200, 2)
    plan = plan_domains(np.tile([0, 1], 100), np.eye(2), random_state=seed)
    got, domains = take(plan, make(values))
    assert type(got) is type(make(values))
    assert len(domains) == len(plan.splits["train"].rows)
    dense = got.toarray() if sparse.issparse(got) else np.asarray(got)
    assert_array_equal(dense, values[plan.splits["train"].rows])


def test_take_reads_polars(seed):
    plan = plan_domains(np.tile([0, 1], 100), np.eye(2), random_state=seed)
    got, _ = take(plan, pl.DataFrame({"a": np.arange(200)}))
    assert_array_equal(got["a"].to_numpy(), plan.splits["train"].rows)


# Errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prevalence": np.eye(3)}, "prevalence has 3 columns, labels has 2 distinct"),
        ({"prevalence": [[0.5, 0.2]]}, "rows of prevalence must sum to 1"),
        ({"splits": {"valid": [1]}}, "splits must map 'train'"),
        ({"splits": {"train": [0, 1], "dev": [2]}}, "splits must map 'train'.*dev"),
        ({"splits": {"train": [0, 1, 99]}}, "splits.'train'. has positions outside"),
        ({"splits": {"train": [0.5]}}, "splits.'train'. must be a 1-D array"),
        ({"splits": {"train": [0, 1], "test": [1]}}, "splits repeats rows"),
        ({"splits": {"train": [0, 0]}}, "splits repeats rows"),
        ({"valid_share": 1.0}, "valid_share must be at least 0 and below 1, got 1.0"),
        ({"splits": {"train": [0, 2]}}, "train has too few rows, domain 0.*more rows"),
    ],
)
def test_bad_plans_are_refused(arguments, message):
    valid = {"labels": np.tile([0, 1], 20), "prevalence": np.eye(2)}
    with pytest.raises(ValueError, match=message):
        plan_domains(**{**valid, **arguments})


def test_a_plan_refuses_other_data():
    plan = plan_domains(np.tile([0, 1], 20), np.eye(2), random_state=0)
    with pytest.raises(ValueError, match="X has 39 rows, the plan was made for 40"):
        take(plan, np.zeros((39, 2)))
    with pytest.raises(ValueError, match="labels has 3 rows"):
        plan.labels([0, 1, 0])
    with pytest.raises(ValueError, match="split='test' is not in this plan"):
        take(plan, np.zeros((40, 2)), "test")


def test_a_plan_travels_to_other_processes():
    plan = plan_domains(np.tile([0, 1], 20), np.eye(2), random_state=0)
    copy = pickle.loads(pickle.dumps(plan))
    assert_array_equal(copy.splits["train"].rows, plan.splits["train"].rows)
