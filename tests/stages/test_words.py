import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD

from shoal.stages._words import (
    check_counts,
    find_words,
    look_up_words,
    single_word_bags,
    sum_by_domain,
    thin_words,
    words_by_clustering,
)

values = st.one_of(
    st.integers(-3, 3),
    st.sampled_from(["a", "b", "1", ""]),
    st.booleans(),
    st.floats(0, 1),
)


def as_rows(table):
    rows = np.empty((len(table), len(table[0])), dtype=object)
    rows[:] = [list(row) for row in table]
    return rows


@given(st.lists(st.tuples(values, values), min_size=1, max_size=30))
def test_words_are_the_distinct_tuples(table):
    words, vocabulary = find_words(as_rows(table))
    assert [tuple(vocabulary[word]) for word in words] == table
    assert len(set(map(tuple, vocabulary))) == len(vocabulary) == words.max() + 1


@given(
    st.lists(st.tuples(values, values), min_size=1, max_size=20),
    st.lists(st.tuples(values, values), min_size=1, max_size=20),
)
def test_look_up_is_a_dictionary(known, asked):
    _, vocabulary = find_words(as_rows(known))
    position = {tuple(row): index for index, row in enumerate(vocabulary)}
    expected = [position.get(row, len(vocabulary)) for row in asked]
    assert_array_equal(look_up_words(as_rows(asked), vocabulary), expected)


def test_numeric_rows_as_numpy_orders_them(seed):
    rows = np.random.default_rng(seed).integers(0, 3, size=(200, 4)).astype(float)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    words, vocabulary = find_words(rows)
    assert_array_equal(vocabulary, expected)
    assert_array_equal(words, inverse.ravel())


def test_many_columns_do_not_overflow(seed):
    # 100 columns of 50 values: a code per cell of the product would need 565 bits
    rows = np.random.default_rng(seed).integers(0, 50, size=(300, 100))
    words, vocabulary = find_words(np.vstack([rows, rows]))
    assert len(vocabulary) == 300
    assert_array_equal(words[:300], words[300:])


@pytest.mark.parametrize("kind", ["<U1", object, "i2", "f4", "M8[D]"])
def test_look_up_across_kinds(kind):
    vocabulary = np.array([[1], [2], [3]]).astype(kind)
    rows = np.array([[3], [1], [7]]).astype(kind)
    assert_array_equal(look_up_words(rows, vocabulary), [2, 0, 3])


def test_numbers_and_their_texts_are_different_words():
    numbers, texts = np.array([[1], [2]]), np.array([["1"], ["2"]])
    assert_array_equal(look_up_words(texts, numbers), [2, 2])
    assert_array_equal(look_up_words(numbers, texts), [2, 2])
    assert_array_equal(look_up_words(numbers.astype(float), numbers), [0, 1])
    assert_array_equal(look_up_words(numbers.astype(object), numbers), [0, 1])


def test_missing_and_unhashable_values_name_their_column():
    with pytest.raises(ValueError, match=r"column 1, has 1 missing .* first in row 0"):
        find_words(as_rows([("a", None), ("b", 1)]))
    with pytest.raises(ValueError, match="column 'island', has 1 missing"):
        find_words(as_rows([(float("nan"),), ("b",)]), ["island"])
    with pytest.raises(TypeError, match="column 0, must be strings, numbers"):
        find_words(as_rows([({"a": 1},), ("b",)]))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_sum_by_domain(container, seed):
    rng = np.random.default_rng(seed)
    bags, codes = rng.poisson(1.0, size=(30, 7)), rng.integers(0, 4, size=30)
    weight = rng.uniform(size=30)
    plain, weighted = np.zeros((4, 7)), np.zeros((4, 7))
    for bag, code, w in zip(bags, codes, weight, strict=True):
        plain[code] += bag
        weighted[code] += w * bag
    got = sum_by_domain(container(bags), codes, 4)
    assert isinstance(got, np.ndarray)
    assert_array_equal(got, plain)
    got = sum_by_domain(container(bags), codes, 4, weight)
    np.testing.assert_allclose(got, weighted)


def test_single_word_bags():
    bags = single_word_bags(np.array([2, 0, 2]), 4)
    assert_array_equal(bags.toarray(), np.eye(4)[[2, 0, 2]])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_what_is_not_counts(container):
    with pytest.raises(ValueError, match=r"negative counts \(smallest -2\)"):
        check_counts(container([[1.0, -2.0]]))
    with pytest.raises(ValueError, match=r"not whole numbers \(such as 0.5\)"):
        check_counts(container([[1.0, 0.5]]))
    with pytest.raises(ValueError, match=r"1 rows without any word \(first: row 1\)"):
        check_counts(container([[1.0, 0.0], [0.0, 0.0]]), allow_empty=False)
    check_counts(container([[1.0, 0.0], [0.0, 0.0]]))


def test_representations_in_front_of_k_means():
    def first_step(representation):
        return words_by_clustering(representation, 5, n_dimensions=2)[0]

    assert first_step(None) == first_step("identity") == "passthrough"
    assert first_step("pca").n_components == first_step("ica").n_components == 2
    given = TruncatedSVD(3)
    assert first_step(given) is not given
    assert first_step(given).n_components == 3
    assert isinstance(first_step(PCA(1)), PCA)
    with pytest.raises(ValueError, match="one of .*'ica'.* or a transformer, got 'tsn"):
        first_step("tsne")


def test_words_are_thinned_evenly_and_never_invented(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 50, size=(4, 30))
    table[0] = 0
    table[0, 0] = 20
    few = thin_words(table, 400, rng)
    assert (few <= table).all()
    assert few.sum() <= 400
    assert few[0].sum() == 20
    assert np.ptp(few[1:].sum(axis=1)) == 0
    assert_array_equal(thin_words(table, 10_000, rng), table)
