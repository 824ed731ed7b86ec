"""Updates: classes stay, mixes learn, what has changed is said, and no more."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import shoal
from shoal.analysis._before import learn_looks
from shoal.analysis._difference import NUMBERS
from shoal.base._derived import UpdatedMixes
from shoal.datasets import load_penguins, make_latent_shift
from shoal.metrics import matched_accuracy

N_CLASSES = 3  # and a fourth, which the fit has not seen
NAMES = ["Adelie", "Gentoo", "Chinstrap"]


class World:
    """A problem, the rows of a fit, and new rows of the same classes."""

    def __init__(self):
        self.bunch = make_latent_shift(
            2400,
            n_classes=N_CLASSES + 1,
            n_domains=5,
            n_features=4,
            separation=3.0,
            random_state=3,
            return_bunch=True,
        )
        known = self.bunch.labels < N_CLASSES
        self.X, self.domains = self.bunch.X[known], self.bunch.domains[known]
        labels = self.bunch.labels[known]
        counts = [np.bincount(labels[self.domains == d], minlength=3) for d in range(5)]
        self.mixes = np.array(counts) / np.sum(counts, axis=1, keepdims=True)

    @property
    def before(self):
        return self.X, self.domains

    def sample(self, mix, n_rows, seed=0):
        rng = np.random.default_rng(seed)
        labels = rng.choice(len(mix), n_rows, p=mix)
        code = np.zeros(n_rows, dtype=int)
        return self.bunch.problem.world.sample(labels, code, rng), labels


@pytest.fixture(scope="module")
def world():
    return World()


@pytest.fixture(scope="module")
def shift(world):
    model = shoal.DomainMixture(N_CLASSES, by="shift", search=False, random_state=0)
    return model.fit(*world.before).set_names(NAMES)


@pytest.fixture(scope="module")
def looks(world):
    model = shoal.DensityMixture(
        N_CLASSES, covariance="diag", tail=np.inf, n_init=5, random_state=0
    )
    return model.fit(*world.before).set_names(NAMES)


MODELS = ["shift", "looks"]


@pytest.mark.parametrize("name", MODELS)
def test_the_same_rows_again_keep_everything(name, world, request):
    """The refit of the mixes from the present fit, and nothing is said."""
    model = request.getfixturevalue(name)
    found = shoal.update(model, *world.before, before=world.before)
    assert str(found) == "Nothing has changed."
    assert found.findings == []
    after = found.model
    assert_array_equal(after.domains_, model.domains_)
    assert after.class_names_ == NAMES
    # but for the pseudo-counts of the fit
    assert_allclose(after.prevalence_, model.prevalence_, atol=0.02)
    for code, one in enumerate(found.domains):  # EM from the present fit, by hand
        X, mix = world.X[world.domains == code], model.prevalence_[code]
        for _ in range(50):
            mix = model.predict_proba(X, prevalence=mix / mix.sum()).mean(axis=0)
        assert_allclose(one.found, mix, atol=5e-3)
    same = after.predict(*world.before) == model.predict(*world.before)
    assert same.mean() > 0.999
    twice = [one.n_rows + one.n_before for one in found.domains]
    assert_array_equal(twice, 2 * np.bincount(world.domains))


@pytest.mark.parametrize("name", MODELS)
def test_rows_and_domains_join(name, world, request):
    model = request.getfixturevalue(name)
    old, _ = world.sample(world.mixes[1], 300)
    new, labels = world.sample([0.2, 0.1, 0.7], 500, seed=1)
    X, domains = np.vstack([old, new]), np.repeat([1, 9], [300, 500])
    found = shoal.update(model, X, domains, before=world.before)
    assert found.findings == ["New domain 9, with 500 rows."]
    assert (found.new_class, found.looks_known) == (None, True)
    after = found.model
    assert_array_equal(after.domains_, [0, 1, 2, 3, 4, 9])
    # other domains are as they were; a known one is the mean of then and now
    others = [0, 2, 3, 4]
    assert_array_equal(after.prevalence_[others], model.prevalence_[others])
    first, second = found.domains
    n_then = int((world.domains == 1).sum())
    expected = (n_then * model.prevalence_[1] + 300 * first.found) / (n_then + 300)
    assert_allclose(after.prevalence_[1], expected)
    # that of the new domain is what `adapt` says, and its rows are classed by it
    adapted = model.adapt(new, random_state=0)
    assert_allclose(second.found, adapted.prevalence, atol=1e-3)
    assert_allclose(after.prevalence_[-1], second.found)
    truth = np.bincount(labels, minlength=3) / 500
    assert matched_accuracy(labels, after.predict(new, 9)) > 0.97
    assert_allclose(np.sort(second.prevalence), np.sort(truth), atol=0.03)
    assert (second.low <= second.prevalence).all()
    assert (second.prevalence <= second.high).all()
    # and the algebra of the contract holds
    assert_allclose(after.domain_given_class_.sum(axis=1), 1)
    assert_allclose(after.domain_weight_.sum(), 1)
    here, there = (after.predict_proba(new[:1], domain)[0] for domain in (9, 1))
    moved = there * after.prevalence_[-1] / after.prevalence_[1]
    assert_allclose(here, moved / moved.sum(), atol=1e-9)


def test_one_update_after_the_other(world, shift, tmp_path):
    """A second update, a file, names, merges: all as of the model below."""
    rows = [
        world.sample(mix, 200, seed=2)[0] for mix in ([0.5, 0.3, 0.2], [0.1, 0.1, 0.8])
    ]
    first = shoal.update(shift, rows[0], 7).model
    second = shoal.update(first, rows[1], 8).model
    assert_array_equal(second.domains_, [0, 1, 2, 3, 4, 7, 8])
    assert isinstance(second, UpdatedMixes)
    assert second.estimator is first.estimator
    both = shoal.update(shift, np.vstack(rows), np.repeat([7, 8], 200)).model
    assert_allclose(second.prevalence_, both.prevalence_, atol=1e-9)
    shoal.save(second, tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    expected = second.predict_proba(*world.before)
    assert_array_equal(loaded.predict_proba(*world.before), expected)
    assert loaded.class_names_ == NAMES
    adapted = loaded.adapt(rows[0], random_state=0).as_domain(11)
    assert_allclose(adapted.predict_proba(*world.before), expected, atol=1e-9)
    assert_allclose(adapted.prevalence_[-1], first.prevalence_[-1], atol=1e-3)
    merged = shift.merge(0, 1)
    after = shoal.update(merged, rows[0], 7).model
    assert after.class_names_ == merged.class_names_
    assert_allclose(after.prevalence_, first.prevalence_ @ merged._sum, atol=1e-9)
    assert_allclose(
        after.predict_proba(rows[0], 7), first.predict_proba(rows[0], 7) @ merged._sum
    )
    assert str(second.explain(rows[0][0], 8)).startswith(tuple(NAMES))
    with pytest.raises(ValueError, match="an updated model cannot be fitted"):
        second.fit(*world.before)


def test_a_drift_of_densities_stays_with_its_domains(world):
    X = world.X + 0.4 * (world.domains == 2)[:, None]
    model = shoal.DensityMixture(
        3, covariance="diag", tail=np.inf, drift=True, n_init=3, random_state=0
    ).fit(X, world.domains)
    new, _ = world.sample(world.mixes[0], 200)
    after = shoal.update(model, new, 9).model
    assert_allclose(
        after.predict_proba(X, world.domains), model.predict_proba(X, world.domains)
    )


@pytest.mark.parametrize("name", MODELS)
def test_a_new_class_joins_when_it_is_there(name, world, request):
    model = request.getfixturevalue(name)
    X, labels = world.sample([0.3, 0.2, 0.2, 0.3], 600, seed=4)
    domains = np.repeat([8, 9], 300)
    found = shoal.update(model, X, domains, before=world.before)
    assert found.new_class == "c3"
    after = found.model
    assert after.class_names_ == [*NAMES, "c3"]  # ids and names survive
    kept = after.predict(*world.before) == model.predict(*world.before)
    assert kept.mean() > 0.97
    classes = after.predict(X, domains)
    assert matched_accuracy(labels, classes) > 0.95
    assert np.mean((classes == 3) == (labels == 3)) > 0.95
    assert after.prevalence_[:5, 3].max() < 0.03
    for one in found.domains:
        truth = np.mean(labels[domains == one.name] == 3)
        assert_allclose(one.found[3], truth, atol=0.05)
    assert found.findings[0].startswith('New class "c3": ')
    assert all(one.unknown.low > 0 for one in found.domains)
    # without the rows of the fit it is said, and does not join
    said = shoal.update(model, X, domains)
    assert said.new_class is None
    assert said.model.n_classes_ == 3
    assert "A class more needs a fit, with the rows of then and now." in str(said)
    merged = shoal.update(model.merge(0, 1), X, domains, before=world.before)
    assert merged.reason == "Classes were merged: fit anew for a class more."


@pytest.mark.parametrize("name", MODELS)
def test_no_class_joins_where_none_is(name, world, request):
    model = request.getfixturevalue(name)
    for seed in range(4):
        mix = np.random.default_rng(seed).dirichlet(np.ones(3))
        X, _ = world.sample(mix, 300, seed=seed)
        found = shoal.update(model, X, 9, before=world.before)
        assert found.new_class is None
        assert found.model.n_classes_ == 3
    few, _ = world.sample([0.33, 0.33, 0.34 - 0.03, 0.03], 100, seed=5)
    assert shoal.update(model, few, 9, before=world.before).new_class is None


def test_a_mix_that_moved_is_named(world, looks):
    top = int(world.mixes[0].argmax())
    mix = 0.6 * world.mixes[0] + 0.4 * np.eye(3)[(top + 1) % 3]
    X, _ = world.sample(mix, 500, seed=1)
    found = shoal.update(looks, X, 0, before=world.before)
    (domain,) = found.domains
    assert domain.moved
    for change in domain.moved:
        y = NAMES.index(change.name)
        assert_allclose(
            change.estimate, domain.found[y] - looks.prevalence_[0, y], atol=0.01
        )
        assert change.low * change.high > 0
        assert f"0: the share of {change.name} moved by" in str(found)
    # how sure the mix was may come from the intervals of the fit as well
    intervals = looks.bootstrap(*world.before, n_resamples=4, random_state=0)
    other = shoal.update(looks, X, 0, before=intervals)
    assert [one.name for one in other.domains[0].moved] == [
        one.name for one in domain.moved
    ]
    assert not other.looks_known
    assert_allclose(other.model.prevalence_, found.model.prevalence_)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("domain", [1, 9])
def test_a_drift_of_looks_is_named(name, domain, world, request):
    model = request.getfixturevalue(name)
    X, _ = world.sample(world.mixes[1], 600, seed=2)
    spread = world.X[:, 2].std()
    still = shoal.update(model, X, domain, before=world.before)
    assert still.domains[0].drifted == []
    X[:, 2] += 0.4 * spread
    found = shoal.update(model, X, domain, before=world.before)
    (change, *_) = found.domains[0].drifted
    assert change.name == "2"
    assert 0.15 < change.estimate < 0.6
    assert f"{domain}: rows look otherwise in 2, by +0." in str(found)


def test_offsets_are_means_less_mixes_of_means():
    """Where classes are known: the mean of a column is the mix of its means."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 50)
    X = rng.normal(size=(100, 3)) + labels[:, None]
    known = np.eye(2)[labels]
    found = learn_looks(X, known, np.tile([0, 1], 50))
    rows, mix = rng.normal(size=(40, 3)), np.eye(2)[np.repeat([0, 1], [10, 30])]
    size, error = found.offset(rows, mix, None)
    means = np.array([X[labels == y].mean(axis=0) for y in (0, 1)])
    expected = (rows.mean(axis=0) - [0.25, 0.75] @ means) / X.std(axis=0)
    assert_allclose(size, expected)
    assert (error > 0).all()
    for code in (0, 1):  # the same rows are where they were
        own = np.tile([0, 1], 50) == code
        assert_allclose(found.offset(X[own], known[own], code).size, 0, atol=1e-12)


