import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from shoal import DDFA, DiscreteMixture, DomainMixture, choose_n_classes
from shoal.analysis._choose import Evidence, decide, smooth
from shoal.analysis._rank import RankResult
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import IdentifiabilityWarning
from shoal.likelihood._features import TrainingRows
from shoal.mixture._n_classes import baseline, make_curve, pick_n_classes
from shoal.mixture._options import SearchOptions
from shoal.probability import HeldOut

PENGUINS = load_penguins()


def clouds(n_classes, seed=0, n_samples=2000, **options):
    settings = {"n_domains": 2 * n_classes, "separation": 1.5} | options
    return make_latent_shift(
        n_samples, n_classes=n_classes, random_state=seed, **settings
    )[:2]


def training_rows(X, codes):
    order = np.argsort(codes, kind="stable")
    n_domains = int(codes.max()) + 1
    return TrainingRows(X[order], codes[order], None, np.full(n_domains, 1 / n_domains))


def test_penguins_are_three(seed):
    choice = choose_n_classes(
        PENGUINS.X, PENGUINS.domains, n_resamples=0, random_state=seed
    )
    assert choice.n_classes == 3
    assert choice.rank == 3
    assert "3 classes" in str(choice)


def test_penguins_are_three_in_fit(seed):
    model = DomainMixture(search=False, random_state=seed)
    assert model.fit(PENGUINS.X, PENGUINS.domains).n_classes_ == 3


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_generated_classes_are_counted(n_classes, seed):
    X, domains = clouds(n_classes, 10 * seed + n_classes, 4000)
    choice = choose_n_classes(X, domains, n_resamples=0, random_state=seed)
    assert choice.n_classes == n_classes
    rng = np.random.default_rng(seed)
    assert pick_n_classes(training_rows(X, domains), SearchOptions(), rng) == n_classes


@pytest.mark.slow
def test_generated_classes_are_counted_nearly_always(seed):
    found = []
    for problem in range(20):
        n_classes = 3 + problem % 6
        X, domains = clouds(n_classes, 100 * seed + problem, 6000, separation=0.8)
        choice = choose_n_classes(X, domains, n_resamples=0, random_state=seed)
        found.append(choice.n_classes == n_classes)
    assert np.mean(found) >= 0.9


def test_no_shift_has_no_clear_number(seed):
    X, domains = clouds(4, seed, 1000, rank=1)
    choice = choose_n_classes(X, domains, range(2, 5), n_resamples=0, random_state=seed)
    assert choice.n_classes is None
    assert "domains do not differ" in choice.sentence
    rows = training_rows(X, domains)
    with pytest.warns(IdentifiabilityWarning, match="domains do not differ"):
        assert pick_n_classes(rows, SearchOptions(), np.random.default_rng(seed)) == 2


def test_fit_without_shift_warns_and_takes_two(seed):
    X, domains = clouds(3, seed, 600, rank=1)
    with pytest.warns(IdentifiabilityWarning, match="domains do not differ"):
        model = DomainMixture(search=False, random_state=seed).fit(X, domains)
    assert model.n_classes_ == 2


def test_more_classes_than_domains_are_drawn_but_never_chosen(seed):
    # six classes, four domains: the curve may go on, the choice may not
    X, domains = clouds(6, seed, n_domains=4, max_condition=None, alpha=1.0)
    choice = choose_n_classes(X, domains, range(2, 8), n_resamples=0, random_state=seed)
    assert_array_equal(choice.identifiable, [True, True, True, False, False, False])
    assert choice.n_classes is None or choice.n_classes <= 4
    beyond = choose_n_classes(X, domains, [5, 6], n_resamples=0, random_state=seed)
    assert beyond.n_classes is None
    assert "only 4 domains" in beyond.sentence


def test_candidates_that_end_too_early_have_no_clear_choice(seed):
    X, domains = clouds(5, seed)
    choice = choose_n_classes(X, domains, [2, 3], n_resamples=0, random_state=seed)
    assert choice.n_classes is None
    assert "still rises at 3" in choice.sentence


