"""EM for p_d(x) = sum_y p_d(y) p(x|y): the two steps as plain functions, and the climb.

Classes may have several components, with weights that are the same in all domains; a
domain mixes classes, and may move all of them by an offset (its drift). Penalties are
imaginary rows: of a fixed shape in each component, of the common mix in each domain,
without drift in each domain.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shoal.density._columns import constrain, draws, restrict
from shoal.density._gaussian import (
    Density,
    Distances,
    Gaps,
    Rows,
    distances,
    fill_in,
    without_drift,
)
from shoal.density._settings import DECISIONS
from shoal.probability import TINY

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Prior:
    """Imaginary rows.

    Attributes
    ----------
    shape : ndarray of shape (n_columns, n_columns)
        Covariance of the imaginary rows of each component, positive definite.
    shape_rows, mix_rows, drift_rows : float
        How many there are; ``mix_rows`` inf gives all domains one mix, ``drift_rows``
        inf leaves no drift.
    """

    shape: Array
    shape_rows: float
    mix_rows: float = DECISIONS.mix_rows
    drift_rows: float = float("inf")


class Expected(NamedTuple):
    """Result of an E step.

    Attributes
    ----------
    component_given_x : ndarray of shape (n_rows, n_components)
        In the domain of each row.
    pull : ndarray of shape (n_rows, n_components)
        How much a row counts for means and covariances; 1 for Gaussians.
    log_likelihood : ndarray of shape (n_rows,)
        log p(x|d).
    """

    component_given_x: Array
    pull: Array
    log_likelihood: Array


class Moments(NamedTuple):
    """Weighted sums over rows, one entry for each component."""

    mass: Array  # (c,)
    pull: Array  # (c,), the mass that counts for means
    first: Array  # (c, p)
    second: Array  # (p, p), (c, p) or (c, p, p)


# ---- the E step ------------------------------------------------------------------


def expect(rows: Rows, density: Density) -> Expected:
    """E step: which component each row is from, and how likely it is in its domain."""
    return _expect(rows, density, _distances(rows, density))


def _distances(rows: Rows, density: Density) -> Distances:
    return distances(without_drift(rows, density.drift), rows.gaps, density)


def _expect(rows: Rows, density: Density, apart: Distances) -> Expected:
    logs = apart.log_density(density.tail)
    log_mix = np.log(np.maximum(density.mix, TINY))[:, density.owner]
    logs += (log_mix + np.log(density.share))[rows.codes]
    size = restrict(logs, rows, density)
    top = np.ascontiguousarray(logs.T).max(axis=0)[:, None]  # faster than along rows
    given = np.exp(logs - top)
    total = given @ np.ones((given.shape[1], 1))
    given /= total
    pull = apart.pull(density.tail)
    return Expected(given, pull, (np.log(total) + top)[:, 0] / size)


# ---- the M step ------------------------------------------------------------------


def maximize(rows: Rows, expected: Expected, density: Density, prior: Prior) -> Density:
    """M step, one part after the other: mix, means and covariances, drift.

    ``density`` is the one that ``expected`` comes from; it says how missing values
    hang on the seen ones.
    """
    mass = expected.component_given_x * rows.weight[:, None]
    mix, share = _mixes(rows, mass, density.owner, prior)
    X = without_drift(rows, density.drift)
    moments = _moments(X, rows.gaps, mass, mass * expected.pull, density)
    means, covariance = _shapes(moments, density.kind, prior)
    new = replace(density, means=means, covariance=covariance, share=share, mix=mix)
    if np.isinf(prior.drift_rows):
        return new
    return replace(
        new, drift=_drift(rows, X, mass * expected.pull, density, new, prior)
    )


def _mixes(rows: Rows, mass: Array, owner: Array, prior: Prior) -> tuple[Array, Array]:
    """p_d(y), shrunken to the common mix, and the weight of components in classes."""
    n_classes = int(owner.max()) + 1
    member = np.eye(n_classes)[owner]
    by_component = mass.sum(axis=0)
    part = draws(rows)
    drawn = (mass if part is None else mass * part[:, None]) @ member
    counts = np.stack(
        [np.bincount(rows.codes, one, rows.n_domains) for one in drawn.T], axis=1
    )
    common = counts.sum(axis=0) / counts.sum()
    if np.isinf(prior.mix_rows):
        mix = np.tile(common, (rows.n_domains, 1))
    else:
        mix = counts + prior.mix_rows * common
        mix /= np.maximum(mix.sum(axis=1, keepdims=True), TINY)
    by_class = (by_component @ member)[owner]
    share = np.divide(
        by_component, by_class, out=1 / member.sum(axis=0)[owner], where=by_class > 0
    )
    return constrain(mix, rows.known), np.maximum(share, TINY)


def _moments(
    X: Array, gaps: Gaps | None, mass: Array, pulled: Array, density: Density
) -> Moments:
    """Expected sums of rows and of their products."""
    kind, means, covariance = density.kind, density.means, density.covariance
    total, pull = mass.sum(axis=0), pulled.sum(axis=0)
    if gaps is None:
        return Moments(total, pull, pulled.T @ X, _products(X, pulled, kind))
    if kind == "diag":  # what misses is expected at the mean, whatever is seen
        X, unseen = np.where(gaps.seen, X, 0), ~gaps.seen
        missing = pulled.T @ unseen
        first = pulled.T @ X + missing * means
        second = pulled.T @ X**2 + missing * means**2
        return Moments(total, pull, first, second + (mass.T @ unseen) * covariance)
    first, second = np.zeros_like(means), np.zeros_like(covariance)
    for rows, seen in gaps.patterns:
        filled = fill_in(X[rows], means, covariance, kind, seen)
        weighted = filled.mean * pulled[rows].T[:, :, None]
        left = filled.covariance * mass[rows].sum(axis=0)[:, None, None]
        left += weighted.mT @ filled.mean
        first += weighted.sum(axis=1)
        second += left.sum(axis=0) if kind == "tied" else left
    return Moments(total, pull, first, second)


def _products(X: Array, pulled: Array, kind: str) -> Array:
    if kind == "diag":
        return pulled.T @ X**2
    if kind == "tied":
        return (X.T * pulled.sum(axis=1)) @ X
    return np.stack([(X.T * count) @ X for count in pulled.T])


def _shapes(moments: Moments, kind: str, prior: Prior) -> tuple[Array, Array]:
    """Means and covariances; each component has imaginary rows of the prior's shape."""
    mass, pull, first, second = moments
    means = first / np.maximum(pull, TINY)[:, None]
    imaginary = prior.shape_rows
    if kind == "diag":
        scatter = second - pull[:, None] * means**2
        scatter = np.maximum(scatter, 0) + imaginary * np.diagonal(prior.shape)
        return means, scatter / (mass + imaginary)[:, None]
    if kind == "tied":
        scatter = second - (means.T * pull) @ means + imaginary * prior.shape
        return means, scatter / (mass.sum() + imaginary)
    scatter = second - pull[:, None, None] * means[:, :, None] * means[:, None, :]
    scatter += imaginary * prior.shape
    return means, scatter / (mass + imaginary)[:, None, None]


