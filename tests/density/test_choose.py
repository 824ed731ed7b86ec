"""What is chosen on held-out rows, and the evidence of shift and drift."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from shoal.datasets import load_penguins, make_latent_shift
from shoal.density import DensityMixture, shift_and_drift
from shoal.density._choose import (
    Chosen,
    Judged,
    best_kind,
    class_moves,
    inside_domains,
    judge,
    moving,
    one_shape,
    take,
)
from shoal.density._em import expect
from shoal.density._evidence import column_log_densities
from shoal.density._gaussian import Rows, find_gaps
from shoal.density._starts import (
    DensityOptions,
    best_fit,
    climb_from,
    continue_from,
    make_prior,
)
from shoal.metrics import matched_accuracy
from shoal.probability import HeldOut


def draw(seed, drift=0.0, n=1200, shapes="full"):
    """Two classes in four domains; drift moves domain 3 along column 1."""
    rng = np.random.default_rng(seed)
    domains = np.arange(n) % 4
    labels = rng.random(n) < np.array([0.2, 0.4, 0.6, 0.8])[domains]
    X = rng.normal(size=(n, 3))
    if shapes == "full":
        X[labels] = X[labels] @ np.array([[1, 0.9, 0], [0, 0.4, 0], [0, 0, 2.0]])
    X[:, 0] += 3 * labels
    X[domains == 3, 1] += drift
    return X, domains, labels.astype(int)


def held_out(*means, n=50, spread=0.0):
    noise = np.linspace(-spread, spread, n)
    weight = np.full(n, 1 / n)
    return [HeldOut(mean + sign * noise, weight) for mean, sign in means]


def test_take_keeps_rows_and_gaps():
    X = np.arange(12.0).reshape(6, 2)
    seen = X != 5
    rows = Rows(X, np.array([0, 0, 0, 1, 1, 1]), np.ones(6), 2, find_gaps(seen))
    which = np.array([True, False, True, True, False, False])
    got = take(rows, which)
    assert_allclose(got.X, X[which])
    assert_allclose(got.gaps.seen, seen[which])
    assert take(rows, ~which).gaps is None


def shapes(**domains):
    """Shapes by name, judged by the likelihood of the domains alone."""
    judged = {kind: Judged(one, one) for kind, one in domains.items()}
    return {kind: Chosen(None, None, "", judged) for kind in domains}


def test_domains_choose_the_shape_and_the_simplest_of_those_as_good():
    good, bad = held_out((-1.0, 0), (-1.5, 0))
    assert best_kind(shapes(tied=bad, full=good)) == "full"
    assert best_kind(shapes(tied=good, full=bad)) == "tied"
    first, second = held_out((-1.01, 1), (-1.0, -1), spread=1.0)  # within an error
    assert best_kind(shapes(tied=first, full=second)) == "tied"


def test_a_sample_may_miss_domains():
    """Those without a row are not judged, and the others count alike."""
    rng = np.random.default_rng(0)
    rows = Rows(rng.normal(size=(60, 2)), np.arange(60) % 3 * 2, np.ones(60), 6, None)
    options = DensityOptions(n_init=2)
    found = one_shape(rows, 2, "tied", options, rng)
    judged = judge(rows, found.fit, found.prior, np.arange(60) % 2, options)
    assert_allclose(judged.domains.weight, 1 / 60)


def test_classes_in_pieces_are_no_drift():
    """Pieces that move together look like an offset until each has its own mix."""
    X, domains, _ = make_latent_shift(
        4000, kind="multimodal", n_classes=5, n_domains=10, random_state=0
    )
    evidence = shift_and_drift(X, domains, 5, random_state=0)
    assert evidence.has_drift  # of one Gaussian a class
    assert DensityMixture(5, n_init=4, random_state=0).fit(X, domains).drift_ is None


def test_classes_of_unlike_shapes_do_not_drift():
    """Under one covariance for all they seem to, however many classes there are."""
    rng = np.random.default_rng(1)
    mixes, domains = rng.dirichlet(np.ones(3), size=6), np.arange(1800) % 6
    labels = np.array([rng.choice(3, p=mixes[domain]) for domain in domains])
    turns = [np.linalg.qr(rng.normal(size=(4, 4)))[0] for _ in range(3)]
    X = rng.normal(size=(1800, 4)) * np.geomspace(0.2, 6, 4)
    X = np.stack([turns[label] @ row for label, row in zip(labels, X, strict=True)])
    X += 2 * rng.normal(size=(3, 4))[labels]
    rigid = DensityMixture(3, covariance="tied", n_init=4, random_state=0)
    assert rigid.fit(X, domains).drift_ is not None
    model = DensityMixture(3, n_init=4, random_state=0).fit(X, domains)
    assert model.covariance_ == "full"
    assert model.drift_ is None


def test_under_strong_drift_one_covariance_speaks(seed):
    """Domains that move further than their mixes do are no judges of shapes."""
    rng, domains = np.random.default_rng(seed), np.arange(1600) % 4
    labels = (rng.random(1600) < np.array([0.4, 0.6, 0.4, 0.6])[domains]).astype(int)
    X = rng.normal(size=(1600, 3)) * np.where(labels, 1.5, 1)[:, None]
    X[:, [0, 2]] += 6 * labels[:, None]
    X[:, 1] += np.array([-4, 1, 4, -1.0])[domains]
    model = DensityMixture(2, n_init=4, random_state=seed).fit(X, domains)
    assert model.drift_ is not None
    assert model.covariance_ == "tied"
    same = np.mean(model.labels_ == labels)
    assert max(same, 1 - same) > 0.8


def drugged(seed, n=100, k=4, p=6, r=6):
    """Half of the domains have had a drug, which moves each class by its own way."""
    rng = np.random.default_rng(seed)
    means = np.r_[np.zeros((1, p)), 3 * np.eye(k - 1, p)]
    effect = rng.normal(0, 0.7, (k, p)) + 4 * np.eye(1, p, p - 1)
    site = rng.normal(0, 0.7, (r, p))
    domains = np.repeat(np.arange(r), n)
    mixes = rng.dirichlet(np.full(k, 3.0), r)
    labels = np.array([rng.choice(k, p=mixes[domain]) for domain in domains])
    X = means[labels] + site[domains] + rng.normal(0, 0.6, (n * r, p))
    return X + (domains >= r // 2)[:, None] * effect[labels], domains, labels


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_do_not_follow_a_drug(seed):
    X, domains, labels = drugged(seed)
    model = DensityMixture(4, random_state=0).fit(X, domains)
    assert model.drift_ is not None
    assert matched_accuracy(labels, model.labels_) > 0.95


def test_rows_inside_of_domains_judge_classes_that_may_move():
    """True classes say more inside of domains than those that follow the drug."""
    X, domains, labels = drugged(0)
    rows = Rows(X - X.mean(axis=0), domains, np.ones(len(X)), 6, None)
    options, still = DensityOptions(n_init=6), make_prior(rows, 4, 0)
    likeliest = best_fit(rows, 4, "tied", still, options, np.random.default_rng(0))[1]
    prior, folds = moving(still), np.arange(len(X)) % 3
    right = climb_from(rows, labels, 4, "tied", prior, options)
    wrong = continue_from(rows, likeliest, prior, options)
    judged = [inside_domains(rows, fit, prior, folds) for fit in (right, wrong)]
    assert judged[0] > judged[1] + 0.1


def test_moves_of_classes_are_means_with_rows_that_stay():
    X, domains, labels = drugged(0)
    rows = Rows(X, domains, np.ones(len(X)), 6, None)
    options, prior = DensityOptions(max_iter=2), make_prior(rows, 4, 0)
    density = climb_from(rows, labels, 4, "tied", prior, options).density
    moves = class_moves(rows, density, np.eye(4)[labels], 10.0)
    own = (domains == 2) & (labels == 1)
    expected = (X[own] - density.means[1]).sum(axis=0) / (own.sum() + 10)
    assert_allclose(moves[2, 1], expected)


def test_columns_on_one_scale_stay_so(seed):
    """Divided by their spreads, columns of noise count as much as those that tell."""
    rng = np.random.default_rng(seed)
    labels, domains = rng.integers(0, 3, 300), np.arange(300) % 3
    X = np.c_[6 * np.eye(3)[labels], 0.3 * rng.normal(size=(300, 3))]
    X += rng.normal(0, 1e-2, X.shape)
    model = DensityMixture(3, scale="global", n_init=2, random_state=0).fit(X, domains)
    assert np.ptp(model.columns_.scale) == 0
    assert_allclose(model.columns_.scale[0] ** 2, X.var(axis=0).mean())
    assert matched_accuracy(labels, model.labels_) == 1
    with pytest.raises(ValueError, match="scale must be one of column, global"):
        DensityMixture(3, scale="rows").fit(X, domains)


def test_drift_is_taken_only_where_it_pays(seed):
    still = DensityMixture(2, n_init=4, random_state=seed).fit(*draw(seed)[:2])
    assert still.drift_ is None
    X, domains, labels = draw(seed, drift=2.0)
    moved = DensityMixture(2, n_init=4, random_state=seed).fit(X, domains)
    apart = moved.drift_[3] - moved.drift_[:3].mean(axis=0)
    assert_allclose(apart, [0, 2.0, 0], atol=0.3)
    same = np.mean(moved.labels_ == labels)
    assert max(same, 1 - same) > 0.85


def test_evidence_names_the_domain_and_the_column(seed):
    evidence = shift_and_drift(*draw(seed, drift=2.0)[:2], 2, random_state=seed)
    assert evidence.has_drift
    assert evidence.shift > 3 * evidence.shift_error
    assert np.argmax(evidence.drift_by_column) == 1
    assert evidence.furthest == (3, "1")
    assert np.abs(np.delete(evidence.offset, 3, axis=0)).max() < 0.3
    assert "domain 3, column 1" in str(evidence)
    overall = np.average(evidence.drift_by_domain, weights=np.full(4, 300))
    assert_allclose(overall, evidence.drift)


def test_evidence_without_drift(seed):
    evidence = shift_and_drift(*draw(seed)[:2], 2, random_state=seed)
    assert not evidence.has_drift
    assert evidence.shift > 3 * evidence.shift_error
    assert str(evidence).count("\n") == 1


def test_evidence_without_shift():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) + 5 * rng.integers(0, 2, (600, 1))
    evidence = shift_and_drift(X, np.arange(600) % 3, 2, random_state=0)
    assert abs(evidence.shift) < 3 * evidence.shift_error + 0.01
    assert not evidence.has_drift


def test_columns_alone_are_marginals():
    """Of a table with one column, and against the same with all others missing."""
    X, domains, _ = draw(1, n=200)
    model = DensityMixture(2, drift=True, n_init=2, random_state=0).fit(X, domains)
    rows = model.columns_.rows(X, domains, None, 4)
    got = column_log_densities(rows, model.density_)
    for column in range(3):
        seen = np.zeros(X.shape, dtype=bool)
        seen[:, column] = True
        alone = Rows(rows.X, rows.codes, rows.weight, 4, find_gaps(seen))
        expected = expect(alone, model.density_).log_likelihood
        assert_allclose(got[:, column], expected, rtol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_number_of_classes_is_found(n_classes):
    X, domains, _ = make_latent_shift(
        1500, n_classes=n_classes, n_domains=6, separation=3.0, random_state=1
    )
    model = DensityMixture(n_init=4, drift=False, random_state=0).fit(X, domains)
    assert model.n_classes_ == n_classes
    assert f"{n_classes} classes" in model.held_out_


def test_looks_alone_choose_where_domains_do_not_differ():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(450, 2)) + 8 * np.eye(3, 2)[np.arange(450) % 3]
    domains = rng.integers(0, 3, 450)
    model = DensityMixture(n_init=4, drift=False, random_state=0).fit(X, domains)
    assert model.n_classes_ == 3


def test_an_estimator_is_asked_about_its_own_classes():
    penguins = load_penguins()
    model = DensityMixture(3, n_init=4, random_state=0)
    model.fit(penguins.X, penguins.domains)
    evidence = shift_and_drift(
        penguins.X, penguins.domains, estimator=model, random_state=0
    )
    assert evidence.n_classes == 3
    assert evidence.covariance == model.covariance_
    with pytest.raises(ValueError, match="domains must be passed"):
        shift_and_drift(penguins.X, None, estimator=model)