def test_same_seed_same_curve_for_any_number_of_threads():
    X, domains = clouds(3, n_samples=800)
    one, two = (
        choose_n_classes(X, domains, range(2, 5), n_jobs=n_jobs, random_state=7)
        for n_jobs in (1, 2)
    )
    assert_array_equal(one.held_out, two.held_out)
    assert_array_equal(one.stability, two.stability)


def test_names_of_domains_do_not_matter():
    X, domains = clouds(3, n_samples=800)
    names = np.array(["north", "east", "x", "b", "a", "z"])
    plain, named = (
        choose_n_classes(X, d, range(2, 5), n_resamples=0, random_state=0)
        for d in (domains, names[domains])
    )
    assert plain.n_classes == named.n_classes == 3
    assert_allclose(plain.held_out, named.held_out, atol=0.02)


def test_table_and_text():
    X, domains = clouds(3, n_samples=800)
    choice = choose_n_classes(X, domains, range(2, 8), random_state=0)
    table = choice.to_pandas()
    assert table["n_classes"].tolist() == [2, 3, 4, 5, 6, 7]
    assert table.loc[table["chosen"], "n_classes"].tolist() == [3]
    assert_allclose(table["singular_value"][:2], choice.singular_values[:2])
    assert (table["null"] == choice.null.max()).all()
    assert ((table["stability"] > 0) & (table["stability"] <= 1)).all()
    text = str(choice)
    assert "(not identifiable)" in text
    assert choice.sentence in text


def test_held_out_beats_the_baseline_only_with_classes():
    X, domains = clouds(3)
    choice = choose_n_classes(X, domains, range(2, 5), n_resamples=0, random_state=0)
    assert_allclose(choice.baseline, -np.log(6))
    assert (choice.held_out > choice.baseline).all()
    assert choice.difference_error[1] == 0


def test_sparse_and_single_precision_rows():
    X, domains = clouds(3, n_samples=900)
    single = choose_n_classes(
        X.astype(np.float32), domains, range(2, 5), n_resamples=0, random_state=0
    )
    assert single.n_classes == 3
    thin = choose_n_classes(
        sparse.csr_matrix(X), domains, range(2, 5), n_resamples=0, random_state=0
    )
    assert thin.n_classes == 3


def test_classes_in_rings_need_bumps():
    # opposite clouds on a circle: linear features see nothing
    X, domains, _ = make_latent_shift(3000, kind="xor", random_state=0)
    choice = choose_n_classes(X, domains, range(2, 7), n_resamples=0, random_state=0)
    assert choice.n_classes == 4


def test_settings_of_the_estimator_are_used():
    X, domains = clouds(3, n_samples=800)
    strict = DomainMixture(ridge=10.0, expansion="linear", scale="global")
    held = choose_n_classes(
        X, domains, [2, 3], estimator=strict, n_resamples=0, random_state=0
    )
    free = choose_n_classes(X, domains, [2, 3], n_resamples=0, random_state=0)
    assert held.held_out.max() < free.held_out.max() - 0.05


def test_any_estimator_can_be_asked():
    X, domains = clouds(3, n_samples=900, separation=2.5)
    model = DDFA(discriminator="logistic", cross_fit=2)
    choice = choose_n_classes(
        X, domains, range(2, 5), estimator=model, n_resamples=2, random_state=0
    )
    assert choice.n_classes == 3
    assert (choice.stability > 0.3).all()


def test_words_can_be_counted():
    words = np.kron(np.eye(3), np.full((1, 3), 0.9 / 3)) + 0.1 / 9
    rng = np.random.default_rng(0)
    prevalence = rng.dirichlet(np.full(3, 0.5), 6)
    counts = rng.multinomial(300, prevalence @ words)
    X = np.concatenate([np.repeat(list("abcdefghi"), row) for row in counts])[:, None]
    domains = np.repeat(np.arange(6), 300)
    choice = choose_n_classes(
        X, domains, range(2, 6), estimator=DiscreteMixture(), random_state=0
    )
    assert choice.n_classes == 3


