"""Metrics against slow formulas written here, with classes missing on either side."""

import functools
import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import accuracy_score

from shoal import metrics
from shoal.metrics import (
    by_domain,
    calibration_error,
    majority_accuracy,
    match_classes,
    matched_accuracy,
    prevalence_error,
    true_prevalence,
)


def best_accuracy(labels, classes):
    """Try every one-to-one assignment of classes to labels."""
    names, found = sorted(set(labels)), sorted(set(classes))
    names += [None] * max(0, len(found) - len(names))
    shares = []
    for chosen in itertools.permutations(names, len(found)):
        label_of = dict(zip(found, chosen, strict=True))
        hits = [label_of[c] == y for c, y in zip(classes, labels, strict=True)]
        shares.append(sum(hits) / len(hits))
    return max(shares)


def best_prevalence_error(true, estimated):
    size = max(true.shape[1], estimated.shape[1])
    true, estimated = (
        np.hstack([table, np.zeros((len(table), size - table.shape[1]))])
        for table in (true, estimated)
    )
    return min(
        np.abs(true[:, list(order)] - estimated).mean()
        for order in itertools.permutations(range(size))
    )


@st.composite
def labelled_rows(draw, max_kinds=6):
    kinds = st.integers(0, max_kinds - 1)
    last_label, last_class = draw(kinds), draw(kinds)
    rows = st.tuples(st.integers(0, last_label), st.integers(0, last_class))
    labels, classes = zip(*draw(st.lists(rows, min_size=1, max_size=25)), strict=True)
    return list(labels), list(classes)


# ---- matching and accuracy --------------------------------------------------------


@given(labelled_rows())
def test_accuracy_is_the_best_over_all_permutations(rows):
    labels, classes = rows
    assert matched_accuracy(labels, classes) == pytest.approx(best_accuracy(*rows))


@given(labelled_rows())
def test_matching_is_one_to_one_and_gives_the_accuracy(rows):
    labels, classes = rows
    label_of = match_classes(labels, classes)
    assert len(label_of) == min(len(set(labels)), len(set(classes)))
    assert len(set(label_of.values())) == len(label_of)
    rows_and_labels = zip(classes, labels, strict=True)
    by_hand = np.mean([label_of.get(c, -1) == y for c, y in rows_and_labels])
    assert matched_accuracy(labels, classes) == pytest.approx(by_hand)
    assert matched_accuracy(labels, classes, matching=label_of) == pytest.approx(
        by_hand
    )


@given(labelled_rows(), st.permutations(range(6)), st.permutations("uvwxyz"))
def test_names_do_not_matter(rows, class_names, label_names):
    labels, classes = rows
    renamed = [label_names[y] for y in labels], [class_names[c] for c in classes]
    for metric in (
        matched_accuracy,
        metrics.adjusted_rand,
        metrics.normalized_mutual_information,
    ):
        assert metric(*renamed) == pytest.approx(metric(labels, classes))


@given(labelled_rows(), st.integers(0, 2**31))
def test_order_of_rows_does_not_matter(rows, seed):
    labels, classes = map(np.array, rows)
    order = np.random.default_rng(seed).permutation(len(labels))
    assert matched_accuracy(labels[order], classes[order]) == pytest.approx(
        matched_accuracy(labels, classes)
    )


@pytest.mark.parametrize(
    "labels",
    [
        ["cat", "cat", "dog", "dog"],
        [("c", 1), ("c", 1), ("d", 2), ("d", 2)],
        ["1", "1", 1, 1],
        [2**80, 2**80, 5, 5],
        [False, False, True, True],
        pd.Series(["cat", "cat", "dog", "dog"], dtype="category"),
        pl.Series(["cat", "cat", "dog", "dog"]),
        np.array([0.5, 0.5, 1.5, 1.5]),
    ],
    ids=["text", "tuples", "mixed", "huge", "bool", "pandas", "polars", "floats"],
)
def test_labels_of_any_hashable_kind(labels):
    values = list(labels)
    assert match_classes(labels, [5, 5, 3, 9]) in (
        {5: values[0], 3: values[2]},
        {5: values[0], 9: values[2]},
    )
    assert matched_accuracy(labels, [5, 5, 3, 9]) == 0.75
    assert (
        by_domain(matched_accuracy, labels, [5, 5, 3, 9], [0, 0, 1, 1]).overall == 0.75
    )


def test_more_classes_than_labels_and_fewer():
    labels = ["a"] * 5 + ["b"] * 5
    assert matched_accuracy(labels, [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]) == 0.6
    assert matched_accuracy(labels, [0] * 10) == 0.5
    assert matched_accuracy(["a"] * 4, [0, 1, 2, 3]) == 0.25


