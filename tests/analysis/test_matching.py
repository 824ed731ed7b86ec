import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shoal.analysis._resample import match_by_rows


@given(st.integers(1, 8), st.integers(0, 2**31 - 1))
def test_renamed_classes_are_found_again(n_classes, seed):
    rng = np.random.default_rng(seed)
    classes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=50)])
    new_name = rng.permutation(n_classes)
    renamed = match_by_rows(classes, new_name[classes], n_classes)
    assert_array_equal(renamed[new_name[classes]], classes)


@given(st.integers(2, 6), st.integers(0, 2**31 - 1))
def test_every_class_gets_one_counterpart(n_classes, seed):
    rng = np.random.default_rng(seed)
    one, two = rng.integers(n_classes, size=(2, 30))
    assert_array_equal(np.sort(match_by_rows(one, two, n_classes)), range(n_classes))


def test_small_classes_are_not_given_away_to_large_ones():
    # class 1 of the other fit holds all 5 rows of class 1 and 40 of the 1000 of class 0
    reference = np.repeat([0, 1, 2], [1000, 5, 1000])
    other = np.r_[
        np.repeat([2, 1], [960, 40]), np.full(5, 1), np.zeros(1000, dtype=int)
    ]
    assert_array_equal(match_by_rows(reference, other, 3), [2, 1, 0])
