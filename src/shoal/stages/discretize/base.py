"""What every discretizer shares: checked points in, clusters out."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from shoal.validation import check_sample_weight, check_X

__all__ = ["DiscretizerBase"]

Array = np.ndarray[Any, Any]


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
        """Cluster of each row.

        Parameters
        ----------
        points : array-like of shape (n_samples, n_columns)

        Returns
        -------
        ndarray of shape (n_samples,)
            Integers from 0 to ``n_clusters_ - 1``.
        """
        check_is_fitted(self)
        return self._assign(check_X(self, points))
