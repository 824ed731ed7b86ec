"""Discretize: from points f(x) to clusters c(x), the second stage (Algorithm 1).

Three ways: k-means (as published), the point masses of the proof of Theorem 2, and
clusters that are given. Points are rows of q(d|x), or of any other representation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from shoal.stages._kmeans import (
    DiscretizerBase,
    KMeansDiscretizer,
    assign_to_centers,
    kmeans,
)
from shoal.validation._arguments import is_whole
from shoal.validation._domains import encode_column

__all__ = [
    "GivenClusters",
    "KMeansDiscretizer",
    "PointMassDiscretizer",
    "assign_to_centers",
    "assign_to_masses",
    "find_point_masses",
    "kmeans",
]

Array = np.ndarray[Any, Any]

# ---- Clusters that are known beforehand ----------------------------------------------


class GivenClusters(DiscretizerBase):
    """Clusters that are known beforehand.

    Parameters
    ----------
    clusters : array-like of shape (n_samples,) or callable
        The cluster of each row of fit, of any hashable kind; or a function from points
        to such an array.

    Attributes
    ----------
    clusters_ : ndarray of shape (n_clusters_,)
        Distinct clusters as given, sorted; their positions are what predict returns.
    cluster_centers_ : ndarray of shape (n_clusters_, n_columns)
        Mean point of each cluster. Where ``clusters`` is an array, predict gives the
        cluster with the nearest mean; a function is simply called again.
    labels_ : ndarray of shape (n_samples,)
    n_clusters_ : int

    Examples
    --------
    >>> GivenClusters(["u", "v", "u"]).fit([[0.1], [0.9], [0.2]]).predict([[0.0]])
    array([0])
    """

    def __init__(self, clusters: ArrayLike | Callable[[Array], ArrayLike]) -> None:
        self.clusters = clusters

    def _learn(self, points: Array, weight: Array | None) -> None:
        given = self.clusters(points) if callable(self.clusters) else self.clusters
        self.labels_, self.clusters_ = encode_column(given, name="clusters")
        if len(self.labels_) != len(points):
            raise ValueError(
                f"clusters has {len(self.labels_)} entries, there are {len(points)} "
                "points; pass one cluster per row"
            )
        self.n_clusters_ = len(self.clusters_)
        self.cluster_centers_ = np.stack(
            [_mean(points, weight, self.labels_ == c) for c in range(self.n_clusters_)]
        )

    def _assign(self, points: Array) -> Array:
        if not callable(self.clusters):
            return assign_to_centers(points, self.cluster_centers_)
        codes, names = encode_column(self.clusters(points), name="clusters")
        known = {name: code for code, name in enumerate(self.clusters_.tolist())}
        new = [name for name in names.tolist() if name not in known]
        if new:
            raise ValueError(f"clusters gave {new[0]!r}, which fit has not seen")
        return np.array([known[name] for name in names.tolist()], dtype=np.intp)[codes]


def _mean(points: Array, weight: Array | None, rows: Array) -> Array:
    """Weighted mean of some rows, plain where they have no weight."""
    chosen = points[rows]
    if weight is None or not weight[rows].any():
        return np.asarray(chosen.mean(axis=0))
    return np.asarray(np.average(chosen, axis=0, weights=weight[rows]))


# ---- Point masses: the discretization in the proof of Theorem 2 ----------------------

# Directions along which rows are sorted to rule out most of them as masses.
N_DIRECTIONS = 4
# Rows to try, in units of 1 / epsilon: no mass escapes but for a chance of exp(-25).
N_TRIES = 25


def find_point_masses(
    points: ArrayLike,
    epsilon: float = 0.01,
    *,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Points on which at least a share ``epsilon`` of all rows falls.

    The construction in the proof of Theorem 2. A row starts a mass when the rows
    within ``tol`` of it, in every column, weigh ``epsilon`` or more; the mass sits in
    the middle of them.

    Two shortcuts keep this fast. Rows are sorted along a few random directions: whoever
    has too little weight nearby on one of them cannot be a mass. And where many rows
    are left, some are tried that are drawn by weight: heavy masses cannot hide.

    Parameters
    ----------
    points : array-like of shape (n_samples, n_columns)
    epsilon : float, default=0.01
        Smallest share of a mass; the epsilon of assumption A.4.
    tol : float, default=1e-6
        Largest difference, in any column, of points that count as equal.
    sample_weight : array-like of shape (n_samples,), default=None

    Returns
    -------
    locations : ndarray of shape (n_masses, n_columns)
        Heaviest first; at most 1 / epsilon of them, possibly none.
    shares : ndarray of shape (n_masses,)
        Share of all rows on each.

    Examples
    --------
    >>> find_point_masses([[0.0], [0.5], [0.5], [0.9]], epsilon=0.5)
    (array([[0.5]]), array([0.5]))
    """
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon must be a share, 0 < epsilon <= 1, got {epsilon!r}")
    if not 0 <= tol < np.inf:
        raise ValueError(f"tol must be finite and not negative, got {tol!r}")
    rows, share = _merge_copies(np.asarray(points), sample_weight)
    tree = KDTree(rows)
    enough = epsilon * (1 - 1e-9)  # the last bits of a sum decide nothing
    alive = np.ones(len(rows), dtype=bool)

    def around(point: Array) -> Array:
        near = tree.query_ball_point(point, tol, p=np.inf, return_sorted=True)
        rows_near = np.asarray(near, dtype=np.intp)
        return rows_near[alive[rows_near]]

    found: list[tuple[float, Array]] = []
    for row in _candidates(share, _mass_bound(rows, share, tol), enough):
        if not alive[row]:
            continue
        near = around(rows[row])
        if share[near].sum() < enough:
            continue
        middle = (rows[near].min(axis=0) + rows[near].max(axis=0)) / 2
        near = around(middle)
        alive[near] = False
        found.append((float(share[near].sum()), middle))
    found.sort(key=lambda mass: -mass[0])
    locations = np.array([middle for _, middle in found], dtype=rows.dtype)
    return locations.reshape(-1, rows.shape[1]), np.array([mass for mass, _ in found])


