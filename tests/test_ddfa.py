"""DDFA: exact where its stages are exact, near Bayes where they are not."""

import inspect
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DDFA
from shoal.datasets import load_penguins, make_latent_shift
from shoal.exceptions import (
    ConstantColumnWarning,
    IdentifiabilityWarning,
    SubsampleWarning,
)
from shoal.metrics import matched_accuracy, prevalence_error
from shoal.probability import (
    canonical_order,
    class_given_domain,
    class_posterior,
    condition_number,
    domain_given_class,
    match_rows,
    normalize_rows,
)
from shoal.stages.adjust import Adjuster
from shoal.stages.discretize import (
    GivenClusters,
    KMeansDiscretizer,
    PointMassDiscretizer,
    hellinger_kmeans,
)
from shoal.stages.discriminate import Discriminator, OracleDiscriminator
from shoal.stages.factorize import Factorizer

METHODS = ["spa", "snpa", "em", "volume"]
MIXES = [
    [0.8, 0.1, 0.1],
    [0.1, 0.7, 0.2],
    [0.2, 0.1, 0.7],
    [0.5, 0.4, 0.1],
    [0, 0.5, 0.5],
]


class Population:
    """Every word in every domain, weighted by its probability: no sampling at all."""

    def __init__(self, seed, n_classes=3, n_domains=5, n_words=12, domain_weight=None):
        rng = np.random.default_rng(seed)
        while True:
            prevalence = rng.dirichlet(np.ones(n_classes), n_domains)
            if condition_number(prevalence) < 20 * n_classes:
                break
        words = rng.dirichlet(np.ones(n_words), n_classes)
        words[:, :n_classes] *= np.eye(n_classes)  # word y is an anchor of class y
        words = normalize_rows(words)
        self.prevalence = prevalence[:, canonical_order(prevalence)]
        self.words = words[canonical_order(prevalence)]
        equal = np.full(n_domains, 1 / n_domains)
        self.weight = equal if domain_weight is None else np.asarray(domain_weight)
        word_given_domain = self.prevalence @ self.words
        domain, word = (part.ravel() for part in np.indices(word_given_domain.shape))
        self.X = word[:, None].astype(float)
        self.domains = domain
        # Halves, so that no weight is a whole number.
        self.sample_weight = word_given_domain.ravel() / 2
        joint = (self.weight @ self.prevalence)[:, None] * self.words
        self.class_given_word = normalize_rows(joint.T)
        self.corners = domain_given_class(self.prevalence, self.weight)

    def discriminator(self, X):
        return (self.class_given_word @ self.corners)[X[:, 0].astype(int)]

    def fit(self, model):
        return model.fit(self.X, self.domains, sample_weight=self.sample_weight)

    def assert_solved_by(self, model, atol=1e-6):
        """Both factors, and the posterior in every domain, up to the class order."""
        order = match_rows(self.prevalence.T, model.prevalence_.T)
        assert_allclose(model.prevalence_[:, order], self.prevalence, atol=atol)
        class_given_x = self.class_given_word[self.X[:, 0].astype(int)]
        expected = class_posterior(class_given_x, self.corners, self.domains)
        got = model.predict_proba(self.X, self.domains)[:, order]
        assert_allclose(got, expected, atol=atol)
        shift = self.prevalence.mean(axis=0) / (self.weight @ self.prevalence)
        agnostic = normalize_rows(class_given_x * shift)
        assert_allclose(model.predict_proba(self.X)[:, order], agnostic, atol=atol)


# ---- exactness --------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("discretizer", ["given", "masses", "callable"])
@pytest.mark.parametrize(("n_classes", "n_domains"), [(2, 2), (3, 5), (6, 9)])
def test_population_is_recovered(method, discretizer, n_classes, n_domains, seed):
    problem = Population(seed, n_classes, n_domains, 4 * n_classes)
    words = problem.X[:, 0].astype(int)
    chosen = {
        "given": [f"word {word:02d}" for word in words],
        "masses": PointMassDiscretizer(1e-9),
        "callable": GivenClusters(
            lambda points: np.unique(points.round(9), axis=0, return_inverse=True)[
                1
            ].ravel()  # numpy 2.0 gives it two dimensions
        ),
    }[discretizer]
    model = DDFA(
        n_classes,
        discriminator=problem.discriminator,
        discretizer=chosen,
        factorizer=method,
        random_state=seed,
    )
    problem.assert_solved_by(problem.fit(model))


