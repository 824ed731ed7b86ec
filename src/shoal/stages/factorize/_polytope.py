"""The smallest simplex around the points f(x), or of classes that explain clusters."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import (
    canonical_order,
    check_stochastic,
    class_given_domain,
    normalize_rows,
    project_to_simplex,
)
from shoal.stages.factorize._anchors import (
    Solution,
    affine_subspace,
    domain_given_cluster,
    factors_from_corners,
    successive_projection,
)
from shoal.validation import check_whole
from shoal.validation._domains import check_sample_weight

# ---- polytope ------------------------------------------------------------------------

Array = NDArray[Any]

# Widths of the wall, in units of class probability: from soft to as good as hard.
WIDTHS = tuple(10.0**-power for power in range(1, 13))
# A point may be this far outside before it counts.
ROUNDING = 1e-9
# More points than this are first represented by a sample of them.
WORKING_SET = 5_000
MAX_NEWTON = 200


def wall_value(g: Array, width: float) -> Array:
    """Soften max(0, -g), up to a constant.

    It is what a log-barrier makes of the two constraints s >= 0 and s >= -g: the
    minimum over s of s - width (log s + log(s + g)). Outside it is the straight line
    -g, inside a logarithmic barrier, and it is finite everywhere.
    """
    minor, major = _shares(g, width)
    rest = np.where(g >= 0, major, minor)
    return np.asarray(width * (1 / rest + np.log(minor * major)))


def wall_slope(g: Array, width: float) -> tuple[Array, Array]:
    """How fast :func:`wall_value` falls with g (0 to 1), and its curvature."""
    minor, major = _shares(g, width)
    curvature = (minor * major) ** 2 / (minor**2 + major**2) / width
    return np.where(g >= 0, minor, major), curvature


def _shares(g: Array, width: float) -> tuple[Array, Array]:
    """Give the smaller and the larger of slope and 1 - slope, without cancellation."""
    ratio = np.abs(g) / width
    tail = ratio + np.sqrt(ratio * ratio + 4)
    return 2 / (2 + tail), tail / (2 + tail)


def objective(points: Array, unmix: Array, penalty: Array, width: float) -> float:
    """Log-volume of the simplex plus the cost of the points beyond its facets."""
    cost = wall_value(points @ unmix, width).sum(axis=1)
    return float(penalty @ cost - np.linalg.slogdet(unmix)[1])


def newton_step(
    points: Array, unmix: Array, penalty: Array, width: float
) -> tuple[Array, float]:
    """Step that lowers the objective and keeps the barycentric sums at 1.

    The Hessian of -log|det M| is tr(E E) with E = M^-1 dM, which is not definite;
    its bound ||E||^2 is. The problem then splits into one k x k system per facet, tied
    by the one constraint that the columns of the step sum to zero.

    Returns
    -------
    step : ndarray of shape (n_classes, n_classes)
    decrease : float
        What the gradient promises for a full step.
    """
    slope, curvature = wall_slope(points @ unmix, width)
    corners = np.linalg.inv(unmix)
    gradient = -corners.T - points.T @ (penalty[:, None] * slope)
    systems = np.stack([_gram(points, penalty * column) for column in curvature.T])
    inverses = np.linalg.inv(systems + corners.T @ corners)
    free = np.einsum("yij,jy->yi", inverses, gradient)
    tie = np.linalg.solve(inverses.sum(axis=0), free.sum(axis=0))
    step = (inverses @ tie - free).T
    return step, -float((gradient * step).sum())


def _gram(points: Array, weight: Array) -> Array:
    """points.T @ diag(weight) @ points over the rows that matter."""
    near = weight > 1e-6 * weight.max()
    rows = points if near.all() else points[near]
    return np.asarray((rows * weight[near, None]).T @ rows)


def descend(
    points: Array, unmix: Array, penalty: Array, widths: tuple[float, ...]
) -> tuple[Array, int]:
    """Follow the minimum while the wall hardens; returns M and the number of steps."""
    n_steps = 0
    for width in widths:
        value = objective(points, unmix, penalty, width)
        for _ in range(MAX_NEWTON):
            step, decrease = newton_step(points, unmix, penalty, width)
            if decrease <= 0.1 * width:
                break
            size = 1.0
            trial = objective(points, unmix + step, penalty, width)
            while trial > value - 1e-4 * size * decrease and size > 1e-9:
                size /= 2
                trial = objective(points, unmix + size * step, penalty, width)
            if trial >= value:  # as low as rounding allows
                break
            unmix, value, n_steps = unmix + size * step, trial, n_steps + 1
    return unmix, n_steps


def enclose_all(points: Array, unmix: Array, random: Any) -> tuple[Array, int]:
    """Smallest simplex with no point outside, by a growing working set.

    A penalty above the largest possible multiplier, k-1, is as good as infinite.
    """
    n_points, n_classes = points.shape
    working = _sample(n_points, random)
    n_steps, widths = 0, WIDTHS
    while True:
        inside = points @ unmix
        if inside.min() >= -ROUNDING:
            return unmix, n_steps
        worst = np.argsort(inside, axis=0)[:n_classes].ravel()
        beyond = worst[inside[worst].min(axis=1) < -ROUNDING]
        larger = np.union1d(working, beyond)
        if n_steps and len(larger) == len(working):
            return unmix, n_steps  # what is left outside is rounding
        working = larger
        penalty = np.full(len(working), 2.0 * (n_classes - 1))
        unmix, extra = descend(points[working], unmix, penalty, widths)
        n_steps, widths = n_steps + extra, WIDTHS[2:]


def enclose_most(
    points: Array, unmix: Array, weight: Array, outside: float, random: Any
) -> tuple[Array, int]:
    """Smallest simplex with a share ``outside`` of the weight beyond each facet."""
    n_points, n_classes = points.shape
    penalty = weight * ((n_classes - 1) / outside)
    sample = _sample(n_points, random)
    scale = weight.sum() / weight[sample].sum()
    unmix, n_steps = descend(points[sample], unmix, penalty[sample] * scale, WIDTHS)
    if len(sample) == n_points:
        return unmix, n_steps
    # With so many points, finer than this only hops between neighbours.
    unmix, extra = descend(points, unmix, penalty, WIDTHS[3:8])
    return unmix, n_steps + extra


def _sample(n_points: int, random: Any) -> Array:
    if n_points <= WORKING_SET:
        return np.arange(n_points)
    return np.sort(random.choice(n_points, WORKING_SET, replace=False))


def smallest_simplex(
    points: Array,
    n_classes: int,
    *,
    weight: Array,
    outside: float = 0.0,
    random_state: Any = None,
) -> tuple[Array, int]:
    """Corners of the smallest simplex around weighted points, and the steps taken.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_domains)
        Rows sum to 1.
    n_classes : int
        Number of corners.
    weight : ndarray of shape (n_points,)
        Sums to 1.
    outside : float, default=0.0
    random_state : int, RandomState or None, default=None

    Returns
    -------
    corners : ndarray of shape (n_classes, n_domains)
        Rows sum to 1; with noise they may have negative entries.
    n_steps : int
        0 when the first corners already enclose every point.
    """
    center, basis, spread = affine_subspace(points, n_classes, weight)
    flat = (points - center) @ basis.T
    start = successive_projection(center + flat @ basis, n_classes)
    if len(basis) < n_classes - 1:
        warnings.warn(
            f"the points span {len(basis)} dimensions, a simplex with {n_classes} "
            f"corners has {n_classes - 1} (A.2): some classes cannot be told apart",
            IdentifiabilityWarning,
            stacklevel=3,
        )
        return points[start], 0
    # Unit spread along each axis: the volume does not care, the arithmetic does.
    coordinates = np.column_stack([flat / spread, np.ones(len(flat))])
    unmix = np.linalg.inv(coordinates[start])
    random = check_random_state(random_state)
    if outside > 0:
        unmix, n_steps = enclose_most(coordinates, unmix, weight, outside, random)
    else:
        unmix, n_steps = enclose_all(coordinates, unmix, random)
    corners = np.linalg.inv(unmix)
    # Exact arithmetic would give a last column of ones.
    corners = corners / corners[:, -1:]
    return center + (corners[:, :-1] * spread) @ basis, n_steps


def minimum_volume_polytope(
    domain_given_x: ArrayLike,
    n_classes: int,
    *,
    outside: float = 0.0,
    sample_weight: ArrayLike | None = None,
    random_state: Any = None,
) -> Array:
    """q(d|y) as the corners of the smallest simplex around the points f(x).

    The geometric route of Appendix F: no clusters and no counts, so that it is exact
    for any sample in which every class has an anchor row, when f is exact. Corners
    start at the rows that successive projection picks; where those enclose all
    points, they are the answer.

    Parameters
    ----------
    domain_given_x : array-like of shape (n_samples, n_domains)
        Points f(x) = q(d|x); rows sum to 1.
    n_classes : int
        Number of corners k, at most the number of domains.
    outside : float, default=0.0
        Share of the points that may lie beyond each facet, in [0, 1). 0 encloses
        every point, which a noisy f makes far too large a simplex: points with no
        chance of a class scatter to both sides of its facet, and half of their share
        should be let out. 0.3 was best for out-of-fold discriminators.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each point; equal when None.
    random_state : int, RandomState or None, default=None
        Picks the points that represent more than 5,000 of them at first.

    Returns
    -------
    domain_given_class : ndarray of shape (n_classes, n_domains)
        Rows sum to 1; classes in decreasing mean prevalence.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.stages.factorize import minimum_volume_polytope
    >>> corners = np.array([[0.8, 0.1, 0.1], [0.2, 0.3, 0.5]])
    >>> class_given_x = np.array([[1, 0], [0, 1], [0.5, 0.5], [0.8, 0.2]])
    >>> minimum_volume_polytope(class_given_x @ corners, n_classes=2).round(6)
    array([[0.2, 0.3, 0.5],
           [0.8, 0.1, 0.1]])
    """
    points = check_stochastic(domain_given_x, "domain_given_x").astype(float)
    points = normalize_rows(np.maximum(points, 0))
    _check_request(points, n_classes, outside)
    given = check_sample_weight(sample_weight, len(points))
    weight = np.ones(len(points)) if given is None else given
    weight = weight / weight.sum()
    corners, _ = smallest_simplex(
        points, n_classes, weight=weight, outside=outside, random_state=random_state
    )
    corners = project_to_simplex(corners)
    # The mean point is the prior: its coordinates are q(y), which orders the classes.
    class_weight = np.linalg.lstsq(corners.T, weight @ points, rcond=None)[0]
    prevalence = class_given_domain(corners, np.maximum(class_weight, 0))
    return np.asarray(corners[canonical_order(prevalence)])


def _check_request(points: Array, n_classes: int, outside: float) -> None:
    n_points, n_domains = points.shape
    check_whole(2, n_classes=n_classes)
    if n_classes > n_domains:
        raise ValueError(
            f"n_classes={n_classes} corners do not fit in {n_domains} domains (A.1); "
            f"use n_classes={n_domains} or less"
        )
    if n_points < n_classes:
        raise ValueError(
            f"domain_given_x has {n_points} rows, a simplex with n_classes="
            f"{n_classes} corners needs at least as many"
        )
    check_outside(outside)


def check_outside(outside: float) -> None:
    """Refuse a share that is not one."""
    if not 0 <= outside < 1:
        raise ValueError(f"outside must be in [0, 1), got {outside!r}")


# ---- volume --------------------------------------------------------------------------


def volume(
    table: Array,
    n_classes: int,
    weight: Array,
    *,
    outside: float = 0.0,
    random_state: Any = None,
) -> Solution:
    """Factorize by the smallest simplex around the clusters' rows of q(d|c).

    The first arguments are those of :func:`by_anchors`.

    Parameters
    ----------
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
