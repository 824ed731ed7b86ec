"""The published configuration, part by part, and none of our corrections."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from shoal.datasets import make_latent_shift
from shoal.exceptions import IdentifiabilityWarning, SubsampleWarning
from shoal.probability import normalize_rows
from shoal.stages import published
from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.discriminate import Discriminator, EarlyStoppedMLP
from shoal.stages.factorize import Factorizer
from shoal_bench import paper


@pytest.fixture(scope="module")
def rows(seed):
    X, domains, _ = make_latent_shift(
        1500,
        prevalence=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]],
        domain_sizes=[1, 2, 3],
        separation=2,
        n_features=3,
        random_state=seed,
    )
    return X, domains


def fit(model, rows):
    with pytest.warns(SubsampleWarning, match="max_points_per_centroid"):
        return model.fit(*rows)


def test_every_part_is_the_published_one():
    model = paper.ddfa(4, random_state=7)
    assert isinstance(model.discriminator, Discriminator)
    scaler, network = model.discriminator.estimator
    assert isinstance(scaler, StandardScaler)
    assert isinstance(network, EarlyStoppedMLP)
    training = network.get_params()
    del training["hidden_layer_sizes"], training["validation_fraction"]
    assert training == {
        "alpha": 0.0,
        "batch_size": 32,
        "learning_rate_init": 1e-3,
        "max_epochs": 100,
        "patience": None,  # all epochs
        "random_state": None,  # seeded by the discriminator
    }
    assert model.discriminator.cross_fit is None
    assert model.discriminator.calibration is None
    assert model.domain_weight == model.discriminator.domain_weight == "size"
    assert isinstance(model.discretizer, KMeansDiscretizer)
    discretizer = model.discretizer.get_params()
    assert discretizer == {
        "n_clusters": 4,  # m = k
        "n_init": 5,
        "max_iter": 100,
        "metric": "euclidean",
        "engine": "faiss",
        "max_samples": None,
        "max_points_per_centroid": 256,  # faiss's own default
        "random_state": 7,
    }
    assert isinstance(model.factorizer, Factorizer)
    assert model.factorizer.method == "nmf"
    assert model.factorizer.options is None
    assert model.adjuster == "pinv"
    assert paper.ddfa(4, n_clusters=12).discretizer.n_clusters == 12


def test_without_faiss_all_rows_are_clustered_by_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(published, "find_spec", lambda name: None)
    discretizer = paper.ddfa(3).discretizer
    assert discretizer.engine == "sklearn"
    assert discretizer.max_points_per_centroid is None
    assert (discretizer.n_init, discretizer.max_iter) == (5, 100)


def test_the_discriminator_judges_its_own_rows_without_weights(rows, seed):
    model = fit(paper.ddfa(2, discriminator="logistic", random_state=seed), rows)
    X, domains = rows
    discriminator = model.discriminator_
    assert discriminator.held_out_loss_ is None
    assert discriminator.fitted_weight_ is None
    own = discriminator.estimator_.predict_proba(X)
    assert_allclose(discriminator.domain_given_x_, own)
    sizes = np.bincount(domains)
    assert_allclose(model.domain_weight_, sizes / sizes.sum())


def test_the_network_keeps_the_best_of_all_epochs(rows, seed):
    X, domains = rows
    first, again = (
        fit(paper.ddfa(2, random_state=seed), (X[:600], domains[:600]))
        for _ in range(2)
    )
    network = first.discriminator_.estimator_[-1]
    assert network.n_iter_ == len(network.held_out_losses_) == 100
    assert network.best_epoch_ == network.held_out_losses_.argmin()
    assert_array_equal(first.prevalence_, again.prevalence_)


def test_any_other_discriminator_is_taken_as_it_is():
    assert paper.ddfa(2, discriminator="logistic").discriminator.estimator == "logistic"
    given = LogisticRegression()
    assert paper.ddfa(2, discriminator=given).discriminator.estimator is given


def test_one_nmf_from_a_random_start_and_the_clipped_pseudo_inverse(rows, seed):
    model = fit(paper.ddfa(2, n_clusters=5, discriminator="logistic",
                           random_state=seed), rows)  # fmt: skip
    X, domains = rows
    found = model.factorization_
    assert found.method == "nmf"
    clusters = model.discretizer_.labels_
    table = np.zeros((3, 5))
    np.add.at(table, (domains, clusters), 1)
    product = found.class_given_domain @ found.cluster_given_class
    assert_allclose(product, normalize_rows(table), atol=0.05)
    raw = model.discriminator_.predict_proba(X) @ np.linalg.pinv(
        model.domain_given_class_
    )
    clipped = normalize_rows(np.maximum(raw, 0))
    assert_allclose(model._class_given_x(X), clipped, atol=1e-9)


def test_random_starts_end_in_different_places(rows):
    """What the anchors cure: with m = k, any start of NMF is a solution already."""
    discriminator = LogisticRegression()
    found = [
        fit(paper.ddfa(2, n_clusters=4, discriminator=discriminator,
                       random_state=seed), rows).prevalence_
        for seed in range(3)
    ]  # fmt: skip
    spread = np.ptp([np.sort(prevalence, axis=1) for prevalence in found], axis=0)
    assert spread.max() > 0.01


def test_fewer_clusters_than_classes_warn(rows, seed):
    """Appendix G runs m = 10 at k = 20."""
    model = paper.ddfa(3, n_clusters=2, discriminator="logistic", random_state=seed)
    with (
        pytest.warns(SubsampleWarning),
        pytest.warns(IdentifiabilityWarning, match="2 clusters are too few for"),
    ):
        model.fit(*rows)
    assert model.prevalence_.shape == (3, 3)
    assert_array_equal(np.isfinite(model.prevalence_), True)
