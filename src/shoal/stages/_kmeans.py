"""K-means by scikit-learn or faiss, over all rows or a sample that is said aloud."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from shoal.exceptions import SubsampleWarning
from shoal.validation import check_choice, check_whole, check_X
from shoal.validation._arguments import is_whole
from shoal.validation._domains import check_sample_weight

Array = np.ndarray[Any, Any]

# ---- What every discretizer shares: checked points in, clusters out ------------------


class DiscretizerBase(ClusterMixin, BaseEstimator):
    """Contract: ``fit`` sets ``labels_`` and ``n_clusters_``; ``predict`` assigns."""

    labels_: Array
    n_clusters_: int

    def _learn(self, points: Array, weight: Array | None) -> None:
        """Set ``labels_`` and ``n_clusters_``; points and weight are checked."""
        raise NotImplementedError

    def _assign(self, points: Array) -> Array:
        raise NotImplementedError

    def fit(self, points: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        points : array-like of shape (n_samples, n_columns)
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        points = check_X(self, points, reset=True)
        self._learn(points, check_sample_weight(sample_weight, len(points)))
        return self

    def predict(self, points: Any) -> Array:
        """Cluster of each row, an integer from 0 to ``n_clusters_ - 1``."""
        check_is_fitted(self)
        return self._assign(check_X(self, points))


# ---- k-means -------------------------------------------------------------------------

BLOCK_ROWS = 8192  # assigned at once: what they need stays in cache
# Rows for the centers, unless told otherwise. Of a million, so many cost no accuracy
# that we could measure and a seventh of the time or less (benchmarks/kmeans.py).
MAX_SAMPLES = 100_000


def kmeans(
    points: ArrayLike,
    n_clusters: int,
    *,
    sample_weight: ArrayLike | None = None,
    **options: Any,
) -> tuple[Array, Array]:
    """Centers of k-means and the cluster of each row.

    Parameters
    ----------
    points : array-like of shape (n_samples, n_columns)
    n_clusters : int
        Number of clusters wanted. If there are not so many distinct points, each of
        them is a cluster of its own: nothing is lost, and fewer centers come back.
    sample_weight : array-like of shape (n_samples,), default=None
    **options
        Those of :class:`KMeansDiscretizer`.

    Returns
    -------
    centers : ndarray of shape (n_centers, n_columns)
        ``n_centers <= n_clusters``; each is the nearest to at least one row.
    clusters : ndarray of shape (n_samples,)
        Index of the nearest center.

    Notes
    -----
    With ``metric="hellinger"`` the centers are those of the square roots.

    Examples
    --------
    >>> centers, clusters = kmeans([[0.0], [0.1], [0.9], [1.0]], 2, random_state=0)
    >>> clusters[0] == clusters[1], clusters[2] == clusters[3], len(set(clusters))
    (np.True_, np.True_, 2)
    """
    weight = None if sample_weight is None else np.asarray(sample_weight)
    discretizer = KMeansDiscretizer(n_clusters, **options)
    discretizer._learn(np.asarray(points), weight)
    return discretizer.cluster_centers_, discretizer.labels_


@dataclass(eq=False, repr=False)
class KMeansDiscretizer(DiscretizerBase):
    """K-means; its centers are found on a stated sample where there are many rows.

    Parameters
    ----------
    n_clusters : int, default=8
        Clusters wanted (m of the paper), at least the number of classes. With fewer
        distinct points each of them is a cluster of its own.
    n_init : int, default=5
        Restarts; the best is kept.
    max_iter : int, default=100
        Iterations of each restart.
    metric : {"euclidean", "hellinger"}, default="euclidean"
        Distance between rows, or between the square roots of rows that are
        distributions: there, the noise of small and large probabilities is alike.
    engine : {"sklearn", "faiss"}, default="sklearn"
        scikit-learn's Lloyd with k-means++ starts, or faiss with random starts (the
        published choice, in single precision).
    max_samples : int, default=100_000
        With more rows, find the centers on a random sample of so many, with a
        SubsampleWarning; all rows are still assigned and counted. Measured on
        1,000,000 rows this costs no accuracy and is 7 to 10 times faster, while
        mini-batches lost up to 9 points (docs, "What grows with what"). None uses all
        rows.
    max_points_per_centroid : int, default=None
        For ``engine="faiss"``: 256 repeats faiss's own default, and with it the
        published clusters, by sampling so many rows per cluster, with a
        SubsampleWarning. None uses all rows.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters_, n_columns)
        Centers of the square roots for ``metric="hellinger"``.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the rows of fit.
    n_clusters_ : int
        Clusters found: ``n_clusters``, or the number of distinct points if smaller.

    Examples
    --------
    >>> points = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.2, 0.8]]
    >>> discretizer = KMeansDiscretizer(2, random_state=0).fit(points)
    >>> discretizer.n_clusters_
    2
    >>> bool(discretizer.predict([[1.0, 0.0]]) == discretizer.labels_[0])
    True
    """

    n_clusters: int = 8
    _: KW_ONLY
    n_init: int = 5
    max_iter: int = 100
    metric: str = "euclidean"
    engine: str = "sklearn"
    max_samples: int | None = MAX_SAMPLES
    max_points_per_centroid: int | None = None
    random_state: Any = None

    def _learn(self, points: Array, weight: Array | None) -> None:
        self._check_settings()
        rows = embed(points, self.metric)
        seen, weight = self._stated_sample(rows, weight)
        centers = _distinct_rows(seen, self.n_clusters)
        if centers is None:
            by_faiss = self.engine == "faiss"
            find = self._faiss_centers if by_faiss else self._sklearn_centers
            centers = find(seen, weight)
        clusters = assign_to_centers(rows, centers)
        used = np.bincount(clusters, minlength=len(centers)) > 0
        self.cluster_centers_ = centers[used]
        self.labels_ = (np.cumsum(used) - 1)[clusters]
        self.n_clusters_ = len(self.cluster_centers_)

    def _assign(self, points: Array) -> Array:
        return assign_to_centers(embed(points, self.metric), self.cluster_centers_)

    def _check_settings(self) -> None:
        check_whole(
            1, n_clusters=self.n_clusters, n_init=self.n_init, max_iter=self.max_iter
        )
        check_choice(("euclidean", "hellinger"), metric=self.metric)
        check_choice(("sklearn", "faiss"), engine=self.engine)
        least = self.n_clusters
        most = self.max_samples
        if most is not None and not (is_whole(most) and most >= least):
            raise ValueError(
                f"max_samples must be None or a whole number from n_clusters={least}, "
                f"got {most!r}"
            )
        if self.max_points_per_centroid is None:
            return
        if self.engine != "faiss":
            raise ValueError(
                "max_points_per_centroid is an option of engine='faiss'; use "
                "max_samples"
            )
        check_whole(1, max_points_per_centroid=self.max_points_per_centroid)

    def _stated_sample(
        self, points: Array, weight: Array | None
    ) -> tuple[Array, Array | None]:
        """Rows that k-means will see: those with weight, at most ``max_samples``."""
        rows = np.arange(len(points)) if weight is None else np.flatnonzero(weight > 0)
        if self.max_samples is not None and len(rows) > self.max_samples:
            _warn_sample(self.max_samples, len(rows), "max_samples")
            rng = check_random_state(self.random_state)
            rows = np.sort(rng.choice(rows, self.max_samples, replace=False))
        if len(rows) == len(points):
            return points, weight
        return points[rows], None if weight is None else weight[rows]

    def _sklearn_centers(self, points: Array, weight: Array | None) -> Array:
        solver = KMeans(
            self.n_clusters,
            n_init=self.n_init,
            max_iter=self.max_iter,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            # Points that nearly coincide: centers that no row uses are dropped later.
            warnings.simplefilter("ignore", ConvergenceWarning)
            solver.fit(points, sample_weight=weight)
        return np.asarray(solver.cluster_centers_)

    def _faiss_centers(self, points: Array, weight: Array | None) -> Array:
        try:
            import faiss
        except ImportError as error:
            raise ImportError(
                "engine='faiss' needs the package faiss: pip install 'shoal[faiss]', "
                "or use engine='sklearn'"
            ) from error
        per_centroid = self.max_points_per_centroid or len(points)
        most = per_centroid * self.n_clusters
        if len(points) > most:
            _warn_sample(most, len(points), "max_points_per_centroid")
        solver = faiss.Kmeans(
            points.shape[1],
            self.n_clusters,
            niter=self.max_iter,
            nredo=self.n_init,
            seed=_as_seed(self.random_state),
            min_points_per_centroid=1,  # few rows are no reason to print on stderr
            max_points_per_centroid=per_centroid,
        )
        weights = None if weight is None else weight.astype(np.float32)
        solver.train(points.astype(np.float32), weights=weights)
        return np.asarray(solver.centroids, dtype=points.dtype)


def embed(points: ArrayLike, metric: str) -> Array:
    """Points between which the Euclidean distance is the metric asked for."""
    rows = np.asarray(points)
    if metric == "euclidean":
        return rows
    if (rows < 0).any():
        raise ValueError(
            "metric='hellinger' takes distributions, and points has negative values; "
            "use metric='euclidean'"
        )
    return np.asarray(np.sqrt(rows))


def assign_to_centers(points: ArrayLike, centers: Array) -> Array:
    """Index of the nearest center of each row; the first of equals.

    The nearest has the largest x . c - |c|^2 / 2. Centers are taken around their mean,
    which changes no order and keeps the digits of points far from the origin.
    """
    rows = np.asarray(points)
    middle = centers.mean(axis=0, dtype=np.float64)
    arms = centers - middle
    bias = arms @ middle + np.einsum("ij,ij->i", arms, arms) / 2
    clusters = np.empty(len(rows), dtype=np.intp)
    room = np.empty((len(centers), min(BLOCK_ROWS, len(rows))))
    for block in gen_batches(len(rows), BLOCK_ROWS):
        product = rows[block].astype(np.float64, copy=False) @ arms.T
        near = room[:, : len(product)]
        np.subtract(product.T, bias[:, None], out=near)
        clusters[block] = _first_largest(near)
    return clusters


def _first_largest(table: Array) -> Array:
    """``table.argmax(axis=0)``, for a few long rows.

    argmax goes entry by entry and guesses at each; these passes over whole rows take
    half its time. NaN is not less than anything, so that a column of them gives 0.
    """
    n_rows = len(table)
    rank = np.arange(n_rows, 0, -1).astype(np.min_scalar_type(n_rows))[:, None]
    leads = ~(table < table.max(axis=0))
    return np.asarray(n_rows - (leads * rank).max(axis=0))


def _warn_sample(n_seen: int, n_rows: int, option: str) -> None:
    warnings.warn(
        f"k-means sees a sample of {n_seen} of {n_rows} rows ({option}), and assigns "
        f"all of them; KMeansDiscretizer({option}=None) sees them all",
        SubsampleWarning,
        stacklevel=4,
    )


def _distinct_rows(points: Array, at_most: int) -> Array | None:
    """Sorted distinct rows if there are at most so many, else None.

    Looks at growing heads of the table, because the first rows usually settle it.
    """
    size = 4 * at_most
    while True:
        distinct = np.unique(points[:size], axis=0)
        if len(distinct) > at_most:
            return None
        if size >= len(points):
            return distinct
        size *= 8


def _as_seed(random_state: Any) -> int:
    if is_whole(random_state):
        return int(random_state) % 2**31
    return int(check_random_state(random_state).randint(2**31 - 1))
