"""What is known before a fit: against slow formulas, supervised limits and recovery."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

import shoal
from shoal import DensityMixture, DomainMixture
from shoal.base._known import folds_of_known
from shoal.datasets import make_latent_shift
from shoal.exceptions import CollapseWarning
from shoal.likelihood._problem import MixtureProblem, Penalties, softmax_rows
from shoal.metrics import matched_accuracy
from shoal.mixture._starts import known_starts
from shoal.validation._known import Given, Knowledge, read_known

NAMES = np.array(["ash", "birch", "cedar"])


def some_known(n, n_domains, **more):
    """Nothing, but for what is said in ``more``."""
    nothing = {
        "names": ("a", "b", "c"),
        "classes": np.full(n, -1),
        "groups": np.full(n, -1),
        "shares": np.full((n_domains, 3), np.nan),
    }
    return Knowledge(**(nothing | more))


def told_problem(seed=0, n=60, r=4, **more):
    rng = np.random.default_rng(seed)
    design, codes = rng.normal(size=(n, 3)), np.sort(np.arange(n) % r)
    weight = np.full(n, 1 / n)
    known = some_known(n, r, **more)
    problem = MixtureProblem(design, codes, weight, r, known)
    return problem, rng.normal(size=(3, 4)), softmax_rows(rng.normal(size=(3, r)))


def classes_of_a_few(n=60):
    classes = np.full(n, -1)
    classes[[0, 7, 20, 41, 59]] = [0, 1, 2, 1, 0]
    return classes


def joint_of(problem, weights, T):
    logits = problem.design @ weights[:, :-1].T + weights[:, -1]
    return softmax_rows(logits) * T.T[problem.codes]


def test_known_rows_have_the_likelihood_of_their_class():
    problem, weights, T = told_problem(classes=classes_of_a_few())
    joint = joint_of(problem, weights, T)
    told = problem.constraints.known.classes
    each = [row.sum() if y < 0 else row[y] for row, y in zip(joint, told, strict=True)]
    found = problem.value_and_gradient(weights, T, Penalties(0.0))
    assert_allclose(found[0], -np.log(each).mean(), rtol=1e-12)
    assert_allclose(problem.log_likelihood(weights, T), np.log(each), rtol=1e-10)


SHARES = np.full((4, 3), np.nan)
SHARES[1] = [0.2, 0.5, 0.3]
SHARES[2, 0] = 0.6


@pytest.mark.parametrize(
    "more",
    [
        {"classes": classes_of_a_few()},
        {"shares": SHARES},
        {"orders": ((0, (2, 0, 1)), (3, (1, 2)))},
        {"classes": classes_of_a_few(), "shares": SHARES, "orders": ((0, (2, 0)),)},
    ],
    ids=["labels", "shares", "orders", "all"],
)
def test_the_gradient_is_that_of_the_value(more):
    problem, weights, T = told_problem(**more)
    penalties = Penalties(0.01, confidence=0.05)
    _, gradient, mass = problem.value_and_gradient(weights, T, penalties)

    def of_weights(flat):
        return problem.value_and_gradient(flat.reshape(3, 4), T, penalties)[0]

    def of_logs(flat):
        at = np.exp(flat.reshape(3, -1))
        return problem.value_and_gradient(weights, at, penalties)[0]

    numeric = approx_fprime(weights.ravel(), of_weights, 1e-6)
    assert_allclose(gradient.ravel(), numeric, atol=2e-5)
    numeric = approx_fprime(np.log(T).ravel(), of_logs, 1e-6)
    assert_allclose(-mass.ravel(), numeric, atol=2e-5)


def test_shares_and_orders_are_kept_by_the_responsibilities():
    orders = ((0, (2, 0, 1)),)
    problem, weights, T = told_problem(shares=SHARES, orders=orders)
    mass = problem.value_and_gradient(weights, T, Penalties(0.0))[2]
    mix = mass / mass.sum(axis=0)
    assert_allclose(mix[:, 1], SHARES[1], atol=1e-6)
    assert_allclose(mix[0, 2], 0.6, atol=1e-6)
    assert mix[2, 0] >= mix[0, 0] - 1e-6
    assert mix[0, 0] >= mix[1, 0] - 1e-6
    free = told_problem()[0].value_and_gradient(weights, T, Penalties(0.0))[2]
    assert_allclose(mass[:, 3], free[:, 3], rtol=1e-12)  # nothing is known there


def test_a_known_order_that_holds_changes_nothing():
    problem, weights, T = told_problem()
    free = problem.value_and_gradient(weights, T, Penalties(0.0))
    order = tuple(np.argsort(-free[2][:, 0]).tolist())
    told = told_problem(orders=((0, order),))[0]
    assert_allclose(
        told.value_and_gradient(weights, T, Penalties(0.0))[0], free[0], rtol=1e-9
    )


# ---- limits --------------------------------------------------------------------------


def rows_of(seed=0, n=600, separation=2.0, **more):
    bunch = make_latent_shift(
        n,
        n_classes=3,
        n_domains=4,
        n_features=4,
        separation=separation,
        random_state=seed,
        return_bunch=True,
        **more,
    )
    return bunch.X, bunch.domains, bunch.labels


def made(kind, k=3):
    """A quick estimator."""
    if kind is DensityMixture:
        return DensityMixture(k, n_init=6, random_state=0)
    return DomainMixture(k, search=False, random_state=0)


def few(labels, per_class, seed=0):
    """The names of a few rows of each class."""
    told = np.full(len(labels), None, dtype=object)
    rng = np.random.default_rng(seed)
    for y in range(3):
        rows = rng.choice(np.flatnonzero(labels == y), per_class, replace=False)
        told[rows] = NAMES[y]
    return told


def names_of(model):
    return np.asarray(model.class_names_)[model.labels_]


def test_all_rows_known_is_the_supervised_fit():
    X, domains, labels = rows_of()
    model = DomainMixture(
        3, by="shift", search=False, expansion="linear", scale="column",
        confidence=0.0, dirichlet=0.0, ridge=0.01, tol=1e-12, max_iter=2000,
    ).fit(X, domains, labels=NAMES[labels])  # fmt: skip
    assert_array_equal(names_of(model), NAMES[labels])
    for code, domain in enumerate(model.domains_):
        share = [(labels[domains == domain] == y).mean() for y in range(3)]
        order = [model.class_names_.index(name) for name in NAMES]
        assert_allclose(model.prevalence_[code, order], share, atol=1e-9)
    weight = np.ones(len(X)) / np.bincount(domains)[domains]
    weight *= len(X) / weight.sum()
    features = model.features_.transform(X)
    supervised = LogisticRegression(C=1 / (0.01 * len(X)), tol=1e-10, max_iter=5000)
    supervised.fit(features, NAMES[labels], sample_weight=weight)
    order = [list(supervised.classes_).index(name) for name in model.class_names_]
    assert_allclose(
        model._class_given_x(X),
        supervised.predict_proba(features)[:, order],
        atol=2e-4,
    )


def test_densities_of_known_rows_have_their_means():
    X, domains, labels = rows_of()
    model = DensityMixture(3, tail=float("inf"), drift=False, covariance="full")
    model.fit(X, domains, labels=labels)
    for y in range(3):
        place = model.class_names_.index(str(y))
        assert_allclose(model.means_[place], X[labels == y].mean(axis=0), rtol=1e-9)
    assert_array_equal(np.asarray(model.class_names_, int)[model.labels_], labels)


@pytest.mark.parametrize(
    "model",
    [DomainMixture(3, random_state=0), DensityMixture(3, random_state=0)],
    ids=["DomainMixture", "DensityMixture"],
)
def test_nothing_known_is_the_fit_of_before(model):
    X, domains, _ = rows_of(n=150)
    model.fit(X, domains)
    before = model.prevalence_.copy(), model.labels_.copy()
    for nothing in (np.full(len(X), -1), [None, np.nan] * (len(X) // 2)):
        model.fit(X, domains, labels=nothing, together=nothing)
        assert_array_equal(model.prevalence_, before[0])
        assert_array_equal(model.labels_, before[1])
        assert model.known_ is None
        assert model.class_names_ == ["c0", "c1", "c2"]


# ---- recovery ------------------------------------------------------------------------


def silent(seed, n=900):
    """Classes along the second column, hidden by spread along the first; no shift."""
    rng = np.random.default_rng(seed)
    labels, domains = rng.integers(0, 2, n), np.arange(n) % 3
    X = np.column_stack([rng.uniform(-8, 8, n), rng.normal(size=n) + 3.2 * labels])
    X[:, 0] *= 3
    return X, domains, labels


def test_a_few_known_rows_find_what_nothing_else_tells():
    X, domains, labels = silent(1)
    told = np.full(len(labels), -1)
    for y in (0, 1):
        told[np.flatnonzero(labels == y)[:10]] = y
    rest = told < 0
    model = DomainMixture(2, by="shift", random_state=0)
    with pytest.warns(UserWarning, match="mix of classes|domains|apart"):
        model.fit(X, domains)
    assert matched_accuracy(labels[rest], model.labels_[rest]) < 0.8
    model.fit(X, domains, labels=told)
    found = np.asarray(model.class_names_, int)[model.labels_]
    assert (found == labels)[rest].mean() > 0.87
    assert np.abs(model.prevalence_ - 0.5).max() < 0.1
    assert model.known_.agreement > 0.8


def test_the_known_route_is_taken_where_it_tells_known_rows_better():
    rng = np.random.default_rng(0)
    n = 600
    labels, domains = rng.integers(0, 2, n), np.arange(n) % 3
    corner = rng.integers(0, 2, n)
    # looks: four clouds; classes are the first column, wide, and clouds the second
    X = np.column_stack([rng.normal(size=n) + 3 * labels, 8.0 * corner])
    X[:, 1] += rng.normal(size=n)
    told = np.where(np.arange(n) % 6 == 0, labels, -1)
    model = DomainMixture(2, random_state=0).fit(X, domains, labels=told)
    assert model.route_.reason in ("known", "better", "silent")
    found = np.asarray(model.class_names_, int)[model.labels_]
    assert (found == labels).mean() > 0.9


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_names_and_both_factors_are_found(kind):
    X, domains, labels = rows_of(3, n=900, separation=2.5)
    model = made(kind).fit(X, domains, labels=few(labels, 4))
    assert (names_of(model) == NAMES[labels]).mean() > 0.95
    order = [model.class_names_.index(name) for name in NAMES]
    true = np.array(
        [[(labels[domains == d] == y).mean() for y in range(3)] for d in range(4)]
    )
    assert np.abs(model.prevalence_[:, order] - true).max() < 0.05
    assert model.known_.n_rows == 12
    assert set(model.known_.by_class) == set(NAMES)


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_a_known_row_is_what_it_is_said_to_be(kind):
    X, domains, labels = rows_of(3, n=400, separation=3.0)
    told = few(labels, 10)
    wrong = int(np.flatnonzero((told == None) & (labels == 0))[0])  # noqa: E711
    told[wrong] = "cedar"
    model = made(kind).fit(X, domains, labels=told)
    assert names_of(model)[wrong] == "cedar"
    code = model.predict(X[[wrong]], domains[[wrong]])[0]
    assert model.class_names_[code] == "ash"
    assert 0.9 < model.known_.agreement < 1
    assert model.known_.by_class["cedar"] < 1


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_agreement_with_random_classes_is_chance(kind):
    X, domains, labels = rows_of(4, n=500)
    rng = np.random.default_rng(0)
    told = np.where(np.arange(500) % 5 == 0, rng.permutation(labels), -1)
    model = made(kind).fit(X, domains, labels=told)
    own = model.known_.told.classes
    chance = max(np.bincount(own)) / len(own)
    assert model.known_.agreement < chance + 0.15
    assert "Left out in turn" in str(model.known_)


def test_a_class_that_nobody_knows_is_found_beside_known_ones():
    X, domains, labels = rows_of(3, n=900, separation=3.0)
    told = few(labels, 6)
    told[told == "birch"] = None
    model = made(DomainMixture).fit(X, domains, labels=told)
    new = ({"c0", "c1", "c2"} & set(model.class_names_)).pop()
    found = np.where(names_of(model) == new, "birch", names_of(model))
    assert (found == NAMES[labels]).mean() > 0.95


def test_known_rows_allow_more_classes_than_domains():
    X, domains, labels = rows_of(3, n=900, separation=3.0)
    two = np.where(domains < 2, "x", "y")
    with pytest.raises(ValueError, match="n_classes"):
        DomainMixture(3, by="shift").fit(X, two)
    model = DomainMixture(3, by="shift", random_state=0)
    model.fit(X, two, labels=few(labels, 8))
    assert (names_of(model) == NAMES[labels]).mean() > 0.9


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_rows_that_are_together_share_a_class(kind):
    X, domains, labels = rows_of(5, n=600, separation=1.0)
    pairs = np.full(len(X), -1)
    for y in range(3):
        for d in range(4):
            own = np.flatnonzero((labels == y) & (domains == d))
            pairs[own] = 1000 * (4 * y + d) + np.arange(len(own)) // 4
    apart = made(kind).fit(X, domains)
    model = made(kind).fit(X, domains, together=pairs)
    assert model.known_.n_rows == 0
    for pair in np.unique(pairs):
        assert len(np.unique(model.labels_[pairs == pair])) == 1
    better = matched_accuracy(labels, model.labels_)
    assert better > matched_accuracy(labels, apart.labels_) + 0.05
    told = few(labels, 1)
    named = made(kind).fit(X, domains, labels=told, together=pairs)
    brought = sum((pairs == pairs[row]).sum() for row in np.flatnonzero(told != None))  # noqa: E711
    assert named.known_.n_rows == brought  # each of the three brings its group


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_known_shares_are_exact_and_name_the_classes(kind):
    X, domains, labels = rows_of(3, n=900, separation=2.5)
    share = {NAMES[y]: (labels[domains == 1] == y).mean() for y in range(3)}
    gone = labels[domains == 2] == 0
    keep = np.ones(len(X), bool)
    keep[np.flatnonzero(domains == 2)[gone]] = False  # no ash in 2
    X, domains, labels = X[keep], domains[keep], labels[keep]
    model = made(kind)
    model.fit(X, domains, prevalence={1: share, 2: {"ash": 0}})
    order = [model.class_names_.index(name) for name in NAMES]
    assert_allclose(model.prevalence_[1, order], list(share.values()), atol=1e-12)
    assert model.prevalence_[2, order[0]] == 0
    assert model.predict_proba(X, 2)[:, order[0]].max() == 0
    assert (names_of(model) == NAMES[labels]).mean() > 0.93
    assert_allclose(model.prevalence_.sum(axis=1), 1)


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_a_known_order_names_the_classes(kind):
    X, domains, labels = rows_of(3, n=900, separation=2.5)
    told = {
        d: [NAMES[y] for y in np.argsort(-np.bincount(labels[domains == d]))]
        for d in range(4)
    }
    model = made(kind).fit(X, domains, prevalence=told)
    assert (names_of(model) == NAMES[labels]).mean() > 0.93
    for d, names in told.items():
        own = model.prevalence_[d, [model.class_names_.index(n) for n in names]]
        assert (np.diff(own) <= 1e-6).all()


# ---- after the fit -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_what_is_known_stays_with_the_model(kind, tmp_path):
    X, domains, labels = rows_of(3, n=400, separation=2.5)
    told = few(labels, 5)
    model = made(kind).fit(X, domains, labels=told)
    shoal.save(model, tmp_path / "model")
    loaded = shoal.load(tmp_path / "model")
    assert loaded.class_names_ == model.class_names_
    assert str(loaded.known_) == str(model.known_)
    assert str(model.known_) in loaded._told_apart()
    order = np.random.default_rng(0).permutation(len(X))
    found = loaded._known_of(X[order], domains[order])
    names = np.array([*found.names, None], dtype=object)
    assert_array_equal(names[found.classes], told[order])
    one = model.bootstrap(X, domains, n_resamples=5, random_state=0)
    other = loaded.bootstrap(X[order], domains[order], n_resamples=5, random_state=0)
    assert_allclose(one.low, other.low, atol=1e-8)
    model.diagnose(X, domains, n_permutations=2, random_state=0)
    assert model._lean().known_.keys.size == 0
    assert model.merge(0, 1).predict_proba(X, domains).shape == (400, 2)


def test_resamples_of_known_rows_keep_them():
    """With all rows known, intervals are those of counts."""
    X, domains, labels = rows_of(3, n=300)
    model = DomainMixture(3, by="shift", search=False, random_state=0)
    model.fit(X, domains, labels=NAMES[labels])
    found = model.bootstrap(X, domains, n_resamples=50, level=0.9, random_state=0)
    share = model.prevalence_
    wide = 2 * 1.645 * np.sqrt(share * (1 - share) / np.bincount(domains)[:, None])
    inside = share > 0.1
    assert_allclose((found.high - found.low)[inside], wide[inside], rtol=0.35)


def test_the_order_of_rows_does_not_matter():
    X, domains, labels = rows_of(3, n=300)
    told = few(labels, 4)
    order = np.random.default_rng(1).permutation(300)
    one = DomainMixture(3, search=False, random_state=0)
    other = DomainMixture(3, search=False, random_state=0)
    one.fit(X, domains, labels=told)
    other.fit(X[order], domains[order], labels=told[order])
    assert_allclose(one.prevalence_, other.prevalence_, atol=1e-9)
    assert one.class_names_ == other.class_names_


def test_every_known_row_is_in_every_sample():
    X, domains, labels = rows_of(3, n=900)
    model = DomainMixture(
        3, by="shift", max_search_rows=100, search=False, random_state=0
    ).fit(X, domains, labels=few(labels, 5))
    assert (names_of(model) == NAMES[labels]).mean() > 0.9


def test_known_folds_leave_out_every_row_once():
    classes = np.array([0, 0, 0, -1, 1, 1, 2])
    known = some_known(7, 2, classes=classes)
    folds = folds_of_known(known, 5)
    assert_array_equal(folds, [0, 1, 2, -1, 0, 1, -1])  # one row alone stays in


def test_a_start_from_known_rows_needs_all_classes():
    problem = told_problem(classes=classes_of_a_few())[0]
    assert [start.name for start in known_starts(problem, 3)] == ["known"]
    assert known_starts(problem, 4) == []
    assert known_starts(problem.blind(), 3) == []


def test_classes_of_a_solution_are_put_in_the_known_order():
    problem, weights, T = told_problem(classes=classes_of_a_few())
    moved = np.array([2, 0, 1])
    one = problem.constraints.match(problem, weights, T)
    other = problem.constraints.match(problem, weights[moved], T[moved])
    assert_array_equal(weights[one], weights[moved][other])


def test_moving_classes_moves_all_that_is_known():
    known = some_known(60, 4, classes=classes_of_a_few(), shares=SHARES)
    known = replace(known, orders=((0, (2, 0)),))
    place = np.array([1, 2, 0])
    moved = known.moved(place, ("c", "a", "b"))
    told = known.rows
    assert_array_equal(
        np.array(moved.names)[moved.classes[told]],
        np.array(known.names)[known.classes[told]],
    )
    assert_array_equal(moved.shares[:, place], known.shares)
    assert moved.orders == ((0, (0, 1)),)


# ---- bad input -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": [0, 1]}, "X has 6 rows, labels has 2; pass one value per row"),
        ({"labels": "ab"}, "labels must be one value per row, got 'ab'"),
        ({"labels": [[1]] * 6}, "labels must be one value per row, got list in one"),
        ({"together": 3}, "together must be one value per row, got 3"),
        (
            {"labels": ["a", "b", *[None] * 4], "together": [7, 7, *[-1] * 4]},
            "together says that the rows of '7' are of one class, labels says 'a' and",
        ),
        (
            {"together": [1, 2, -1, 1, -1, -1]},
            "together joins rows 0 and 3 of the domains 'x' and 'y'; a group is one",
        ),
        ({"prevalence": [0.3]}, "prevalence must be a mapping of domains, such as"),
        ({"prevalence": {"z": {}}}, "prevalence names 'z', which is not in domains"),
        ({"prevalence": {"x": 0.3}}, "prevalence of 'x' must be shares by class or a"),
        (
            {"prevalence": {"x": {"a": 1.5}}},
            "prevalence of 'a' in 'x' must be a share from 0 to 1, got 1.5",
        ),
        (
            {"prevalence": {"x": {"a": 0.7, "b": 0.5}}},
            "prevalence of 'x' adds up to 1.2; shares add up to 1 at most",
        ),
        ({"prevalence": {"x": ["a", "a"]}}, "must list two or more different classes"),
        (
            {"labels": ["a", *[None] * 5], "prevalence": {"x": {"a": 0}}},
            "prevalence says that 'a' is absent in 'x', labels that row 0 is one",
        ),
    ],
)
def test_bad_knowledge_is_named(given, message):
    codes, domains = np.array([0, 0, 0, 1, 1, 1]), np.array(["x", "y"])
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        read_known(Given(**given), codes, domains)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [DomainMixture, DensityMixture])
def test_more_names_than_classes_are_refused(kind):
    X, domains, labels = rows_of(n=100)
    with pytest.raises(ValueError, match="n_classes=2 is less than the 3 classes"):
        kind(2).fit(X, domains, labels=labels)


def test_the_id_of_another_class_is_no_name():
    X, domains, labels = rows_of(n=200)
    told = np.array(["c1", "c2", "c0"])[labels]
    told[labels == np.bincount(labels).argmax()] = "c2"
    with pytest.raises(ValueError, match="the id of another class"):
        DensityMixture(3, n_init=2).fit(X, domains, labels=told)


def test_numbers_and_gaps_are_read_as_people_mean_them():
    codes, domains = np.zeros(6, int), np.array(["x", "y"])
    cells = [2.0, 10, np.nan, "b", True, -1.0]
    known = read_known(Given(labels=cells), codes, domains)
    assert known.names == ("2", "10", "True", "b")
    assert known.classes.tolist() == [0, 1, -1, 3, 2, -1]


def test_collapse_is_still_said():
    X, domains, labels = rows_of(n=300, separation=4.0)
    model = DomainMixture(3, by="shift", search=False, random_state=0)
    told = {"prevalence": {d: {"ash": 0} for d in range(4)}}
    with pytest.warns(CollapseWarning):
        model.fit(X, domains, **told)
    del labels