def test_a_given_matching_is_used_as_it_is():
    labels, classes = ["a", "a", "b"], [0, 0, 1]
    assert matched_accuracy(labels, classes, matching={0: "b", 1: "a"}) == 0
    assert matched_accuracy(labels, classes, matching={0: "a"}) == pytest.approx(2 / 3)
    assert matched_accuracy(labels, classes, matching=["a", "b"]) == 1
    assert matched_accuracy(labels, classes, matching={0: "a", 1: "z", 7: "b"}) == (
        pytest.approx(2 / 3)
    )


def test_matching_probabilities_agrees_with_their_arg_max(seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=300)
    proba = rng.dirichlet(np.ones(4), size=300) + 2 * np.eye(4)[[2, 0, 3, 1]][labels]
    proba /= proba.sum(axis=1, keepdims=True)
    hard = match_classes(labels, proba.argmax(axis=1))
    assert match_classes(labels, proba) == hard == {0: 1, 1: 3, 2: 0, 3: 2}


def test_a_class_that_is_never_the_most_probable_is_matched_last():
    labels = ["a", "a", "b", "b", "c", "c"]
    proba = [[0.6, 0.4, 0, 0]] * 2 + [[0, 0.6, 0.4, 0]] * 2 + [[0, 0.5, 0.1, 0.4]] * 2
    # Classes 2 and 3 are never on top; of the two, class 3 gives label c more.
    assert match_classes(labels, proba) == {0: "a", 1: "b", 3: "c"}


@given(labelled_rows())
def test_rand_and_mutual_information_against_pair_counts(rows):
    labels, classes = map(np.array, rows)
    same_label = labels[:, None] == labels
    same_class = classes[:, None] == classes
    pairs = np.triu(np.ones_like(same_label), 1).astype(bool)
    both = (same_label & same_class)[pairs].sum()
    of_label, of_class = same_label[pairs].sum(), same_class[pairs].sum()
    expected = of_label * of_class / max(pairs.sum(), 1)
    top = (of_label + of_class) / 2
    rand = (both - expected) / (top - expected) if top != expected else 1.0
    assert metrics.adjusted_rand(labels, classes) == pytest.approx(rand)
    information = metrics.normalized_mutual_information(labels, classes)
    assert -1e-12 <= information <= 1 + 1e-12
    assert metrics.normalized_mutual_information(labels, labels) == pytest.approx(1)


# ---- prevalence -------------------------------------------------------------------


@given(st.integers(0, 2**31), st.integers(1, 5), st.integers(1, 5), st.integers(1, 4))
def test_own_matching_is_the_smallest_error(seed, n_labels, n_classes, n_domains):
    rng = np.random.default_rng(seed)
    true = rng.dirichlet(np.ones(n_labels), size=n_domains)
    estimated = rng.dirichlet(np.ones(n_classes), size=n_domains)
    got = prevalence_error(true, estimated)
    assert got == pytest.approx(best_prevalence_error(true, estimated))
    assert prevalence_error(estimated, true) == pytest.approx(got)
    order = rng.permutation(n_classes)
    assert prevalence_error(true, estimated[:, order]) == pytest.approx(got)
    assert prevalence_error(true, true[:, rng.permutation(n_labels)]) == pytest.approx(
        0
    )


def test_the_papers_error_uses_the_permutation_of_the_accuracy():
    true = np.array([[0.8, 0.2], [0.4, 0.6]])
    estimated = np.array([[0.3, 0.7], [0.5, 0.5]])
    straight = prevalence_error(true, estimated, matching={0: 0, 1: 1})
    crossed = prevalence_error(true, estimated, matching={0: 1, 1: 0})
    assert straight == pytest.approx(np.abs(true - estimated).mean())
    assert crossed == pytest.approx(np.abs(true[:, ::-1] - estimated).mean())
    assert prevalence_error(true, estimated) == pytest.approx(min(straight, crossed))
    assert prevalence_error(true, estimated, matching=[0, 1]) == straight