def assign_to_masses(points: ArrayLike, locations: Array, tol: float = 1e-6) -> Array:
    """Index of the mass within ``tol`` of each row; ``len(locations)`` for the rest."""
    rows = np.asarray(points)
    if not len(locations):
        return np.zeros(len(rows), dtype=np.intp)
    beyond = np.nextafter(tol, np.inf)  # the tree's own bound is strict
    tree = KDTree(locations.astype(float))
    _, mass = tree.query(rows.astype(float), p=np.inf, distance_upper_bound=beyond)
    return np.asarray(mass, dtype=np.intp)


def _merge_copies(points: Array, sample_weight: Any) -> tuple[Array, Array]:
    """Distinct rows and the share of all rows that each stands for."""
    weight = np.ones(len(points)) if sample_weight is None else sample_weight
    rows = np.ascontiguousarray(points + 0.0)  # -0.0 is 0.0, but not in bytes
    as_bytes = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    _, first, copies = np.unique(
        as_bytes.ravel(), return_index=True, return_inverse=True
    )
    share = np.bincount(copies, weights=weight)
    return rows[first], share / share.sum()


def _candidates(share: Array, bound: Array, enough: float) -> Array:
    """Rows that may start a mass, the most promising first."""
    possible = np.flatnonzero(bound >= enough)
    n_tries = int(np.ceil(N_TRIES / enough))
    if len(possible) > n_tries:
        # Evenly spaced steps through the cumulated weight, in a random order of rows.
        shuffled = np.random.default_rng(0).permutation(possible)
        height = np.cumsum(share[shuffled])
        steps = (np.arange(n_tries) + 0.5) / n_tries * height[-1]
        possible = np.unique(shuffled[np.searchsorted(height, steps)])
    return possible[np.argsort(-bound[possible], kind="stable")]


def _mass_bound(rows: Array, share: Array, tol: float) -> Array:
    """Weight that a ball around each row can have at most.

    Directions have unit 1-norm, so close points are as close on each of them.
    """
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(rows.shape[1], N_DIRECTIONS))
    directions /= np.abs(directions).sum(axis=0)
    slack = tol * (1 + 1e-9) + 8 * np.finfo(rows.dtype).eps * np.abs(rows).max()
    bound = np.full(len(share), np.inf)
    for values in (rows @ directions).T:
        order = np.argsort(values)
        along = values[order]
        total = np.concatenate([[0], np.cumsum(share[order])])
        low = np.searchsorted(along, values - slack, side="left")
        high = np.searchsorted(along, values + slack, side="right")
        bound = np.minimum(bound, total[high] - total[low])
    return bound


