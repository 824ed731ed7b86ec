"""Rows as points of a plane: by their features, and between the corners of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import StandardScaler

from shoal.mixture.rows import stratified_sample
from shoal.validation import is_sparse

__all__ = ["Plane", "domain_plane", "feature_plane", "sample_rows"]

Array = np.ndarray[Any, Any]

MOST_EXACT_COLUMNS = 1_000


@dataclass(frozen=True)
class Plane:
    """Points in two dimensions.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
    explained : ndarray of shape (2,)
        Share of the points' spread along each axis.
    corners : ndarray of shape (n_corners, 2) or None
    """

    points: Array
    explained: Array
    corners: Array | None = None


def sample_rows(codes: Array, max_rows: int, seed: int) -> Array:
    """Row numbers, ascending, spread as evenly over domains as these allow."""
    order = np.argsort(codes, kind="stable")
    rng = np.random.default_rng(seed)
    return np.sort(order[stratified_sample(codes[order], max_rows, rng)])


def feature_plane(X: Any, seed: int) -> Plane:
    """The first two principal directions of the columns, each of spread 1.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    seed : int
        For sparse and very wide rows, whose directions are found by random projection.
    """
    scaled = StandardScaler(with_mean=not is_sparse(X)).fit_transform(X)
    n_axes = min(2, *X.shape)
    if is_sparse(X) and X.shape[1] > n_axes:
        finder: Any = TruncatedSVD(n_axes, random_state=seed)
    else:
        scaled = scaled.toarray() if is_sparse(X) else scaled
        few = X.shape[1] <= MOST_EXACT_COLUMNS
        solver = "covariance_eigh" if few else "randomized"
        finder = PCA(n_axes, svd_solver=solver, random_state=seed)
    points = finder.fit_transform(scaled)
    explained = finder.explained_variance_ratio_
    return _two_axes(_fix_signs(points), np.nan_to_num(explained))


def domain_plane(domain_given_x: Array, domain_given_class: Array) -> Plane:
    """Points q(d|x) between their corners q(d|y), seen where the corners lie widest.

    Three corners lie in a plane, so that three classes are shown without loss.

    Parameters
    ----------
    domain_given_x : ndarray of shape (n_samples, n_domains)
    domain_given_class : ndarray of shape (n_classes, n_domains)
    """
    centre = domain_given_class.mean(axis=0)
    _, size, axes = np.linalg.svd(domain_given_class - centre, full_matrices=False)
    axes = axes[:2] * (size[:2, None] > 1e-12)
    corners = (domain_given_class - centre) @ axes.T
    sign = _signs(corners)
    spread = size**2 / max((size**2).sum(), 1e-300)
    return _two_axes(
        (domain_given_x - centre) @ axes.T * sign, spread[:2], corners * sign
    )


def _fix_signs(points: Array) -> Array:
    return np.asarray(points * _signs(points))


def _signs(points: Array) -> Array:
    """The sign of an axis is arbitrary: its farthest point lies on the right (top)."""
    farthest = points[np.abs(points).argmax(axis=0), np.arange(points.shape[1])]
    return np.where(farthest < 0, -1.0, 1.0)


def _two_axes(points: Array, explained: Array, corners: Array | None = None) -> Plane:
    """A second axis of zeros where there is one only."""
    missing = 2 - points.shape[1]
    points = np.pad(points, ((0, 0), (0, missing)))
    if corners is not None:
        corners = np.pad(corners, ((0, 0), (0, missing)))
    return Plane(points, np.pad(explained[:2], (0, missing)), corners)
