"""Clusters that are known beforehand."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.stages.discretize.base import DiscretizerBase
from shoal.stages.discretize.centers import assign_to_centers
from shoal.validation import encode_column

__all__ = ["GivenClusters"]

Array = np.ndarray[Any, Any]


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
