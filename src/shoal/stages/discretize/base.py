"""What every discretizer shares: checked points in, clusters out."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from shoal.validation import check_X

__all__ = ["DiscretizerBase"]

Array = np.ndarray[Any, Any]


class DiscretizerBase(ClusterMixin, BaseEstimator):
    """Contract: ``fit`` sets ``labels_`` and ``n_clusters_``; ``predict`` assigns."""

    labels_: Array

    def _assign(self, points: Array) -> Array:
        raise NotImplementedError

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
