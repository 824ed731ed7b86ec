import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from shoal import DDFA, DiscreteMixture, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.exceptions import UnseenWordWarning
from shoal.probability import match_rows
from support.data import fitted_clouds


@pytest.fixture(scope="module")
def clouds():
    """Problem of 4 classes in 8 domains, and a model fitted to it."""
    return fitted_clouds(4000, n_classes=4, n_domains=8, separation=1.5)


def new_rows(bunch, prevalence, n_rows, seed):
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(prevalence), size=n_rows, p=prevalence)
    return bunch.problem.world.sample(labels, np.zeros(n_rows, dtype=int), rng)


def class_order(bunch, model):
    """Column of the model for each true class."""
    return match_rows(bunch.domain_given_class, model.domain_given_class_)


def test_known_prevalence_is_recovered(clouds, seed):
    bunch, model = clouds
    truth = np.array([0.05, 0.6, 0.25, 0.1])
    found = model.adapt(new_rows(bunch, truth, 4000, seed), random_state=seed)
    order = class_order(bunch, model)
    assert_allclose(found.prevalence[order], truth, atol=0.04)
    assert_allclose(found.prevalence.sum(), 1)
    assert found.n_rows == 4000


def test_error_falls_with_the_root_of_the_rows(clouds):
    bunch, model = clouds
    order = class_order(bunch, model)
    rng = np.random.default_rng(0)
    sizes, errors = [30, 120, 480], []
    for n_rows in sizes:
        each = []
        for repeat in range(25):
            truth = rng.dirichlet(np.ones(4))
            rows = new_rows(bunch, truth, n_rows, [n_rows, repeat])
            found = model.adapt(rows, random_state=0)
            each.append(np.abs(found.prevalence[order] - truth).mean())
        errors.append(np.mean(each))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35


def test_training_domain_gets_its_own_prevalence_back(clouds):
    bunch, model = clouds
    for code in range(8):
        rows = bunch.X[bunch.domains == code]
        found = model.adapt(rows, random_state=0)
        assert_allclose(found.prevalence, model.prevalence_[code], atol=0.02)


def test_posterior_is_that_of_the_prevalence(clouds):
    bunch, model = clouds
    found = model.adapt(bunch.X[bunch.domains == 1], random_state=0)
    expected = model.predict_proba(bunch.X[:20], prevalence=found.prevalence)
    assert_array_equal(found.predict_proba(bunch.X[:20]), expected)
    assert_array_equal(found.predict(bunch.X[:20]), expected.argmax(axis=1))


def test_prevalence_is_a_fixed_point_of_em(clouds):
    bunch, model = clouds
    rows = new_rows(bunch, [0.7, 0.1, 0.1, 0.1], 200, 3)
    found = model.adapt(rows, random_state=0)
    assert_allclose(found.predict_proba(rows).mean(axis=0), found.prevalence, atol=1e-7)


def test_intervals_cover(clouds):
    # with g nearly true, 90% intervals should cover about that often
    bunch, model = clouds
    order = class_order(bunch, model)
    rng = np.random.default_rng(1)
    hits = []
    for repeat in range(40):
        truth = rng.dirichlet(np.ones(4))
        found = model.adapt(new_rows(bunch, truth, 150, [9, repeat]), random_state=0)
        low, high = found.low[order], found.high[order]
        hits.append((low <= truth) & (truth <= high))
    assert 0.84 < np.mean(hits) < 0.99


def test_familiar_rows_fit_and_a_far_blob_does_not(clouds, seed):
    bunch, model = clouds
    familiar = model.adapt(new_rows(bunch, [0.7, 0.1, 0.1, 0.1], 300, seed))
    assert familiar.fit_score > 0.8
    blob = 15 + np.random.default_rng(seed).normal(size=(300, bunch.X.shape[1]))
    assert model.adapt(blob).fit_score < 0.02
    half = model.adapt(np.vstack([bunch.X[:100], blob[:100]])).fit_score
    assert 0.3 < half < 0.7


def test_same_seed_same_interval(clouds):
    bunch, model = clouds
    one, two, other = (model.adapt(bunch.X[:200], random_state=s) for s in (5, 5, 6))
    assert_array_equal(one.low, two.low)
    assert not np.array_equal(one.low, other.low)


