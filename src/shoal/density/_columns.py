"""Columns as the densities see them, and what is known of rows."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp
from sklearn.decomposition import PCA
from sklearn.isotonic import isotonic_regression

from shoal.density._gaussian import LOG_2_PI, Density, Gaps, Rows, find_gaps
from shoal.density._settings import DECISIONS
from shoal.exceptions import SubsampleWarning
from shoal.likelihood._known import sample_rows
from shoal.probability import TINY
from shoal.validation._known import Knowledge
from shoal.validation._rows import canonical_rows, sort_rows, varying_columns

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """From the columns of a table to those of a density.

    Attributes
    ----------
    varying : ndarray of shape (n_features,), bool
        Columns that vary; the others are left out.
    mean, scale : ndarray of shape (n_varying,)
        Of the values that are there; one scale for all columns where these are alike.
    components : ndarray of shape (n_varying, n_components) or None
        Principal components that stand for the columns of a wide table.
    noise : float
        Variance, in each direction, of what the components leave.
    """

    varying: Array
    mean: Array
    scale: Array
    components: Array | None = None
    noise: float = 1.0

    def standardize(self, X: Array) -> Array:
        """Varying columns with mean 0 and their scale 1, gaps kept."""
        inside = X if self.varying.all() else X[:, self.varying]
        return np.asarray((inside.astype(float) - self.mean) / self.scale)

    def read(self, X: Array) -> tuple[Array, Gaps | None]:
        """Rows for a density, 0 in gaps, and where these are.

        A row with a gap has no components: with them, gaps count as the mean.
        """
        Z = self.standardize(X)
        seen = ~np.isnan(Z)
        if not seen.all():
            Z[~seen] = 0
        if self.components is not None:
            return Z @ self.components, None
        return Z, find_gaps(seen)

    def rows(
        self, X: Array, codes: Array, weight: Array | None, n_domains: int
    ) -> Rows:
        """Rows to climb on."""
        Z, gaps = self.read(X)
        even = np.ones(len(Z)) if weight is None else weight
        return Rows(Z, codes, even, n_domains, gaps)

    def order(self, X: Array, codes: Array) -> Array:
        """Order of rows that only their content decides, by domain first."""
        return canonical_rows(np.nan_to_num(self.standardize(X)), codes)

    def log_volume(self, X: Array) -> Array:
        """What is to be added to log p(row for a density) to have log p(x)."""
        Z = self.standardize(X)
        seen = ~np.isnan(Z)
        volume = -(seen @ np.log(self.scale))
        if self.components is None:
            return np.asarray(volume)
        Z[~seen] = 0
        left = (Z**2).sum(axis=1) - ((Z @ self.components) ** 2).sum(axis=1)
        rest = self.components.shape[0] - self.components.shape[1]
        volume -= rest / 2 * (LOG_2_PI + np.log(self.noise))
        return np.asarray(volume - np.maximum(left, 0) / (2 * self.noise))

    def to_units(self, points: Array) -> Array:
        """Points of a density in the units of the varying columns."""
        if self.components is not None:
            points = points @ self.components.T
        return np.asarray(self.mean + self.scale * points)

    def features(self, points: Array) -> Array:
        """Points of a density in the units of all columns, NaN in constant ones."""
        result = np.full((len(points), len(self.varying)), np.nan)
        result[:, self.varying] = self.to_units(points)
        return result

    def restore(self, directions: Array) -> Array:
        """Differences between rows of a density in the units of the table's columns."""
        if self.components is not None:
            directions = directions @ self.components.T
        result = np.zeros((*directions.shape[:-1], len(self.varying)))
        result[..., self.varying] = directions * self.scale
        return result


def read_table(
    X: Array,
    codes: Array,
    n_domains: int,
    weight: Array | None,
    max_rows: int,
    rng: np.random.Generator,
    known: Knowledge | None = None,
    scale: str = "column",
) -> tuple[Columns, Rows]:
    """Columns of a table, and its rows in canonical order, a sample of too many."""
    varying = varying_columns(fill_gaps(X))
    rough = standard_columns(X, varying, weight)
    rows = sort_rows(X, np.nan_to_num(rough.standardize(X)), codes, weight)
    X, codes, weight = rows.X, rows.codes, rows.weight
    known = None if known is None else known.take(rows.order)
    if len(X) > max_rows:
        which = sample_rows(codes, known, max_rows, rng)
        warnings.warn(
            f"fitted on {len(which)} of {len(X)} rows (max_rows={max_rows})",
            SubsampleWarning,
            stacklevel=5,
        )
        X, codes = X[which], codes[which]
        weight = None if weight is None else weight[which]
        known = None if known is None else known.take(which)
    columns = standard_columns(X, varying, weight)
    if scale == "global":
        common = np.sqrt((columns.scale**2).mean())
        columns = replace(columns, scale=np.full_like(columns.scale, common))
    columns = reduce_columns(columns, X, int(rng.integers(2**31 - 1)))
    return columns, replace(columns.rows(X, codes, weight, n_domains), known=known)


def standard_columns(X: Array, varying: Array, weight: Array | None) -> Columns:
    """Mean and spread of each varying column over the values that are there."""
    inside = (X if varying.all() else X[:, varying]).astype(float)
    seen = ~np.isnan(inside)
    mass = seen * (1.0 if weight is None else weight[:, None])
    total = np.maximum(mass.sum(axis=0), np.finfo(float).tiny)
    filled = np.where(seen, inside, 0)
    mean = (mass * filled).sum(axis=0) / total
    variance = (mass * (filled - mean) ** 2).sum(axis=0) / total
    scale = np.sqrt(variance)
    return Columns(varying, mean, np.where(scale > 0, scale, 1.0))