@pytest.mark.parametrize("adjuster", ["likelihood", "simplex", "pinv", Adjuster()])
def test_every_adjuster_is_exact_on_a_population(adjuster, seed):
    problem = Population(seed)
    oracle = OracleDiscriminator(problem.discriminator)
    model = DDFA(3, discriminator=oracle, discretizer=problem.X[:, 0].astype(int))
    problem.assert_solved_by(problem.fit(model.set_params(adjuster=adjuster)))


def test_corners_are_exact_on_any_sample_with_anchors(seed):
    """Appendix F needs no counts: with an exact f, only the anchors have to be seen."""
    data = make_latent_shift(
        400,
        kind="anchored",
        n_classes=4,
        n_domains=6,
        random_state=seed,
        return_bunch=True,
    )

    def oracle(X):
        return data.bayes_discriminator(X.astype(int))

    model = DDFA(4, discriminator=oracle, discretizer=None).fit(data.X, data.domains)
    order = match_rows(data.prevalence.T, model.prevalence_.T)
    assert_allclose(model.prevalence_[:, order], data.prevalence, atol=1e-6)
    proba = model.predict_proba(data.X, data.domains)[:, order]
    assert_allclose(proba, data.posterior, atol=1e-6)
    assert model.discretizer_ is None
    assert model.factorization_ is None


def test_domain_weight_changes_the_mix_and_nothing_else(seed):
    weight = {0: 4.0, 1: 1.0, 2: 1.0, 3: 2.0, 4: 2.0}
    shares = np.array(list(weight.values())) / 10
    problem = Population(seed, domain_weight=shares)
    model = DDFA(
        3,
        discriminator=problem.discriminator,
        discretizer=problem.X[:, 0],
        domain_weight=weight,
    )
    problem.assert_solved_by(problem.fit(model))
    assert_allclose(model.domain_weight_, shares)
    assert_allclose(model.class_weight_, shares @ model.prevalence_)
    expected = class_given_domain(model.domain_given_class_, model.class_weight_)
    assert_allclose(expected, model.prevalence_)


# ---- end to end -------------------------------------------------------------------


@pytest.fixture(scope="module")
def gaussians(seed):
    return make_latent_shift(
        3000,
        prevalence=MIXES,
        separation=2,
        n_features=4,
        random_state=seed,
        return_bunch=True,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"discriminator": "quadratic", "factorizer": "em", "calibration": "vector"},
        {"discriminator": "quadratic", "discretizer": None},
        {"discriminator": Discriminator("mlp", cross_fit=2), "discretizer": 6},
        {"discretizer": KMeansDiscretizer(9), "factorizer": Factorizer(method="snpa")},
    ],
    ids=["default", "em", "corners", "mlp", "objects"],
)
def test_gaussians_come_close_to_bayes(gaussians, options, seed):
    data = gaussians
    model = DDFA(3, random_state=seed, **options).fit(data.X, data.domains)
    bayes = np.mean(data.posterior.argmax(axis=1) == data.labels)
    assert matched_accuracy(data.labels, model.labels_) > bayes - 0.05
    assert prevalence_error(data.prevalence, model.prevalence_) < 0.05
    order = match_rows(data.prevalence.T, model.prevalence_.T)
    new_X, new_domains, _ = data.problem.sample(1000, random_state=seed + 1)
    truth = data.bayes_posterior(new_X, new_domains)
    found = model.predict_proba(new_X, new_domains)[:, order]
    assert np.abs(found - truth).mean() < 0.08