def test_paper_end_to_end_with_names():
    labels = ["cat", "cat", "dog", "dog", "dog", "cat"]
    domains = ["x", "x", "x", "y", "y", "y"]
    true, label_names, domain_names = true_prevalence(labels, domains)
    assert (label_names, domain_names) == (["cat", "dog"], ["x", "y"])
    assert_allclose(true, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    label_of = match_classes(labels, [1, 1, 0, 0, 0, 1])
    error = prevalence_error(
        true, true[:, ::-1], matching=label_of, label_names=label_names
    )
    assert error == 0


def test_missing_columns_are_compared_with_zero():
    true = [[0.5, 0.3, 0.2]]
    assert prevalence_error(true, [[0.5, 0.5]]) == pytest.approx((0.2 + 0.2) / 3)
    assert prevalence_error(true, [[0.5, 0.3, 0.1, 0.1]]) == pytest.approx(0.2 / 4)
    # The matching leaves class 1 to the closest of the labels that are left.
    got = prevalence_error(true, [[0.5, 0.5]], matching={0: 2})
    assert got == pytest.approx((0.3 + 0 + 0.3) / 3)


@given(st.integers(0, 2**31))
def test_open_classes_are_paired_as_closely_as_they_can_be(seed):
    rng = np.random.default_rng(seed)
    true, estimated = rng.dirichlet(np.ones(4), size=(2, 3))
    fixed = {0: 2, 3: 1}
    got = prevalence_error(true, estimated, matching=fixed)
    options = [{**fixed, 1: 0, 2: 3}, {**fixed, 1: 3, 2: 0}]
    complete = [prevalence_error(true, estimated, matching=m) for m in options]
    assert got == pytest.approx(min(complete))


@pytest.mark.parametrize(
    ("true", "estimated", "options", "message"),
    [
        ([[1.0]], [[1.0], [1.0]], {}, "true has 1 domains, estimated has 2"),
        ([[0.9]], [[1.0]], {}, "rows of true must sum to 1, row 0 sums to 0.9"),
        ([[1.0]], [0.5, 0.5], {}, "estimated must be a 2-D array of probabilities"),
        (
            [[1.0]],
            [[1.0]],
            {"matching": {1: 0}},
            "class 1, estimated has columns 0 to 0",
        ),
        ([[1.0]], [[1.0]], {"matching": {"c0": 0}}, "matching has class 'c0'"),
        ([[1.0]], [[1.0]], {"matching": {0: "cat"}}, "label 'cat', .*pass label_names"),
        (
            [[0.5, 0.5]],
            [[0.5, 0.5]],
            {"matching": {0: 1, 1: 1}},
            "matching gives the same label to two classes",
        ),
        (
            [[0.5, 0.5]],
            [[0.5, 0.5]],
            {"matching": {0: "a"}, "label_names": ["a"]},
            "label_names has 1 entries, true has 2 columns",
        ),
    ],
)
def test_bad_prevalences(true, estimated, options, message):
    with pytest.raises(ValueError, match=message):
        prevalence_error(true, estimated, **options)


# ---- calibration ------------------------------------------------------------------


def slow_gap(probability, event, n_bins):
    total = 0.0
    for index in range(n_bins):
        low, high = index / n_bins, (index + 1) / n_bins
        last = index == n_bins - 1
        inside = [
            i
            for i, p in enumerate(probability)
            if low <= p < high or (last and p >= high)
        ]
        if inside:
            gap = np.mean([probability[i] - event[i] for i in inside])
            total += abs(gap) * len(inside) / len(probability)
    return total


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 4), st.integers(1, 20))
def test_calibration_error_equals_a_slow_loop(seed, n_labels, n_classes, n_bins):
    rng = np.random.default_rng(seed)
    labels = rng.integers(n_labels, size=30)
    proba = rng.dirichlet(np.full(n_classes, 0.5), size=30)
    label_of = match_classes(labels, proba)
    top = proba.argmax(axis=1)
    right = np.array(
        [label_of.get(c, -1) == y for c, y in zip(top, labels, strict=True)]
    )
    got = calibration_error(labels, proba, n_bins=n_bins)
    assert got == pytest.approx(slow_gap(proba.max(axis=1), right, n_bins))

    gaps = [
        slow_gap(proba[:, c], labels == label_of.get(c, -1), n_bins)
        for c in range(n_classes)
    ]
    left_over = set(labels.tolist()) - set(label_of.values())
    gaps += [np.mean(labels == label) for label in left_over]
    got = calibration_error(labels, proba, n_bins=n_bins, kind="classwise")
    assert got == pytest.approx(np.mean(gaps))


def test_true_posteriors_are_calibrated_and_sharpened_ones_are_not(seed):
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet([4, 2, 1], size=40_000)
    labels = (rng.random(40_000)[:, None] > proba.cumsum(axis=1)).sum(axis=1)
    shuffled = proba[:, [2, 0, 1]]
    for kind in ("top", "classwise"):
        assert calibration_error(labels, shuffled, kind=kind) < 0.015
        sharp = shuffled**3 / (shuffled**3).sum(axis=1, keepdims=True)
        assert calibration_error(labels, sharp, kind=kind) > 0.08


