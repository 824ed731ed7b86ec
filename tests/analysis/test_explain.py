"""Why a row is of its class: parts that add up to its log odds, and mean something."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from shoal import DDFA, CountMixture, DensityMixture, DiscreteMixture, DomainMixture
from shoal.analysis._explain import NUMBERS, TOGETHER, shapley
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import ConstantColumnWarning


@pytest.fixture(scope="module")
def data():
    return load_penguins()


def fitted(model, data):
    return model.fit(data.X, data.domains)


@pytest.fixture(scope="module")
def linear(data):
    model = DomainMixture(
        3, by="shift", search=False, expansion="linear", random_state=0
    )
    return fitted(model, data)


@pytest.fixture(scope="module")
def rbf(data):
    return fitted(
        DomainMixture(3, by="shift", search=False, expansion="rbf", random_state=0),
        data,
    )


@pytest.fixture(scope="module")
def full(data):
    """Correlated columns, and heavy tails."""
    return fitted(
        DensityMixture(3, covariance="full", tail=5.0, drift=False, random_state=0),
        data,
    )


@pytest.fixture(scope="module")
def drifting(data):
    return fitted(DensityMixture(3, drift=True, random_state=0), data)


@pytest.fixture(scope="module")
def stages(data):
    return fitted(DDFA(3, discriminator="logistic", random_state=0), data)


MODELS = ["linear", "rbf", "full", "drifting", "stages"]


def parts_of(found):
    return found.domain_evidence + found.base + found.evidence.sum()


def doubtful(model, data, n_rows=4):
    """Rows with probabilities that a float can tell from 0."""
    proba = model.predict_proba(data.X, data.domains)
    return np.argsort(np.sort(proba)[:, -1])[:n_rows]


@pytest.mark.parametrize("name", MODELS)
def test_parts_add_up_to_the_log_odds(name, data, request):
    model = request.getfixturevalue(name)
    for row in doubtful(model, data):
        x, domain = data.X[row], data.domains[row]
        found = model.explain(x, domain)
        proba = model.predict_proba(x[None], domain)[0]
        first, second = np.argsort(-proba)[:2]
        assert found.classes == (first, second)
        assert_allclose(found.log_odds, np.log(proba[first] / proba[second]), rtol=1e-7)
        assert_allclose(parts_of(found), found.log_odds, atol=1e-9)
        assert_allclose(found.probability, proba[first], rtol=1e-9)
        share = model.prevalence_[model.domains_.tolist().index(domain)]
        assert_allclose(found.domain_evidence, np.log(share[first] / share[second]))
        assert not found.error.any()


@pytest.mark.parametrize("name", MODELS)
def test_another_mix_changes_what_the_domain_says_alone(name, data, request):
    model, x = request.getfixturevalue(name), data.X[5]
    mixes = [0.4, 0.3, 0.3], [0.35, 0.33, 0.32]
    first = model.explain(x, prevalence=mixes[0]).classes[0]
    against = (first + 1) % 3
    found = [model.explain(x, prevalence=mix, against=against) for mix in mixes]
    assert [one.classes for one in found] == [(first, against)] * 2
    assert_allclose(found[0].evidence, found[1].evidence, atol=1e-9)
    assert_allclose(found[0].base, found[1].base, atol=1e-9)
    for one, mix in zip(found, mixes, strict=True):
        assert_allclose(one.domain_evidence, np.log(mix[first] / mix[against]))


def test_where_looks_are_of_the_domain_so_is_the_evidence(drifting, data):
    row = int(np.flatnonzero(data.domains == "Dream")[0])
    codes = [drifting.domains_.tolist().index(one) for one in ("Dream", "Biscoe")]
    moved = drifting.drift_[codes[1]] - drifting.drift_[codes[0]]
    assert np.abs(moved).max() > 0
    # a row that stands in one domain where this one stands in the other
    here = drifting.explain(data.X[row], "Dream", against=1)
    there = drifting.explain(data.X[row] + moved, "Biscoe", against=here.classes[1])
    assert here.classes == there.classes
    assert_allclose(here.evidence, there.evidence, atol=1e-8)


def test_linear_evidence_is_slope_times_what_is_unusual(linear, data):
    for row in doubtful(linear, data):
        found = linear.explain(data.X[row], data.domains[row])
        first, second = found.classes
        features, weights = linear.features_, linear.weights_
        slope = weights[first] - weights[second]
        expected = slope[:-1] * (data.X[row] - features.centre_) / features.spread_
        assert_allclose(found.evidence, expected, atol=1e-9)
        share = linear.class_weight_
        assert_allclose(found.base, slope[-1] - np.log(share[first] / share[second]))


def test_what_a_density_has_not_seen_says_nothing(full, data):
    """The value of some columns is the density of these alone; without any it is 0."""
    row = doubtful(full, data, 1)[0]
    found = full.explain(data.X[row], "Dream")
    assert_allclose(found.base, 0, atol=1e-9)
    first, second = found.classes
    n_columns = data.X.shape[1]
    slow = np.zeros(n_columns)
    orders = list(permutations(range(n_columns)))
    for order in orders:
        seen = np.full((n_columns + 1, n_columns), np.nan)
        for step, column in enumerate(order):
            seen[step + 1 :, column] = data.X[row, column]
        p = full.predict_proba(seen[1:], "Dream")
        share = full.prevalence_[full.domains_.tolist().index("Dream")]
        odds = np.log(p[:, first] / p[:, second]) - np.log(share[first] / share[second])
        slow[list(order)] += np.diff(np.append(0, odds)) / len(orders)
    assert_allclose(found.evidence, slow, atol=1e-8)


def test_columns_without_a_say_get_nothing(data):
    rng = np.random.default_rng(0)
    X = np.hstack([data.X, np.full((len(data.X), 1), 7.0)])
    for model in (
        DomainMixture(3, by="shift", search=False, expansion="rbf", random_state=0),
        DensityMixture(3, random_state=0),
    ):
        with pytest.warns(ConstantColumnWarning):
            fit = model.fit(X, data.domains)
        x = np.append(data.X[5], rng.normal())  # the column that never varied
        found = fit.explain(x, "Torgersen")
        assert found.evidence[-1] == 0
        assert len(found.to_records()) <= 2 + data.X.shape[1]


def test_a_gap_says_nothing(full, data):
    x = data.X[3].copy()
    x[1] = np.nan
    found = full.explain(x, "Dream")
    assert found.evidence[1] == 0
    assert_allclose(parts_of(found), found.log_odds, atol=1e-9)


def test_twins_get_the_same():
    """Two columns that play the same role: v changes alike with either."""
    rng = np.random.default_rng(0)

    def game(masks):
        a, b, c = masks.T.astype(float)
        return np.exp(a + b) * (1 + 0.3 * c) - 0.5 * a * b

    shares, error, base = shapley(game, 3, rng)
    assert_allclose(shares[0], shares[1], atol=1e-12)
    assert_allclose(base + shares.sum(), game(np.ones((1, 3)))[0])
    assert not error.any()


def test_many_columns_are_drawn_near_all_orders():
    """Beyond ten columns: exact in sum, exact where linear, near where not."""
    weights = np.random.default_rng(1).normal(size=12)

    def game(masks):
        return masks @ weights + np.tanh(masks[:, 0] * 2.0 * masks[:, 1])

    shares, error, base = shapley(game, 12, np.random.default_rng(0))
    assert_allclose(base + shares.sum(), game(np.ones((1, 12)))[0], atol=1e-12)
    assert_allclose(shares[2:], weights[2:], atol=1e-12)
    assert_allclose(error[2:], 0, atol=1e-12)
    # the product belongs to both: half each; an order and its reverse say so exactly
    assert_allclose(shares[:2] - weights[:2], np.tanh(2) / 2, atol=1e-12)
    assert NUMBERS.exact_columns < 12


def test_three_that_work_together_are_drawn_within_their_errors():
    def game(masks):
        return np.prod(masks[:, :3], axis=1).astype(float)

    shares, error, _ = shapley(game, 14, np.random.default_rng(3))
    assert (error[:3] > 0).all()
    assert (np.abs(shares[:3] - 1 / 3) < 4 * error[:3]).all()
    assert_allclose(shares.sum(), 1)


def test_merged_classes_are_explained_as_one(full, data):
    merged = full.merge(1, 2)
    row = doubtful(merged, data, 1)[0]
    found = merged.explain(data.X[row], data.domains[row])
    proba = merged.predict_proba(data.X[[row]], data.domains[row])[0]
    assert_allclose(abs(found.log_odds), abs(np.log(proba[0] / proba[1])), rtol=1e-7)
    assert_allclose(parts_of(found), found.log_odds, atol=1e-9)
    assert_allclose(found.base, 0, atol=1e-9)


def test_a_known_mix_stands_for_the_domain(linear, data):
    found = linear.explain(data.X[0], prevalence=[0.5, 0.25, 0.25], against=2)
    assert_allclose(found.domain_evidence, np.log(0.5 / 0.25))
    pooled = linear.explain(data.X[0], against="c2")
    assert_allclose(pooled.evidence, found.evidence)
    mix = linear.prevalence_.mean(axis=0)
    assert_allclose(pooled.domain_evidence, np.log(mix[0] / mix[2]))


def test_looks_that_speak_are_explained(data):
    model = DomainMixture(3, by="looks", random_state=0).fit(data.X, data.domains)
    found = model.explain(data.X[0], "Torgersen")
    expected = model.looks_.explain(data.X[0], "Torgersen")
    assert_allclose(found.evidence, expected.evidence)


def test_words_speak_for_themselves():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 0, 1], [80, 20, 40, 60])
    shares = np.array([[4, 4, 1, 1, 1], [1, 1, 4, 4, 1]]) / 11
    X = np.array([rng.multinomial(40, shares[y]) for y in labels])
    domains = np.repeat(["a", "b"], 100)
    model = DiscreteMixture(2, input="counts").fit(X, domains=domains)
    found = model.explain(X[0], "a")
    logs = np.log(model.word_given_class_)
    first, second = found.classes
    assert_allclose(found.evidence, X[0] * (logs[first] - logs[second]))
    assert found.base == 0
    counts = CountMixture(2, random_state=0).fit(X, domains=domains)
    for x in (X[0], sparse.csr_array(X[[0]])):
        found = counts.explain(x, "a")
        proba = np.sort(counts.predict_proba(X[[0]], "a")[0])
        assert_allclose(found.log_odds, np.log(proba[1] / proba[0]), rtol=1e-6)
        assert_allclose(parts_of(found), found.log_odds, atol=1e-9)
    cells = pd.DataFrame({"kind": ["x", "y", "z"] * 20})
    whole = DiscreteMixture(2, random_state=0).fit(cells, domains=["a", "b", "b"] * 20)
    found = whole.explain(cells.iloc[[0]], "a")
    assert found.columns == [TOGETHER]
    assert_allclose(parts_of(found), found.log_odds)


def test_wide_rows_add_up():
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=3, n_features=30, random_state=0
    )
    model = DensityMixture(2, random_state=0).fit(X, domains)
    found = model.explain(X[0], domains[0])
    assert_allclose(parts_of(found), found.log_odds, atol=1e-8)
    again = model.explain(X[0], domains[0])
    assert_allclose(found.evidence, again.evidence, rtol=0)


def test_it_is_a_table_and_a_sentence(data):
    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    model = DomainMixture(3, search=False, random_state=0).fit(frame, data.domains)
    named = model.set_names(["Adelie", "Gentoo", "Chinstrap"])
    found = named.explain(frame.iloc[[0]], "Torgersen")
    table = found.to_frame()
    assert list(table.columns) == ["part", "value", "nats", "error"]
    assert set(data.feature_names) <= set(table["part"])
    assert table["part"][0] == "(domain)"
    assert table["value"][0] == "Torgersen"
    assert_allclose(table["nats"].sum(), found.log_odds)
    assert str(found).startswith("Adelie (100%) rather than Chinstrap (0%), +")
    by_series = named.explain(frame.iloc[0], "Torgersen")
    assert_allclose(by_series.evidence, found.evidence)


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"x": np.zeros((2, 4))}, "x must be one row, got 2; ask for each of them"),
        ({"domain": "Mars"}, "Mars"),
        (
            {"domain": "Dream", "prevalence": [0.2, 0.3, 0.5]},
            "pass domain or prevalence, not both",
        ),
        ({"against": 9}, "no class 9; classes are c0, c1, c2"),
        ({"against": 0}, "against=0 is the class of the row itself"),
        ({"prevalence": [0.5, 0.5]}, "one finite entry per class"),
    ],
)
def test_what_cannot_be_explained_says_why(linear, data, how, told):
    with pytest.raises(ValueError, match=told):
        linear.explain(**{"x": data.X[0], **how})
