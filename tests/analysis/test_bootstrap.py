import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from shoal import DDFA, DiscreteMixture, DomainMixture
from shoal._work import listening
from shoal.analysis._resample import (
    Resample,
    Resampler,
    draw_rows,
    proportions_resampler,
)
from shoal.base import LatentShiftEstimator
from shoal.datasets import make_latent_shift
from shoal.exceptions import IdentifiabilityWarning
from shoal.likelihood._problem import MixtureProblem, optimize
from shoal.mixture import _fitted
from shoal.mixture._fitted import MixtureRefit
from shoal.probability import match_rows, normalize_rows
from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.factorize import Factorizer
from shoal.validation._rows import canonical_rows
from support.data import fitted_clouds


@pytest.fixture(scope="module")
def clouds():
    """Three well separated classes in five domains of unequal size, and a fit."""
    return fitted_clouds(
        1500,
        n_classes=3,
        n_domains=5,
        n_features=4,
        separation=2.5,
        alpha=1.0,
        domain_sizes=[1, 2, 3, 4, 5],
    )


@pytest.fixture(scope="module")
def intervals(clouds):
    bunch, model = clouds
    return model.bootstrap(bunch.X, bunch.domains, n_resamples=60, random_state=0)


def test_shapes_and_order(clouds, intervals):
    _, model = clouds
    assert_array_equal(intervals.prevalence, model.prevalence_)
    assert intervals.draws.shape == (60, 5, 3)
    assert_allclose(intervals.draws.sum(axis=2), 1)
    assert (intervals.low <= model.prevalence_).all()
    assert (model.prevalence_ <= intervals.high).all()
    assert_array_equal(intervals.n_rows, np.array([1, 2, 3, 4, 5]) * 100)


@pytest.mark.parametrize("weights", ["none", "whole", "shares"])
def test_rows_are_drawn_domain_by_domain(weights):
    rng = np.random.default_rng(0)
    codes = rng.permutation(np.repeat(np.arange(7), [1, 2, 3, 50, 8, 20, 5]))
    weight = {
        "none": None,
        "whole": rng.integers(1, 4, size=len(codes)).astype(float),
        "shares": rng.uniform(0.1, 2, size=len(codes)),
    }[weights]
    units = np.ones(len(codes), dtype=int)
    units = weight.astype(int) if weights == "whole" else units
    expected, generator = np.zeros(len(codes)), np.random.default_rng(1)
    for code in range(7):
        urn = np.repeat(np.flatnonzero(codes == code), units[codes == code])
        np.add.at(expected, urn[generator.integers(len(urn), size=len(urn))], 1)
    if weights == "shares":
        expected *= weight
    assert_array_equal(draw_rows(codes, np.random.default_rng(1), weight), expected)


def test_draws_spread_around_the_estimate(intervals):
    # classes are matched: no draw may sit at another class's prevalence
    assert_allclose(intervals.draws.mean(axis=0), intervals.prevalence, atol=0.03)


def test_separated_classes_give_binomial_spread(intervals):
    # With no doubt about any row, the only chance left is which rows were drawn.
    share = intervals.prevalence
    expected = np.sqrt(share * (1 - share) / intervals.n_rows[:, None])
    assert_allclose(intervals.draws.std(axis=0), expected, atol=0.015)


def test_true_prevalence_is_covered(clouds, intervals):
    bunch, model = clouds
    order = match_rows(bunch.domain_given_class, model.domain_given_class_)
    truth = bunch.prevalence
    inside = (intervals.low[:, order] <= truth) & (truth <= intervals.high[:, order])
    assert inside.mean() >= 0.8


def test_more_rows_give_narrower_intervals(intervals):
    width = (intervals.high - intervals.low).mean(axis=1)
    assert width[0] > width[-1]


def test_rows_in_doubt_change_class_more_often(clouds, intervals):
    bunch, model = clouds
    sure = model.predict_proba(bunch.X, bunch.domains).max(axis=1)
    assert ((intervals.co_assignment >= 0) & (intervals.co_assignment <= 1)).all()
    assert intervals.co_assignment[sure > 0.999].mean() > 0.99
    doubtful = intervals.co_assignment[sure < 0.8]
    assert len(doubtful) == 0 or doubtful.mean() < 0.97


def test_result_does_not_depend_on_the_number_of_threads(clouds):
    bunch, model = clouds
    one, two = (
        model.bootstrap(
            bunch.X, bunch.domains, n_resamples=6, n_jobs=n_jobs, random_state=3
        )
        for n_jobs in (1, 2)
    )
    assert_array_equal(one.draws, two.draws)
    assert_array_equal(one.co_assignment, two.co_assignment)


