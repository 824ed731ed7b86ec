import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal.analysis._rank import RankResult, domains_differ, supported_rank
from shoal.exceptions import IdentifiabilityWarning


def anchored_counts(rng, n_classes, n_domains, n_words, n_rows, concentration=3.0):
    """Counts from a model with one anchor per class and shared other words."""
    prevalence = rng.dirichlet(np.full(n_classes, concentration / n_classes), n_domains)
    words = np.zeros((n_classes, n_words))
    words[:, :n_classes] = np.eye(n_classes) / 2
    shared = np.full(n_words - n_classes, 0.5)
    words[:, n_classes:] = rng.dirichlet(shared, n_classes) / 2
    return rng.multinomial(n_rows, prevalence @ words)


@pytest.mark.parametrize("n_classes", range(2, 11))
def test_finds_the_number_of_classes(n_classes, seed):
    rng = np.random.default_rng([seed, n_classes])
    found = []
    for _ in range(3):
        counts = anchored_counts(rng, n_classes, 2 * n_classes, 4 * n_classes, 10_000)
        found.append(supported_rank(counts, random_state=seed).n_classes)
    assert_array_equal(found, n_classes)


def test_three_classes_in_three_domains_of_a_hundred_rows(seed):
    # the shape of the penguins: as many domains as classes, few rows, few clusters
    rng = np.random.default_rng(seed)
    prevalence = np.array([[0.27, 0.0, 0.73], [0.45, 0.55, 0.0], [1.0, 0.0, 0.0]])
    words = np.kron(np.eye(3), np.full((1, 3), 0.9 / 3)) + 0.1 / 9
    counts = rng.multinomial([168, 124, 52], prevalence @ words)
    assert supported_rank(counts, random_state=seed).n_classes == 3


def test_frequencies_like_those_of_language_do_not_add_classes(seed):
    # Word frequencies fall as 1/rank and topics differ a lot: the noise around 10
    # topics is larger than the noise among equal documents, and would pass for an 11th.
    rng = np.random.default_rng(seed)
    found, above_null = [], []
    for _ in range(3):
        words = rng.gamma(0.1, size=(10, 1000)) / np.arange(1, 1001)
        words /= words.sum(axis=1, keepdims=True)
        prevalence = rng.dirichlet(np.full(10, 0.05), 100)
        counts = rng.multinomial(3000, prevalence @ words)
        result = supported_rank(counts, n_null=50, random_state=seed)
        found.append(result.n_classes)
        above_null.append(np.sum(result.singular_values > result.null.max()))
    assert max(above_null) > 9
    assert np.median(found) == 10  # one in n_null + 1 may be one too many


def test_domains_without_a_common_cluster_are_as_many_classes():
    """The approximation of lower rank leaves whole domains out."""
    alone = supported_rank((np.eye(4) * 100).astype(int), random_state=0)
    assert alone.n_classes == 4


@pytest.mark.parametrize("n_rows", [40, 4_000, 400_000])
def test_equal_domains_do_not_differ_and_others_do(seed, n_rows):
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(12, 2.0))
    tables = [rng.multinomial(n_rows, share, size=5) for _ in range(20)]
    assert sum(map(domains_differ, tables)) <= 5  # by chance one in twenty-one
    other = rng.dirichlet(np.full(12, 2.0))
    apart = np.vstack([tables[0][:4], rng.multinomial(n_rows, other)])
    assert domains_differ(apart) or n_rows == 40


def test_too_few_words_say_nothing_either_way():
    assert domains_differ(np.eye(3, dtype=int))  # each rarer than can be judged


def test_never_more_classes_than_domains(seed):
    counts = anchored_counts(np.random.default_rng(seed), 8, 4, 30, 50_000)
    assert supported_rank(counts, random_state=seed).n_classes == 4


def test_equal_domains_are_a_warning(seed):
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(1000, rng.dirichlet(np.ones(12)), size=6)
    with pytest.warns(IdentifiabilityWarning, match="domains do not differ"):
        result = supported_rank(counts, n_null=60, random_state=seed)
    assert result.n_classes == 2


def test_words_that_all_differ_say_nothing_about_domains():
    # every word names its domain, in the data and in every permutation
    with pytest.warns(IdentifiabilityWarning, match="domains do not differ"):
        assert supported_rank(np.eye(30, dtype=int)).n_classes == 2


def test_singular_values_are_those_of_correspondence_analysis(seed):
    rng = np.random.default_rng(seed)
    counts = anchored_counts(rng, 3, 7, 12, 2000)
    share = counts / counts.sum()
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    standardized = np.zeros(share.shape)
    for d, c in np.ndindex(*share.shape):
        expected = rows[d] * columns[c]
        standardized[d, c] = (share[d, c] - expected) / np.sqrt(expected)
    expected = np.linalg.svd(standardized, compute_uv=False)
    result = supported_rank(counts, random_state=seed)
    assert isinstance(result, RankResult)
    assert result.null.shape == (20,)
    assert_allclose(result.singular_values, expected[:6], atol=1e-7)
    # and their squares add up to the chi-square statistic per row
    assert_allclose((result.singular_values**2).sum(), (standardized**2).sum())


def test_rows_and_table_agree(seed):
    rng = np.random.default_rng(seed)
    counts = anchored_counts(rng, 3, 6, 9, 300)
    codes = np.repeat(np.arange(6), counts.sum(axis=1))
    clusters = np.concatenate([np.repeat(np.arange(9), row) for row in counts])
    order = rng.permutation(len(codes))
    table = supported_rank(counts, random_state=seed)
    rows = supported_rank(clusters[order], codes[order], random_state=seed)
    assert_allclose(rows.singular_values, table.singular_values, atol=1e-9)
    assert_array_equal(rows.null, table.null)


def test_empty_words_and_domains_change_nothing(seed):
    counts = anchored_counts(np.random.default_rng(seed), 3, 6, 9, 300)
    padded = np.zeros((8, 12), dtype=int)
    padded[1:7, 2:11] = counts
    expected = supported_rank(counts, random_state=seed)
    got = supported_rank(padded, random_state=seed)
    assert got.n_classes == expected.n_classes
    assert_allclose(got.singular_values, expected.singular_values, atol=1e-9)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([[0.5, 0.5], [0.1, 0.9]], "whole numbers"),
        ([[1, -1], [2, 3]], "whole numbers"),
        ([[1, np.nan], [2, 3]], "whole numbers"),
        ([1, 2, 3], "pass codes"),
        ([["a", "b"]], "pass codes"),
    ],
)
def test_bad_tables(counts, message):
    with pytest.raises(ValueError, match=message):
        supported_rank(counts)


def test_rows_of_different_length():
    with pytest.raises(ValueError, match="counts has 3 rows, codes has 2"):
        supported_rank([0, 1, 1], [0, 1])