def test_frozen_classifier_knows_the_domains_by_name(gaussians, seed):
    """It is not fitted again, and its columns are matched by name."""
    names = np.array(["e", "a", "d", "c", "b"])[gaussians.domains]
    fitted = make_pipeline(StandardScaler(), LogisticRegression())
    fitted.fit(gaussians.X, names)
    model = DDFA(3, discriminator=FrozenEstimator(fitted), random_state=seed)
    model.fit(gaussians.X, names)
    assert model.discriminator_.estimator_.estimator is fitted
    found = model.discriminator_.domain_given_x_
    assert_allclose(found, fitted.predict_proba(gaussians.X))
    bayes = np.mean(gaussians.posterior.argmax(axis=1) == gaussians.labels)
    assert matched_accuracy(gaussians.labels, model.labels_) > bayes - 0.1


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_number_of_classes_is_found(n_classes, seed):
    X, domains, _ = make_latent_shift(
        4000,
        n_classes=n_classes,
        n_domains=2 * n_classes,
        separation=1.6,
        n_features=6,
        random_state=seed,
    )
    model = DDFA(discriminator="logistic", random_state=seed).fit(X, domains)
    assert model.n_classes_ == n_classes
    assert model.rank_.n_classes == n_classes


def test_three_species_of_penguins_are_found(seed):
    data = load_penguins()
    model = DDFA(random_state=seed).fit(data.X, data.domains)
    assert model.n_classes_ == 3
    assert matched_accuracy(data.labels, model.labels_) > 0.9


# ---- rows and weights -------------------------------------------------------------


@pytest.fixture(scope="module")
def few(seed):
    return make_latent_shift(
        400,
        prevalence=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]],
        separation=2,
        n_features=3,
        random_state=seed,
    )[:2]


@pytest.mark.parametrize("discriminator", ["logistic", "mlp"])
def test_order_of_rows_does_not_matter(few, discriminator, seed):
    X, domains = few
    model = DDFA(2, discriminator=discriminator, random_state=seed)
    first = clone(model).fit(X, domains)
    order = np.random.default_rng(seed).permutation(len(X))
    second = clone(model).fit(X[order], domains[order])
    assert_array_equal(second.prevalence_, first.prevalence_)
    assert_array_equal(second.labels_, first.labels_[order])
    # What the stages say of a row stays with the row.
    assert_array_equal(second.discretizer_.labels_, first.discretizer_.labels_[order])
    assert_array_equal(
        second.discriminator_.domain_given_x_,
        first.discriminator_.domain_given_x_[order],
    )


def test_weight_is_repetition(few, seed):
    X, domains = few
    weight = np.random.default_rng(seed).integers(0, 4, len(X))
    model = DDFA(2, random_state=seed)
    weighted = clone(model).fit(X, domains, sample_weight=weight)
    rows = np.repeat(np.arange(len(X)), weight)
    repeated = clone(model).fit(X[rows], domains[rows])
    assert_array_equal(weighted.prevalence_, repeated.prevalence_)
    assert_array_equal(weighted.labels_, repeated.predict(X, domains))
    clusters = weighted.discretizer_.labels_
    # Copies of a row may be in other folds, and so in other clusters.
    once = weight[rows] == 1
    assert_array_equal(clusters[rows][once], repeated.discretizer_.labels_[once])
    # Rows without weight are placed by the fitted stages.
    absent = weight == 0
    proba = weighted.discriminator_.predict_proba(X[absent])
    assert_allclose(weighted.discriminator_.domain_given_x_[absent], proba)
    assert_array_equal(clusters[absent], weighted.discretizer_.predict(proba))


def test_fractional_weights_are_used(few, seed):
    """Rows of weight almost zero count for almost nothing."""
    X, domains = few
    X_noise = np.random.default_rng(seed).normal(size=X.shape) * 5
    both, both_domains = np.vstack([X, X_noise]), np.concatenate([domains, domains])
    weight = np.repeat([1.0, 1e-9], len(X))
    model = DDFA(2, discriminator="logistic", discretizer=2, random_state=seed)
    weighted = clone(model).fit(both, both_domains, sample_weight=weight)
    clean = clone(model).fit(X, domains)
    order = match_rows(clean.prevalence_.T, weighted.prevalence_.T)
    assert_allclose(
        weighted.prevalence_[:, order], clean.prevalence_, rtol=0, atol=0.08
    )


