"""A new domain may hold a class that nobody has seen."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal
from shoal import DDFA, DiscreteMixture, DomainMixture
from shoal.analysis._unknown import (
    NOT_KNOWN,
    SETTINGS,
    Strangers,
    UnknownShare,
    draw_classes,
)
from shoal.datasets import make_latent_shift
from shoal.density import DensityMixture

N_KNOWN = 4
ESTIMATORS = {
    "domains": lambda: DomainMixture(N_KNOWN, by="shift", search=False, random_state=0),
    "density": lambda: DensityMixture(N_KNOWN, random_state=0),
    "stages": lambda: DDFA(
        N_KNOWN, discriminator="logistic", cross_fit=2, random_state=0
    ),
}


@pytest.fixture(scope="module", params=ESTIMATORS)
def problem(request):
    """Five classes far apart, and a model of four of them."""
    return left_out(ESTIMATORS[request.param](), separation=3.0)


def left_out(model, separation):
    bunch = make_latent_shift(
        2500,
        n_classes=N_KNOWN + 1,
        n_domains=8,
        n_features=6,
        separation=separation,
        random_state=3,
        return_bunch=True,
    )
    known = bunch.labels < N_KNOWN
    return bunch, model.fit(bunch.X[known], bunch.domains[known])


def new_domain(bunch, share, n_rows, seed):
    """Rows of a domain with that share of the class that was left out."""
    rng = np.random.default_rng(seed)
    mix = [*(1 - share) * rng.dirichlet(np.ones(N_KNOWN)), share]
    labels = np.repeat(np.arange(N_KNOWN + 1), rng.multinomial(n_rows, mix))
    return bunch.problem.world.sample(labels, np.zeros(n_rows, dtype=int), rng)


def test_the_share_of_a_class_left_out_is_found(problem):
    bunch, model = problem
    for seed, share in enumerate((0.1, 0.3, 0.6)):
        rows = new_domain(bunch, share, 800, seed)
        unknown = model.adapt(rows, random_state=0).unknown
        assert unknown.low <= share <= unknown.high
        assert unknown.low <= unknown.share <= unknown.high
        if isinstance(model, DDFA):  # its classes are rough: it may not see, nor deny
            assert unknown.verdict != "negligible"
        else:
            assert unknown.verdict == "present"
            assert unknown.low > share / 3


def test_known_classes_alone_seldom_raise_an_alarm(problem):
    # nominal: one domain in twenty at most
    bunch, model = problem
    found = [
        model.adapt(new_domain(bunch, 0.0, 300, [7, seed]), random_state=0).unknown
        for seed in range(30)
    ]
    assert np.mean([one.verdict == "present" for one in found]) <= 0.14
    assert max(one.low for one in found) < 0.03


def test_zero_is_not_claimed_of_what_cannot_be_seen():
    # clouds on top of one another: a class left out looks like those that remain
    bunch, model = left_out(ESTIMATORS["domains"](), separation=0.5)
    unknown = model.adapt(new_domain(bunch, 0.0, 800, 1), random_state=0).unknown
    assert unknown.verdict == "cannot tell"
    assert unknown.high == 1
    assert unknown.power < SETTINGS.least_power
    assert "up to 100% could be there unseen" in str(unknown)


def strangers(known, unknown, n_quantiles=101):
    known, unknown = np.atleast_2d(known), np.atleast_2d(unknown)
    quantiles = np.tile(np.linspace(0, 1, n_quantiles), (len(known), 1))
    rows = np.full(len(known), 1e9)
    return Strangers(quantiles, known, unknown, rows, np.zeros(known.shape[1]))


LEVELS = np.array(SETTINGS.levels)


def test_the_share_solves_its_equation():
    known = np.tile(LEVELS, (3, 1))
    unknown = np.clip(known + 0.6, 0, 0.9)
    record = strangers(known, unknown)
    for share in (0.0, 0.25, 1.0):
        rejected = (1 - share) * known[0] + share * unknown[0]
        found = record.share(rejected, 10**9, np.full(3, 1 / 3), 0.9)
        assert_allclose(found.share, share, atol=1e-6)
        # all classes left out are alike, so that the hardest is the usual one
        assert_allclose(found.high, share, atol=1e-3)


def test_the_hardest_class_ends_the_interval():
    known = np.tile(LEVELS, (4, 1))
    alike, unlike = np.full_like(known, 0.9), np.full_like(known, 0.9)
    unlike[0] = 0.6
    rejected, mix = LEVELS + 0.05, np.full(4, 0.25)
    same = strangers(known, alike).share(rejected, 10**6, mix, 0.9)
    hard = strangers(known, unlike).share(rejected, 10**6, mix, 0.9)
    assert hard.high > same.high
    assert hard.power < 0.6 < same.power


def test_few_rows_make_wide_intervals_and_levels_nest():
    record = strangers(np.tile(LEVELS, (3, 1)), np.full((3, len(LEVELS)), 0.9))
    mix, rejected = np.full(3, 1 / 3), LEVELS + 0.2
    wide, narrow = (record.share(rejected, n, mix, 0.9) for n in (20, 2000))
    assert wide.low < narrow.low < narrow.high < wide.high
    sure = record.share(rejected, 20, mix, 0.99)
    assert sure.low <= wide.low < wide.high <= sure.high


@pytest.mark.parametrize("n_told", [0, 1])
def test_one_class_tells_nothing_of_the_next(n_told):
    unknown = np.full((2, len(LEVELS)), np.nan)
    unknown[:n_told] = 0.9
    record = strangers(np.tile(LEVELS, (2, 1)), unknown)
    found = record.share(LEVELS, 1000, np.full(2, 0.5), 0.9)
    assert (found.low, found.high, found.verdict) == (0, 1, "cannot tell")
    assert found.level == 0.9


def test_rejection_is_by_the_strangeness_within_classes(seed):
    rng = np.random.default_rng(seed)
    record = strangers(np.tile(LEVELS, (2, 1)), np.full((2, len(LEVELS)), 0.9))
    record = replace(record, quantiles=np.sort(rng.random((2, 101)), axis=1))
    novelty, given = rng.random(50), rng.dirichlet(np.ones(2), 50)
    found = record.rejected(novelty, given)
    for row, (value, classes) in enumerate(zip(novelty, given, strict=True)):
        below = [min((one < value).sum() / 100, 1) for one in record.quantiles]
        assert_array_equal(found[row], 1 - classes @ below <= LEVELS)


def test_classes_are_drawn_with_their_probabilities(seed):
    given = np.tile([0.2, 0.0, 0.8], (4000, 1))
    drawn = draw_classes(given, np.random.default_rng(seed))
    assert_allclose(np.bincount(drawn, minlength=3) / 4000, [0.2, 0, 0.8], atol=0.03)


def test_the_order_and_the_merging_of_classes_change_nothing(problem):
    bunch, model = problem
    rows = new_domain(bunch, 0.2, 300, 5)
    expected = model.adapt(rows, random_state=0).unknown
    assert model.merge(0, 1).adapt(rows, random_state=0).unknown == expected
    record = model._strangers()
    order = np.array([2, 0, 3, 1])
    given = model.predict_proba(rows)
    novelty = model._novelty(model._check_rows(rows))
    mix = model.prevalence_[0]
    for one, columns in ((record, np.arange(4)), (record.take(order), order)):
        rejected = one.rejected(novelty, given[:, columns]).mean(axis=0)
        found = one.share(rejected, 300, mix[columns], 0.9)
        if one is record:
            first = found
    assert_allclose(
        [found.share, found.low, found.high], [first.share, first.low, first.high]
    )


def test_a_saved_model_knows_as_much(problem, tmp_path):
    bunch, model = problem
    rows = new_domain(bunch, 0.2, 200, 6)
    shoal.save(model, tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    for level in (0.5, 0.9):
        one, two = (
            each.adapt(rows, level=level, random_state=0).unknown
            for each in (model, loaded)
        )
        assert one == two
        assert one.level == level


def test_models_without_a_record_cannot_tell():
    bunch, model = left_out(ESTIMATORS["domains"](), separation=3.0)
    model.novelty_ = replace(model.novelty_, strangers=None)  # as older ones are
    assert model.adapt(bunch.X[:50], random_state=0).unknown is NOT_KNOWN
    words = np.random.default_rng(0).integers(1, 20, (4, 6))
    bags = DiscreteMixture(2, input="counts", random_state=0).fit(words)
    unknown = bags.adapt(words[:1], random_state=0).unknown
    assert unknown.verdict == "cannot tell"
    assert str(unknown).endswith("cannot be told of this model.")


@pytest.mark.parametrize(
    ("numbers", "verdict", "sentence"),
    [
        (
            (0.2, 0.08, 0.4),
            "present",
            "At least 8.0% of the rows belong to no known class: about 20%, up to 40%.",
        ),
        (
            (np.nan, 0.08, 1.0),
            "present",
            "At least 8.0% of the rows belong to no known class: up to 100%.",
        ),
        (
            (0.0, 0.0, 0.02),
            "negligible",
            "No sign of rows outside of the known classes: at most 2.0%.",
        ),
        (
            (0.0, 0.0, 0.3),
            "cannot tell",
            "Rows outside of the known classes were not seen, but up to 30% could be "
            "there unseen: a new class may look like a known one.",
        ),
    ],
)
def test_what_is_said(numbers, verdict, sentence):
    unknown = UnknownShare(*numbers, level=0.9, power=0.5)
    assert unknown.verdict == verdict
    assert str(unknown) == sentence
