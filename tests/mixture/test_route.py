"""Shift or looks: what speaks, why, and what the other would have said."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import shoal
from shoal import DensityMixture, DomainMixture
from shoal.datasets import load_penguins, make_latent_shift
from shoal.metrics import matched_accuracy
from shoal.mixture._route import decide_route
from shoal.probability import HeldOut


def drifting(seed, n=900):
    """Two classes apart in every column; domains move both along the second."""
    rng = np.random.default_rng(seed)
    domains = np.arange(n) % 3
    labels = (rng.random(n) < np.array([0.3, 0.5, 0.7])[domains]).astype(int)
    X = rng.normal(size=(n, 4)) + 5 * labels[:, None]
    X[:, 1] += np.array([0, 4.0, -4.0])[domains]
    return X, domains, labels


def gain(mean, error, n=100):
    each = mean + error * np.sqrt(n) * np.where(np.arange(n) % 2, 1, -1)
    return HeldOut(each, np.full(n, 1 / n))


@pytest.mark.parametrize(
    ("shift", "looks", "drift", "expected"),
    [
        ((0.5, 0.01), (0.4, 0.01), False, ("shift", "better")),
        ((0.4, 0.01), (0.5, 0.01), False, ("looks", "better")),
        ((0.5, 0.01), (0.4, 0.01), True, ("looks", "drift")),
        ((0.1, 0.06), (0.0, 0.01), False, ("looks", "silent")),
    ],
)
def test_the_rule(shift, looks, drift, expected):
    assert decide_route(gain(*shift), gain(*looks), drift) == expected


@pytest.fixture(scope="module")
def drifted():
    X, domains, labels = drifting(0)
    return X, domains, labels, DomainMixture(2, random_state=0).fit(X, domains)


def test_looks_speak_where_domains_drift(drifted):
    X, domains, labels, model = drifted
    assert (model.route_.by, model.route_.reason) == ("looks", "drift")
    assert matched_accuracy(labels, model.labels_) > 0.98
    by_shift = DomainMixture(2, by="shift", random_state=0).fit(X, domains)
    assert matched_accuracy(labels, by_shift.labels_) < 0.9
    assert model._told_apart().startswith("Classes by looks: domains change how rows")


def test_looks_answer_as_their_own_model_does(drifted):
    X, domains, _, model = drifted
    twin = DensityMixture(2, random_state=0).fit(X, domains)
    assert_array_equal(model.prevalence_, twin.prevalence_)
    for given in (domains, None, 1):
        expected = twin.predict_proba(X, given)
        assert_allclose(model.predict_proba(X, given), expected)
        assert_array_equal(model.predict(X, given), twin.predict(X, given))
    assert model.score(X, domains) == twin.score(X, domains)
    new, same = model.adapt(X[:200]), twin.adapt(X[:200])
    assert_allclose(new.prevalence, same.prevalence)


def test_looks_are_saved_with_the_model(drifted, tmp_path):
    X, domains, _, model = drifted
    shoal.save(model, tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X, domains), model.predict_proba(X, domains))
    assert str(again.route_) == str(model.route_)


def test_names_merges_and_new_domains_go_through(drifted):
    X, domains, _, model = drifted
    named = model.set_names(["far", "near"])
    assert named.class_names_ == ["far", "near"]
    more = model._with_domain(np.array([0, 1, 2, 3]), np.array([0.5, 0.5]))
    assert more.predict_proba(X[:3], 3).shape == (3, 2)
    three = DomainMixture(3, random_state=0).fit(X, domains)
    merged = three.merge(0, 1)
    assert merged._told_apart() == three._told_apart()
    assert merged._origin is three._origin


def test_the_other_is_told_with_its_classes_matched(drifted):
    _, _, _, model = drifted
    route = model.route_
    same = route.other_labels == model.labels_
    assert route.agreement == same.mean()
    for label, share in enumerate(route.agreement_by_class):
        assert_allclose(share, same[model.labels_ == label].mean())
    assert set(route.gain) == {"shift", "looks"}


def test_shift_speaks_where_classes_have_no_shape_of_their_own():
    X, domains, labels = make_latent_shift(
        2000, kind="xor", n_classes=2, n_domains=4, random_state=0
    )
    model = DomainMixture(2, random_state=0).fit(X, domains)
    assert (model.route_.by, model.route_.reason) == ("shift", "better")
    assert model.looks_ is None
    assert matched_accuracy(labels, model.labels_) > 0.9
    alone = DomainMixture(2, by="shift", random_state=0).fit(X, domains)
    assert_array_equal(alone.prevalence_, model.prevalence_)
    assert (
        alone._told_apart()
        == "Classes by shift: they are what moves together between domains."
    )


def test_looks_that_see_what_does_not_shift_are_overruled():
    """A column of coin tosses parts the penguins by looks, and says nothing of islands.

    That is no doubt about the species: neither in the verdict nor in the intervals.
    """
    penguins = load_penguins()
    tosses = np.random.default_rng(0).integers(2, size=len(penguins.X))
    X = np.column_stack([penguins.X, tosses])
    model = DomainMixture(3, random_state=0).fit(X, penguins.domains)
    assert matched_accuracy(penguins.labels, model.labels_) > 0.98
    assert model.route_.by == "shift"
    assert model.route_.agreement < 0.8
    assert model.route_.overruled
    codes = np.unique(penguins.domains, return_inverse=True)[1]
    assert model._in_doubt(X, codes) == []
    found = model.diagnose(X, penguins.domains, random_state=0)
    assert found["witnesses"].status == "caution"
    plain = DomainMixture(3, random_state=0).fit(penguins.X, penguins.domains)
    assert not plain.route_.overruled
    assert_array_equal(plain._in_doubt(penguins.X, codes)[0], plain.route_.apart)


def test_looks_speak_where_mixes_are_silent():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2)) + 7 * labels[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.exceptions.IdentifiabilityWarning)
        model = DomainMixture(2, random_state=0).fit(X, np.arange(600) % 3)
    assert (model.route_.by, model.route_.reason) == ("looks", "silent")
    assert matched_accuracy(labels, model.labels_) > 0.99


def test_what_hears_shift_alone():
    penguins = load_penguins()
    X, domains = penguins.X, penguins.domains
    for options in ({"search": False}, {"expansion": "linear"}, {"by": "shift"}):
        model = DomainMixture(3, random_state=0, **options).fit(X, domains)
        assert (model.route_.by, model.route_.reason) == ("shift", "alone")
        assert str(model.route_) == "Classes by shift, heard alone."
    model = DomainMixture(3, random_state=0).fit(sparse.csr_array(X), domains)
    assert model.route_.reason == "alone"
    few = np.arange(len(X)) % 60  # five or six rows a domain
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.exceptions.IdentifiabilityWarning)
        model = DomainMixture(3, random_state=0).fit(X, few)
    assert model.route_.reason == "alone"
    with pytest.raises(ValueError, match="by='looks' takes no sparse matrix"):
        DomainMixture(3, by="looks").fit(sparse.csr_array(X), domains)
    with pytest.raises(ValueError, match="by must be one of 'auto', 'shift', 'looks'"):
        DomainMixture(3, by="eye").fit(X, domains)


def test_looks_alone_may_have_more_classes_than_domains():
    penguins = load_penguins()
    model = DomainMixture(4, by="looks", random_state=0)
    model.fit(penguins.X, penguins.domains)
    assert model.n_classes_ == 4
    assert model._told_apart().startswith("Classes by looks alone: 4 classes")
    assert model.refit(penguins.X, penguins.domains, n_classes=3).n_classes_ == 3


def test_intervals_know_a_domain_that_was_learned_later():
    """Of it the other has said nothing, and its own share of doubt is none."""
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=3, n_features=3, alpha=0.5, random_state=0
    )
    model = DomainMixture(2, random_state=0).fit(X, domains)
    assert model.route_.apart is not None
    later = model.adapt(X[:80]).as_domain(7)
    assert_array_equal(later.route_.apart[:3], model.route_.apart)
    assert_array_equal(later.route_.apart[3], 0)
    rows = np.vstack([X, X[:80]]), np.r_[domains, np.full(80, 7)]
    intervals = later.bootstrap(*rows, n_resamples=4, random_state=0)
    assert intervals.low.shape == (4, 2)
    assert (intervals.low <= intervals.high).all()


def test_looks_in_doubt_see_the_columns_as_the_fit_does():
    X, domains, _ = make_latent_shift(
        600, n_classes=2, n_domains=3, n_features=3, alpha=0.5, random_state=0
    )
    X = X * [1, 30, 900]
    model = DomainMixture(2, scale="global", random_state=0).fit(X, domains)
    two = DensityMixture(2, n_components=2, scale="global", random_state=0)
    told = two.fit(X, domains).labels_
    if np.mean(told == model.labels_) < 0.5:
        told = 1 - told
    apart = [
        np.bincount(told[domains == domain], minlength=2) / np.sum(domains == domain)
        - np.bincount(model.labels_[domains == domain], minlength=2)
        / np.sum(domains == domain)
        for domain in range(3)
    ]
    assert_allclose(model._in_doubt(X, domains)[-1], apart, atol=1e-12)
