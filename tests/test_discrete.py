"""DiscreteMixture: factors, posteriors by hand, words of every kind."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline

from shoal import DiscreteMixture
from shoal.exceptions import IdentifiabilityWarning, UnseenWordWarning
from shoal.probability import condition_number, match_rows
from shoal.stages.factorize import Factorizer

ISLANDS = ["Biscoe", "Dream", "Torgersen", "Anvers", "Booth", "Cobalescou"]


def anchored_factors(rng, n_classes=3, n_domains=6, n_words=12):
    """Prevalences that differ enough, and words with one anchor per class."""
    prevalence = np.ones((n_domains, n_classes))
    while condition_number(prevalence) > 10:
        prevalence = rng.dirichlet(np.full(n_classes, 0.7), n_domains)
    words = np.zeros((n_classes, n_words))
    words[:, :n_classes] = np.eye(n_classes) / 2
    shared = np.ones(n_words - n_classes)
    words[:, n_classes:] = rng.dirichlet(shared, n_classes) / 2
    return prevalence, words


def sampled_rows(rng, prevalence, words, n_rows):
    """Word and domain of each row, in random order."""
    counts = rng.multinomial(n_rows, prevalence @ words)
    codes = np.repeat(np.arange(len(counts)), n_rows)
    indices = np.concatenate([np.repeat(np.arange(len(row)), row) for row in counts])
    order = rng.permutation(len(codes))
    return indices[order], codes[order], counts


@pytest.fixture
def problem(seed):
    """Words and domains of 6,000 rows, and their table."""
    rng = np.random.default_rng(seed)
    prevalence, words = anchored_factors(rng)
    return sampled_rows(rng, prevalence, words, 1000)


@pytest.fixture
def fitted(problem):
    words, codes, _ = problem
    return DiscreteMixture(3, random_state=0).fit(words[:, None], codes)


def fit_counts(counts, **params):
    params = {"n_classes": 3, "input": "counts", "random_state": 0} | params
    return DiscreteMixture(**params).fit(counts)


# ---- the factors --------------------------------------------------------------------


@pytest.mark.parametrize("factorizer", ["em", "spa", "snpa", "volume"])
@pytest.mark.parametrize(("n_classes", "n_domains"), [(2, 2), (3, 6), (8, 20)])
def test_both_factors_are_recovered(factorizer, n_classes, n_domains, seed):
    rng = np.random.default_rng([seed, n_classes])
    prevalence, words = anchored_factors(rng, n_classes, n_domains, 5 * n_classes)
    counts = np.round(prevalence @ words * 1e12)  # the population, up to rounding
    model = fit_counts(counts, n_classes=n_classes, factorizer=factorizer)
    order = match_rows(words, model.word_given_class_)
    assert_allclose(model.word_given_class_[order], words, atol=1e-6)
    assert_allclose(model.prevalence_[:, order], prevalence, atol=1e-6)
    assert_array_equal(np.sort(model.factorization_.anchors[order]), range(n_classes))


def test_a_factorizer_may_bring_its_options(problem):
    given = Factorizer(method="em", options={"max_iter": 1, "tol": 0})
    model = fit_counts(problem[2], factorizer=given)
    assert model.factorization_.n_iter == 1
    assert given.n_classes == 2  # untouched
    assert not hasattr(given, "factorization_")
    by_name = fit_counts(problem[2], factorizer="spa")
    by_object = fit_counts(problem[2], factorizer=Factorizer(method="spa"))
    assert_array_equal(by_object.prevalence_, by_name.prevalence_)


def test_factors_are_distributions_in_canonical_order(fitted):
    assert fitted.prevalence_.shape == (6, 3)
    assert fitted.word_given_class_.shape == (3, 12)
    assert_allclose(fitted.prevalence_.sum(axis=1), 1)
    assert_allclose(fitted.word_given_class_.sum(axis=1), 1)
    assert (np.diff(fitted.prevalence_.mean(axis=0)) <= 0).all()
    assert_array_equal(fitted.vocabulary_, np.arange(12)[:, None])
    assert fitted.word_count_.sum() == 6000


@pytest.mark.parametrize("weight", ["size", {0: 1.0, 1: 2.0, 2: 1, 3: 1, 4: 1, 5: 3}])
def test_domain_weight_enters_the_mixing_distribution(weight, problem):
    words, codes, _ = problem
    keep = (codes > 0) | (np.arange(len(codes)) % 5 == 0)  # one small domain
    words, codes = words[keep], codes[keep]
    model = DiscreteMixture(3, domain_weight=weight, random_state=0)
    model.fit(words[:, None], codes)
    sizes = np.bincount(codes)
    share = sizes if weight == "size" else np.array(list(weight.values()))
    assert_allclose(model.domain_weight_, share / share.sum())
    assert_allclose(model.class_weight_, model.domain_weight_ @ model.prevalence_)


# ---- prediction: Algorithm 4, by hand ---------------------------------------------


def by_hand(model, word, prior):
    joint = [model.word_given_class_[y, word] * prior[y] for y in range(len(prior))]
    return np.array(joint) / sum(joint)


def test_posterior_of_a_word_is_bayes(fitted, problem):
    words, codes, _ = problem
    equal = fitted.prevalence_.mean(axis=0)
    given = np.array([0.2, 0.5, 0.3])
    for word in range(12):
        X = [[word]]
        got = fitted.predict_proba(X)[0]
        assert_allclose(got, by_hand(fitted, word, equal), atol=1e-15)
        got = fitted.predict_proba(X, prevalence=given)[0]
        assert_allclose(got, by_hand(fitted, word, given), atol=1e-15)
    rows = fitted.predict_proba(words[:, None], codes)
    expected = [
        by_hand(fitted, word, fitted.prevalence_[code])
        for word, code in zip(words, codes, strict=True)
    ]
    assert_allclose(rows, expected, atol=1e-15)
    assert_array_equal(fitted.labels_, rows.argmax(axis=1))
    assert_array_equal(fitted.labels_, fitted.predict(words[:, None], codes))
    assert_array_equal(fitted.labels_, clone(fitted).fit_predict(words[:, None], codes))


def test_posterior_of_a_bag_is_a_product(problem):
    model = fit_counts(problem[2])
    prior = model.prevalence_[4]
    bag = np.zeros(12, dtype=int)
    bag[[3, 5, 9]] = [2, 1, 4]
    product = prior * np.prod(model.word_given_class_**bag, axis=1)
    got = model.predict_proba(bag[None], 4)
    assert_allclose(got[0], product / product.sum(), atol=1e-15)
    assert_allclose(model.predict_proba(sparse.csr_array(bag[None]), 4), got)


def test_long_bags_neither_underflow_nor_forget_their_domain(seed):
    prevalence, words = anchored_factors(np.random.default_rng(seed))
    model = fit_counts(np.round(prevalence @ words * 1e9))
    bag = np.full((1, 12), 100_000)
    bag[0, :3] = 0
    evidence = 100_000 * np.log(model.word_given_class_[:, 3:]).sum(axis=1)
    best = int(evidence.argmax())
    assert_allclose(model.predict_proba(bag)[0], np.eye(3)[best])
    # a domain without the best class: the second best, though e^-10000 times as likely
    prior = np.where(np.arange(3) == best, 0, 0.5)
    second = int(np.where(prior > 0, evidence, -np.inf).argmax())
    assert_allclose(model.predict_proba(bag, prevalence=prior)[0], np.eye(3)[second])


def test_words_that_no_class_shares_leave_a_finite_posterior():
    model = fit_counts([[9, 0, 1], [0, 9, 1], [5, 5, 2]], n_classes=2)
    got = model.predict_proba([[3, 1, 0], [1, 3, 0]])
    assert_allclose(got.sum(axis=1), 1)
    # the class that leaves fewer words unexplained
    assert got[0].argmax() != got[1].argmax()


def test_empty_bag_has_the_prevalence_of_its_domain(problem):
    model = fit_counts(problem[2])
    assert_allclose(model.predict_proba(np.zeros((1, 12)), 2)[0], model.prevalence_[2])


# ---- rows and counts are two spellings of one thing ---------------------------------


def test_rows_and_counts_agree(fitted, problem):
    words, codes, counts = problem
    model = fit_counts(counts)
    assert_array_equal(model.domains_, range(6))
    assert_allclose(model.prevalence_, fitted.prevalence_, atol=1e-12)
    assert_allclose(model.word_given_class_, fitted.word_given_class_, atol=1e-12)
    singles = np.eye(12)
    got = model.predict_proba(singles, 3)
    assert_allclose(got, fitted.predict_proba(np.arange(12)[:, None], 3))
    expected = fitted.score(words[:, None], codes)
    assert_allclose(model.score(counts, range(6)), expected)


@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csc_matrix, pd.DataFrame]
)
def test_dense_and_sparse_counts_agree(container, problem):
    counts = problem[2]
    dense, other = fit_counts(counts), fit_counts(container(counts))
    assert_array_equal(other.prevalence_, dense.prevalence_)
    assert_array_equal(other.labels_, dense.labels_)
    assert_allclose(other.transform(container(counts)), dense.transform(counts))
    assert_allclose(
        other.score(container(counts), range(6)), dense.score(counts, range(6))
    )


def test_bags_of_a_domain_are_summed(problem, seed):
    counts = problem[2]
    rng = np.random.default_rng(seed)
    part = rng.binomial(counts, 0.3)
    bags = np.vstack([part, counts - part])
    domains = np.tile(ISLANDS, 2)
    model = DiscreteMixture(3, input="counts", random_state=0).fit(bags, domains)
    whole = DiscreteMixture(3, input="counts", random_state=0).fit(counts, ISLANDS)
    assert_array_equal(model.prevalence_, whole.prevalence_)
    assert_array_equal(model.domains_, sorted(ISLANDS))
    assert_allclose(model.score(bags, domains), whole.score(counts, ISLANDS))
    assert model.labels_.shape == (12,)
    assert_array_equal(model.labels_, model.predict(bags, domains))


def test_names_of_counted_words(problem):
    frame = pd.DataFrame(problem[2], columns=[f"word{i}" for i in range(12)])
    assert list(fit_counts(frame).vocabulary_) == list(frame.columns)
    assert_array_equal(fit_counts(problem[2]).vocabulary_, range(12))


# ---- words of any kind --------------------------------------------------------------

COLOURS = ["red", "green", "blue"]


def coded(words, kind):
    """The same 12 words as pairs of a colour and a number, in several containers."""
    colour, number = np.array(COLOURS)[words % 3], words // 3
    frame = {"colour": colour, "number": number}
    if kind == "list":
        return [[c, int(n)] for c, n in zip(colour, number, strict=True)]
    if kind == "object":
        return pd.DataFrame(frame).astype(object).to_numpy()
    if kind == "strings":
        return np.column_stack([colour, number.astype(str)])
    if kind == "integers":
        return np.column_stack([words % 3, number])
    if kind == "floats":
        return np.column_stack([words % 3, number]).astype(float)
    if kind == "polars":
        return pl.DataFrame(frame)
    if kind == "categorical":
        return pd.DataFrame(frame).astype({"colour": "category"})
    return pd.DataFrame(frame)


KINDS = ["list", "object", "strings", "integers", "floats", "pandas", "polars"]


@pytest.mark.parametrize("kind", [*KINDS, "categorical"])
def test_words_of_every_kind_give_the_same_classes(kind, fitted, problem):
    words, codes, _ = problem
    X = coded(words, kind)
    model = DiscreteMixture(3, random_state=0).fit(X, codes)
    assert_allclose(model.prevalence_, fitted.prevalence_, atol=1e-9)
    assert_array_equal(model.labels_, fitted.labels_)
    assert_array_equal(model.predict(X, codes), fitted.labels_)
    assert model.vocabulary_.shape == (12, 2)
    fresh = coded(np.arange(12), kind)
    expected = fitted.predict_proba(np.arange(12)[:, None], 1)
    assert_allclose(model.predict_proba(fresh, 1), expected, atol=1e-9)


def test_a_frame_and_a_list_hold_the_same_words(fitted, problem):
    words, codes, _ = problem
    model = DiscreteMixture(3, random_state=0).fit(coded(words, "object"), codes)
    for kind in ("list", "object"):
        got = model.predict(coded(words, kind), codes)
        assert_array_equal(got, fitted.labels_)


def test_domains_of_any_name(fitted, problem):
    words, codes, _ = problem
    named = np.array(ISLANDS)[codes]
    model = DiscreteMixture(3, random_state=0).fit(words[:, None], domains=named)
    order = np.argsort(ISLANDS)
    assert_array_equal(model.domains_, np.array(ISLANDS)[order])
    assert_allclose(model.prevalence_, fitted.prevalence_[order], atol=1e-9)
    got = model.predict_proba(words[:5, None], "Dream")
    assert_allclose(got, fitted.predict_proba(words[:5, None], 1), atol=1e-9)


def test_order_and_repetition_of_rows_change_nothing(fitted, problem, seed):
    words, codes, _ = problem
    order = np.random.default_rng(seed).permutation(len(words))
    shuffled = clone(fitted).fit(words[order, None], codes[order])
    assert_array_equal(shuffled.prevalence_, fitted.prevalence_)
    assert_array_equal(shuffled.labels_, fitted.labels_[order])
    twice = clone(fitted).fit(np.tile(words, 2)[:, None], np.tile(codes, 2))
    assert_allclose(twice.prevalence_, fitted.prevalence_, atol=1e-12)
    renamed = clone(fitted).fit(11 - words[:, None], codes)
    assert_allclose(renamed.prevalence_, fitted.prevalence_, atol=1e-9)
    assert_allclose(
        renamed.word_given_class_[:, ::-1], fitted.word_given_class_, atol=1e-9
    )


# ---- words never seen ---------------------------------------------------------------


def test_unseen_words_have_the_prevalence_of_their_domain(fitted):
    with pytest.warns(UnseenWordWarning, match="^2 of 3 words") as caught:
        got = fitted.predict_proba([[3], [77], [78]], [0, 1, 2])
    assert len(caught) == 1
    assert_allclose(got[1:], fitted.prevalence_[1:3])
    assert_allclose(got[0], fitted.predict_proba([[3]], 0)[0])
    with pytest.warns(UnseenWordWarning, match="^1 of 1 words"):
        got = fitted.predict_proba([[99]])
    assert_allclose(got[0], fitted.prevalence_.mean(axis=0))


def test_words_without_training_counts_are_unseen(problem):
    counts = np.insert(problem[2], 5, 0, axis=1)
    model = fit_counts(counts)
    assert_allclose(model.prevalence_, fit_counts(problem[2]).prevalence_, atol=1e-12)
    assert_array_equal(model.word_given_class_[:, 5], 0)
    assert model.word_count_[5] == 0
    bag = np.zeros((1, 13))
    bag[0, 4] = 1
    expected = model.predict_proba(bag, 0)
    bag[0, 5] = 30
    with pytest.warns(UnseenWordWarning, match="^30 of 31 words") as caught:
        got = model.predict_proba(bag, 0)
    assert len(caught) == 1
    assert_array_equal(got, expected)


# ---- score and novelty --------------------------------------------------------------


def test_score_is_the_mean_log_likelihood_of_domains(fitted, problem):
    words, codes, _ = problem
    X, weight = words[:40, None], np.arange(1, 41)
    log_q, total = np.zeros(6), np.zeros(6)
    for word, code, w in zip(words, codes, weight, strict=False):
        posterior = by_hand(fitted, word, fitted.class_weight_)
        q = posterior @ fitted.domain_given_class_[:, code]
        log_q[code] += w * np.log((6000 * q + 1 / 6) / 6001)  # one imaginary word
        total[code] += w
    expected = (log_q / total)[total > 0].mean()
    got = fitted.score(X, codes[:40], sample_weight=weight)
    assert_allclose(got, expected)
    assert_allclose(fitted.score(X, domains=codes[:40], sample_weight=weight), expected)


def test_score_beats_chance_and_unseen_words_score_chance(fitted, problem):
    words, codes, _ = problem
    assert fitted.score(words[:, None], codes) > np.log(1 / 6) + 0.05
    with pytest.warns(UnseenWordWarning):
        assert_allclose(fitted.score(words[:, None] + 100, codes), np.log(1 / 6))


def test_one_impossible_word_does_not_ruin_the_score():
    # the third word is not in domain 0, nor is the class that uses it
    model = fit_counts([[50, 50, 0], [0, 50, 50], [20, 50, 30]], n_classes=2)
    assert model.score([[50, 51, 1]], [0]) > -2


def test_novelty_is_surprise_per_word(fitted, problem):
    share = fitted.class_weight_ @ fitted.word_given_class_
    got = fitted._novelty(np.arange(12)[:, None])
    assert_allclose(got, -np.log(share))
    assert_allclose(fitted._novelty(np.array([[50]])), -np.log(0.5 / 6000))
    model = fit_counts(problem[2])
    bags = np.array([[4.0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3], [0.0] * 12])
    expected = -(bags[0] @ np.log(share)) / 8
    assert_allclose(model._novelty(bags), [expected, 0])


# ---- how many classes ---------------------------------------------------------------


def test_number_of_classes_is_chosen(problem):
    words, codes, counts = problem
    model = DiscreteMixture(random_state=0).fit(words[:, None], codes)
    assert model.n_classes_ == model.rank_.n_classes == 3
    assert fit_counts(counts, n_classes=None).n_classes_ == 3


def test_words_that_tell_nothing_are_a_warning():
    X = np.arange(20)[:, None]  # every row a word of its own
    with pytest.warns(IdentifiabilityWarning, match="domains do not differ"):
        model = DiscreteMixture(random_state=0).fit(X, X[:, 0] % 2)
    assert model.n_classes_ == 2


def test_equal_domains_are_a_warning_also_where_the_number_of_classes_is_given(seed):
    rng = np.random.default_rng(seed)
    X, domains = rng.integers(3, size=(1500, 2)), np.arange(1500) % 5
    with pytest.warns(IdentifiabilityWarning, match="classes will mean nothing"):
        DiscreteMixture(3, random_state=seed).fit(X, domains)


def test_more_classes_than_domains_only_on_demand(problem):
    counts = problem[2][:2]
    with pytest.raises(ValueError, match="n_classes=3 cannot be told apart with 2"):
        fit_counts(counts)
    with pytest.warns(IdentifiabilityWarning, match="n_classes=3"):
        model = fit_counts(counts, check_identifiable=False)
    assert model.prevalence_.shape == (2, 3)


# ---- scikit-learn's tools -----------------------------------------------------------


def test_tags_say_what_is_accepted():
    rows, counts = DiscreteMixture(), DiscreteMixture(input="counts")
    points = DiscreteMixture(representation="pca")
    tags = [model.__sklearn_tags__() for model in (rows, counts, points)]
    assert [t.input_tags.sparse for t in tags] == [False, True, False]
    assert [t.input_tags.string for t in tags] == [True, False, False]
    assert [t.target_tags.required for t in tags] == [True, False, True]


def test_grid_search_finds_the_number_of_classes(problem):
    words, codes, _ = problem
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(
        DiscreteMixture(random_state=0), {"n_classes": [2, 3]}, cv=folds
    )
    search.fit(words[:, None], codes)
    assert search.best_params_ == {"n_classes": 3}


def test_metadata_routing(problem):
    words, codes, _ = problem
    X = words[:, None]
    plain = DiscreteMixture(3, random_state=0)
    with config_context(enable_metadata_routing=True):
        model = clone(plain).set_fit_request(domains=True)
        model.set_score_request(domains=True).set_predict_request(domains=True)
        pipeline = make_pipeline("passthrough", model).fit(X, domains=codes)
        assert_array_equal(pipeline.predict(X, domains=codes), pipeline[-1].labels_)
        folds = StratifiedKFold(2, shuffle=True, random_state=0)
        search = GridSearchCV(model, {"n_classes": [2, 3]}, cv=folds)
        search.fit(X, codes, domains=codes)
    assert search.best_params_ == {"n_classes": 3}


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd), ("polars", pl)])
def test_set_output(kind, frame, fitted, problem):
    words, codes, _ = problem
    model = clone(fitted).set_output(transform=kind).fit(words[:, None], codes)
    got = model.transform(words[:5, None])
    assert isinstance(got, frame.DataFrame)
    assert list(got.columns) == ["c0", "c1", "c2"]
    assert_allclose(got.to_numpy(), fitted.predict_proba(words[:5, None]))


def test_clone_copy_and_pickle(fitted, problem):
    X = problem[0][:9, None]
    assert clone(fitted).get_params() == fitted.get_params()
    assert not hasattr(clone(fitted), "prevalence_")
    for other in (copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert_array_equal(other.predict_proba(X), fitted.predict_proba(X))


def test_no_warning_when_all_is_well(problem):
    words, codes, counts = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DiscreteMixture(random_state=0).fit(words[:, None], codes)
        labels = model.predict(words[:, None])
        rows = fit_counts(sparse.csr_matrix(counts), n_classes=None).predict(counts)
    assert set(labels) == set(range(model.n_classes_))
    assert len(rows) == len(counts)