def test_given_clusters_stay_with_their_rows(few, seed):
    X, domains = few
    clusters = KMeansDiscretizer(4, random_state=seed).fit(X).labels_
    model = DDFA(2, discriminator="logistic", discretizer=clusters, random_state=seed)
    first = clone(model).fit(X, domains)
    assert_array_equal(first.discretizer_.labels_, clusters)
    by_object = clone(model).set_params(discretizer=GivenClusters(clusters))
    assert_array_equal(by_object.fit(X, domains).prevalence_, first.prevalence_)
    expected = np.array(
        [
            [np.mean(clusters[domains == domain] == cluster) for cluster in range(4)]
            for domain in range(3)
        ]
    )
    found = first.factorization_
    assert_allclose(
        found.residual,
        np.linalg.norm(expected - found.class_given_domain @ found.cluster_given_class),
    )


# ---- choices ----------------------------------------------------------------------


def test_likeliest_number_of_clusters_is_kept(gaussians, seed):
    """None is as likely, through its classes, as the best of the three by hand."""
    data = gaussians
    options = {"discriminator": "logistic", "random_state": seed}
    chosen = DDFA(3, **options).fit(data.X, data.domains)
    assert chosen.discretizer_.n_clusters_ in (3, 6, 9)
    assert chosen.discretizer_.metric == "hellinger"
    tried = [
        DDFA(3, discretizer=m, **options).fit(data.X, data.domains) for m in (3, 6, 9)
    ]
    assert [model.discretizer_.n_clusters_ for model in tried] == [3, 6, 9]
    best = max(model.score(data.X, data.domains) for model in tried)
    assert chosen.score(data.X, data.domains) > best - 0.005


def test_stages_are_cloned_and_seeded(gaussians, seed):
    X, domains = gaussians.X[:600], gaussians.domains[:600]
    parts = {
        "discriminator": Discriminator("mlp", cross_fit=2),
        "discretizer": KMeansDiscretizer(5),
        "factorizer": Factorizer(method="em", options={"n_init": 2}),
        "adjuster": Adjuster("simplex"),
    }
    models = [DDFA(3, random_state=seed, **parts).fit(X, domains) for _ in range(2)]
    assert_array_equal(models[0].prevalence_, models[1].prevalence_)
    assert_array_equal(models[0].labels_, models[1].labels_)
    for name, part in parts.items():
        fitted_as = {"factorizer": "factorization_"}.get(name, f"{name}_")
        assert getattr(models[0], fitted_as) is not part
        assert not [key for key in vars(part) if key.endswith("_")]


def test_fit_predict_takes_weights(few, seed):
    X, domains = few
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    model = DDFA(2, discriminator="logistic", random_state=seed)
    labels = clone(model).fit_predict(X, domains, sample_weight=weight)
    fitted = model.fit(X, domains, sample_weight=weight)
    assert_array_equal(labels, fitted.labels_)
    assert_array_equal(labels, fitted.predict(X, domains))


def test_models_fitted_elsewhere_see_every_column(few, seed):
    """A constant column may be the third one that they were fitted on."""
    X, domains = few
    padded = np.column_stack([X[:, :2], np.ones(len(X)), X[:, 2:]])
    seen = []

    def oracle(X):
        seen.append(X.shape[1])
        return fitted.predict_proba(X)

    fitted = LogisticRegression().fit(padded, domains)
    for given in (oracle, Discriminator(oracle), FrozenEstimator(fitted)):
        model = DDFA(2, discriminator=given, random_state=seed).fit(padded, domains)
        proba = fitted.predict_proba(padded)
        assert_allclose(model.discriminator_.domain_given_x_, proba)
        assert np.isfinite(model.predict_proba(padded, domains)).all()
    assert set(seen) == {4}
    learned = DDFA(2, discriminator="logistic", random_state=seed)
    with pytest.warns(ConstantColumnWarning):
        learned.fit(padded, domains)
    assert learned.discriminator_.n_features_in_ == 3


