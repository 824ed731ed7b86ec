"""What is measured at one point of the growth suite: each stage, each fit and predict.

Every task has two sides: ours, and what a user would write by hand with the library
alone (for a stage, the call it wraps). All tasks of a point see the same rows.
"""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.cluster import contingency_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shoal import DDFA, DomainMixture
from shoal.datasets import make_latent_shift
from shoal.probability import cluster_given_domain
from shoal.stages.adjust import Adjuster
from shoal.stages.discretize import KMeansDiscretizer
from shoal.stages.discriminate import Discriminator
from shoal.stages.factorize import factorize

# Models that only predict are fitted on so many rows.
TRAINING_ROWS = 10_000
BLOCK_ROWS = 100_000

Side = Callable[[], Any]


@dataclass(frozen=True)
class Size:
    """A point of the suite."""

    rows: int
    domains: int
    classes: int
    features: int


class Point:
    """One problem, and the tasks on it."""

    def __init__(self, size: Size) -> None:
        self.size = size
        made = make_latent_shift(
            size.rows,
            n_classes=size.classes,
            n_domains=size.domains,
            n_features=size.features,
            max_condition=None,
            random_state=0,
        )
        self.X, self.domains, _ = made
        rows = np.random.default_rng(0).permutation(size.rows)[:TRAINING_ROWS]
        self.few = self.X[rows], self.domains[rows]
        self.n_clusters = 2 * size.classes

    @cached_property
    def discriminator(self) -> Discriminator:
        """Logistic regression on a few rows."""
        model = Discriminator("logistic", cross_fit=None, random_state=0)
        return model.fit(*self.few)

    @cached_property
    def domain_given_x(self) -> np.ndarray:
        """q(d|x) of all rows."""
        blocks = range(0, self.size.rows, BLOCK_ROWS)
        parts = [
            self.discriminator.predict_proba(self.X[i : i + BLOCK_ROWS]) for i in blocks
        ]
        return np.concatenate(parts)

    @cached_property
    def clusters(self) -> np.ndarray:
        """Some clusters of the rows; which ones does not matter for counting them."""
        return np.asarray(self.domain_given_x.argmax(axis=1) % self.n_clusters)

    @cached_property
    def ddfa(self) -> DDFA:
        """DDFA on a few rows."""
        model = DDFA(self.size.classes, discriminator="logistic", cross_fit=None)
        return model.set_params(random_state=0).fit(*self.few)

    @cached_property
    def mixture(self) -> DomainMixture:
        """DomainMixture on a few rows."""
        model = DomainMixture(self.size.classes, search=False, random_state=0)
        return model.fit(*self.few)

    def tasks(self) -> Iterator[tuple[str, Side, Side]]:
        """Name, ours and by hand; what they need is made when they are reached."""
        yield "discriminate", self.discriminate, self.classify
        self.domain_given_x  # noqa: B018 (made outside the clock)
        yield "discretize", self.discretize, self.cluster
        self.clusters  # noqa: B018
        yield "factorize", self.factorize, self.count_and_nmf
        self.ddfa  # noqa: B018
        yield "adjust", self.adjust, self.invert
        yield "DDFA.predict", self.ddfa_predict, self.classify_and_adjust
        self.mixture  # noqa: B018
        yield "DomainMixture.predict", self.mixture_predict, self.softmax
        yield "DomainMixture.fit", self.mixture_fit, self.classify
        yield "DDFA.fit", self.ddfa_fit, self.by_hand

    # ---- stages ---------------------------------------------------------------------

    def discriminate(self) -> Any:
        """Our discriminator, in-sample."""
        return Discriminator("logistic", cross_fit=None, random_state=0).fit(
            self.X, self.domains
        )

    def classify(self) -> np.ndarray:
        """Return the domain probabilities of the library's classifier."""
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        proba: np.ndarray = model.fit(self.X, self.domains).predict_proba(self.X)
        return proba

    def discretize(self) -> Any:
        """K-means as DDFA asks for it."""
        kmeans = KMeansDiscretizer(self.n_clusters, metric="hellinger", random_state=0)
        return kmeans.fit(self.domain_given_x)

    def cluster(self) -> Any:
        """K-means over all rows, same restarts."""
        kmeans = KMeans(self.n_clusters, n_init=5, max_iter=100, random_state=0)
        return kmeans.fit(np.sqrt(self.domain_given_x))

    def factorize(self) -> Any:
        """Counts of all rows, then anchors."""
        shape = self.n_clusters, self.size.domains
        table = cluster_given_domain(self.clusters, self.domains, *shape)
        return factorize(table, self.size.classes, method="nmf", random_state=0)

    def count_and_nmf(self) -> Any:
        """Return the same with the library."""
        counts = contingency_matrix(self.domains, self.clusters)
        table = counts / counts.sum(axis=1, keepdims=True)
        nmf = NMF(self.size.classes, init="random", random_state=0)
        return nmf.fit_transform(table)

    def adjust(self) -> np.ndarray:
        """Return the published adjustment, checked."""
        table = self.ddfa.domain_given_class_
        return Adjuster("pinv").fit(table).predict_proba(self.domain_given_x)

    def invert(self) -> np.ndarray:
        """Return the published adjustment by hand."""
        return invert(self.domain_given_x, self.ddfa.domain_given_class_)

    # ---- whole estimators -----------------------------------------------------------

    def ddfa_fit(self) -> Any:
        """DDFA with its defaults: five folds, three numbers of clusters."""
        model = DDFA(self.size.classes, discriminator="logistic", random_state=0)
        return model.fit(self.X, self.domains)

    def by_hand(self) -> np.ndarray:
        """Classifier, k-means, NMF, pseudo-inverse: the paper in a dozen lines."""
        k = self.size.classes
        q = self.classify()
        clusters = KMeans(k, n_init=5, random_state=0).fit_predict(q)
        counts = contingency_matrix(self.domains, clusters)
        table = counts / counts.sum(axis=1, keepdims=True)
        prevalence = NMF(k, init="random", random_state=0).fit_transform(table)
        prevalence = prevalence + 1e-12
        prevalence /= prevalence.sum(axis=1, keepdims=True)
        T = (prevalence / prevalence.sum(axis=0)).T
        joint = invert(q, T) * T.T[self.domains]
        return np.asarray(joint.argmax(axis=1))

    def ddfa_predict(self) -> np.ndarray:
        """Labels from a fitted DDFA."""
        return self.ddfa.predict(self.X)

    def classify_and_adjust(self) -> np.ndarray:
        """Return the fitted classifier, then the fitted adjuster."""
        q = self.ddfa.discriminator_.estimator_.predict_proba(self.X)
        return self.ddfa.adjuster_.predict_proba(q)

    def mixture_fit(self) -> Any:
        """One climb; the search works on a sample, and takes as long for any rows."""
        model = DomainMixture(self.size.classes, search=False, random_state=0)
        return model.fit(self.X, self.domains)

    def mixture_predict(self) -> np.ndarray:
        """Labels from a fitted DomainMixture."""
        return self.mixture.predict(self.X)

    def softmax(self) -> np.ndarray:
        """Softmax(XW), bare, with as many columns as the mixture has weights for."""
        weights = self.mixture.weights_[:, : self.X.shape[1]].T
        return np.asarray(softmax(self.X @ weights, axis=1))


def invert(q: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Multiply by the pseudo-inverse; clip and scale to distributions."""
    g = np.maximum(q @ np.linalg.pinv(table), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # rows without a class
        return np.asarray(g / g.sum(axis=1, keepdims=True))
