"""How the search chooses: paths of penalties, rungs of features, rows for anchors."""

import numpy as np
import pytest

from shoal import DomainMixture
from shoal.datasets import make_latent_shift
from shoal.likelihood._folds import Trial
from shoal.likelihood._problem import Penalties
from shoal.likelihood._settings import SETTINGS
from shoal.metrics import match_classes, matched_accuracy, prevalence_error
from shoal.mixture._search import beats, clearly_better, gain, weight_steps
from shoal.probability import HeldOut

WEIGHT = np.full(4, 0.25)


def constant(mean):
    """A held-out score that is the same for every row."""
    return HeldOut(np.full(4, mean), WEIGHT)


def trial(mean, ridge, spread=0.0):
    """A trial whose rows differ by ``spread``."""
    each = mean + spread * np.array([-1.0, 1.0, -1.0, 1.0])
    return Trial(HeldOut(each, WEIGHT), [], Penalties(ridge))


def test_more_ridge_must_gain_beyond_chance_and_less_need_not():
    here = trial(-1.0, 1e-3)
    assert gain(trial(-0.99, 3e-3), here) == pytest.approx(0.01)
    assert gain(trial(-0.99, 3e-3, spread=0.1), here) < 0
    assert gain(trial(-0.99, 3e-4, spread=0.1), here) == pytest.approx(0.01)
    assert clearly_better(here, trial(-1.1, 1e-3, spread=0.1))
    assert not clearly_better(here, trial(-1.01, 1e-3, spread=0.1))


def test_a_step_changes_one_penalty_at_a_time():
    here = Penalties(1e-3, 0.03, dirichlet=0.1)
    steps = weight_steps(here, ["ridge", "dirichlet"])
    assert {(s.ridge, s.dirichlet) for s in steps} == {
        (3e-3, 0.1), (1e-3 / 3, 0.1), (1e-3, 0.1 * 3), (1e-3, 0.1 / 3)
    }  # fmt: skip
    assert weight_steps(here, []) == []


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


# ---- a search that finds the optimum -------------------------------------------------


def split(n_rows, seed, **world):
    """Rows to fit, and as many that no fit sees."""
    X, domains, labels = make_latent_shift(2 * n_rows, random_state=seed, **world)
    half = np.random.default_rng(seed).permutation(2 * n_rows) < n_rows
    return (X[half], domains[half], labels[half]), (X[~half], domains[~half])


@pytest.mark.parametrize(
    "world",
    [
        {"n_classes": 3, "n_domains": 5, "separation": 1.5, "alpha": 2.0},
        {"n_classes": 6, "n_domains": 8, "separation": 1.2, "alpha": 1.0},
        {"kind": "multimodal", "n_domains": 6},
    ],
)
def test_a_search_is_not_below_none_beyond_the_noise_of_unseen_rows(world):
    (X, domains, _), rest = split(900, 1, **world)
    n_classes = world.get("n_classes", 3)
    searched, quick = (
        DomainMixture(n_classes, search=search, random_state=0).fit(X, domains)
        for search in (True, False)
    )
    assert searched.score(*rest) >= quick.score(*rest) - 0.015


def test_what_is_chosen_is_the_best_that_was_judged():
    X, domains, _ = make_latent_shift(
        800, n_classes=3, n_domains=5, separation=1.2, random_state=2
    )
    model = DomainMixture(3, expansion="linear", random_state=0).fit(X, domains)
    starts = {n: s for n, s in model.held_out_.items() if n.startswith("start ")}
    assert {"start k-means", "start gaussian-diag", "start gaussian-tied"} <= set(
        starts
    )
    judged = {n: s[0] for n, s in model.held_out_.items() if n.startswith("ridge")}
    assert str(model.penalties_) in judged
    assert max(judged.values()) >= max(score for score, _ in starts.values())


@pytest.mark.parametrize("search", [False, True])
def test_fifty_classes_are_all_found(search):
    """With 200 rows in each of 50 domains, all classes about as common."""
    data = make_latent_shift(
        10_000, n_classes=50, n_domains=50, n_features=30, separation=1.5, alpha=25.0,
        max_condition=None, random_state=0, return_bunch=True,
    )  # fmt: skip
    model = DomainMixture(
        50, search=search, expansion="linear", scale="column", random_state=0
    ).fit(data.X, data.domains)
    sizes = np.bincount(model.labels_, minlength=50)
    assert sizes.min() > (100 if search else 20)
    accuracy = matched_accuracy(data.labels, model.labels_)
    assert accuracy > (0.97 if search else 0.8)
    matching = match_classes(data.labels, model.labels_)
    error = prevalence_error(data.prevalence, model.prevalence_, matching=matching)
    assert error < (0.01 if search else 0.02)


def test_a_search_is_a_function_of_rows_and_seed():
    X, domains, _ = make_latent_shift(600, n_classes=3, n_domains=4, random_state=0)
    first, again, threads = (
        DomainMixture(3, n_jobs=n_jobs, random_state=7).fit(X, domains)
        for n_jobs in (None, None, 2)
    )
    for other in (again, threads):
        np.testing.assert_array_equal(first.weights_, other.weights_)
        assert first.held_out_ == other.held_out_