def documents(seed=0, n_documents=40):
    """Three topics of three words each, in documents that mix them."""
    rng = np.random.default_rng(seed)
    words = np.kron(np.eye(3), np.full((1, 3), 0.9 / 3)) + 0.1 / 9
    return rng.multinomial(80, rng.dirichlet(np.full(3, 0.5), n_documents) @ words)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_topics_of_documents_are_counted_through_their_words(kind):
    """A document mixes topics: as one draw from one topic it would need many."""
    counts = documents()
    model = DiscreteMixture(input="counts")
    choice = choose_n_classes(
        kind(counts), None, range(2, 6), estimator=model, n_resamples=0, random_state=0
    )
    assert choice.n_classes == 3
    # the same words one by one say the same
    each = np.repeat(np.tile(np.arange(9), len(counts)), counts.ravel())[:, None]
    domains = np.repeat(np.arange(len(counts)), counts.sum(axis=1))
    rows = choose_n_classes(
        each,
        domains,
        range(2, 6),
        estimator=DiscreteMixture(),
        n_resamples=0,
        random_state=0,
    )
    assert_allclose(choice.held_out, rows.held_out)
    assert_allclose(choice.standard_error, rows.standard_error)


def test_bad_counts_are_refused():
    model = DiscreteMixture(input="counts")
    with pytest.raises(ValueError, match="not whole numbers"):
        choose_n_classes(documents() / 2, None, estimator=model)


@pytest.mark.parametrize(
    "model",
    [
        DDFA(discriminator="logistic", cross_fit=2),
        DomainMixture(),
    ],
)
def test_domains_are_weighted_by_name(model):
    X, codes = clouds(2, n_samples=600, separation=2.5)
    names = np.array(["north", "east", "south", "west"])
    weight = dict(zip(names, (1, 2, 3, 4), strict=True))
    choice = choose_n_classes(
        X,
        names[codes],
        [2, 3],
        estimator=clone(model).set_params(domain_weight=weight),
        n_resamples=1,
        random_state=0,
    )
    share = np.array([0.1, 0.2, 0.3, 0.4])
    assert_allclose(choice.baseline, share @ np.log(share))
    assert choice.n_classes == 2


def test_looks_and_shift_have_half_a_voice_each(seed):
    rows = training_rows(*clouds(3, seed, 900))
    rng = np.random.default_rng(seed)
    curve = make_curve(rows, 3, 4, SearchOptions(), rng)
    points = {}
    curve.extend(points, range(2, 5))
    scores = curve.evidence(points, RankResult(3, np.ones(1), np.zeros(1))).scores
    for count, point in points.items():
        both = (point.shift.each + point.looks.each) / 2
        assert_allclose(scores[count].each, both)
    # Gaussians of the same classes tell their domains as well
    assert abs(points[3].looks.mean - points[3].shift.mean) < 0.03


@pytest.mark.parametrize("change", [{"search": False}, {"expansion": "linear"}])
def test_where_looks_are_not_heard_shift_speaks_alone(change):
    X, domains = clouds(3, n_samples=600)
    alone, also = (
        choose_n_classes(
            X, domains, [2, 3], estimator=one, n_resamples=0, random_state=0
        )
        for one in (
            DomainMixture(by="shift", **change),
            DomainMixture(**change),
        )
    )
    assert_array_equal(alone.held_out, also.held_out)


# ---- the rule, on evidence made up for it ----------------------------------------