def _drift(
    rows: Rows, X: Array, pulled: Array, old: Density, new: Density, prior: Prior
) -> Array:
    """Offset of each domain, shrunken to none in units of the prior's shape."""
    n_columns = X.shape[1]
    before = np.zeros((rows.n_domains, n_columns)) if old.drift is None else old.drift
    pull = np.zeros((rows.n_domains, pulled.shape[1]))
    np.add.at(pull, rows.codes, pulled)
    apart = _sums_by_domain(rows, X, pulled, old)  # (d, c, p), without the old drift
    apart += pull[:, :, None] * (before[:, None, :] - new.means)
    if new.kind == "diag":
        precision = 1 / new.covariance
        anchor = prior.drift_rows / np.diagonal(prior.shape)
        return np.einsum("dcp,cp->dp", apart, precision) / (pull @ precision + anchor)
    anchor = prior.drift_rows * np.linalg.inv(prior.shape)
    precision = np.linalg.inv(new.covariance)
    if new.kind == "tied":
        right = apart.sum(axis=1) @ precision
        left = pull.sum(axis=1)[:, None, None] * precision + anchor
    else:
        right = np.einsum("dcp,cpq->dq", apart, precision)
        left = np.einsum("dc,cpq->dpq", pull, precision) + anchor
    return np.linalg.solve(left, right[:, :, None])[:, :, 0]


def _sums_by_domain(rows: Rows, X: Array, pulled: Array, density: Density) -> Array:
    """Sums of (expected) rows by domain and component."""
    sums = np.zeros((rows.n_domains, pulled.shape[1], X.shape[1]))
    shape = density.means, density.covariance, density.kind
    if rows.gaps is None:
        for code in range(rows.n_domains):
            own = rows.codes == code
            sums[code] = pulled[own].T @ X[own]
        return sums
    for numbers, seen in rows.gaps.patterns:
        filled = fill_in(X[numbers], *shape, seen).mean * pulled[numbers].T[:, :, None]
        np.add.at(sums, rows.codes[numbers], filled.swapaxes(0, 1))
    return sums