@pytest.mark.filterwarnings("ignore::shoal.exceptions.CollapseWarning")
def test_resamples_that_may_end_elsewhere_look_for_their_own(clouds, seed):
    """Domains hardly differ: the fit is one of many, and the intervals say so."""
    bunch, model = clouds
    assert not MixtureRefit(model, bunch.X, bunch.domains).doubtful
    X, domains, _ = make_latent_shift(
        300, kind="no_shift", n_classes=3, n_domains=4, n_features=4, random_state=seed
    )
    with pytest.warns(IdentifiabilityWarning, match="nothing to learn from"):
        lost = DomainMixture(3, search=False, random_state=0).fit(X, domains)
    refit = MixtureRefit(lost, X, domains)
    assert refit.doubtful
    wide = lost.bootstrap(X, domains, n_resamples=20, random_state=0)
    refit.doubtful = False
    near = [refit(np.random.default_rng(s)).prevalence for s in range(20)]
    assert wide.draws.std(axis=0).mean() > 1.3 * np.std(near, axis=0).mean()


def test_of_many_rows_a_sample_scatters_like_all_of_them(monkeypatch, seed):
    """Steps of m rows, shrunk by sqrt(m / n), have the variance of refits to all n."""
    X, domains, _ = make_latent_shift(
        8_000,
        n_classes=3,
        n_domains=4,
        n_features=4,
        separation=1.5,
        domain_sizes=[1, 4, 8, 12],
        random_state=seed,
    )
    model = DomainMixture(3, search=False, random_state=0).fit(X, domains)
    ask = {"n_resamples": 60, "random_state": 0}
    whole = model.bootstrap(X, domains, **ask)
    monkeypatch.setattr(
        _fitted, "SETTINGS", replace(_fitted.SETTINGS, refit_rows=2_000)
    )
    part = model.bootstrap(X, domains, **ask)
    ratio = part.draws.std(axis=0).mean() / whole.draws.std(axis=0).mean()
    assert 0.75 < ratio < 1.35  # unshrunk it would be 2
    assert_allclose(part.draws.sum(axis=2), 1)
    assert_allclose(part.co_assignment.mean(), whole.co_assignment.mean(), atol=0.02)
    order = np.random.default_rng(1).permutation(len(X))
    again = model.bootstrap(X[order], domains[order], **ask)
    assert_allclose(again.draws, part.draws)
    assert_array_equal(again.co_assignment, part.co_assignment[order])


@pytest.mark.filterwarnings("ignore::shoal.exceptions.ShoalWarning")
def test_a_fit_in_doubt_is_refitted_to_all_rows(monkeypatch):
    X, domains, _ = make_latent_shift(
        600, kind="no_shift", n_classes=3, n_domains=4, n_features=4, random_state=0
    )
    lost = DomainMixture(3, search=False, random_state=0).fit(X, domains)
    whole = lost.bootstrap(X, domains, n_resamples=4, random_state=0)
    monkeypatch.setattr(_fitted, "SETTINGS", replace(_fitted.SETTINGS, refit_rows=300))
    again = lost.bootstrap(X, domains, n_resamples=4, random_state=0)
    assert_array_equal(again.draws, whole.draws)


def test_weights_are_a_copy_of_the_rows(clouds):
    """A resample by whole-number weights is the fit of the repeated rows."""
    bunch, model = clouds
    codes = bunch.domains
    found = MixtureRefit(model, bunch.X, codes)(np.random.default_rng(4))
    # the same draws, spelled out
    generator = np.random.default_rng(4)
    rows = []
    order = canonical_rows(model.features_.scaled(bunch.X), codes)
    for code in range(5):
        own = order[codes[order] == code]
        rows.append(own[np.sort(generator.integers(len(own), size=len(own)))])
    drawn = np.concatenate(rows)
    size = np.bincount(codes)
    problem = MixtureProblem(
        model.features_.transform(bunch.X[drawn]),
        codes[drawn],
        0.2 / size[codes[drawn]],
        5,
    )
    start = model.weights_, model.domain_given_class_, model.penalties_
    fit = optimize(problem, *start, max_iter=60, tol=1e-7)
    joint = problem.class_given_x(fit.weights) * fit.domain_given_class.T[codes[drawn]]
    posterior = normalize_rows(joint)
    expected = [posterior[codes[drawn] == code].mean(axis=0) for code in range(5)]
    assert_allclose(found.prevalence, expected, atol=1e-3)


