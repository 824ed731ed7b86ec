"""From what the user wrote to discretizers that can be fitted."""

from typing import Any

import numpy as np

from shoal.stages.discretize._kmeans import KMeansDiscretizer
from shoal.stages.discretize._masses import GivenClusters
from shoal.validation import is_whole

Array = np.ndarray[Any, Any]

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
    if isinstance(discretizer, str):
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
    if isinstance(given, type) or not (listed or fits):
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
