"""Intervals of texts: the words of a document come together, so they are drawn so."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from shoal.discrete import DiscreteMixture
from shoal.probability import match_rows


def documents(n_documents=30, n_words=60, n_domains=6):
    """Each document is about one of two topics with words of their own."""
    rng = np.random.default_rng(0)
    topics = np.zeros((2, 40))
    topics[0, :20] = topics[1, 20:] = 1 / 20
    share = np.linspace(0.1, 0.9, n_domains)
    domains = np.repeat(np.arange(n_domains), n_documents)
    about = (rng.random(len(domains)) < share[domains]).astype(int)
    return np.array([rng.multinomial(n_words, topics[one]) for one in about]), domains


def widths(X, domains):
    model = DiscreteMixture(2, input="counts", random_state=0).fit(X, domains)
    found = model.bootstrap(X, domains, n_resamples=100, random_state=0)
    return (found.high - found.low)[1:-1].mean(), found


def test_documents_are_drawn_whole():
    X, domains = documents()
    by_document, _ = widths(X, domains)
    whole = np.stack([X[domains == one].sum(axis=0) for one in np.unique(domains)])
    by_word, _ = widths(whole, np.unique(domains))
    # 30 documents say as much as 30 draws, not as 1,800: the binomial's own interval
    expected = 2 * 1.645 * np.sqrt(0.5 * 0.5 / 30)
    assert 0.6 * expected < by_document < 1.4 * expected
    assert by_document > 4 * by_word


def test_bags_of_one_word_are_drawn_as_before():
    X, domains = documents(n_documents=200, n_words=1)
    _, split = widths(X, domains)
    whole = np.stack([X[domains == one].sum(axis=0) for one in np.unique(domains)])
    _, together = widths(whole, np.unique(domains))
    assert_array_equal(split.draws, together.draws)


def test_the_unit_is_the_document_where_a_domain_has_several():
    X, domains = documents()
    _, found = widths(X, domains)
    assert_array_equal(found.n_rows, 30)
    whole = np.vstack([X[domains == 0].sum(axis=0), X[domains > 0]])
    _, found = widths(whole, np.append(0, domains[domains > 0]))
    assert_array_equal(found.n_rows, [30 * 60, 30, 30, 30, 30, 30])


def test_merged_topics_are_drawn_by_the_document_too():
    X, domains, _, _ = mixed_topics(0, n_classes=4)
    model = DiscreteMixture(4, input="counts", random_state=0).fit(X, domains)
    model = model.set_names(list("abcd"))
    twice = model.merge("a", "b", name="ab").merge("ab", "c")
    found, parts = (
        one.bootstrap(X, domains, n_resamples=5, random_state=0)
        for one in (twice, model)
    )
    assert_array_equal(found.n_rows, 20)
    d = twice.class_names_.index("d")
    assert_allclose(found.draws[:, :, d], parts.draws[:, :, 3])
    assert (found.co_assignment >= parts.co_assignment).all()


# ---- coverage --------------------------------------------------------------------


def mixed_topics(seed, n_classes=3, n_domains=12, n_documents=20, n_words=60):
    """Documents of one topic each; topics share words, and domains may miss some."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(40, 0.1), n_classes)
    mix = rng.dirichlet(np.full(n_classes, 0.5), n_domains)
    about = np.concatenate([rng.choice(n_classes, n_documents, p=row) for row in mix])
    X = np.array([rng.multinomial(n_words, topics[one]) for one in about])
    return X, np.repeat(np.arange(n_domains), n_documents), mix, topics


def covered(found, truth):
    return (found.low <= truth) & (truth <= found.high)


def test_intervals_of_documents_cover():
    hits = []
    for seed in range(6):
        X, domains, mix, topics = mixed_topics(seed)
        model = DiscreteMixture(3, input="counts", random_state=0).fit(X, domains)
        found = model.bootstrap(X, domains, n_resamples=50, random_state=0)
        truth = mix[:, match_rows(model.word_given_class_, topics)]
        hits.append(covered(found, truth))
    assert 0.82 < np.mean(hits) < 0.99


def test_intervals_of_new_documents_cover():
    X, domains, _, topics = mixed_topics(0)
    model = DiscreteMixture(3, input="counts", random_state=0).fit(X, domains)
    order, hits = match_rows(model.word_given_class_, topics), []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        mix = rng.dirichlet(np.full(3, 0.5))
        about = rng.choice(3, 20, p=mix)
        new = np.array([rng.multinomial(60, topics[one]) for one in about])
        hits.append(covered(model.adapt(new, random_state=0), mix[order]))
    assert 0.82 < np.mean(hits) < 0.99


def test_new_documents_are_drawn_whole():
    X, domains, _, _ = mixed_topics(1)
    model = DiscreteMixture(3, input="counts", random_state=0).fit(X, domains)
    fitted = model.bootstrap(X, domains, n_resamples=100, random_state=0)
    wide = []
    for domain in range(12):
        rows = X[domains == domain]
        found = model.adapt(rows, random_state=0)
        assert found.n_rows == 20
        wide.append(found.high - found.low)
        same = model.adapt(sparse.csr_array(rows), random_state=0)
        assert_allclose([same.low, same.high], [found.low, found.high])
    assert_allclose(np.mean(wide), (fitted.high - fitted.low).mean(), rtol=0.15)
    single = model.adapt([X[domains == 0].sum(axis=0)], random_state=0)
    assert single.n_rows == 20 * 60
    assert (single.high - single.low).mean() < wide[0].mean() / 3