@pytest.mark.parametrize(
    "names", [[0.5, 1.5, 9.25], ["x", "y", "z"], [("a", 1), ("a", 2), ("b", 1)]]
)
def test_the_discriminator_knows_the_domains_by_name(few, names, seed):
    X, domains = few
    model = DDFA(2, discriminator="logistic", random_state=seed)
    named = clone(model).fit(X, domains=[names[code] for code in domains])
    assert named.discriminator_.classes_.tolist() == names
    assert_array_equal(named.prevalence_, model.fit(X, domains).prevalence_)


def test_the_estimators_domain_weight_rules_its_discriminator(few, seed):
    X, domains = few
    keep = np.flatnonzero((domains > 0) | (np.arange(len(X)) % 3 == 0))
    given = Discriminator("logistic", domain_weight="equal", random_state=0)
    model = DDFA(2, discriminator=given, domain_weight="size", random_state=seed)
    model.fit(X[keep], domains[keep])
    sizes = np.bincount(domains[keep])
    assert_allclose(model.domain_weight_, sizes / sizes.sum())
    assert_allclose(model.discriminator_.domain_weight_, model.domain_weight_)


def test_constant_discriminator_warns_and_fits(few, seed):
    X, domains = few

    def guess(X):
        return np.full((len(X), 3), 1 / 3)

    with pytest.warns(IdentifiabilityWarning, match="clusters are too few"):
        model = DDFA(2, discriminator=guess, random_state=seed).fit(X, domains)
    assert model.prevalence_.shape == (3, 2)


def test_domains_that_do_not_differ_warn(seed):
    X, domains, _ = make_latent_shift(
        600, kind="no_shift", n_classes=3, n_domains=4, random_state=seed
    )
    for calibration in (None, "temperature", "vector"):
        model = DDFA(
            2, discriminator="logistic", calibration=calibration, random_state=seed
        )
        with pytest.warns(IdentifiabilityWarning, match="domains cannot be told apart"):
            model.fit(X, domains)


@pytest.mark.parametrize("calibration", [None, "temperature"])
def test_a_discriminator_that_is_too_sure_is_told_from_one_without_signal(calibration):
    """What is judged is q(d|x) as it is used; and softer it would beat guessing."""
    X, domains, labels = make_latent_shift(
        3000, n_classes=3, n_domains=5, separation=3.0, random_state=1
    )
    model = DDFA(3, discriminator=GaussianNB(), calibration=calibration, random_state=0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, domains)
    assert matched_accuracy(labels, model.labels_) > 0.95
    texts = [str(one.message) for one in said]
    if calibration is None:
        assert len(texts) == 1
        assert "too sure of itself" in texts[0]
        assert "pass calibration='temperature'" in texts[0]
        assert not issubclass(said[0].category, IdentifiabilityWarning)
    else:
        assert texts == []


# ---- score, adapt, bootstrap ------------------------------------------------------


def test_score_survives_classes_that_a_domain_does_not_have(seed):
    """Where classes never meet, a row on the wrong side is not infinitely unlikely."""
    X, domains = np.repeat([[-1.0], [1.0]], 200, axis=0), np.repeat([0, 1], 200)

    def sign(X):
        return np.column_stack([X[:, 0] < 0, X[:, 0] > 0]).astype(float)

    model = DDFA(2, discriminator=sign, random_state=seed).fit(X, domains)
    assert_allclose(np.sort(model.prevalence_.ravel()), [0, 0, 1, 1], atol=1e-12)
    # As one row of 401 whose domain is anyone's guess.
    assert_allclose(model.score([[-1.0]], [1]), np.log(0.5 / 401))
    assert_allclose(model.score(X, domains), np.log(400.5 / 401))


