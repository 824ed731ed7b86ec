"""Starts from how rows look: partitions into k classes that are blind to domains."""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from shoal.likelihood._problem import MixtureProblem
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import Start, cluster_rows
from shoal.probability import normalize_rows
from shoal.validation import is_sparse

Array = np.ndarray[Any, Any]


def look_starts(
    problem: MixtureProblem,
    n_classes: int,
    rng: np.random.Generator,
    *,
    quick: bool = False,
) -> list[Start]:
    """Starts from k-means and, unless ``quick`` or sparse, two Gaussian mixtures."""
    points = problem.design
    found = {"k-means": kmeans_clusters(points, n_classes, problem.row_weight, rng)}
    if not quick and not is_sparse(points):
        for covariance in SETTINGS.look_covariances:
            clusters = gaussian_clusters(points, n_classes, covariance, rng)
            found[f"gaussian-{covariance}"] = clusters
    return [partition_start(name, found[name], n_classes) for name in found]


def partition_start(name: str, clusters: Array, n_classes: int) -> Start:
    """The classes of a partition as they are: its table of classes by domains."""
    return Start(name, clusters, n_classes, _domain_given_cluster)


def kmeans_clusters(
    points: Any, n_classes: int, row_weight: Array, rng: np.random.Generator
) -> Array:
    """K-means from a finer partition whose centres Ward's rule has merged.

    Of many classes, k-means alone leaves some pairs in one cluster and cuts others in
    two.
    """
    if is_sparse(points):
        return cluster_rows(points, n_classes, row_weight, rng)
    few, least = SETTINGS.clusters_per_class[0], SETTINGS.least_clusters[0]
    n_fine = min(max(few * n_classes, least), len(points))
    fine = cluster_rows(points, n_fine, row_weight, rng)
    centres, mass = _centres(points, fine, row_weight)
    if len(centres) <= n_classes:  # rows that repeat
        return cluster_rows(points, n_classes, row_weight, rng)
    groups = AgglomerativeClustering(n_classes).fit_predict(centres)
    merged, _ = _centres(centres, groups, mass)
    return cluster_rows(points, n_classes, row_weight, rng, init=merged)


def _centres(points: Array, clusters: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted means of the clusters that have weight, and that weight."""
    mass = np.bincount(clusters, weight)
    belongs = csr_array(
        (weight, (clusters, np.arange(len(points)))), shape=(len(mass), len(points))
    )
    solid = mass > 0
    return (belongs @ points)[solid] / mass[solid, None], mass[solid]


def gaussian_clusters(
    points: Array, n_classes: int, covariance: str, rng: np.random.Generator
) -> Array:
    """Classes of a Gaussian mixture, fitted to a sample when there are many rows."""
    mixture = GaussianMixture(
        n_classes,
        covariance_type=covariance,
        reg_covar=SETTINGS.look_floor,
        max_iter=SETTINGS.look_iterations,
        random_state=int(rng.integers(2**31)),
    )
    rows = np.arange(len(points))
    if len(rows) > SETTINGS.clustering_rows:
        rows = np.sort(rng.choice(len(rows), SETTINGS.clustering_rows, replace=False))
    with warnings.catch_warnings():
        # a start need not have converged, and repeated rows do no harm
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(points[rows])
    return np.asarray(mixture.predict(points))


def _domain_given_cluster(table: Array) -> Array:
    """A class without training rows comes from anywhere."""
    return normalize_rows(table + SETTINGS.start_floor * table.sum() / table.size)