def test_level_widens_the_interval(clouds):
    bunch, model = clouds
    narrow, wide = (
        model.adapt(bunch.X[:200], level=level, random_state=0) for level in (0.5, 0.95)
    )
    assert (wide.high - wide.low > narrow.high - narrow.low).all()
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.adapt(bunch.X[:20], level=95)


def test_a_single_row_gives_a_wide_interval(clouds):
    bunch, model = clouds
    found = model.adapt(bunch.X[:1], random_state=0)
    assert (found.high - found.low).max() > 0.5


def test_table_has_one_row_per_class(clouds):
    bunch, model = clouds
    table = (
        model.set_names(list("abcd")).adapt(bunch.X[:50], random_state=0).to_pandas()
    )
    assert table["class_name"].tolist() == list("abcd")
    assert_allclose(table["estimate"].sum(), 1)


@pytest.fixture(scope="module")
def overlapping():
    """Classes that overlap: how a merged one is split says much of its share."""
    X, domains, _ = make_latent_shift(
        4000,
        n_classes=4,
        n_domains=8,
        n_features=4,
        separation=1.0,
        alpha=1.0,
        random_state=0,
    )
    model = DomainMixture(4, search=False, random_state=0).fit(X, domains)
    return X[domains == 4], model


def test_merged_classes_adapt_to_the_sum_of_their_parts(overlapping):
    rows, model = overlapping
    merged = model.merge(0, 1, name="ab")
    parts, whole = (one.adapt(rows, random_state=0) for one in (model, merged))
    expected = [parts.prevalence[group].sum() for group in merged.groups]
    assert_allclose(whole.prevalence, expected)
    assert whole.fit_score == parts.fit_score
    together = [parts.predict_proba(rows)[:, g].sum(axis=1) for g in merged.groups]
    assert_allclose(whole.predict_proba(rows), np.stack(together, axis=1))


def test_intervals_of_merged_classes_come_from_draws_added_up(overlapping):
    rows, model = overlapping
    named = model.set_names(list("abcd"))
    twice = named.merge("a", "b", name="ab").merge("ab", "d", name="rest")
    parts, whole = (one.adapt(rows, random_state=0) for one in (named, twice))
    c, rest = (twice.class_names_.index(name) for name in ("c", "rest"))
    assert_allclose([whole.low[c], whole.high[c]], [parts.low[2], parts.high[2]])
    # what one class gains the others lose: the same draws, seen from the other side
    assert_allclose(whole.low[rest], 1 - whole.high[c])
    assert_allclose(whole.high[rest], 1 - whole.low[c])


def test_a_merge_undone_leaves_the_mix_of_the_unmerged_model(overlapping):
    rows, model = overlapping
    once = model.merge(0, 1, name="ab")
    twice = once.merge("ab", 2, name="abc")
    expected = model.adapt(rows, random_state=0).as_domain(8)
    for merged in (once, twice):
        found = merged.adapt(rows, random_state=0)
        joined = found.as_domain(8)
        assert_allclose(joined.prevalence_[-1], found.prevalence)
        assert joined.class_names_ == merged.class_names_
        while hasattr(joined, "groups"):
            joined = joined.estimator
        assert_array_equal(joined.prevalence_, expected.prevalence_)


def test_ddfa_adapts(clouds):
    bunch, _ = clouds
    model = DDFA(4, discriminator="logistic", cross_fit=2, random_state=0)
    model.fit(bunch.X, bunch.domains)
    found = model.adapt(bunch.X[bunch.domains == 2], random_state=0)
    assert_allclose(found.prevalence, model.prevalence_[2], atol=0.12)


WORDS = np.array([[0.9, 0.0, 0.1], [0.0, 0.6, 0.4]])


def words_problem(seed, n_words=3000):
    rng = np.random.default_rng(seed)
    prevalence = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    counts = rng.multinomial(n_words, prevalence @ WORDS)
    new = rng.multinomial(n_words, np.array([0.3, 0.7]) @ WORDS)
    return counts, new