def test_order_of_rows_only_moves_their_scores(clouds):
    bunch, model = clouds
    order = np.argsort(bunch.domains, kind="stable")
    straight, sorted_ = (
        model.bootstrap(X, d, n_resamples=5, random_state=0)
        for X, d in (
            (bunch.X, bunch.domains),
            (bunch.X[order], bunch.domains[order]),
        )
    )
    assert_allclose(straight.draws, sorted_.draws, atol=1e-6)
    assert_allclose(straight.co_assignment[order], sorted_.co_assignment)


def test_difference_is_antisymmetric_and_zero_with_itself(intervals):
    there, back = intervals.difference(4, 1), intervals.difference(1, 4)
    assert_allclose(there.estimate, intervals.prevalence[4] - intervals.prevalence[1])
    assert_allclose(there.low, -back.high)
    assert (there.low <= there.estimate).all()
    assert (there.estimate <= there.high).all()
    assert_allclose(intervals.difference(2, 2).estimate, 0)


def test_difference_of_an_unknown_domain(intervals):
    with pytest.raises(ValueError, match="fit has not seen"):
        intervals.difference(0, "nowhere")


def test_table(clouds):
    bunch, model = clouds
    names = np.array(list("abcde"))[bunch.domains]
    model = DomainMixture(3, search=False, random_state=0).fit(bunch.X, names)
    table = (
        model.set_names(["x", "y", "z"])
        .bootstrap(bunch.X, names, n_resamples=3, random_state=0)
        .to_pandas()
    )
    assert table.shape == (15, 8)
    cell = table[(table["domain"] == "b") & (table["class_name"] == "z")]
    assert_allclose(cell["estimate"], model.prevalence_[1, 2])
    assert cell["n_rows"].item() == 200


def test_level(clouds):
    bunch, model = clouds
    narrow, wide = (
        model.bootstrap(
            bunch.X, bunch.domains, n_resamples=5, level=level, random_state=0
        )
        for level in (0.5, 0.95)
    )
    assert_array_equal(narrow.draws, wide.draws)
    assert (wide.high - wide.low >= narrow.high - narrow.low).all()


@pytest.mark.parametrize("factorizer", ["spa", "em"])
def test_ddfa(clouds, factorizer):
    bunch, _ = clouds
    model = DDFA(
        3, discriminator="logistic", factorizer=factorizer, cross_fit=2, random_state=0
    ).fit(bunch.X, bunch.domains)
    found = model.bootstrap(bunch.X, bunch.domains, n_resamples=20, random_state=0)
    assert_allclose(found.draws.mean(axis=0), model.prevalence_, atol=0.1)
    assert found.co_assignment.mean() > 0.8
    again = model.bootstrap(
        bunch.X, bunch.domains, n_resamples=20, n_jobs=2, random_state=0
    )
    assert_array_equal(found.draws, again.draws)


@pytest.fixture(scope="module")
def ddfa(clouds):
    bunch, _ = clouds
    return DDFA(3, discriminator="logistic", cross_fit=2, random_state=0).fit(
        bunch.X, bunch.domains
    )


def test_ddfa_knows_its_rows_in_any_order(clouds, ddfa):
    bunch, _ = clouds
    order = np.random.default_rng(0).permutation(len(bunch.X))
    straight, shuffled = (
        ddfa.bootstrap(X, domains, n_resamples=5, random_state=0)
        for X, domains in (
            (bunch.X, bunch.domains),
            (bunch.X[order], bunch.domains[order]),
        )
    )
    assert_array_equal(straight.draws, shuffled.draws)
    assert_array_equal(straight.co_assignment[order], shuffled.co_assignment)


def test_intervals_of_a_mixture_do_not_depend_on_the_order_of_rows(clouds):
    bunch, _ = clouds
    model = DomainMixture(3, search=False, random_state=0)
    model.fit(bunch.X, bunch.domains)
    order = np.random.default_rng(0).permutation(len(bunch.X))
    straight = model.bootstrap(bunch.X, bunch.domains, n_resamples=5, random_state=0)
    shuffled = model.bootstrap(
        bunch.X[order], bunch.domains[order], n_resamples=5, random_state=0
    )
    assert_allclose(straight.draws, shuffled.draws, atol=1e-12)
    assert_array_equal(straight.co_assignment[order], shuffled.co_assignment)


