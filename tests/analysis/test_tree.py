"""Trees of classes: planted hierarchies, cuts that are sums, and joins by hand."""

import json
import re
from itertools import combinations, permutations

import matplotlib as mpl
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal
from shoal.analysis._tree import grow
from shoal.base import LatentShiftEstimator

mpl.use("agg")


class NearestCentres(LatentShiftEstimator):
    """Rows go to the nearest of some centres, whatever their domain."""

    def __init__(self, centres):
        self.centres = centres

    def fit(self, X, y=None, *, domains=None):
        k = len(self.centres)
        self.n_features_in_ = X.shape[1]
        self._store(np.full((2, k), 1 / k), np.arange(2), np.full(2, 0.5))
        self.labels_ = self._class_given_x(X).argmax(axis=1)
        return self

    def _class_given_x(self, X):
        away = ((X[:, None] - np.asarray(self.centres)) ** 2).sum(axis=2)
        near = np.exp(-2 * (away - away.min(axis=1, keepdims=True)))
        return near / near.sum(axis=1, keepdims=True)


CENTRES = np.array([[-4.0, -1.5], [-4.0, 1.5], [4.0, -1.5], [4.0, 1.5]])


def nested(seed, n_domains=8, n_rows=150):
    """Two pairs of classes: pairs differ and shift a lot, halves of a pair a little."""
    rng = np.random.default_rng(seed)
    left = rng.permutation(np.linspace(0.04, 0.96, n_domains))
    half = rng.permuted(np.tile(np.linspace(0.25, 0.75, n_domains), (2, 1)), axis=1)
    mixes = np.column_stack(
        [
            left * half[0],
            left * (1 - half[0]),
            (1 - left) * half[1],
            (1 - left) * (1 - half[1]),
        ]
    )
    domains = np.repeat(np.arange(n_domains), n_rows)
    y = (rng.random((len(domains), 1)) > mixes[domains].cumsum(axis=1)).sum(axis=1)
    return CENTRES[y] + 0.6 * rng.normal(size=(len(y), 2)), domains, y


@pytest.fixture(scope="module")
def known():
    """A model of the four planted classes, and fits with two and with three."""
    X, _, y = nested(0)
    model = NearestCentres(CENTRES).fit(X)
    pairs = NearestCentres([[4.0, 0.0], [-4.0, 0.0]]).fit(X)
    three = NearestCentres([[4.0, 0.0], *CENTRES[:2]]).fit(X)
    return X, y, model, [three, pairs]


@pytest.mark.parametrize("by", ["shift", "looks"])
def test_a_planted_hierarchy_is_recovered(seed, by):
    X, domains, y = nested(seed)
    if by == "shift":
        model = shoal.DomainMixture(4, search=False, random_state=seed)
    else:
        model = shoal.DensityMixture(4, random_state=seed)
    model = model.fit(X, domains)
    tree = model.tree(X, domains)
    label = [int(np.bincount(y[model.labels_ == c]).argmax()) for c in range(4)]
    assert sorted(label) == [0, 1, 2, 3]
    halves = [{label[one] for one in part} for part in tree.splits[0].parts]
    assert {frozenset(half) for half in halves} == {frozenset((0, 1)),
                                                    frozenset((2, 3))}  # fmt: skip
    assert tree.splits[0].columns[0][0] == "x0"
    assert [split.columns[0][0] for split in tree.splits[1:]] == ["x1", "x1"]
    assert tree.splits[0].agreement > 0.98
    cut = model.cut(2)
    left = np.bincount(cut.labels_[y < 2]).argmax()
    is_left = cut.predict(X, domains) == left
    assert np.mean(is_left == (y < 2)) > 0.95
    share = [np.mean(y[domains == d] < 2) for d in range(8)]
    assert_allclose(cut.prevalence_[:, left], share, atol=0.06)


def test_cuts_are_sums_and_the_last_one_is_the_fit(known):
    X, _, model, fits = known
    domains = np.arange(len(X)) % 2
    tree = shoal.class_tree(model, X, domains, fits=fits)
    assert tree.cut(4) is model
    for k in (2, 3):
        cut, groups = tree.cut(k), tree.groups(k)
        assert cut.n_classes_ == len(groups) == k
        assert sorted(one for group in groups for one in group) == [0, 1, 2, 3]
        whole = [model.prevalence_[:, list(group)].sum(axis=1) for group in groups]
        assert_allclose(sorted(cut.prevalence_.sum(axis=0)), sorted(np.sum(whole, 1)))
        proba = model.predict_proba(X, domains)
        sums = np.stack([proba[:, list(one)].sum(axis=1) for one in groups], axis=1)
        found = cut.predict_proba(X, domains)
        order = [int(np.abs(sums.T - one).sum(axis=1).argmin()) for one in found.T]
        assert_allclose(found, sums[:, order])
    finer = [set(one) for one in tree.groups(3)]
    assert all(any(one <= set(two) for two in tree.groups(2)) for one in finer)


