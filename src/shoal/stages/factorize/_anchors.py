"""Anchors: k clusters that only one class produces are corners of all the others.

Row c of ``domain_given_cluster``, q(d|c), mixes the rows of ``domain_given_class``
with weights q(y|c). Where every class has an anchor cluster (A.4), the k extreme rows
ARE ``domain_given_class``, and the rest is linear algebra and Bayes' rule.

References
----------
.. [1] Araujo et al. (2001), "The successive projections algorithm for variable
   selection", doi:10.1016/S0169-7439(01)00119-8.
.. [2] Gillis (2014), "Successive nonnegative projection algorithm for robust
   nonnegative blind source separation", doi:10.1137/130946782.
"""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import normalize_rows, project_to_simplex
from shoal.stages.adjust import simplex_least_squares

Array = NDArray[Any]

# A residual this small, relative to the data, is rounding and not a direction.
ROUNDING = 1e-10


class Solution(NamedTuple):
    """What a solver found, before classes are ordered and the fit is measured."""

    class_given_domain: Array
    cluster_given_class: Array
    n_iter: int
    converged: bool = True
    history: tuple[float, ...] = ()


def affine_subspace(
    points: Array, n_corners: int, weight: Array
) -> tuple[Array, Array, Array]:
    """Best affine subspace for points inside a simplex with ``n_corners`` corners.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_domains)
    n_corners : int
    weight : ndarray of shape (n_points,)
        Mass of each point. The sampling variance of a row of shares goes down with
        its mass, so that weighting by mass makes the noise even.

    Returns
    -------
    center : ndarray of shape (n_domains,)
    basis : ndarray of shape (n_corners - 1, n_domains)
        Orthonormal rows, fewer when the points span less.
    spread : ndarray of shape (n_corners - 1,)
        Standard deviation of the points along each row of ``basis``.
    """
    share = weight / weight.sum()
    center = share @ points
    # The (r, r) covariance would square the condition number; the (n, r) SVD does not.
    scaled = np.sqrt(share)[:, None] * (points - center)
    _, spread, basis = np.linalg.svd(scaled, full_matrices=False)
    real = spread[: n_corners - 1] > ROUNDING
    return center, basis[: n_corners - 1][real], spread[: n_corners - 1][real]


def denoise(points: Array, n_corners: int, weight: Array) -> Array:
    """Nearest points of the best affine subspace, kept inside the simplex."""
    center, basis, _ = affine_subspace(points, n_corners, weight)
    return project_to_simplex(center + (points - center) @ basis.T @ basis)


def successive_projection(points: Array, n_corners: int) -> Array:
    """SPA: pick the longest row, project it out of all rows, repeat.

    Returns
    -------
    ndarray of shape (n_corners,)
        Indices of the chosen rows. Exact when every corner is among the points and
        the corners are linearly independent; where the points span fewer directions
        than corners are asked for, :func:`successive_nonnegative_projection` goes on.
    """
    residual = np.array(points, dtype=float)
    smallest = ROUNDING * np.sqrt((residual**2).sum(axis=1).max())
    chosen: list[int] = []
    while len(chosen) < n_corners:
        length = np.sqrt((residual**2).sum(axis=1))
        best = int(length.argmax())
        if length[best] <= smallest:
            return successive_nonnegative_projection(points, n_corners, start=chosen)
        chosen.append(best)
        direction = residual[best] / length[best]
        residual -= np.outer(residual @ direction, direction)
    return np.array(chosen)


def successive_nonnegative_projection(
    points: Array, n_corners: int, *, start: list[int] | None = None
) -> Array:
    """SNPA: pick the row farthest from the convex hull of those already picked.

    Slower than SPA and less easily misled by noise; it needs no linear independence.

    Returns
    -------
    ndarray of shape (n_corners,)
        Indices of the chosen rows.
    """
    chosen = list(start or [])
    nearest = points[chosen[0]] if chosen else points.mean(axis=0)
    while len(chosen) < n_corners:
        if len(chosen) > 1:
            corners = points[chosen]
            nearest = simplex_least_squares(points, corners) @ corners
        distance = ((points - nearest) ** 2).sum(axis=1)
        chosen.append(int(distance.argmax()))
        nearest = points[chosen[0]]
    return np.array(chosen)


