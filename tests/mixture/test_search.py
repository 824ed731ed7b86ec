"""How the search chooses: paths of penalties, rungs of features, rows for anchors."""

import numpy as np
import pytest

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.likelihood._features import FeatureMap
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import find_starts
from shoal.mixture._search import beats, follow_path, within_one_error
from shoal.probability import HeldOut

WEIGHT = np.full(4, 0.25)


def constant(mean):
    """A held-out score that is the same for every row."""
    return HeldOut(np.full(4, mean), WEIGHT)


@pytest.mark.parametrize(
    ("means", "first", "visited"),
    [
        ((0, 1, 2, 3, 2), 0, {0, 1, 2, 3, 4}),
        ((3, 2, 1, 9, 9), 0, {0, 1}),
        ((5, 4, 3, 2, 9), 2, {0, 1, 2, 3}),
        ((0, 1, 2, 1, 0), 2, {1, 2, 3}),
    ],
)
def test_a_path_is_followed_while_it_gains(means, first, visited):
    path = [Penalties(ridge=10.0**-step) for step in range(len(means))]
    asked = []

    def scores(wanted):
        asked.extend(wanted)
        return [constant(means[path.index(penalty)]) for penalty in wanted]

    tried = follow_path(path, first, scores)
    assert set(tried) == {path[step] for step in visited}
    assert len(asked) == len(set(asked))
    assert within_one_error(tried) == [max(tried, key=lambda p: tried[p].mean)]


def test_columns_that_gain_next_to_nothing_are_left_out():
    simple = constant(-1.0)
    assert not beats(constant(-1.0 + SETTINGS.least_gain / 2), simple)
    assert beats(constant(-1.0 + 2 * SETTINGS.least_gain), simple)


def test_ridge_weighs_what_it_was_worth_to_the_folds():
    """Judged by two of three folds of a third of the rows: 2/9 of it beside all."""
    X, domains, _ = make_latent_shift(
        900, n_classes=2, n_domains=3, alpha=0.5, separation=2.0, random_state=0
    )
    model = DomainMixture(2, max_search_rows=300, random_state=0).fit(X, domains)
    tried = {float(name.split()[1]) for name in model.held_out_ if "ridge" in name}
    assert any(np.isclose(4.5 * model.penalties_.ridge, ridge, 1e-2) for ridge in tried)
    given = DomainMixture(
        2, ridge=1e-3, dirichlet=0.3, max_search_rows=300, random_state=0
    ).fit(X, domains)
    assert given.penalties_.ridge == 1e-3
    assert given.penalties_.dirichlet * 900 == pytest.approx(0.3 * 2 * 3)


def test_a_kind_named_twice_is_clustered_twice():
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=4, n_features=3, random_state=0
    )
    order = np.argsort(domains, kind="stable")
    even = np.full(600, 1 / 600)
    design = FeatureMap("column").fit(X, even).transform(X[order])
    problem = MixtureProblem(design, domains[order], even, 4)
    once, twice = (
        find_starts(
            problem, 3, kinds=("features",) * times, rng=np.random.default_rng(0)
        )
        for times in (1, 2)
    )
    assert len(twice) == 2 * len(once)
    for first, same in zip(once, twice, strict=False):
        np.testing.assert_array_equal(first.domain_given_class, same.domain_given_class)
    again = twice[len(once)].domain_given_class
    assert np.abs(once[0].domain_given_class - again).max() > 1e-3
