import pytest

from shoal import choose_n_classes
from shoal.analysis._refits import Order
from shoal.datasets import make_latent_shift
from shoal.discrete import DiscreteMixture


class Clock:
    """A clock that goes one second further with every look."""

    def __init__(self):
        self.seconds = 0

    def __call__(self):
        self.seconds += 1
        return self.seconds


def test_without_a_limit_all_come_at_once():
    assert list(Order(None).groups([2, 3, 4, 9], 3)) == [[2, 3, 4, 9]]


def test_the_likeliest_come_first_and_the_rest_by_their_distance():
    groups = list(Order(1e9).groups(list(range(2, 11)), 5))
    assert groups == [[4, 5, 6, 7], [3], [2], [8], [9], [10]]
    assert list(Order(1e9).groups([9, 10], 2)) == [[9], [10]]


@pytest.mark.parametrize(("seconds", "n_groups"), [(0.5, 1), (1, 2), (2.5, 3)])
def test_nothing_is_begun_when_the_time_is_up_but_the_first(seconds, n_groups):
    order = Order(seconds, now=Clock())
    assert len(list(order.groups(list(range(2, 11)), 5))) == n_groups


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_no_time_at_all_is_refused(limit):
    with pytest.raises(ValueError, match="time_limit must be seconds above 0"):
        Order(limit)


@pytest.mark.parametrize("counts", [False, True])
def test_a_choice_in_no_time_still_has_the_numbers_near_the_rank(counts):
    X, domains, _ = make_latent_shift(
        900, n_classes=3, n_domains=9, separation=3.0, random_state=0
    )
    options = {"random_state": 0, "n_resamples": 2}
    if counts:
        X = (X > X.mean(axis=0)).astype(int)
        options["estimator"] = DiscreteMixture(input="counts", random_state=0)
    hurried = choose_n_classes(X, domains, time_limit=1e-9, **options)
    assert hurried.candidates.tolist() == [
        k for k in range(2, 10) if hurried.rank - 1 <= k <= hurried.rank + 2
    ]
    # no resample was begun
    assert not (hurried.stability == hurried.stability).any()
    if not counts:
        assert hurried.n_classes == 3


def test_a_limit_that_is_far_away_changes_nothing_but_the_order():
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=4, separation=3.0, random_state=0
    )
    free, limited = (
        choose_n_classes(X, domains, n_resamples=1, time_limit=limit, random_state=0)
        for limit in (None, 1e6)
    )
    assert free.candidates.tolist() == limited.candidates.tolist()
    assert free.n_classes == limited.n_classes == 2