def reduce_columns(columns: Columns, X: Array, seed: int) -> Columns:
    """Principal components in place of the columns of a wide table without gaps."""
    n_rows, n_columns = len(X), len(columns.mean)
    if n_columns <= DECISIONS.most_columns or np.isnan(X).any():
        return columns
    few = min(DECISIONS.most_columns, max(n_rows // DECISIONS.rows_per_component, 2))
    pca = PCA(min(few, n_rows - 1), svd_solver="randomized", random_state=seed)
    pca.fit(columns.standardize(X))
    left = n_columns - pca.explained_variance_.sum()
    noise = max(left / (n_columns - pca.n_components_), DECISIONS.least_variance)
    return Columns(
        columns.varying, columns.mean, columns.scale, pca.components_.T, float(noise)
    )


def fill_gaps(X: Array) -> Array:
    """The smallest value of each column where one misses: columns keep their range."""
    if not np.isnan(X).any():
        return X
    known = ~np.isnan(X).all(axis=0)
    least = np.zeros(X.shape[1], dtype=X.dtype)
    least[known] = np.nanmin(X[:, known], axis=0)
    return np.where(np.isnan(X), least, X)


# ---- what is known of rows, in the EM of a DensityMixture ----------------------------

# A row whose class is known is expected in no other; a group of rows of one class is
# one draw of a class with several rows; the mix of a domain is the likeliest with its
# known shares, or of the known order.


def restrict(logs: Array, rows: Rows, density: Density) -> Array:
    """Change log p(x, component|d) in place; what each row's likelihood is divided by.

    The likelihood of a group is that of all its rows, and counted once.
    """
    known, owner = rows.known, density.owner
    size = np.ones(len(logs))
    if known is None:
        return size
    told = known.rows
    other = owner[None, :] != known.classes[told][:, None]
    logs[told] = np.where(other, -np.inf, logs[told])
    linked = np.flatnonzero(known.groups >= 0)
    if not len(linked):
        return size
    groups = np.unique(known.groups[linked], return_inverse=True)[1]
    own = np.stack(
        [logsumexp(logs[linked][:, owner == y], axis=1) for y in np.unique(owner)],
        axis=1,
    )
    log_mix = np.log(np.maximum(density.mix, TINY))[rows.codes[linked]]
    total = np.zeros((int(groups.max()) + 1, own.shape[1]))
    np.add.at(total, groups, own - log_mix)
    logs[linked] += (total[groups] + log_mix - own)[:, owner]
    size[linked] = np.bincount(groups)[groups]
    return size


def draws(rows: Rows) -> Array | None:
    """How much of a draw from the mix each row is; None where all are whole ones."""
    if rows.known is None or not (rows.known.groups >= 0).any():
        return None
    part = np.ones(len(rows.X))
    linked = np.flatnonzero(rows.known.groups >= 0)
    number = np.unique(rows.known.groups[linked], return_inverse=True)[1]
    part[linked] /= np.bincount(number)[number]
    return part


def constrain(mix: Array, known: Knowledge | None) -> Array:
    """Mixes with the known shares; those of a known order are pooled until they fit."""
    if known is None:
        return mix
    mix = known.impose(mix)
    for domain, order in known.orders:
        own = list(order)
        mix[domain, own] = isotonic_regression(mix[domain, own], increasing=False)
    return mix


def own_class(rows: Rows, class_given_x: Array, corners: Array) -> Array:
    """q(d|x) through the classes, q(d, y|x) where the class is known."""
    each = class_given_x * corners.T[rows.codes]
    if rows.known is None:
        return np.asarray(each.sum(axis=1))
    told = rows.known.rows
    result = each.sum(axis=1)
    result[told] = each[told, rows.known.classes[told]]
    return np.asarray(result)


# ---- starts --------------------------------------------------------------------------


def named(labels: Array, rows: Rows, n_classes: int, n_components: int) -> Array:
    """A partition whose parts are called as most of their known rows are."""
    known = rows.known
    if known is None:
        return labels
    parts, piece = np.divmod(labels, n_components)
    cost = np.zeros((len(known.names), n_classes))
    np.subtract.at(cost, (known.classes[known.rows], parts[known.rows]), 1.0)
    counts = np.zeros((rows.n_domains, n_classes))
    np.add.at(counts, (rows.codes, parts), rows.weight)
    sizes = np.maximum(counts.sum(axis=1), TINY)
    mix = counts / sizes[:, None]
    apart = (known.shares[:, :, None] - mix[:, None, :]) ** 2
    cost += (sizes[:, None, None] * np.nan_to_num(apart)).sum(axis=0)
    for domain, order in known.orders:
        rank = np.arange(len(order)) / (len(order) - 1)
        cost[list(order)] += sizes[domain] * rank[:, None] * mix[domain]
    first = linear_sum_assignment(cost)[1]
    order = np.r_[first, np.setdiff1d(np.arange(n_classes), first)]
    classes = np.argsort(order)[parts]
    classes[known.rows] = known.classes[known.rows]
    return np.asarray(classes * n_components + piece)


def by_nearest(rows: Rows, n_classes: int) -> Array | None:
    """Class of each row by the nearest mean of known rows, if every class has some."""
    known = rows.known
    if known is None or known.n_told < n_classes:
        return None
    told = known.rows
    member = np.eye(n_classes)[known.classes[told]]
    means = member.T @ rows.X[told] / member.sum(axis=0)[:, None]
    squares = (means**2).sum(axis=1) - 2 * rows.X @ means.T
    return np.asarray(squares.argmin(axis=1))


def blind(rows: Rows) -> Rows:
    """The rows as those see them who know nothing."""
    return replace(rows, known=None)
