"""Readings of one domain's rows: a mix of pieces, a piece of its own, a move, a unit.

Rows are in spreads from the centres of their columns. A density has Gaussian *pieces*,
fitted to other domains; shares of the pieces are free in every reading, so that no
shift of classes, however many these are, needs anything else.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.mixture import GaussianMixture

from shoal.analysis.diagnose._settings import DRIFT

Array = np.ndarray[Any, Any]


class Pieces(NamedTuple):
    """A density of Gaussian pieces, the last of which covers what fits nowhere."""

    share: Array  # (m,)
    means: Array  # (m, p)
    roots: Array  # (m, p, p): inverse covariance = root @ root.T

    @property
    def inverse(self) -> Array:
        """Inverse covariances, (m, p, p)."""
        return np.asarray(self.roots @ self.roots.transpose(0, 2, 1))


class PlacedRows(NamedTuple):
    """Rows, and where they lie in the pieces."""

    Z: Array  # (n, p)
    log: Array  # (n, m): log density in each piece
    pull: Array  # (n, m, p): inverse covariance times (row - mean)

    def take(self, where: Array) -> "PlacedRows":
        """Some of the rows."""
        return PlacedRows(*(part[where] for part in self))


def place(Z: Array, pieces: Pieces) -> PlacedRows:
    """Rows in a density."""
    scaled = np.einsum("nmp,mpq->nmq", Z[:, None] - pieces.means, pieces.roots)
    pull = np.einsum("nmq,mpq->nmp", scaled, pieces.roots)
    logdet = np.log(np.diagonal(pieces.roots, axis1=1, axis2=2)).sum(axis=1)
    constant = logdet - 0.5 * Z.shape[1] * np.log(2 * np.pi)
    return PlacedRows(Z, constant - 0.5 * (scaled**2).sum(axis=2), pull)


# ---- the density of other domains ----------------------------------------------------


def count_pieces(Z: Array, rng: np.random.Generator) -> int | None:
    """Pieces that all rows ask for, by Schwarz' criterion; None of too few rows."""
    best, least = None, np.inf
    for count in DRIFT.pieces:
        if count * (Z.shape[1] + 1) * DRIFT.rows_per_number > len(Z):
            break
        value = _gaussians(Z, count, rng).bic(Z)
        if value >= least:
            break
        best, least = count, value
    return best


def fit_pieces(Z: Array, count: int, rng: np.random.Generator) -> Pieces:
    """Gaussian pieces of some rows, and a broad one."""
    found = _gaussians(Z, count, rng)
    centre = np.median(Z, axis=0)
    spread = np.sqrt(np.mean((Z - centre) ** 2, axis=0) + DRIFT.least_variance)
    broad = np.diag(1 / (DRIFT.broad * spread))
    return Pieces(
        np.append(found.weights_ * (1 - DRIFT.nowhere), DRIFT.nowhere),
        np.vstack([found.means_, centre]),
        np.concatenate([found.precisions_cholesky_, broad[None]]),
    )


def _gaussians(Z: Array, count: int, rng: np.random.Generator) -> GaussianMixture:
    model = GaussianMixture(
        count,
        reg_covar=DRIFT.least_variance,
        tol=1e-2,
        max_iter=DRIFT.n_fit,
        random_state=int(rng.integers(2**31 - 1)),
    )
    return model.fit(Z)


# ---- a mix of the pieces, and a piece of its own -------------------------------------


def density(log: Array, share: Array) -> Array:
    """Log density of rows in a mix of pieces, (n,)."""
    return _log_sum(log + _log(share))[..., 0]


def _log_sum(joint: Array) -> Array:
    """Log of the sum of exponentials, many times quicker on small arrays than scipy."""
    top = joint.max(axis=-1, keepdims=True)
    return np.asarray(top + np.log(np.exp(joint - top).sum(axis=-1, keepdims=True)))


def own_mix(log: Array, prior: Array) -> Array:
    """Likeliest shares of the pieces, with some rows' worth of the others' shares."""
    share = prior
    for _ in range(DRIFT.n_mix):
        share = _shares(log + np.log(share), prior)
    return share


