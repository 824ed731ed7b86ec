"""What a CountMixture chooses: shift or looks, what words weigh, one of many starts."""

import numpy as np
import pytest

import shoal
from shoal import CountMixture, DensityMixture
from shoal.counts._bags import Bags, Polished, polish
from shoal.counts._search import BagStart, choose_polished
from shoal.metrics import matched_accuracy
from shoal.probability import HeldOut
from shoal.validation._rows import fold_of_rows


def make_cells(seed=0, n=400, n_genes=60, effect=0.0):
    """Three types in four donors, each with an effect of its own on every gene."""
    rng = np.random.default_rng(seed)
    donors = np.arange(n) % 4
    mixes = np.array(
        [[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7], [0.4, 0.3, 0.3]]
    )
    types = np.array([rng.choice(3, p=mixes[donor]) for donor in donors])
    change = np.zeros((3, n_genes))
    for kind in range(3):
        change[kind, 10 * kind : 10 * kind + 10] = 1.2
    shift = rng.normal(0, effect, (4, n_genes))
    rate = 4 * np.exp(change[types] + shift[donors])
    return rng.poisson(rate).astype(float), donors, types


@pytest.fixture(scope="module")
def drifting():
    X, donors, types = make_cells(effect=0.3)
    return X, donors, types, CountMixture(3, random_state=0).fit(X, donors)


def test_looks_speak_where_donors_differ(drifting):
    X, donors, types, model = drifting
    assert (model.route_.by, model.route_.reason) == ("looks", "drift")
    assert isinstance(model.head_, DensityMixture)
    assert model.head_.scale == "global"
    assert model.bags_ is None  # bags are alike in all domains
    assert model._sees_looks
    assert matched_accuracy(types, model.labels_) > 0.95
    by_shift = CountMixture(3, by="shift", random_state=0).fit(X, donors)
    assert matched_accuracy(types, by_shift.labels_) < 0.9
    assert by_shift.route_.reason == "alone"


def test_what_spoke_is_said_and_kept(drifting, tmp_path):
    X, donors, _, model = drifting
    told = model._told_apart()
    assert told.startswith("Classes by looks: domains change how rows of a class look")
    shoal.save(model, tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    assert again._told_apart() == told
    proba = model.predict_proba(X, donors)
    np.testing.assert_array_equal(again.predict_proba(X, donors), proba)
    assert not model.diagnose(X, donors, random_state=0).numbers["witnesses"]["heard"]
    assert len(model._lean().route_.other_labels) == 0


def test_agreement_is_that_of_the_classes_that_were_kept():
    X, donors, _ = make_cells()
    model = CountMixture(3, random_state=0).fit(X, donors)
    assert model.route_.reason == "better"
    same = model.route_.other_labels == model.labels_
    assert model.route_.agreement == same.mean()
    by_class = [same[model.labels_ == y].mean() for y in range(3)]
    np.testing.assert_allclose(model.route_.agreement_by_class, by_class)


def test_by_looks_is_a_density_mixture():
    X, donors, _ = make_cells(n=120)
    model = CountMixture(3, by="looks", random_state=0).fit(X, donors)
    looks = DensityMixture(scale="global")  # components are on one scale
    given = CountMixture(3, mixture=looks, random_state=0).fit(X, donors)
    np.testing.assert_array_equal(model.labels_, given.labels_)
    assert model.route_ is None
    with pytest.raises(ValueError, match="by must be one of .*got 'size'"):
        CountMixture(3, by="size").fit(X, donors)


# ---- which bags ----------------------------------------------------------------------


def candidate(name, domains, words, kind="counts"):
    each = np.full(100, domains) + 0.1 * np.where(np.arange(100) % 2, 1, -1)
    if name == "noisy":
        each = np.full(100, domains) + 0.5 * np.where(np.arange(100) % 3, 0.5, -1)
    bags = Bags(np.zeros((2, 2)), np.full((2, 2), 0.5), 1.0, kind)
    held_out = HeldOut(each, np.full(100, 0.01))
    return BagStart(name, None, None, None), Polished(bags, held_out, words)


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([("worse", -1.5, 9.0)], "first"),  # beyond doubt: each row says so
        ([("noisy", -1.01, 9.0)], "noisy"),
        ([("noisy", -1.01, -9.0)], "first"),
        ([("noisy", -1.01, 9.0, "logarithms")], "first"),
        ([("better", -0.5, -9.0)], "better"),
    ],
)
def test_likelier_words_choose_where_domains_are_told_alike(others, expected):
    found = [candidate("first", -1.0, 0.0), *(candidate(*one) for one in others)]
    assert choose_polished(found)[0].name == expected


def test_likelihood_of_words_is_that_of_held_out_rows():
    X, donors, types = make_cells(n=60)
    folds = fold_of_rows(donors, 5, np.random.default_rng(0))
    share = np.full(4, 0.25)
    whole = polish(X, donors, np.eye(3)[types], folds, share)
    shuffled = np.random.default_rng(1).permutation(X.ravel()).reshape(X.shape)
    chance = polish(shuffled, donors, np.eye(3)[types], folds, share)
    assert whole.of_words > chance.of_words
    n_words = X.sum(axis=1).mean()
    assert n_words * np.log(1 / X.shape[1]) < whole.of_words < 0  # better than even