def test_cut_needs_a_tree_of_this_fit(known):
    X, _, _, fits = known
    domains = np.arange(len(X)) % 2
    model = NearestCentres(CENTRES).fit(X)
    with pytest.raises(ValueError, match=r"no tree to cut; call tree\(X, domains\)"):
        model.cut(2)
    model.tree(X, domains, fits=fits)
    assert model.cut(2).n_classes_ == 2
    with pytest.raises(ValueError, match="no tree to cut"):
        model.fit(X).cut(2)


def test_joins_are_the_best_pair_of_all(seed):
    """By trying every pair and every matching of classes."""
    rng = np.random.default_rng(seed)
    own, other = rng.integers(0, 4, 200), rng.integers(0, 3, 200)
    table = np.array([[np.sum((own == a) & (other == b)) for b in range(3)]
                      for a in range(4)])  # fmt: skip

    def matched(pair):
        rest = [table[one] for one in range(4) if one not in pair]
        sums = [*rest, table[list(pair)].sum(axis=0)]
        return max(sum(sums[i][p[i]] for i in range(3)) for p in permutations(range(3)))

    best = max(combinations(range(4), 2), key=matched)
    two = np.where(np.isin(own, best), 0, 1)
    (k, parts, agreement), second, *_ = grow(own, {3: other, 2: two}, 4)
    assert (k, agreement) == (4, 1.0)
    assert matched((parts[0][0], parts[1][0])) == matched(best)
    assert_allclose(second[2], matched(best) / 200)


def test_fits_that_nest_are_followed_exactly(known):
    X, _, model, fits = known
    tree = shoal.class_tree(model, X, np.arange(len(X)) % 2, fits=fits)
    assert [split.agreement for split in tree.splits[1:]] == [1.0, 1.0]
    assert [split.whole for split in tree.splits] == [(0, 1, 2, 3), (0, 1), (2, 3)]
    for split in tree.splits:
        sizes = [np.isin(model.labels_, part).sum() for part in split.parts]
        assert list(split.rows) == sizes == sorted(sizes, reverse=True)


def test_numbers_of_classes_do_not_matter(known):
    X, _, model, fits = known
    order, domains = np.array([2, 0, 3, 1]), np.arange(len(X)) % 2
    moved = NearestCentres(CENTRES[order]).fit(X)
    tree, other = (
        shoal.class_tree(one, X, domains, fits=fits) for one in (model, moved)
    )
    for here, there in zip(tree.splits, other.splits, strict=True):
        renamed = [tuple(sorted(int(order[one]) for one in part))
                   for part in there.parts]  # fmt: skip
        assert sorted(renamed) == sorted(map(tuple, here.parts))
        assert here.agreement == there.agreement
        assert_allclose(
            np.abs([by for _, by in here.columns]),
            np.abs([by for _, by in there.columns]),
        )


def test_columns_are_standardized_differences_between_the_parts(known):
    X, _, model, fits = known
    domains = np.arange(len(X)) % 2
    tree = shoal.class_tree(
        model, X, domains, fits=fits, feature_names=["wing", "bill"]
    )
    split = tree.splits[1]
    first, second = (X[np.isin(model.labels_, part)] for part in split.parts)
    spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / 2)
    by = (first.mean(axis=0) - second.mean(axis=0)) / spread
    assert dict(split.columns) == pytest.approx(
        {"wing": by[0], "bill": by[1]}, abs=1e-9
    )
    assert split.columns[0][0] == "bill"


def test_records_and_figure_name_every_split(known):
    X, _, model, fits = known
    named = model.set_names(["a", "b", "c", "d"])
    tree = shoal.class_tree(named, X, np.arange(len(X)) % 2, fits=fits)
    table = tree.to_pandas()
    assert table["class"].tolist() == ["a+b+c+d", "a+b", "c+d"]
    assert_array_equal(table["n_classes"], [2, 3, 4])
    kept = json.loads(json.dumps(tree.to_dict()))
    assert [one["parts"] for one in kept["splits"]] == [
        [list(part) for part in one.parts] for one in tree.splits
    ]
    ax = tree.plot()
    texts = [one.get_text() for one in ax.texts]
    assert {"a", "b", "c", "d"} <= set(texts)
    assert sum(bool(re.match(r"x\d [+-]", one)) for one in texts) == 3


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        (1, "n_classes must be a whole number from 2 to 4, .* got 1"),
        (5, "n_classes must be a whole number from 2 to 4, .* got 5"),
        (2.5, "got 2.5"),
        (True, "got True"),
    ],
)
def test_cuts_that_are_not_there_are_refused(known, wanted, told):
    X, _, model, fits = known
    tree = shoal.class_tree(model, X, np.arange(len(X)) % 2, fits=fits)
    with pytest.raises(ValueError, match=told):
        tree.cut(wanted)


def test_missing_fits_are_named(known):
    X, _, model, fits = known
    with pytest.raises(ValueError, match="fits has none with 2 classes; pass one for"):
        shoal.class_tree(model, X, np.arange(len(X)) % 2, fits=fits[:1])
