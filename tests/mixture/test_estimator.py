"""DomainMixture: recovery, choices, reproducibility, warnings."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from shoal import DomainMixture
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import CollapseWarning, IdentifiabilityWarning
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._starts import anchor_starts, merge_costs, optimize_from
from shoal.metrics import match_classes, matched_accuracy, prevalence_error
from shoal.probability import domain_given_class, match_rows

QUICK = {"search": False, "random_state": 0}


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def gaussians():
    return make_latent_shift(
        4000, n_classes=4, n_domains=6, n_features=6, separation=1.5, alpha=2.0,
        random_state=3, return_bunch=True,
    )  # fmt: skip


# ---- recovery --------------------------------------------------------------------


@pytest.mark.parametrize("algorithm_seed", range(20))
def test_penguins_are_their_species(penguins, algorithm_seed):
    model = DomainMixture(3, by="shift", random_state=algorithm_seed)
    classes = model.fit_predict(penguins.X, penguins.domains)
    assert matched_accuracy(penguins.labels, classes) >= 0.985
    truth = np.array(
        [
            [np.mean(penguins.labels[penguins.domains == d] == s) for s in species]
            for d in model.domains_
            for species in [np.unique(penguins.labels)]
        ]
    )
    matching = match_classes(penguins.labels, classes)
    error = prevalence_error(
        truth,
        model.prevalence_,
        matching=matching,
        label_names=np.unique(penguins.labels),
    )
    assert error <= 0.02


def test_both_factors_and_the_posterior_are_recovered(gaussians):
    model = DomainMixture(4, random_state=0).fit(gaussians.X, gaussians.domains)
    truth = gaussians.prevalence.T
    order = match_rows(truth, model.prevalence_.T)
    assert np.abs(model.prevalence_.T[order] - truth).mean() < 0.02
    T = model.domain_given_class_[order]
    assert np.abs(T - domain_given_class(gaussians.prevalence)).mean() < 0.02
    ours = model.predict_proba(gaussians.X, gaussians.domains)[:, order]
    assert np.abs(ours - gaussians.posterior).mean() < 0.05
    bayes = matched_accuracy(gaussians.labels, gaussians.posterior.argmax(axis=1))
    assert matched_accuracy(gaussians.labels, model.labels_) > bayes - 0.02


def test_rbf_is_chosen_where_nothing_linear_works(seed):
    X, domains, labels = make_latent_shift(
        6000, kind="xor", n_classes=4, n_domains=8, random_state=seed
    )
    model = DomainMixture(4, random_state=seed).fit(X, domains)
    assert model.features_.expansion == "rbf"
    assert matched_accuracy(labels, model.labels_) > 0.93
    linear = DomainMixture(4, expansion="linear", **QUICK).fit(X, domains)
    assert matched_accuracy(labels, linear.labels_) < 0.85


@pytest.mark.parametrize("expansion", ["quadratic", "nystroem", "discriminator"])
def test_other_expansions_also_solve_it(expansion):
    X, domains, labels = make_latent_shift(
        3000, kind="xor", n_classes=4, n_domains=8, random_state=0
    )
    model = DomainMixture(4, expansion=expansion, **QUICK).fit(X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.9
    assert_array_equal(model.predict(X, domains), model.labels_)


def test_global_scale_is_chosen_for_principal_components(seed):
    rng = np.random.default_rng(seed)
    X, domains, labels = make_latent_shift(
        1500, n_classes=3, n_domains=4, n_features=4, separation=2.0, random_state=seed
    )
    # many tiny noise columns, as the tail of a PCA has
    padded = np.hstack([X, 0.02 * rng.normal(size=(len(X), 60))])
    model = DomainMixture(3, random_state=seed).fit(padded, domains)
    assert model.features_.scale == "global"
    assert matched_accuracy(labels, model.labels_) > 0.85


def test_em_reaches_the_same_solution(gaussians):
    lbfgs = DomainMixture(4, **QUICK).fit(gaussians.X, gaussians.domains)
    em = DomainMixture(4, solver="em", **QUICK).fit(gaussians.X, gaussians.domains)
    assert_allclose(em.objective_, lbfgs.objective_, atol=1e-3)
    assert np.mean(em.labels_ == lbfgs.labels_) > 0.99


# ---- starts --------------------------------------------------------------------------


def as_problem(data):
    order = np.argsort(data.domains, kind="stable")
    weight = np.full(len(order), 1 / len(order))
    n_domains = len(data.prevalence)
    return MixtureProblem(data.X[order], data.domains[order], weight, n_domains)


def test_starts_from_tables_are_near_the_truth(gaussians):
    problem = as_problem(gaussians)
    truth = domain_given_class(gaussians.prevalence)
    rng = np.random.default_rng(0)
    starts = anchor_starts(problem, 4, rng)
    names = [start.name for start in starts]
    assert len(set(names)) == len(names) == 6

    def distance(guess):
        return np.abs(guess[match_rows(truth, guess)] - truth).mean()

    found = [distance(start.guess(problem).domain_given_class) for start in starts]
    even = np.ones(problem.n_domains)
    assert np.median(found) < min(distance(rng.dirichlet(even, 4)) for _ in range(5))


def test_the_pair_that_shifts_alike_is_the_cheapest_to_merge(gaussians):
    problem = as_problem(gaussians)
    fit = optimize_from(
        problem, domain_given_class(gaussians.prevalence), Penalties(1e-4)
    )
    fit.domain_given_class[2] = fit.domain_given_class[0]
    a, b, merged = merge_costs(problem, fit)[0]
    assert (a, b) == (0, 2)
    assert_allclose(merged, fit.domain_given_class[0])


# ---- reproducibility -------------------------------------------------------------


def test_same_seed_same_bits_for_any_n_jobs(penguins):
    one = DomainMixture(3, random_state=5).fit(penguins.X, penguins.domains)
    two = DomainMixture(3, random_state=5, n_jobs=2).fit(penguins.X, penguins.domains)
    assert_array_equal(one.weights_, two.weights_)
    assert_array_equal(one.prevalence_, two.prevalence_)


@pytest.mark.parametrize("search", [False, True])
def test_shuffled_rows_give_the_same_classes(penguins, search, seed):
    shuffle = np.random.default_rng(seed).permutation(len(penguins.X))
    plain = DomainMixture(3, search=search, random_state=0)
    plain.fit(penguins.X, penguins.domains)
    mixed = DomainMixture(3, search=search, random_state=0)
    mixed.fit(penguins.X[shuffle], penguins.domains[shuffle])
    assert np.mean(mixed.labels_ == plain.labels_[shuffle]) >= 0.999
    assert_allclose(mixed.prevalence_, plain.prevalence_, atol=1e-4)


def test_history_falls_and_iterations_are_counted(gaussians):
    model = DomainMixture(4, **QUICK).fit(gaussians.X, gaussians.domains)
    assert model.n_iter_ >= 1
    assert model.history_[-1] < model.history_[0]


# ---- inputs ----------------------------------------------------------------------


def test_sparse_equals_dense(gaussians):
    thin = np.where(np.abs(gaussians.X) > 0.5, gaussians.X, 0)
    options = {"scale": "global", "expansion": "linear", **QUICK}
    dense = DomainMixture(4, **options).fit(thin, gaussians.domains)
    csr = DomainMixture(4, **options).fit(sparse.csr_array(thin), gaussians.domains)
    # sparse columns are not centred, which only moves the intercepts
    assert np.mean(dense.labels_ == csr.labels_) > 0.97


def test_float32_agrees_with_float64(gaussians):
    exact = DomainMixture(4, **QUICK).fit(gaussians.X, gaussians.domains)
    half = DomainMixture(4, **QUICK).fit(
        gaussians.X.astype(np.float32), gaussians.domains
    )
    assert np.mean(exact.labels_ == half.labels_) > 0.99
    assert_allclose(exact.prevalence_, half.prevalence_, atol=0.01)


def test_weights_count_as_copies(gaussians):
    copies = np.arange(len(gaussians.X)) % 2 + 1
    options = {"scale": "column", "expansion": "linear", **QUICK}
    weighted = DomainMixture(4, **options).fit(
        gaussians.X, gaussians.domains, sample_weight=copies
    )
    repeated = DomainMixture(4, **options).fit(
        np.repeat(gaussians.X, copies, axis=0), np.repeat(gaussians.domains, copies)
    )
    assert_allclose(weighted.prevalence_, repeated.prevalence_, atol=0.02)


def test_domain_weight_changes_the_mix_only(gaussians):
    sizes = DomainMixture(4, domain_weight="size", **QUICK)
    sizes.fit(gaussians.X, gaussians.domains)
    share = np.bincount(gaussians.domains) / len(gaussians.domains)
    assert_allclose(sizes.domain_weight_, share)
    assert_allclose(sizes.class_weight_, share @ sizes.prevalence_)


def test_domain_explained_by_no_rows_is_refused(gaussians):
    weight = (gaussians.domains != 0).astype(float)
    with pytest.raises(ValueError, match="sample_weight is zero in all rows of domain"):
        DomainMixture(4, **QUICK).fit(
            gaussians.X, gaussians.domains, sample_weight=weight
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "rows"}, "scale must be one of 'auto', 'column', 'global', got"),
        ({"expansion": "cubic"}, "expansion must be one of"),
        ({"solver": "sgd"}, "solver must be one of 'lbfgs', 'em', got 'sgd'"),
        ({"ridge": -1.0}, "ridge must be 'auto' or a number from 0"),
        ({"confidence": "high"}, "confidence must be 'auto' or a number"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1"),
        ({"max_search_rows": 2.5}, "max_search_rows must be a whole number"),
    ],
)
def test_options_are_checked(penguins, options, message):
    with pytest.raises(ValueError, match=message):
        DomainMixture(3, **options).fit(penguins.X, penguins.domains)


def test_sample_weight_is_checked(penguins):
    model = DomainMixture(3, **QUICK)
    with pytest.raises(ValueError, match="sample_weight must have one entry per row"):
        model.fit(penguins.X, penguins.domains, sample_weight=[1.0, 2.0])
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        model.fit(penguins.X, penguins.domains, sample_weight=np.full(342, -1.0))


# ---- warnings --------------------------------------------------------------------


def test_collapse_is_said():
    X, domains, _ = make_latent_shift(
        2000, n_classes=2, n_domains=8, separation=3.0, random_state=0
    )
    with pytest.warns(CollapseWarning, match="classes hold almost no rows"):
        DomainMixture(6, confidence=0.5, dirichlet=0.0, **QUICK).fit(X, domains)


def test_an_unfinished_climb_is_said(gaussians):
    # a search on few rows leaves much to do for the final climb
    with pytest.warns(ConvergenceWarning, match="cut at max_iter=2"):
        DomainMixture(4, max_iter=2, max_search_rows=60, **QUICK).fit(
            gaussians.X, gaussians.domains
        )


@pytest.mark.parametrize("search", [True, False])
def test_equal_domains_are_a_warning(search):
    """Five seeds: every one warns, though the classes themselves are far apart."""
    warned = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        labels, domains = rng.choice(3, 900), np.arange(900) % 5
        X = rng.normal(size=(900, 4)) + 5 * np.eye(3, 4)[labels]
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            DomainMixture(3, search=search, random_state=0).fit(X, domains)
        kinds = [one.category for one in said]
        warned += IdentifiabilityWarning in kinds
    assert warned == 5


def test_domains_that_differ_little_are_no_warning(seed):
    """Classes that overlap, few rows."""
    X, domains, _ = make_latent_shift(
        600, n_classes=3, n_domains=5, separation=1.0, random_state=seed
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        DomainMixture(3, search=False, random_state=0).fit(X, domains)
    assert [str(one.message) for one in said] == []


def test_more_classes_than_domains(gaussians):
    with pytest.raises(ValueError, match="n_classes=7 cannot be told apart"):
        DomainMixture(7, **QUICK).fit(gaussians.X, gaussians.domains)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        with pytest.warns(IdentifiabilityWarning, match="cannot be told apart"):
            DomainMixture(7, check_identifiable=False, **QUICK).fit(
                gaussians.X, gaussians.domains
            )


# ---- refit and evidence ----------------------------------------------------------


def test_refit_reuses_features_and_penalties(penguins):
    three = DomainMixture(3, random_state=0).fit(penguins.X, penguins.domains)
    two = three.refit(penguins.X, penguins.domains, n_classes=2)
    assert two.n_classes_ == 2
    assert three.n_classes_ == 3
    assert two.penalties_.ridge == three.penalties_.ridge
    assert two.features_.scale == three.features_.scale
    assert two.score(penguins.X, penguins.domains) < three.score(
        penguins.X, penguins.domains
    )


def test_every_choice_is_on_record(penguins):
    model = DomainMixture(3, random_state=0).fit(penguins.X, penguins.domains)
    assert "column linear" in model.held_out_
    assert any(name.startswith("global linear from") for name in model.held_out_)
    assert any(name.startswith("ridge") for name in model.held_out_)
    assert all(error > 0 for _, error in model.held_out_.values())
    assert "search=False" in model.held_out_
    assert f"column linear from {model.start_}" in model.held_out_


def test_labels_cannot_reach_a_fit(penguins):
    """Rule of evidence: there is no way in, and a sorted table does not leak them."""
    by_label = np.argsort(penguins.labels, kind="stable")
    plain = DomainMixture(3, **QUICK).fit(penguins.X, penguins.domains)
    grouped = DomainMixture(3, **QUICK)
    grouped.fit(penguins.X[by_label], penguins.domains[by_label])
    assert_array_equal(grouped.labels_, plain.labels_[by_label])


def test_prediction_does_not_depend_on_the_blocks(monkeypatch, seed):
    X, domains, _ = make_latent_shift(
        900, n_classes=3, n_domains=4, n_features=5, random_state=seed
    )
    model = DomainMixture(3, search=False, random_state=seed).fit(X, domains)
    whole = model.predict_proba(X, domains)
    monkeypatch.setattr(DomainMixture, "_block_rows", 7)
    assert_allclose(model.predict_proba(X, domains), whole, atol=1e-12)
    assert_array_equal(model.predict(X, domains), whole.argmax(axis=1))
    assert_array_equal(model.labels_, whole.argmax(axis=1))