def _shares(joint: Array, prior: Array) -> Array:
    counts = _posterior(joint).sum(axis=-2) + DRIFT.prior_rows * prior
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _posterior(joint: Array) -> Array:
    weight = np.exp(joint - joint.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _log(share: Array) -> Array:
    return np.asarray(np.log(np.maximum(share, 1e-300)))


def with_own_piece(
    rows: PlacedRows, train: Array, pieces: Pieces, share: Array
) -> Array:
    """Log density of all rows with one more piece, fitted to those of ``train``.

    It starts at the rows that the others explain least; its covariance is pulled to the
    mean one of the pieces.
    """
    Z, log = rows.Z[train], rows.log[train]
    level = density(log, share)
    weight = (level <= np.quantile(level, DRIFT.least_explained)).astype(float)
    precision = np.einsum("m,mpr->pr", pieces.share[:-1], pieces.inverse[:-1])
    pooled, pseudo_rows = np.linalg.inv(precision), Z.shape[1] + 2.0
    shares, prior = np.append(share, weight.mean()), np.append(pieces.share, 0.0)
    for _ in range(DRIFT.n_new):
        mass = max(weight.sum(), 1e-9)
        mean = weight @ Z / mass
        spread = ((Z - mean).T * weight) @ (Z - mean) + pseudo_rows * pooled
        own = _one_piece(mean, spread / (mass + pseudo_rows))
        joint = np.hstack([log, place(Z, own).log]) + _log(shares)
        weight = _posterior(joint)[:, -1]
        shares = _shares(joint, prior)
    return density(np.hstack([rows.log, place(rows.Z, own).log]), shares)


def _one_piece(mean: Array, covariance: Array) -> Pieces:
    factor = np.linalg.cholesky(covariance)
    root = solve_triangular(factor, np.eye(len(mean)), lower=True).T
    return Pieces(np.ones(1), mean[None], root[None])


# ---- all columns moved ---------------------------------------------------------------


def moved(rows: PlacedRows, train: Array, pieces: Pieces, share: Array) -> Array:
    """Log density of all rows, moved by the likeliest offset of those of ``train``."""
    Z, stiffness = rows.Z[train], pieces.inverse
    offset = np.zeros(Z.shape[1])
    for _ in range(DRIFT.n_move):
        there = place(Z + offset, pieces)
        joint = there.log + np.log(share)
        weight = _posterior(joint)
        stiff = np.einsum("m,mpr->pr", weight.sum(axis=0), stiffness)
        pull = np.einsum("nm,nmp->p", weight, there.pull)
        # a move must be worth some rows: the prior of the offset
        stiff += DRIFT.prior_rows * np.eye(len(offset))
        offset = offset - np.linalg.solve(stiff, pull + DRIFT.prior_rows * offset)
        share = _shares(joint, pieces.share)
    return density(place(rows.Z + offset, pieces).log, share)


# ---- one column in another unit ------------------------------------------------------


class OtherUnits(NamedTuple):
    """Another unit for each column alone, and the mix of the pieces with it."""

    factor: Array  # (p,)
    offset: Array  # (p,)
    share: Array  # (p, m)

    def change(self, Z: Array) -> Array:
        """What it adds to each cell, (n, p)."""
        return np.asarray((self.factor - 1) * Z + self.offset)


def other_units(rows: PlacedRows, pieces: Pieces, share: Array) -> OtherUnits:
    """The likeliest unit of each column, from two starts: as it is, and as matched."""
    Z, parts = rows.Z, pieces.share[:-1] / pieces.share[:-1].sum()
    spread = np.sqrt(np.minimum(parts @ pieces.means[:-1] ** 2 + 1, 9))
    factor = spread / np.maximum(Z.std(axis=0), 1e-3)
    matched = factor, parts @ pieces.means[:-1] - factor * Z.mean(axis=0)
    found = []
    for start in ((np.ones_like(factor), np.zeros_like(factor)), matched):
        units = OtherUnits(*start, np.tile(share, (Z.shape[1], 1)))
        for _ in range(DRIFT.n_move):
            units = _improve(rows, pieces, units)
        found.append(units)
    first, second = (in_units(rows, pieces, units).sum(axis=1) for units in found)
    better = second > first
    return OtherUnits(
        np.where(better, found[1].factor, found[0].factor),
        np.where(better, found[1].offset, found[0].offset),
        np.where(better[:, None], found[1].share, found[0].share),
    )


def in_units(rows: PlacedRows, pieces: Pieces, units: OtherUnits) -> Array:
    """Log density of rows, with each column in its other unit in turn, (p, n)."""
    joint = _joint(rows, pieces, units)
    return _log_sum(joint)[..., 0] + np.log(units.factor)[:, None]


def _joint(rows: PlacedRows, pieces: Pieces, units: OtherUnits) -> Array:
    """Log density of rows and pieces with one column changed, (p, n, m)."""
    change = units.change(rows.Z).T[:, :, None]
    step = change * rows.pull.transpose(2, 0, 1)
    bent = rows.log - step - 0.5 * change**2 * _stiffness(pieces)
    return np.asarray(bent + np.log(units.share)[:, None, :])


def _stiffness(pieces: Pieces) -> Array:
    """Diagonal of the inverse covariances, (p, 1, m)."""
    return np.asarray((pieces.roots**2).sum(axis=2).T[:, None, :])


def _improve(rows: PlacedRows, pieces: Pieces, units: OtherUnits) -> OtherUnits:
    """One step of EM: the posterior of the pieces, then unit and shares in closed form.

    Given the posterior, the likelihood is n log(factor) less a quadratic in factor and
    offset; ``prior_rows`` speak for the unit as it is.
    """
    z, extra = rows.Z.T, DRIFT.prior_rows
    joint = _joint(rows, pieces, units)
    weight = _posterior(joint)
    a = (weight * _stiffness(pieces)).sum(axis=2)  # (p, n)
    b = (weight * rows.pull.transpose(2, 0, 1)).sum(axis=2) - a * z
    A, Ax, Axx = a.sum(axis=1) + extra, (a * z).sum(axis=1), (a * z**2).sum(axis=1)
    B, Bx = b.sum(axis=1), (b * z).sum(axis=1)
    square = np.maximum(Axx + extra - Ax**2 / A, 1e-9)
    linear = Bx - B * Ax / A
    root = np.sqrt(linear**2 + 4 * square * (z.shape[1] + extra))
    factor = np.clip((root - linear) / (2 * square), 1e-6, 1e6)
    return OtherUnits(factor, -(B + factor * Ax) / A, _shares(joint, pieces.share))