@pytest.mark.parametrize(
    ("proba", "options", "message"),
    [
        ([[0.5, 0.5]], {"kind": "all"}, "kind must be 'top' or 'classwise', got 'all'"),
        ([[0.5, 0.5]], {"n_bins": 0}, "n_bins must be a whole number from 1, got 0"),
        ([[0.5, 0.5]], {"n_bins": 2.5}, "n_bins must be a whole number"),
        ([[0.5, 0.6]], {}, "rows of proba must sum to 1"),
        ([[0.5, 0.5]] * 2, {}, "labels has 1 rows, proba has 2"),
    ],
)
def test_bad_calibration_input(proba, options, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(["a"], proba, **options)


# ---- by domain --------------------------------------------------------------------


def test_by_domain_matches_once_over_all_rows():
    labels = ["a"] * 6 + ["b"] * 6
    classes = [0] * 5 + [1] + [1] * 4 + [0] * 2
    domains = ["u"] * 6 + ["v"] * 4 + ["w"] * 2
    result = by_domain(matched_accuracy, labels, classes, domains)
    assert result.overall == pytest.approx(9 / 12)
    # On its own, domain w would be matched to 1.0.
    assert result.by_domain == pytest.approx({"u": 5 / 6, "v": 1, "w": 0})
    assert result.n_rows == {"u": 6, "v": 4, "w": 2}
    weighted = sum(result.by_domain[d] * result.n_rows[d] for d in "uvw") / 12
    assert weighted == pytest.approx(result.overall)


def test_by_domain_of_probabilities_and_options():
    labels = np.array([0, 0, 1, 1])
    proba = np.array([[0.2, 0.8], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6]])
    result = by_domain(calibration_error, labels, proba, [7, 7, 8, 8], n_bins=1)
    assert result.overall == pytest.approx(calibration_error(labels, proba, n_bins=1))
    assert result.by_domain[7] == pytest.approx(1 - 0.85)
    assert result.by_domain[8] == pytest.approx(abs(0.75 - 0.5))


def test_by_domain_takes_any_metric():
    labels, classes, domains = [0, 1, 1, 0], [0, 1, 0, 0], ["a", "a", "b", "b"]
    result = by_domain(accuracy_score, labels, classes, domains)
    assert (result.metric, result.overall) == ("accuracy_score", 0.75)
    assert result.by_domain == {"a": 1.0, "b": 0.5}
    fixed = functools.partial(matched_accuracy, matching={0: 1, 1: 0})
    result = by_domain(fixed, labels, classes, domains)
    assert (result.metric, result.overall) == ("metric", 0.25)


def test_by_domain_as_a_table():
    result = by_domain(
        matched_accuracy, ["a", "b", "b"], [0, 1, 0], [("x", 1)] * 2 + ["y"]
    )
    table = result.to_pandas()
    assert list(table.columns) == ["matched_accuracy", "n_rows"]
    assert table.index.name == "domain"
    assert dict(zip(table.index, table["matched_accuracy"], strict=True)) == (
        result.by_domain
    )
    assert_array_equal(sorted(table["n_rows"]), [1, 2])


def test_by_domain_keeps_labels_of_mixed_kinds_apart():
    result = by_domain(matched_accuracy, [1, "1", 1, "1"], [0, 1, 0, 0], list("aabb"))
    assert result.by_domain == {"a": 1.0, "b": 0.5}


# ---- the baseline -----------------------------------------------------------------


@given(labelled_rows())
def test_majority_is_a_sum_over_domains(rows):
    labels, domains = rows
    right = 0
    for domain in set(domains):
        inside = [y for y, d in zip(labels, domains, strict=True) if d == domain]
        right += max(inside.count(y) for y in set(inside))
    assert majority_accuracy(labels, domains) == pytest.approx(right / len(labels))
    shares = true_prevalence(labels, domains)[0].max(axis=1)
    sizes = np.unique(domains, return_counts=True)[1]
    assert majority_accuracy(labels, domains) == pytest.approx(
        shares @ sizes / len(labels)
    )


# ---- bad input --------------------------------------------------------------------


@pytest.mark.parametrize(
    "metric",
    [
        match_classes,
        matched_accuracy,
        metrics.adjusted_rand,
        metrics.normalized_mutual_information,
        majority_accuracy,
        true_prevalence,
    ],
)
def test_bad_rows(metric):
    with pytest.raises(ValueError, match="labels has 2 rows, (classes|domains) has 3"):
        metric([0, 1], [0, 1, 1])
    with pytest.raises(ValueError, match="labels is empty: there is nothing to score"):
        metric([], [])
    with pytest.raises(ValueError, match="labels has 1 missing values"):
        metric(["a", None], [0, 1])
    with pytest.raises(ValueError, match="labels must have one entry per row, got the"):
        metric("ab", [0, 1])


def test_bad_matching():
    with pytest.raises(TypeError, match="matching must map classes to labels"):
        matched_accuracy([0, 1], [0, 1], matching=3)


def test_by_domain_checks_lengths():
    with pytest.raises(ValueError, match="labels has 2 rows, domains has 1"):
        by_domain(matched_accuracy, [0, 1], [0, 1], [0])
    with pytest.raises(ValueError, match="labels has 2 rows, classes has 3"):
        by_domain(matched_accuracy, [0, 1], [0, 1, 2], [0, 1])
