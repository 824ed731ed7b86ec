"""DiscreteMixture on numeric rows: the naive variants of Appendix H."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DiscreteMixture
from shoal.metrics import matched_accuracy
from shoal.probability import match_rows


def separated_rows(rng, n_rows=2000):
    """Three classes of rows, far apart, with even noise (ICA needs it not Gaussian)."""
    centers = np.array([[0, 0, 0, 0], [9, 0, 0, 0], [0, 9, 0, 0]])
    prevalence = np.array(
        [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.1, 0.7], [0.4, 0.3, 0.3]]
    )
    codes = np.repeat(np.arange(4), n_rows)
    labels = np.concatenate([rng.choice(3, n_rows, p=mix) for mix in prevalence])
    return (
        centers[labels] + rng.uniform(-2, 2, size=(4 * n_rows, 4)),
        codes,
        labels,
        prevalence,
    )


class CountingTransformer(TransformerMixin, BaseEstimator):
    """Centers the rows, and counts how often it was fitted."""

    fits = 0

    def fit(self, X, y=None):
        type(self).fits += 1
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.mark.parametrize(
    "representation", [None, "identity", "pca", "ica", StandardScaler()]
)
def test_naive_variants_find_separated_classes(representation, seed):
    X, codes, labels, prevalence = separated_rows(np.random.default_rng(seed))
    model = DiscreteMixture(
        3, representation=representation, n_words=9, random_state=seed
    )
    model.fit(X, codes)
    assert matched_accuracy(labels, model.labels_) > 0.98
    order = match_rows(prevalence.T, model.prevalence_.T)
    assert np.abs(model.prevalence_[:, order] - prevalence).mean() < 0.03
    assert_array_equal(model.labels_, model.predict(X, codes))
    assert_array_equal(model.vocabulary_, range(9))
    # a class per cluster, whatever the row (Algorithm 4)
    clusters, proba = model.discretizer_.predict(X), model.predict_proba(X, 2)
    for cluster in range(9):
        assert np.ptp(proba[clusters == cluster], axis=0).max() == 0


@pytest.mark.parametrize("representation", ["pca", "ica"])
def test_dimensions_are_as_many_as_domains(representation, seed):
    X, codes, _, _ = separated_rows(np.random.default_rng(seed))
    model = DiscreteMixture(2, representation=representation, random_state=0)
    model.fit(X[codes < 3], codes[codes < 3])
    assert model.discretizer_[-1].cluster_centers_.shape == (6, 3)  # 3 clusters a class


def test_representation_is_fitted_once_on_training_rows(seed):
    X, codes, _, _ = separated_rows(np.random.default_rng(seed))
    given = CountingTransformer()
    CountingTransformer.fits = 0
    model = DiscreteMixture(3, representation=given, random_state=0).fit(X, codes)
    before = model.predict(X[:50], codes[:50])
    model.transform(X[codes == 1])
    model.score(X[codes > 1], codes[codes > 1])
    assert CountingTransformer.fits == 1
    assert not hasattr(given, "mean_")
    assert_array_equal(model.discretizer_[0].mean_, X.mean(axis=0))
    # rows keep their cluster whatever rows come along (ERRATA 8 of the paper)
    assert_array_equal(model.predict(X[:1], codes[:1]), before[:1])


def test_novelty_of_numeric_rows_is_a_distance(seed):
    X, codes, _, _ = separated_rows(np.random.default_rng(seed))
    model = DiscreteMixture(3, n_words=6, random_state=0).fit(X, codes)
    far = X[:5] + 1000
    nearest = np.linalg.norm(
        far[:, None] - model.discretizer_[-1].cluster_centers_, axis=2
    )
    assert_allclose(model._novelty(far), nearest.min(axis=1))
    assert model._novelty(far).min() > model._novelty(X).max()


def test_same_seed_same_fit(seed):
    X, codes, _, _ = separated_rows(np.random.default_rng(seed))
    model = DiscreteMixture(representation="pca", n_words=7, random_state=seed)
    first, second = clone(model).fit(X, codes), clone(model).fit(X, codes)
    assert_array_equal(first.prevalence_, second.prevalence_)
    generator = np.random.RandomState(seed)
    third = clone(model).set_params(random_state=generator).fit(X, codes)
    assert_array_equal(third.prevalence_, first.prevalence_)


def test_pipeline(seed):
    X, codes, labels, _ = separated_rows(np.random.default_rng(seed))
    naive = DiscreteMixture(3, representation="pca", n_words=9, random_state=0)
    model = make_pipeline(StandardScaler(), naive).fit(X, codes)
    assert matched_accuracy(labels, model.predict(X)) > 0.9
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    scores = cross_validate(model, X, codes, cv=folds)
    assert (scores["test_score"] > np.log(1 / 4)).all()
