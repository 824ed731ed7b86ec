"""Minimum volume: the smallest simplex of classes that explains every cluster.

Asks less of the data than anchors do: it is enough that clusters lie on every facet of
the simplex, spread widely ("sufficiently scattered"), even if none is at a corner.

References
----------
.. [1] Fu, Huang, Sidiropoulos and Ma (2019), "Nonnegative matrix factorization for
   signal and data analytics", doi:10.1109/MSP.2018.2877582.
"""

from typing import Any

from numpy.typing import NDArray

from shoal.probability import project_to_simplex
from shoal.stages.factorize.anchors import domain_given_cluster, factors_from_corners
from shoal.stages.factorize.polytope import check_outside, smallest_simplex
from shoal.stages.factorize.result import Solution

__all__ = ["volume"]

Array = NDArray[Any]


def volume(
    table: Array,
    n_classes: int,
    weight: Array,
    *,
    outside: float = 0.0,
    random_state: Any = None,
) -> Solution:
    """Factorize by the smallest simplex around the clusters' rows of q(d|c).

    Parameters
    ----------
    table : ndarray of shape (n_domains, n_clusters)
        ``cluster_given_domain`` without empty clusters.
    n_classes : int
    weight : ndarray of shape (n_domains,)
        q(d).
    outside : float, default=0.0
        Share of the mass that may lie beyond each facet; a little (0.05) helps on
        sampled tables. Anchors lighter than ``outside / (n_classes - 1)`` may be
        cut off.
    random_state : int, RandomState or None, default=None
    """
    check_outside(outside)
    rows, mass = domain_given_cluster(table, weight)
    corners, n_iter = smallest_simplex(
        rows, n_classes, weight=mass, outside=outside, random_state=random_state
    )
    found = factors_from_corners(table, project_to_simplex(corners), weight)
    return found._replace(n_iter=n_iter)