# ---- the climb -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DensityFit:
    """Where a climb ended.

    Attributes
    ----------
    density : Density
    expected : Expected
        Of the rows under ``density``.
    objective : float
        Mean penalized log-likelihood of a row.
    history : list of float
        The objective after each iteration.
    converged : bool
    """

    density: Density
    expected: Expected
    objective: float
    history: list[float]
    converged: bool


def climb(
    rows: Rows,
    expected: Expected,
    density: Density,
    prior: Prior,
    *,
    max_iter: int,
    tol: float,
    choose_tail: bool = False,
) -> DensityFit:
    """EM from an E step until an iteration gains less than ``tol`` nats a row.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-3, 1, (50, 1)), rng.normal(3, 1, (50, 1))])
    >>> rows = Rows(X, np.arange(100) % 2, np.ones(100), 2)
    >>> left = np.eye(2)[(X[:, 0] > 0).astype(int)]
    >>> density = blank(rows, left, np.arange(2), "full", np.inf)
    >>> first = Expected(left, np.ones((100, 2)), np.zeros(100))
    >>> fit = climb(rows, first, density, Prior(np.eye(1), 1.0), max_iter=50, tol=1e-6)
    >>> bool(np.all(np.diff(fit.history) > -1e-9)), fit.converged
    (True, True)
    """
    history: list[float] = []
    settled, tail_is_best = False, not choose_tail
    for iteration in range(max_iter):
        density = maximize(rows, expected, density, prior)
        apart = _distances(rows, density)
        if choose_tail and (settled or (iteration + 1) % DECISIONS.tail_every == 0):
            tail = _best_tail(rows, density, apart)
            tail_is_best = tail == density.tail
            density = replace(density, tail=tail)
        expected = _expect(rows, density, apart)
        history.append(_objective(rows, expected, density, prior))
        settled = iteration > 0 and history[-1] - history[-2] < tol
        if settled and tail_is_best:
            return DensityFit(density, expected, history[-1], history, True)
    return DensityFit(density, expected, history[-1], history, False)


def blank(rows: Rows, given: Array, owner: Array, kind: str, tail: float) -> Density:
    """A density to begin with: means of a partition, variances of the columns.

    ``given`` has one column for each component. Missing values count neither way.
    """
    seen = np.ones(rows.X.shape) if rows.gaps is None else rows.gaps.seen
    mass = given * rows.weight[:, None]
    means = (mass.T @ rows.X) / np.maximum(mass.T @ seen, TINY)
    variance = rows.weight @ rows.X**2 / np.maximum(rows.weight @ seen, TINY)
    variance = np.maximum(variance, DECISIONS.least_variance)
    covariance = {
        "tied": np.diag(variance),
        "diag": np.tile(variance, (len(owner), 1)),
        "full": np.tile(np.diag(variance), (len(owner), 1, 1)),
    }[kind]
    n_classes = int(owner.max()) + 1
    mix = np.full((rows.n_domains, n_classes), 1 / n_classes)
    share = 1 / np.bincount(owner)[owner]
    return Density(means, covariance, kind, tail, owner, share, mix)


def _best_tail(rows: Rows, density: Density, apart: Distances) -> float:
    """The likeliest degrees of freedom, all else kept (one choice for all classes)."""
    place = DECISIONS.tails.index(density.tail)
    near = DECISIONS.tails[max(place - 1, 0) : place + 2]
    likelihood = {}
    for tail in near:
        expected = _expect(rows, replace(density, tail=tail), apart)
        likelihood[tail] = rows.weight @ expected.log_likelihood
    return max(near, key=lambda tail: likelihood[tail])


def _objective(rows: Rows, expected: Expected, density: Density, prior: Prior) -> float:
    """Mean log-likelihood of a row, with the imaginary rows of shapes and drift."""
    total = rows.weight.sum()
    value = float(rows.weight @ expected.log_likelihood)
    stack = density.covariance
    if density.kind == "diag":
        shape = np.diagonal(prior.shape)
        size = np.log(stack).sum() + (shape / stack).sum()
    else:
        stack = stack.reshape(-1, *prior.shape.shape)
        size = np.linalg.slogdet(stack)[1].sum()
        size += np.trace(np.linalg.solve(stack, prior.shape), axis1=1, axis2=2).sum()
    value -= prior.shape_rows / 2 * size
    if density.drift is not None:
        scaled = np.linalg.solve(_drift_shape(density, prior), density.drift.T)
        value -= prior.drift_rows / 2 * float((density.drift.T * scaled).sum())
    return float(value / total)


def _drift_shape(density: Density, prior: Prior) -> Array:
    if density.kind == "diag":
        return np.diag(np.diagonal(prior.shape))
    return prior.shape