class PointMassDiscretizer(DiscretizerBase):
    """Point masses of at least epsilon, and one group for all other points.

    With the oracle discriminator each anchor sub-domain is one such mass (Lemma 3), so
    the clusters contain an anchor for every class (Theorem 2).

    Parameters
    ----------
    epsilon : float, default=0.01
        Smallest share of a mass; the epsilon of assumption A.4.
    tol : float, default=1e-6
        Largest difference, in any column, of points that count as equal.

    Attributes
    ----------
    masses_ : ndarray of shape (n_clusters_ - 1, n_columns)
        Location of each mass, the heaviest first.
    shares_ : ndarray of shape (n_clusters_ - 1,)
        Share of the rows of fit on each mass.
    labels_ : ndarray of shape (n_samples,)
        Clusters of the rows of fit; the last one is the rest.
    n_clusters_ : int
        Number of masses plus 1.

    Examples
    --------
    >>> points = [[1.0, 0.0]] * 2 + [[0.0, 1.0]] * 2 + [[0.3, 0.7]]
    >>> PointMassDiscretizer(epsilon=0.4).fit(points).labels_
    array([1, 1, 0, 0, 2])
    """

    def __init__(self, epsilon: float = 0.01, *, tol: float = 1e-6) -> None:
        self.epsilon = epsilon
        self.tol = tol

    def _learn(self, points: Array, weight: Array | None) -> None:
        self.masses_, self.shares_ = find_point_masses(
            points, self.epsilon, tol=self.tol, sample_weight=weight
        )
        if not len(self.masses_):
            raise ValueError(
                f"no point has a share of epsilon={self.epsilon} of the {len(points)} "
                f"rows within tol={self.tol}; lower epsilon, raise tol, or use k-means"
            )
        self.labels_ = self._assign(points)
        self.n_clusters_ = len(self.masses_) + 1

    def _assign(self, points: Array) -> Array:
        return assign_to_masses(points, self.masses_, self.tol)


# ---- from what the user wrote to discretizers that can be fitted ---------------------

# "kmeans" tries these many clusters a class.
CLUSTERS_PER_CLASS = (1, 2, 3)


def hellinger_kmeans(n_clusters: int, **options: Any) -> KMeansDiscretizer:
    """K-means for rows that are distributions."""
    return KMeansDiscretizer(n_clusters, metric="hellinger", **options)


def check_discretizer(
    discretizer: Any, n_classes: int | None, n_samples: int, *, allow_fewer: bool
) -> None:
    """Refuse what cannot work, before anything is fitted.

    Parameters
    ----------
    discretizer : as in :class:`shoal.DDFA`
    n_classes : int or None
    n_samples : int
    allow_fewer : bool
        Whether the factorizer takes fewer clusters than classes.
    """
    if isinstance(discretizer, (str, type)):
        if discretizer != "kmeans":
            raise ValueError(_wrong_kind(discretizer))
        return
    wanted = getattr(discretizer, "n_clusters", discretizer)
    if is_whole(wanted):
        least = 1 if n_classes is None else n_classes
        if wanted < least and not allow_fewer:
            raise ValueError(
                f"discretizer makes {wanted} clusters, too few for n_classes={least}; "
                "make at least as many clusters as classes"
            )
        return
    given = getattr(discretizer, "clusters", discretizer)
    if isinstance(given, (bool, int, float, complex)):
        raise ValueError(
            f"discretizer must be a whole number of clusters, got {discretizer!r}"
        )
    if given is None:
        return
    listed = hasattr(given, "__len__")
    fits = hasattr(given, "fit") or callable(given)
    if not (listed or fits):
        raise ValueError(_wrong_kind(discretizer))
    if listed and len(given) != n_samples:
        raise ValueError(
            f"discretizer has {len(given)} clusters for {n_samples} rows of X; pass "
            "the cluster of each row"
        )


def _wrong_kind(discretizer: Any) -> str:
    return (
        "discretizer must be 'kmeans', None, a number of clusters, an object, a "
        f"function or the cluster of each row, got {discretizer!r}"
    )


def list_discretizers(discretizer: Any, n_classes: int, order: Array) -> list[Any]:
    """Unfitted discretizers to choose from, fewest clusters first; none for corners.

    Parameters
    ----------
    discretizer : as in :class:`shoal.DDFA`
    n_classes : int
        The least number of clusters.
    order : ndarray of shape (n_rows,)
        Which row of X each row to fit is, for clusters that are given.
    """
    given = getattr(discretizer, "clusters", discretizer)
    if given is None:
        return []
    if isinstance(given, str):
        return [hellinger_kmeans(factor * n_classes) for factor in CLUSTERS_PER_CLASS]
    if is_whole(given):
        return [hellinger_kmeans(max(int(given), n_classes))]
    if hasattr(given, "fit"):
        return [given]
    return [GivenClusters(given if callable(given) else _pick(given, order))]


def _pick(clusters: Any, order: Array) -> Array:
    """Some of the clusters, of any kind: numpy would make text of the list [1, "1"]."""
    if not isinstance(clusters, np.ndarray):
        clusters = np.fromiter(clusters, dtype=object, count=len(clusters))
    return np.asarray(clusters[order])