def test_score_is_the_mean_over_domains_of_the_log_likelihood(gaussians, seed):
    data = gaussians
    model = DDFA(3, discriminator="logistic", random_state=seed)
    model.fit(data.X, data.domains)
    rows = np.arange(0, 3000, 7)
    X, domains = data.X[rows], data.domains[rows]
    through = model.predict_proba(X) @ model.domain_given_class_
    n = len(data.X)
    per_row = np.log([(n * q[d] + 0.2) / (n + 1) for q, d in zip(through, domains)])  # noqa: B905
    expected = np.mean([per_row[domains == d].mean() for d in range(5)])
    assert_allclose(model.score(X, domains), expected, rtol=1e-9)


def test_new_domain_and_intervals(gaussians, seed):
    data = gaussians
    known = data.domains < 4
    model = DDFA(3, discriminator="logistic", random_state=seed)
    model.fit(data.X[known], data.domains[known])
    order = match_rows(data.prevalence[:4].T, model.prevalence_.T)
    new = model.adapt(data.X[~known], random_state=seed)
    assert_allclose(new.prevalence[order], data.prevalence[4], atol=0.08)
    assert new.fit_score > 0.8
    assert model.adapt(data.X[~known] + 30, random_state=seed).fit_score < 0.1
    intervals = model.bootstrap(
        data.X[known], data.domains[known], n_resamples=20, random_state=seed
    )
    inside = (intervals.low <= model.prevalence_) & (
        model.prevalence_ <= intervals.high
    )
    assert inside.all()
    assert intervals.co_assignment.mean() > 0.8


# ---- rule of evidence 1 -----------------------------------------------------------


def test_labels_cannot_reach_fit(few, seed):
    X, domains = few
    parameters = inspect.signature(DDFA.fit).parameters
    assert list(parameters) == ["self", "X", "y", "domains", "sample_weight"]
    labels = (X[:, 0] > X[:, 0].mean()).astype(int)
    shuffled = np.random.default_rng(seed).permutation(labels)
    model = DDFA(2, discriminator="logistic", random_state=seed)
    plain = clone(model).fit(X, domains)
    for planted in (labels, shuffled):
        fitted = clone(model).fit(X, planted, domains=domains)
        assert_array_equal(fitted.prevalence_, plain.prevalence_)
        assert_array_equal(fitted.labels_, plain.labels_)
        assert fitted.score(X, planted, domains=domains) == plain.score(X, domains)


def test_prediction_in_blocks_and_at_once_agree(monkeypatch, seed):
    X, domains, _ = make_latent_shift(
        900, n_classes=3, n_domains=4, n_features=5, random_state=seed
    )
    model = DDFA(3, discriminator="logistic", random_state=seed).fit(X, domains)
    whole = model.predict_proba(X, domains)
    monkeypatch.setattr("shoal.ddfa._fitted.PREDICT_ROWS", 11)
    assert_allclose(model.predict_proba(X, domains), whole, atol=1e-6)
    assert_array_equal(model.predict(X, domains), model.labels_)


def test_a_function_is_asked_once_about_all_rows(seed):
    data = make_latent_shift(
        600, n_classes=2, n_domains=3, random_state=seed, return_bunch=True
    )
    asked = []

    def oracle(rows):
        asked.append(len(rows))
        return data.bayes_discriminator(rows)

    model = DDFA(2, discriminator=oracle, random_state=seed)
    model.fit(data.X, data.domains)
    asked.clear()
    model.predict(np.repeat(data.X, 40, axis=0))
    assert asked == [24_000]


def test_a_sample_of_rows_is_said_aloud_once(monkeypatch, seed):
    X, domains, _ = make_latent_shift(
        900, n_classes=3, n_domains=4, n_features=5, random_state=seed
    )
    model = DDFA(3, discriminator="logistic", random_state=seed)
    monkeypatch.setattr(
        "shoal.ddfa._estimator.list_discretizers",
        lambda *_: [hellinger_kmeans(m, max_samples=300) for m in (3, 6)],
    )
    with pytest.warns(SubsampleWarning, match="300 of 900 rows") as said:
        model.fit(X, domains)
    assert len(said) == 1