def test_an_update_is_told_as_a_table(world, shift):
    X, _ = world.sample([0.2, 0.3, 0.5], 100)
    found = shoal.update(shift, X, 9, level=0.8)
    table = found.to_frame()
    assert list(table["class_name"]) == NAMES
    assert table["before"].isna().all()
    assert_allclose(table["estimate"], found.model.prevalence_[-1])
    assert set(table["level"]) == {0.8}
    assert NUMBERS.sure > 0.9


def test_what_looks_spoke_for_is_updated():
    data = load_penguins()
    model = shoal.DomainMixture(3, by="looks", random_state=0)
    model.fit(data.X, data.domains)
    found = shoal.update(model, data.X[:60], "Anvers")
    assert found.model.estimator is model.looks_
    assert found.model.domains_.tolist() == [*model.domains_.tolist(), "Anvers"]
    assert_allclose(
        found.model.predict_proba(data.X, data.domains),
        model.predict_proba(data.X, data.domains),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"domains": 1},
            "before must be passed: new rows are from 1, which the",
        ),
        ({"before": 5}, r"before must be \(X, domains\) of the fit or the intervals"),
        ({"domains": "a"}, r"domains has 'a', a str, and those of the model are like"),
        ({"level": 2}, r"level must lie between 0 and 1, got 2"),
        ({"domains": [9]}, r"X has 40 rows, domains has 1"),
    ],
)
def test_what_cannot_be_updated_says_why(world, shift, change, told):
    X, _ = world.sample([0.2, 0.3, 0.5], 40)
    with pytest.raises((ValueError, TypeError), match=told):
        shoal.update(shift, X, **{"domains": 9, **change})


def test_before_has_to_be_of_the_model(world, looks):
    X, _ = world.sample([0.2, 0.3, 0.5], 40)
    rest = world.domains != 1
    with pytest.raises(ValueError, match="before has no rows of 1; pass all rows"):
        shoal.update(looks, X, 1, before=(world.X[rest], world.domains[rest]))
    intervals = looks.merge(0, 1).bootstrap(
        *world.before, n_resamples=3, random_state=0
    )
    with pytest.raises(ValueError, match="before has intervals of 5 domains and 2"):
        shoal.update(looks, X, 1, before=intervals)


def test_bags_of_words_are_refused():
    X = np.random.default_rng(0).poisson(2.0, size=(6, 8))
    X[::2] *= np.arange(8)
    model = shoal.DiscreteMixture(2, input="counts", random_state=0)
    model.fit(X, domains=list("ababab"))
    with pytest.raises(ValueError, match="this model takes bags of words; use model"):
        shoal.update(model, X, "d")
