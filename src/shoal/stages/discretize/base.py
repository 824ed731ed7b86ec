"""What every discretizer shares: checked points in, clusters out."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from shoal.validation import check_X

__all__ = ["DiscretizerBase", "check_weight"]

Array = np.ndarray[Any, Any]


def check_weight(sample_weight: Any, n_samples: int) -> Array | None:
    """Weights of rows: finite, not negative, not all zero; None stays None."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one entry per row ({n_samples}), got shape "
            f"{weight.shape}"
        )
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight must be finite, not negative and not all zero")
    return weight


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