def test_new_document_is_a_mix_of_topics_not_one_topic(seed):
    counts, new = words_problem(seed)
    model = DiscreteMixture(2, input="counts", random_state=0).fit(counts)
    found = model.adapt([new], random_state=0)
    order = np.argsort(model.word_given_class_[:, 0])[::-1]
    assert_allclose(found.prevalence[order], [0.3, 0.7], atol=0.05)
    assert found.n_rows == new.sum()


def test_rows_of_words_and_their_counts_adapt_alike(seed):
    counts, new = words_problem(seed, n_words=400)
    bags = DiscreteMixture(2, input="counts", random_state=0).fit(counts)
    rows, domains = expand(counts)
    single = DiscreteMixture(2, random_state=0).fit(rows, domains)
    assert_allclose(
        single.adapt(np.repeat(np.arange(3), new)[:, None]).prevalence,
        bags.adapt([new]).prevalence,
        atol=1e-6,
    )


def test_bags_without_words_are_refused(seed):
    counts = np.random.default_rng(seed).integers(1, 20, (4, 6))
    model = DiscreteMixture(2, input="counts", random_state=0).fit(counts)
    with pytest.raises(ValueError, match="X_new has no words at all"):
        model.adapt(np.zeros((2, 6)))
    some = model.adapt(np.array([[0] * 6, [3, 0, 1, 0, 0, 2]]), random_state=0)
    assert some.n_rows == 6


def test_words_never_seen_do_not_fit(seed):
    counts, new = words_problem(seed, n_words=400)
    rows, domains = expand(counts)
    model = DiscreteMixture(2, random_state=0).fit(rows, domains)
    assert model.adapt(np.repeat(np.arange(3), new)[:, None]).fit_score > 0.8
    with pytest.warns(UnseenWordWarning, match="did not occur in fit"):
        assert model.adapt(np.full((20, 1), 99)).fit_score == 0


def test_ddfa_knows_what_it_has_seen(clouds, seed):
    bunch, _ = clouds
    model = DDFA(4, discriminator="logistic", cross_fit=2, random_state=0)
    model.fit(bunch.X, bunch.domains)
    assert model.adapt(bunch.X[bunch.domains == 1]).fit_score > 0.7
    blob = 15 + np.random.default_rng(seed).normal(size=(50, bunch.X.shape[1]))
    assert model.adapt(blob).fit_score < 0.02


def expand(counts):
    rows = np.concatenate(
        [np.repeat(np.arange(counts.shape[1]), row) for row in counts]
    )
    return rows[:, None], np.repeat(np.arange(len(counts)), counts.sum(axis=1))


# ---- a new domain as one of the estimator's own ----------------------------------


@pytest.mark.parametrize("kind", ["mixture", "merged", "words"])
def test_as_domain_adds_the_domain_and_changes_nothing_else(clouds, kind):
    bunch, model = clouds
    X, domains = bunch.X[:500], bunch.domains[:500]
    if kind == "words":
        X = np.rint(np.clip(bunch.X[:, :3] + 4, 0, None))
        model = DiscreteMixture(3, input="counts", random_state=0)
        model, X = model.fit(X, bunch.domains), X[:500]
    elif kind == "merged":
        model = model.merge("c1", "c3", name="both")
    found = model.adapt(X[domains == 2], random_state=0)
    joined = found.as_domain("new")
    assert joined.domains_.tolist() == [*model.domains_.tolist(), "new"]
    assert joined.class_names_ == model.class_names_
    assert_allclose(joined.prevalence_[-1], found.prevalence, atol=1e-9)
    assert_allclose(joined.prevalence_[:-1], model.prevalence_)
    assert_allclose(joined.predict_proba(X, "new"), found.predict_proba(X), atol=1e-7)
    assert_allclose(
        joined.predict_proba(X, domains), model.predict_proba(X, domains), atol=1e-7
    )
    assert "new" not in model.domains_.tolist()


def test_as_domain_refuses_a_known_name(clouds):
    bunch, model = clouds
    found = model.adapt(bunch.X[:50], random_state=0)
    with pytest.raises(ValueError, match="name=3 is a domain of the estimator"):
        found.as_domain(3)
    assert found.as_domain(8).domains_.dtype.kind == "i"
