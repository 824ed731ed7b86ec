"""Classes of counts: components, a mixture on them, and bags with a mix per domain."""

import numpy as np
import pytest
from scipy import sparse

import shoal
from shoal import CountMixture, DensityMixture, DomainMixture
from shoal.counts._bags import Bags, expected, improve, maximize, weigh_words
from shoal.counts._components import (
    Components,
    log_normalized,
    overdispersion,
    within_covariance,
)
from shoal.metrics import matched_accuracy

N_DOMAINS = 5


def make_bags(seed=0, n_rows=300, n_words=120, length=40, k=3, offset=0.0):
    """Bags of one topic each, and a mix of topics for each domain."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(n_words, 0.3), size=k)
    mixes = rng.dirichlet(np.full(k, 0.8), size=N_DOMAINS)
    domains = np.arange(n_rows) % N_DOMAINS
    labels = np.array([rng.choice(k, p=mixes[d]) for d in domains])
    tilt = np.exp(offset * rng.normal(size=(N_DOMAINS, n_words)))
    shares = topics[labels] * tilt[domains]
    shares /= shares.sum(axis=1, keepdims=True)
    sizes = rng.integers(length // 2, 2 * length, size=n_rows)
    rows = [rng.multinomial(n, p) for n, p in zip(sizes, shares, strict=True)]
    return np.array(rows, dtype=float), domains, labels


@pytest.fixture(scope="module")
def fitted():
    X, domains, labels = make_bags()
    X = sparse.csr_array(X)
    return CountMixture(3, random_state=0).fit(X, domains), X, domains, labels


def test_bags_of_one_topic_each_are_found(fitted):
    model, _, _, labels = fitted
    assert matched_accuracy(labels, model.labels_) >= 0.95


def test_the_mix_of_each_domain_is_that_of_its_rows(fitted):
    model, X, domains, _ = fitted
    proba = model.predict_proba(X, domains)
    mean = [proba[domains == d].mean(axis=0) for d in range(N_DOMAINS)]
    np.testing.assert_allclose(model.prevalence_, mean, atol=0.01)


def test_dense_and_sparse_rows_are_alike(fitted):
    model, X, domains, _ = fitted
    same = CountMixture(3, random_state=0).fit(X.toarray(), domains)
    np.testing.assert_array_equal(same.labels_, model.labels_)
    np.testing.assert_allclose(same.prevalence_, model.prevalence_, atol=1e-6)


def test_probabilities_follow_from_words_and_mixes(fitted):
    model, X, domains, _ = fitted
    bags, weights = model.bags_, X.toarray()
    weights = weights if bags.words == "counts" else np.log1p(weights)
    evidence = bags.share * (weights @ bags.log_word_given_class.T)
    joint = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    joint *= model.prevalence_[domains]
    slow = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X, domains), slow, atol=1e-9)


def test_texts_weigh_logarithms(fitted):
    _, X, domains, labels = fitted
    model = CountMixture(3, weighting="tfidf", random_state=0).fit(X, domains)
    assert matched_accuracy(labels, model.labels_) >= 0.95
    assert model.bags_.words == "logarithms"
    evidence = model.bags_.evidence(weigh_words(X, "logarithms"))
    joint = evidence + np.log(model.prevalence_[domains])
    np.testing.assert_array_equal(joint.argmax(axis=1), model.labels_)


def test_held_out_rows_choose_what_words_weigh(fitted):
    model = fitted[0]
    tried = {name: mean for name, mean in model.held_out_.items() if name != "mixture"}
    of_twin = [name for name in tried if "twin" in name]
    assert len(tried) == 10  # five starts, each with counts and with logarithms
    assert len(of_twin) == 2
    best = max(tried, key=tried.get)
    assert best.endswith(f", {model.bags_.words}")


def test_a_saved_model_says_the_same(fitted, tmp_path):
    model, X, domains, _ = fitted
    shoal.save(model, tmp_path / "model")
    again = shoal.load(tmp_path / "model")
    np.testing.assert_array_equal(
        again.predict_proba(X, domains), model.predict_proba(X, domains)
    )
    assert again.head_.n_classes_ == 3


def test_a_new_domain_joins(fitted):
    model, X, _, labels = fitted
    of_first = np.flatnonzero(labels == 0)
    found = model.adapt(X[of_first], random_state=0)
    assert found.prevalence.max() > 0.9
    merged = model.merge(0, 1)
    np.testing.assert_allclose(merged.prevalence_.sum(axis=1), 1)


def test_intervals_hold_the_estimate(fitted):
    model, X, domains, _ = fitted
    intervals = model.bootstrap(X, domains, n_resamples=20, random_state=0)
    assert (intervals.low <= model.prevalence_).all()
    assert (intervals.high >= model.prevalence_).all()
    assert intervals.co_assignment.mean() > 0.95


def test_the_diagnosis_is_of_the_polished_classes(fitted):
    model, X, domains, _ = fitted
    rows = model._diagnosed_rows(X, domains, 10_000, np.random.default_rng(0))
    np.testing.assert_array_equal(
        np.bincount(rows.posterior.argmax(axis=1)), np.bincount(model.labels_)
    )
    found = model.diagnose(X, domains, n_permutations=2, random_state=0)
    assert found["E138"].status == "ok"


@pytest.mark.parametrize("weighting", ["log", "tfidf"])
def test_the_number_of_classes_is_chosen(weighting):
    X, domains, _ = make_bags(seed=2)
    model = CountMixture(weighting=weighting)
    choice = shoal.choose_n_classes(
        X, domains, [2, 3, 4], estimator=model, n_resamples=0, random_state=0
    )
    assert choice.n_classes == 3


def test_texts_choose_the_fewest_classes_near_the_best():
    X, domains, labels = make_bags(seed=2)
    model = CountMixture(weighting="tfidf", random_state=0).fit(X, domains)
    assert model.n_classes_ == 3
    assert matched_accuracy(labels, model.labels_) > 0.95


def test_looks_are_not_polished():
    X, domains, labels = make_bags(seed=1)
    model = CountMixture(3, mixture=DensityMixture(), random_state=0).fit(X, domains)
    assert model.bags_ is None
    assert model._sees_looks
    assert isinstance(model.head_, DensityMixture)
    assert matched_accuracy(labels, model.labels_) > 0.9
    points = model.components_.transform(X)
    np.testing.assert_array_equal(
        model.predict_proba(X, domains), model.head_.predict_proba(points, domains)
    )


def test_numbers_below_zero_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    labels = (rng.random(150) < np.array([0.1, 0.5, 0.9])[np.arange(150) % 3]) * 1
    X = rng.normal(size=(150, 8)) + 4 * labels[:, None]
    model = CountMixture(2, mixture=DomainMixture(search=False), random_state=0)
    model.fit(X, np.arange(150) % 3)
    assert model.components_.weighting == "none"
    assert model.bags_ is None
    np.testing.assert_array_equal(model.labels_, model.head_.labels_)


def test_settings_that_cannot_be_are_refused():
    X, domains, _ = make_bags(n_rows=40)
    with pytest.raises(ValueError, match="weighting must be one of .*got 'idf'"):
        CountMixture(2, weighting="idf").fit(X, domains)
    with pytest.raises(ValueError, match="n_components must be"):
        CountMixture(2, n_components=0).fit(X, domains)
    with pytest.raises(
        ValueError, match="weighting='log' is for counts, and X has neg"
    ):
        CountMixture(2, weighting="log").fit(X - 1, domains)


# ---- components ----------------------------------------------------------------------


def test_directions_are_those_of_what_varies_inside_of_domains():
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(4), 50)
    X = rng.normal(size=(200, 5))
    X[:, 0] += 100 * domains  # an instrument
    X[:, 3] *= 7
    centred = X - np.array([X[domains == d].mean(axis=0) for d in range(4)])[domains]
    np.testing.assert_allclose(
        within_covariance(X, domains), centred.T @ centred / 200, atol=1e-9
    )
    np.testing.assert_allclose(
        within_covariance(sparse.csr_array(X), domains),
        centred.T @ centred / 200,
        atol=1e-9,
    )
    first = Components("none", 1, 0).fit(X, domains).directions_[0]
    assert abs(first[3]) > 0.99


def test_sizes_of_rows_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.poisson(3.0, size=(5, 40)).astype(float)
    times = np.array([1, 2, 5, 10, 3.0])[:, None]
    even, uneven = log_normalized(X, 100.0), log_normalized(X * times, 100.0)
    np.testing.assert_allclose(uneven, even)
    np.testing.assert_allclose(
        log_normalized(sparse.csr_array(X), 100.0).toarray(), even
    )


def test_what_varies_more_than_chance_is_found():
    rng = np.random.default_rng(0)
    rate = np.ones((400, 30))
    rate[:200, 4] = 6.0
    X = rng.poisson(rate * rng.gamma(5, 0.2, size=rate.shape)).astype(float)
    score = overdispersion(X, float(np.median(X.sum(axis=1))))
    assert score.argmax() == 4
    assert np.median(score) == pytest.approx(1.0, abs=0.2)


def test_leading_components_are_the_first():
    X, domains, _ = make_bags(n_rows=80)
    whole = Components("log", 6, 0).fit(X, domains)
    few = whole.leading(2).transform(X)
    np.testing.assert_allclose(few, whole.transform(X)[:, :2])


# ---- bags ----------------------------------------------------------------------------


def test_a_round_of_em_does_not_lower_the_likelihood():
    X, domains, _ = make_bags(n_rows=100)
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), size=100)
    before = -np.inf
    for n_rounds in (1, 3, 9, 27):
        bags, _ = improve(X, domains, posterior, 1.0, n_rounds=n_rounds)
        evidence = bags.evidence(X) + np.log(bags.prevalence[domains])
        now = np.logaddexp.reduce(evidence, axis=1).sum()
        assert now > before - 1.0  # pseudo-counts are part of what rises
        before = now


def test_the_m_step_counts():
    X = np.array([[2.0, 0], [0, 1], [1, 1]])
    posterior = np.array([[1.0, 0], [0, 1], [0.5, 0.5]])
    bags = maximize(X, np.array([0, 0, 1]), posterior, 1.0)
    words = np.array([[2.5, 0.5], [0.5, 1.5]]) + 0.1
    np.testing.assert_allclose(
        np.exp(bags.log_word_given_class), words / words.sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(bags.prevalence, [[0.5, 0.5], [0.5, 0.5]])


def test_classes_of_bags_can_change_places():
    words, mixes = np.log([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.3, 0.7]])
    bags, X = Bags(words, mixes, 1.0), np.array([[3.0, 1.0]])
    turned = bags.take(np.array([1, 0]))
    codes = np.zeros(1, dtype=int)
    np.testing.assert_allclose(
        expected(turned, X, codes), expected(bags, X, codes)[:, ::-1]
    )


def test_points_vary_between_domains_too():
    rng = np.random.default_rng(0)
    domains = np.repeat(np.arange(4), 50)
    X = rng.normal(size=(200, 6)) - 1
    X[:, 2] += 3 * domains
    found = Components("points", 2, 0).fit(X, domains)
    centred = X - X.mean(axis=0)
    singular = np.linalg.svd(centred, full_matrices=False)[2][:2]
    np.testing.assert_allclose(abs(found.directions_), abs(singular), atol=1e-9)
    np.testing.assert_allclose(
        found.transform(X), centred @ found.directions_.T, atol=1e-9
    )


def test_points_of_an_encoder_are_not_polished():
    rng = np.random.default_rng(0)
    labels = (rng.random(150) < np.array([0.1, 0.5, 0.9])[np.arange(150) % 3]) * 1
    X = rng.normal(size=(150, 30)) + 2 * np.eye(30)[labels] * 3
    model = CountMixture(2, weighting="points", random_state=0)
    model.fit(X, np.arange(150) % 3)
    assert model.bags_ is None
    assert matched_accuracy(labels, model.labels_) > 0.98