def domain_given_cluster(table: Array, weight: Array) -> tuple[Array, Array]:
    """q(d|c), of shape (n_clusters, n_domains), and q(c)."""
    joint = (weight[:, None] * table).T
    return normalize_rows(joint), joint.sum(axis=1)


def factors_from_corners(table: Array, corners: Array, weight: Array) -> Solution:
    """Both factors once ``domain_given_class`` is known.

    Simplex least squares gives q(y|c), Bayes' rule ``cluster_given_class``, and simplex
    least squares of each domain on that gives the prevalences: all clusters speak for
    them, not the k anchors alone.

    Parameters
    ----------
    table : ndarray of shape (n_domains, n_clusters)
    corners : ndarray of shape (n_classes, n_domains)
    weight : ndarray of shape (n_domains,)
    """
    rows, mass = domain_given_cluster(table, weight)
    class_given_cluster = simplex_least_squares(rows, corners)
    clusters = normalize_rows((class_given_cluster * mass[:, None]).T, empty=mass)
    prevalence = simplex_least_squares(table, clusters)
    return Solution(prevalence, clusters, n_iter=len(corners))


def candidate_rows(
    table: Array, n_classes: int, weight: Array, smooth: bool, min_share: float
) -> Array:
    """Rows of q(d|c) among which corners may be picked."""
    rows, mass = domain_given_cluster(table, weight)
    if smooth:
        rows = denoise(rows, n_classes, mass)
    enough = mass >= min_share * mass.mean()
    if enough.sum() < n_classes:
        heaviest = np.argsort(-mass, kind="stable")[:n_classes]
        enough[heaviest] = True
    return np.asarray(rows[enough])


def warn_if_repeated(corners: Array) -> None:
    """Two equal corners mean that the table holds fewer classes than asked for."""
    singular = np.linalg.svd(corners, compute_uv=False)
    rank = int((singular > ROUNDING * singular[0]).sum())
    if rank < len(corners):
        warnings.warn(
            f"cluster_given_domain has rank {rank}, too little for "
            f"n_classes={len(corners)} (A.2): some classes cannot be told apart",
            IdentifiabilityWarning,
            stacklevel=4,
        )


def by_anchors(
    pick: Callable[[Array, int], Array],
    table: Array,
    n_classes: int,
    weight: Array,
    *,
    denoise: bool = True,
    min_share: float = 0.0,
) -> Solution:
    """Factorize by anchors that ``pick`` finds among the rows of q(d|c).

    Parameters
    ----------
    pick : callable
        :func:`successive_projection` or :func:`successive_nonnegative_projection`.
    table : ndarray of shape (n_domains, n_clusters)
        ``cluster_given_domain`` without empty clusters.
    n_classes : int
    weight : ndarray of shape (n_domains,)
        q(d).
    denoise : bool, default=True
        Move the rows of q(d|c) to their best (k-1)-dimensional subspace first. Changes
        nothing on an exact table.
    min_share : float, default=0.0
        Clusters with less than this share of the mean cluster's mass cannot be
        anchors: their rows are mostly noise. 0.3 suits tables from k-means; on an
        exact table every cluster may be the only anchor of its class.
    """
    rows = candidate_rows(table, n_classes, weight, denoise, min_share)
    corners = rows[pick(rows, n_classes)]
    warn_if_repeated(corners)
    return factors_from_corners(table, corners, weight)


spa = partial(by_anchors, successive_projection)
snpa = partial(by_anchors, successive_nonnegative_projection)
