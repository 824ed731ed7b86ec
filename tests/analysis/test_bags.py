"""Intervals of texts: the words of a document come together, so they are drawn so."""

import numpy as np
from numpy.testing import assert_array_equal

from shoal.discrete import DiscreteMixture


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