def test_ddfa_predicts_the_clusters_of_other_rows(clouds, ddfa):
    """As many rows as in fit, but not those: they are not taken for them."""
    bunch, _ = clouds
    mirrored = -bunch.X
    found = ddfa._resampler(mirrored, bunch.domains, None)
    clusters = ddfa.discretizer_.predict(ddfa.discriminator_.predict_proba(mirrored))
    log_prior = np.log(np.maximum(ddfa.prevalence_[bunch.domains], 1e-300))
    words = ddfa.factorization_.cluster_given_class[:, clusters].T
    expected = (np.log(np.maximum(words, 1e-300)) + log_prior).argmax(axis=1)
    assert_array_equal(found.classes, expected)
    half = ddfa.bootstrap(
        bunch.X[::2], bunch.domains[::2], n_resamples=5, random_state=0
    )
    assert half.co_assignment.shape == (750,)


class Unmoved:
    """In place of a generator: every row once, every count as often as expected."""

    def multinomial(self, size, share):
        return size[:, None] * share

    def integers(self, high, size=None):
        return 0 if size is None else np.arange(size)


@pytest.mark.parametrize("kind", ["mixture", "ddfa", "proportions"])
def test_a_resample_of_the_very_rows_moves_none(clouds, ddfa, kind):
    """Classes of fit and resample follow one rule: the same factors, the same class."""
    bunch, model = clouds
    estimator = ddfa if kind == "ddfa" else model
    found = estimator._resampler(bunch.X, bunch.domains, None)
    refit = found.refit
    if kind == "proportions":
        refit = proportions_resampler(estimator, bunch.X, bunch.domains).refit
    again = refit(Unmoved())
    assert_allclose(again.prevalence, estimator.prevalence_, atol=2e-3)
    assert np.mean(again.classes == found.classes) > 0.998


def test_ddfa_refits_with_the_options_of_its_factorizer(clouds):
    bunch, _ = clouds
    hasty = Factorizer(method="em", options={"max_iter": 1, "freeze": 0})
    model = DDFA(
        3,
        discriminator="logistic",
        discretizer=KMeansDiscretizer(9),
        factorizer=hasty,
        cross_fit=2,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(bunch.X, bunch.domains)
        refit = model._resampler(bunch.X, bunch.domains, None).refit
        again = refit(Unmoved()).prevalence
    assert_allclose(again, model.prevalence_, atol=1e-4)
    model.factorizer = "em"
    patient = model._resampler(bunch.X, bunch.domains, None).refit(Unmoved()).prevalence
    assert np.abs(patient - model.prevalence_).max() > 1e-3


def test_ddfa_without_clusters_keeps_its_classes(clouds):
    bunch, _ = clouds
    model = DDFA(
        3, discriminator="logistic", discretizer=None, cross_fit=2, random_state=0
    ).fit(bunch.X, bunch.domains)
    found = model.bootstrap(bunch.X, bunch.domains, n_resamples=5, random_state=0)
    assert_allclose(found.draws.sum(axis=2), 1)


def counts_table(seed):
    words = np.array([[0.9, 0.0, 0.1], [0.0, 0.6, 0.4]])
    prevalence = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    return np.random.default_rng(seed).multinomial(1000, prevalence @ words)


def test_documents_without_domains_resample_their_words(seed):
    counts = counts_table(seed)
    model = DiscreteMixture(2, input="counts", random_state=0).fit(counts)
    found = model.bootstrap(counts, n_resamples=30, random_state=0)
    assert_array_equal(found.n_rows, 1000)
    spread = found.draws.std(axis=0)
    assert (spread > 0.005).all()
    assert (spread < 0.06).all()


def test_rows_of_words_and_their_counts_agree(seed):
    counts = counts_table(seed)
    rows = np.concatenate([np.repeat(np.arange(3), row) for row in counts])[:, None]
    domains = np.repeat(np.arange(3), 1000)
    bags = DiscreteMixture(2, input="counts", random_state=0).fit(counts)
    single = DiscreteMixture(2, random_state=0).fit(rows, domains)
    one = bags.bootstrap(counts, n_resamples=5, random_state=1)
    two = single.bootstrap(rows, domains, n_resamples=5, random_state=1)
    assert_allclose(one.draws, two.draws, atol=1e-8)


class Fixed(LatentShiftEstimator):
    """Two classes, told apart by the sign of the first column."""

    def fit(self, X, y=None, *, domains=None):
        self.varying_ = np.ones(1, dtype=bool)
        self.n_features_in_ = 1
        positive = np.asarray(X)[:, 0] > 0
        share = [np.mean(positive[domains == d]) for d in (0, 1)]
        prevalence = np.array([[1 - s, s] for s in share])
        self._store(prevalence, np.arange(2), np.full(2, 0.5))
        return self

    def _class_given_x(self, X):
        return np.where(X[:, :1] > 0, [[0.0, 1.0]], [[1.0, 0.0]])


class Hooked(Fixed):
    def _resampler(self, X, codes, weight):
        def refit(generator):
            share = generator.uniform(size=(2, 1))
            prevalence = np.hstack([share, 1 - share])
            return Resample(prevalence, np.zeros(len(codes), dtype=int))

        return Resampler(self._posterior(X, codes, None).argmax(axis=1), refit)


def test_any_estimator_resamples_its_proportions(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 1)) + 0.3
    domains = np.repeat([0, 1], 200)
    model = Fixed().fit(X, domains=domains)
    refit = proportions_resampler(model, X, domains).refit
    draws = np.array([refit(np.random.default_rng(s)).prevalence for s in range(200)])
    expected = np.sqrt(model.prevalence_ * (1 - model.prevalence_) / 200)
    assert_allclose(draws.std(axis=0), expected, rtol=0.2)
    found = model.bootstrap(X, domains, n_resamples=10, random_state=0)
    assert_array_equal(found.co_assignment, 1)


