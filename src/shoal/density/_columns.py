"""Columns as the densities see them: standardized, gaps marked, wide tables reduced."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from shoal._known import Knowledge
from shoal.density._decisions import DECISIONS
from shoal.density._gaussian import LOG_2_PI, Gaps, Rows, find_gaps
from shoal.exceptions import SubsampleWarning
from shoal.likelihood._known import sample_rows
from shoal.validation import varying_columns
from shoal.validation._rows import canonical_rows, sort_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Columns:
    """From the columns of a table to those of a density.

    Attributes
    ----------
    varying : ndarray of shape (n_features,), bool
        Columns that vary; the others are left out.
    mean, scale : ndarray of shape (n_varying,)
        Of the values that are there.
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
        """Varying columns with mean 0 and variance 1, gaps kept."""
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