def evidence(means, rank, n_domains=10, error=0.01, visible=True):
    """Scores with given means whose paired differences have one standard error."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(means), 4000))
    noise -= noise.mean(axis=1, keepdims=True)
    scale = error * np.sqrt(4000 / 2)
    weight = np.full(4000, 1 / 4000)
    scores = {
        count: HeldOut(mean + scale * row, weight)
        for (count, mean), row in zip(means.items(), noise, strict=True)
    }
    floor = HeldOut(np.full(4000, -np.log(n_domains)), weight)
    singular = np.array([0.5 if visible else 0.01])
    result = RankResult(rank, singular, np.array([0.1]))
    return Evidence(scores, {}, result, floor, n_domains)


def test_agreement_is_taken():
    assert decide(evidence({2: -2.1, 3: -2.0, 4: -2.05}, rank=3)).n_classes == 3


def test_rank_decides_within_two_errors():
    means = {2: -2.1, 3: -2.018, 4: -2.0, 5: -2.08}
    assert decide(evidence(means, rank=3)).n_classes == 3
    means[3] = -2.025
    assert decide(evidence(means, rank=3)).n_classes == 4


def test_fewest_near_the_best_when_the_rank_is_low():
    means = {4: -2.2, 5: -2.1, 6: -2.005, 7: -2.0, 8: -2.001, 9: -2.1}
    decision = decide(evidence(means, rank=3))
    assert decision.n_classes == 6
    assert "alone supports 3" in decision.sentence


def test_flat_curve_is_not_clear():
    means = dict.fromkeys(range(3, 9), -2.0) | {9: -2.2}
    decision = decide(evidence(means, rank=2))
    assert decision.n_classes is None
    assert "3 to 8" in decision.sentence
    assert decision.fallback == 3


def test_a_thousandth_of_a_nat_is_no_reason_for_another_class():
    """However many rows there are: standard errors vanish, the tie does not."""
    sure = evidence({2: -2.1, 3: -2.0008, 4: -2.0, 5: -2.1}, rank=3, error=1e-6)
    assert decide(sure).n_classes == 3
    worse = evidence({2: -2.1, 3: -2.0012, 4: -2.0, 5: -2.1}, rank=3, error=1e-6)
    assert decide(worse).n_classes == 4


def test_all_domains_used_up_is_said():
    decision = decide(evidence({2: -1.0, 3: -0.8}, rank=3, n_domains=3))
    assert decision.n_classes == 3
    assert "with 3 domains" in decision.sentence


def test_gain_within_chance_is_no_signal():
    near_nothing = -np.log(10) + 0.012
    unseen = evidence({2: near_nothing, 3: -2.4}, rank=2, visible=False)
    assert not decide(unseen).signal
    seen = evidence({2: near_nothing, 3: -2.4}, rank=2, visible=True)
    assert decide(seen).signal


# ---- parts -----------------------------------------------------------------------


def test_smoothing_bounds_the_cost_of_one_row():
    score = HeldOut(np.array([-700.0, -1.0]), np.full(2, 0.5))
    smoothed = smooth(score, n_domains=4)
    assert_allclose(smoothed.each, np.log(0.5 * np.exp(score.each) + 0.5 / 4))


def test_solution_with_one_class_more_helps_the_next(seed):
    # from what folds found with k + 1, two merged, k is never worse than without
    X, domains = clouds(5, seed, separation=0.8)
    rows = training_rows(X, domains)
    curve = make_curve(rows, 5, 6, SearchOptions(), np.random.default_rng(seed))
    alone, above = curve.race(5), curve.race(6)
    assert curve.race(5, above).mean >= alone.mean
    assert {len(fit.weights) for fit in curve._merged(above.fits)} == {5}
    assert curve.fit(alone).objective <= alone.fits[0].objective + 1
    assert_allclose(baseline(curve.problem).mean, -np.log(10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_classes": [1, 2]}, "n_classes must be whole numbers from 2, got 1"),
        ({"n_classes": [2.5]}, "n_classes must be whole numbers from 2, got 2.5"),
        ({"n_classes": []}, "n_classes must be whole numbers from 2, got none"),
        ({"n_folds": 1}, "n_folds must be a whole number from 2, got 1"),
        ({"n_resamples": -1}, "n_resamples must be a whole number from 0, got -1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        choose_n_classes(PENGUINS.X, PENGUINS.domains, **arguments)


@pytest.mark.parametrize("case", ["six rows", "thin domains", "outlier", "equal rows"])
def test_difficult_tables_get_an_answer(case):
    rng = np.random.default_rng(0)
    wild = np.vstack([rng.normal(size=(99, 2)), [1e9, 0]])
    thin = np.r_[np.repeat([0, 1, 2], 19), 3, 3, 4]
    X, domains = {
        "six rows": (rng.normal(size=(6, 2)), np.repeat([0, 1], 3)),
        "thin domains": (rng.normal(size=(60, 3)), thin),
        "outlier": (wild, np.tile([0, 1], 50)),
        "equal rows": (np.repeat(np.eye(3), 20, axis=0), np.tile([0, 1], 30)),
    }[case]
    choice = choose_n_classes(X, domains, random_state=0)
    assert choice.n_classes is None
    assert np.isfinite(choice.held_out).all()
