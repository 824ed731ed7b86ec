"""Topic modelling: the finite case of the paper, at the size of a small corpus."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from shoal import DiscreteMixture
from shoal.metrics import matched_accuracy
from shoal.probability import match_rows

N_TOPICS, N_WORDS, ANCHORS = 20, 2000, 5


def make_topics(rng):
    """Topics over 2,000 words: 5 anchors each, which make up a tenth of their text."""
    topics = np.zeros((N_TOPICS, N_WORDS))
    own = np.arange(N_TOPICS * ANCHORS).reshape(N_TOPICS, ANCHORS)
    np.put_along_axis(topics, own, 0.1 / ANCHORS, axis=1)
    shared = np.full(N_WORDS - own.size, 0.1)
    topics[:, own.size :] = 0.9 * rng.dirichlet(shared, N_TOPICS)
    return topics


def make_corpus(rng, topics, n_documents, length):
    """Share of each topic in each document, and the words of the documents."""
    shares = rng.dirichlet(np.full(N_TOPICS, 0.1), n_documents)
    return shares, sparse.csr_array(rng.multinomial(length, shares @ topics))


def errors(model, shares, topics):
    """Mean absolute error of shares, mean total variation between topics."""
    order = match_rows(topics, model.word_given_class_)
    share_error = np.abs(model.prevalence_[:, order] - shares).mean()
    distance = np.abs(model.word_given_class_[order] - topics).sum(axis=1) / 2
    return share_error, distance.mean()


def fit_topics(counts, n_classes=N_TOPICS):
    return DiscreteMixture(n_classes, input="counts", random_state=0).fit(counts)


def slope(sizes, errors):
    return np.polyfit(np.log(sizes), np.log(errors), 1)[0]


@pytest.fixture(scope="module")
def corpus(seed):
    rng = np.random.default_rng(seed)
    topics = make_topics(rng)
    return topics, *make_corpus(rng, topics, 200, 4000)


@pytest.fixture(scope="module")
def model(corpus):
    return fit_topics(corpus[2], n_classes=None)


def test_both_factors_and_the_number_of_topics_are_recovered(model, corpus):
    topics, shares, _ = corpus
    assert model.n_classes_ == N_TOPICS
    share_error, topic_error = errors(model, shares, topics)
    assert share_error < 0.004  # a share is .05 on average
    assert topic_error < 0.09


def test_anchor_words_belong_to_their_topic(model, corpus):
    topics, _, _ = corpus
    n_anchors = N_TOPICS * ANCHORS
    anchors = sparse.eye_array(n_anchors, N_WORDS, format="csr")
    order = match_rows(topics, model.word_given_class_)
    posterior = model.predict_proba(anchors)[:, order]
    own = np.repeat(np.arange(N_TOPICS), ANCHORS)
    assert_array_equal(posterior.argmax(axis=1), own)
    assert posterior[np.arange(n_anchors), own].mean() > 0.98


def test_short_texts_on_one_topic_are_classified(model, corpus, seed):
    topics, _, _ = corpus
    rng = np.random.default_rng([seed, 1])
    labels = rng.integers(0, N_TOPICS, size=500)
    texts = sparse.csr_array(rng.multinomial(20, topics[labels]))
    log_topics = np.log(np.maximum(topics, 1e-300))
    best = np.mean((texts @ log_topics.T).argmax(axis=1) == labels)
    got = matched_accuracy(labels, model.predict(texts))
    assert got > best - 0.02


def test_errors_shrink_as_documents_grow(seed):
    rng = np.random.default_rng(seed)
    topics, lengths = make_topics(rng), [1000, 4000, 16_000]
    found = []
    for length in lengths:
        shares, counts = make_corpus(rng, topics, 200, length)
        found.append(errors(fit_topics(counts), shares, topics))
    share_errors, topic_errors = np.transpose(found)
    assert -0.65 < slope(lengths, share_errors) < -0.4
    assert -0.65 < slope(lengths, topic_errors) < -0.4


@pytest.mark.slow
def test_topics_sharpen_as_documents_multiply(seed):
    rng = np.random.default_rng(seed)
    topics, sizes = make_topics(rng), [100, 400, 1600]
    found = []
    for n_documents in sizes:
        shares, counts = make_corpus(rng, topics, n_documents, 2000)
        found.append(errors(fit_topics(counts), shares, topics))
    share_errors, topic_errors = np.transpose(found)
    assert -0.65 < slope(sizes, topic_errors) < -0.4
    # a share of a document is known only as well as its own words tell
    assert slope(sizes, share_errors) > -0.4