def test_an_estimator_may_bring_its_own_refit(seed):
    X = np.random.default_rng(seed).normal(size=(40, 1))
    domains = np.repeat([0, 1], 20)
    model = Hooked().fit(X, domains=domains)
    found = model.bootstrap(X, domains, n_resamples=50, random_state=0)
    assert found.draws.std() > 0.2
    assert_allclose(found.co_assignment, (X[:, 0] <= 0).astype(float))


def test_merged_classes_are_resampled_as_their_parts(clouds):
    bunch, model = clouds
    merged = model.merge(0, 2)
    parts, whole = (
        one.bootstrap(bunch.X, bunch.domains, n_resamples=5, random_state=0)
        for one in (model, merged)
    )
    for index, group in enumerate(merged.groups):
        together = parts.draws[:, :, list(group)].sum(axis=2)
        assert_allclose(whole.draws[:, :, index], together)
    assert (whole.co_assignment >= parts.co_assignment).all()
    assert whole.difference(0, 1).estimate.shape == (2,)


@pytest.mark.filterwarnings("ignore::shoal.exceptions.CollapseWarning")
def test_intervals_hold_how_far_looks_and_shift_differ(seed):
    """Squared differences of other fits are added to the variance of the resamples."""
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=5, n_features=3, separation=1.5, random_state=seed
    )
    model = DomainMixture(3, random_state=seed).fit(X, domains)
    route, table = model.route_, np.zeros((2, 5, 3))
    for which, classes in enumerate((model.labels_, route.other_labels)):
        np.add.at(table[which], (domains, classes), 1)
    shares = table / table.sum(axis=2, keepdims=True)
    assert_allclose(route.apart, shares[1] - shares[0], atol=1e-12)
    assert np.abs(route.apart).max() > 0

    def draw(fitted):
        return fitted.bootstrap(X, domains, n_resamples=20, random_state=seed)

    both = draw(model)
    assert_allclose(both.draws.sum(axis=2), 1)
    assert_array_equal(model._in_doubt(X, domains)[0], route.apart)
    third = model._in_doubt(X, domains)[1]  # looks with two Gaussians a class
    assert_allclose(third.sum(axis=1), 0, atol=1e-12)
    sure = copy.copy(model)
    sure._in_doubt = lambda X, codes: []
    plain = draw(sure)
    for turn in range(20):
        for domain in range(5):
            row = plain.draws[turn, domain]
            row = row + (1 if turn % 2 else -1) * route.apart[domain]
            row = row + (1 if turn // 2 % 2 else -1) * third[domain]
            row = np.minimum(np.maximum(row, 0), 1)
            assert_allclose(both.draws[turn, domain], row / row.sum(), atol=1e-12)
    assert (both.high - both.low).mean() > (plain.high - plain.low).mean()
    # of merged classes, what the parts differ by adds up
    merged = model.merge(0, 1)
    for doubt in merged._in_doubt(X, domains):
        assert_allclose(merged._add_up(doubt).sum(axis=1), 0, atol=1e-12)
    assert draw(merged).draws.shape == (20, 5, 2)


@pytest.mark.parametrize("n_resamples", [0, 1, 2.5, True])
def test_number_of_resamples_is_checked(clouds, n_resamples):
    bunch, model = clouds
    with pytest.raises(ValueError, match="n_resamples must be a whole number from 2"):
        model.bootstrap(bunch.X, bunch.domains, n_resamples=n_resamples)


# ---- weights ---------------------------------------------------------------------


def test_whole_weights_are_copies_of_rows(clouds):
    bunch, _ = clouds
    X, domains = bunch.X[::3], bunch.domains[::3]
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    copies = np.repeat(np.arange(len(X)), weight)
    model = DomainMixture(3, search=False, random_state=0)
    weighted = model.fit(X, domains, sample_weight=weight).bootstrap(
        X, domains, sample_weight=weight, n_resamples=5, random_state=0
    )
    copied = model.fit(X[copies], domains[copies]).bootstrap(
        X[copies], domains[copies], n_resamples=5, random_state=0
    )
    assert_array_equal(weighted.n_rows, copied.n_rows)
    assert_allclose(weighted.draws, copied.draws, atol=1e-6)
    assert_allclose(weighted.low, copied.low, atol=1e-6)
    assert_allclose(weighted.co_assignment[copies], copied.co_assignment)


@pytest.mark.parametrize("whole", [True, False])
def test_ddfa_draws_its_table_with_the_weights(clouds, ddfa, whole):
    bunch, plain = clouds
    heavy, light = (3, 1) if whole else (2.5, 0.7)
    weight = np.where(plain.labels_ == 0, heavy, light)
    model = DDFA(3, discriminator="logistic", cross_fit=2, random_state=0)
    model.fit(bunch.X, bunch.domains, sample_weight=weight)
    found = model.bootstrap(
        bunch.X, bunch.domains, sample_weight=weight, n_resamples=30, random_state=0
    )
    assert_allclose(found.draws.mean(axis=0), model.prevalence_, atol=0.1)
    assert np.abs(model.prevalence_[0, 0] - ddfa.prevalence_[0, 0]) > 0.15
    if whole:
        assert_array_equal(found.n_rows, np.bincount(bunch.domains, weight))


def test_weights_move_the_draws_with_the_estimate(clouds):
    bunch, plain = clouds
    weight = np.where(plain.labels_ == 0, 2.5, 0.7)
    model = DomainMixture(3, search=False, random_state=0)
    model.fit(bunch.X, bunch.domains, sample_weight=weight)
    found = model.bootstrap(
        bunch.X, bunch.domains, sample_weight=weight, n_resamples=40, random_state=0
    )
    assert np.abs(model.prevalence_ - plain.prevalence_).max() > 0.1
    assert_allclose(found.draws.mean(axis=0), model.prevalence_, atol=0.03)
    total, square = (np.bincount(bunch.domains, w) for w in (weight, weight**2))
    assert_array_equal(found.n_rows, (total**2 / square).astype(int))
    assert (found.n_rows < np.bincount(bunch.domains)).all()


def test_weights_of_fit_are_asked_for(clouds):
    bunch, plain = clouds
    weight = np.full(len(bunch.X), 1.5)
    model = DomainMixture(3, search=False, random_state=0)
    model.fit(bunch.X, bunch.domains, sample_weight=weight)
    for asked in (model, model.merge(0, 1)):
        with pytest.raises(ValueError, match="fit was given weights; pass the same"):
            asked.bootstrap(bunch.X, bunch.domains)
    with pytest.raises(ValueError, match="must be None: fit was not given weights"):
        plain.bootstrap(bunch.X, bunch.domains, sample_weight=weight)
    with pytest.raises(ValueError, match="one entry per row"):
        model.bootstrap(bunch.X, bunch.domains, sample_weight=weight[1:])


def test_bad_domains(clouds):
    bunch, model = clouds
    with pytest.raises(ValueError, match="domains must be passed"):
        model.bootstrap(bunch.X)
    some = bunch.domains != 3
    with pytest.raises(ValueError, match="domains has no rows of"):
        model.bootstrap(bunch.X[some], bunch.domains[some])
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.bootstrap(bunch.X, bunch.domains, level=2)


def test_resamples_are_counted():
    X, domains, _ = make_latent_shift(
        300, n_classes=2, n_domains=3, separation=3.0, random_state=1
    )
    model = DomainMixture(2, search=False, by="shift", random_state=0)
    model.fit(X, domains)
    told: list[float] = []
    with listening(told.append):
        model.bootstrap(X, domains, n_resamples=4, random_state=0)
    assert told == [0.25, 0.5, 0.75, 1.0]
