"""Could a domain be a mix of what other domains hold, or does it measure otherwise?

Every domain is held against a density of the *other* domains' rows, in as many pieces as
these rows ask for. Four readings of its rows are compared on rows that were held out:

- ``alike``: the mix of the others;
- ``mix``: a mix of its own. What it gains is S, the *shift*;
- ``new``: a mix of its own and one piece that only this domain has, a new class;
- ``moved``: a mix of its own, and all its rows moved by one offset. What it gains over
  the better of ``mix`` and ``new`` is V, the *drift*.

The same with a single column read in another unit, u = factor * x + offset, names the
instrument. Pieces are free to change their share, so that no shift of classes, however
many these are, needs a move.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.mixture import GaussianMixture

from shoal.analysis.diagnose._settings import DRIFT
from shoal.validation._rows import stratified_sample

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Drift:
    """How domains differ in their mix, and in how they measure.

    Attributes
    ----------
    shift, shift_error : ndarray of shape (n_domains,)
        S of each domain, nats a held-out row, and its standard error.
    drift, drift_error : ndarray of shape (n_domains,)
        V of each domain.
    gain, gain_error : ndarray of shape (n_domains, n_columns)
        What another unit of one column gains over ``mix``.
    new_gain, new_share : ndarray of shape (n_domains,)
        What a new class gains over ``mix``, and its share of the domain's rows.
    factor, offset : ndarray of shape (n_domains, n_columns)
        Of that unit: values of the others = factor * values here + offset.
    size : ndarray of shape (n_domains, n_columns)
        How far it moves the rows of the domain, in spreads of the column.
    rows : ndarray of shape (n_domains,)
        Rows that were looked at.
    """

    shift: Array
    shift_error: Array
    drift: Array
    drift_error: Array
    gain: Array
    gain_error: Array
    new_gain: Array
    new_share: Array
    factor: Array
    offset: Array
    size: Array
    rows: Array


class Scale(NamedTuple):
    """Centre and spread of the columns in a typical domain."""

    centre: Array
    spread: Array
    varying: Array  # columns that can have another unit

    def apply(self, X: Array) -> Array:
        """The columns in spreads from their centres."""
        return np.asarray((X - self.centre) / self.spread)


class Pieces(NamedTuple):
    """A density of Gaussian pieces, the last of which covers what fits nowhere."""

    share: Array  # (m,)
    means: Array  # (m, p)
    roots: Array  # (m, p, p): inverse covariance = root @ root.T

    @property
    def logdet(self) -> Array:
        """Log of the determinant of each root."""
        return np.asarray(np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(axis=1))


def find_drift(X: Any, codes: Array, rng: np.random.Generator) -> Drift | None:
    """Hold every domain against the others; None where columns or rows do not allow it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        NaN where a value misses.
    codes : ndarray of shape (n_samples,)
    rng : numpy Generator
    """
    n_domains = int(codes.max()) + 1
    if n_domains < DRIFT.least_domains or X.shape[1] > DRIFT.most_columns:
        return None
    X = np.asarray(X, dtype=float)
    order = np.lexsort((*X.T, codes))  # by content: the order of rows says nothing
    taken = order[stratified_sample(codes[order], DRIFT.most_rows, rng)]
    X, codes = X[taken], codes[taken]
    gaps = np.isnan(X)
    scale = typical_scale(X, codes, n_domains)
    if not scale.varying.any():
        return None
    Z = np.where(gaps, 0, scale.apply(X))
    n_pieces = count_pieces(Z, rng)
    if n_pieces is None:
        return None
    result = _nothing(n_domains, X.shape[1])
    for group in groups_of_domains(codes, n_domains, rng):
        others = ~np.isin(codes, group)
        pieces = fit_pieces(Z[others], n_pieces, rng)
        for domain in group:
            own = codes == domain
            result.rows[domain] = own.sum()
            if own.sum() >= DRIFT.least_rows:
                _judge_domain(result, domain, Z[own], pieces, rng)
    unknown = ~scale.varying | (_mean_by(gaps, codes, n_domains) > DRIFT.most_gaps)
    result.gain[np.broadcast_to(unknown, result.gain.shape)] = np.nan
    # from spreads back to the units of the columns
    result.offset[:] = (
        result.offset * scale.spread + scale.centre * (1 - result.factor)
    )
    return result


def worst_instrument(drift: dict[str, Array]) -> tuple[int, int]:
    """Domain and column whose other unit gains most, over all its rows."""
    total = np.nan_to_num(drift["gain"] * drift["rows"][:, None], nan=-np.inf)
    domain, column = np.unravel_index(total.argmax(), total.shape)
    return int(domain), int(column)


def _nothing(n_domains: int, n_columns: int) -> Drift:
    each, cells = n_domains, (n_domains, n_columns)
    shapes = (each,) * 4 + (cells,) * 2 + (each,) * 2 + (cells,) * 3 + (each,)
    return Drift(*(np.full(shape, np.nan) for shape in shapes))


def _mean_by(values: Array, codes: Array, n_domains: int) -> Array:
    sums = np.zeros((n_domains, values.shape[1]))
    np.add.at(sums, codes, values)
    return sums / np.maximum(np.bincount(codes, minlength=n_domains), 1)[:, None]


def typical_scale(X: Array, codes: Array, n_domains: int) -> Scale:
    """Medians over domains, so that one that measures otherwise does not count."""
    quartiles = np.full((3, n_domains, X.shape[1]), np.nan)
    for domain in range(n_domains):
        own = X[codes == domain]
        if len(own):
            known = ~np.isnan(own).all(axis=0)
            cut = np.nanpercentile(own[:, known], (25, 50, 75), axis=0)
            quartiles[:, domain, known] = cut
    middle = [np.nanmedian(part, axis=0) for part in quartiles]
    # of many equal values, quartiles may coincide
    spread = np.maximum((middle[2] - middle[0]) / 1.349, 0.2 * np.nanstd(X, axis=0))
    distinct = np.array([len(np.unique(x[~np.isnan(x)])) for x in X.T])
    varying = (spread > 0) & (distinct >= DRIFT.least_values)
    return Scale(middle[1], np.where(spread > 0, spread, 1), varying)


def groups_of_domains(
    codes: Array, n_domains: int, rng: np.random.Generator
) -> list[Array]:
    """Domains that are left out together: one at a time, or a few of many."""
    order = rng.permutation(n_domains)
    return np.array_split(order, min(n_domains, DRIFT.most_groups))


# ---- the density of the others -------------------------------------------------------


def count_pieces(Z: Array, rng: np.random.Generator) -> int | None:
    """Pieces that the rows of all domains ask for, by Schwarz' criterion."""
    best, least = None, np.inf
    for count in DRIFT.pieces:
        if count * (Z.shape[1] + 1) * DRIFT.rows_per_number > len(Z):
            break
        found = _gaussians(Z, count, rng)
        value = found.bic(Z)
        if value >= least:
            break
        best, least = count, value
    return best


def _gaussians(Z: Array, count: int, rng: np.random.Generator) -> GaussianMixture:
    wide = Z.shape[1] > DRIFT.most_full
    model = GaussianMixture(
        count,
        covariance_type="diag" if wide else "full",
        reg_covar=DRIFT.least_variance,
        tol=1e-2,
        max_iter=DRIFT.n_fit,
        random_state=int(rng.integers(2**31 - 1)),
    )
    with np.errstate(all="ignore"):
        return model.fit(Z)


def fit_pieces(Z: Array, count: int, rng: np.random.Generator) -> Pieces:
    """Gaussian pieces of some rows, and a broad one."""
    found = _gaussians(Z, count, rng)
    roots = found.precisions_cholesky_
    if roots.ndim == 2:
        roots = roots[:, :, None] * np.eye(Z.shape[1])
    centre = np.median(Z, axis=0)
    spread = np.sqrt(np.mean((Z - centre) ** 2, axis=0) + DRIFT.least_variance)
    broad = np.diag(1 / (DRIFT.broad * spread))
    share = np.append(found.weights_ * (1 - DRIFT.nowhere), DRIFT.nowhere)
    means, roots = np.vstack([found.means_, centre]), np.concatenate([roots, broad[None]])
    return Pieces(share, means, roots)


def _residuals(Z: Array, pieces: Pieces) -> tuple[Array, Array]:
    """Log density of rows in pieces (n, m), and inverse covariance times (x - mean)."""
    scaled = np.einsum("nmp,mpq->nmq", Z[:, None] - pieces.means, pieces.roots)
    pulled = np.einsum("nmq,mpq->nmp", scaled, pieces.roots)
    constant = pieces.logdet - 0.5 * Z.shape[1] * np.log(2 * np.pi)
    return constant - 0.5 * (scaled**2).sum(axis=2), pulled


# ---- readings of one domain ----------------------------------------------------------


def _judge_domain(
    result: Drift, domain: int, Z: Array, pieces: Pieces, rng: np.random.Generator
) -> None:
    """Fill in what one domain says; every row is held out once."""
    folds = rng.permutation(len(Z)) % DRIFT.n_folds
    log, pulled = _residuals(Z, pieces)
    n, p = Z.shape
    alike = logsumexp(log + np.log(pieces.share), axis=1)
    mix, new, moved, units = np.empty(n), np.empty(n), np.empty(n), np.empty((p, n))
    for fold in range(DRIFT.n_folds):
        train, test = folds != fold, folds == fold
        share = own_mix(log[train], pieces.share)
        mix[test] = logsumexp(log[test] + np.log(share), axis=1)
        new[test] = _with_new(Z, log, train, pieces, share)[0][test]
        offset = move_all(Z[train], pieces, share)
        shifted, _ = _residuals(Z[test] + offset[0], pieces)
        moved[test] = logsumexp(shifted + np.log(offset[1]), axis=1)
        change = other_units(Z[train], log[train], pulled[train], pieces, share)
        units[:, test] = unit_densities(Z[test], log[test], pulled[test], pieces, change)
    share = own_mix(log, pieces.share)
    result.new_share[domain] = _with_new(Z, log, np.ones(n, bool), pieces, share)[1]
    result.new_gain[domain] = (new - mix).mean()
    result.shift[domain], result.shift_error[domain] = _mean(mix - alike)
    known = np.maximum(mix.mean(), new.mean())
    level = new if new.mean() == known else mix
    result.drift[domain], result.drift_error[domain] = _mean(moved - level)
    gains = np.array([_mean(unit - mix) for unit in units])
    result.gain[domain], result.gain_error[domain] = gains.T
    change = other_units(Z, log, pulled, pieces, share)
    result.factor[domain], result.offset[domain] = change.factor, change.offset
    result.size[domain] = np.sqrt(
        np.mean(((change.factor - 1) * Z + change.offset) ** 2, axis=0)
    )


def _mean(each: Array) -> tuple[float, float]:
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def own_mix(log: Array, prior: Array) -> Array:
    """Likeliest shares of the pieces, with some rows' worth of the others' shares."""
    share = prior
    for _ in range(DRIFT.n_mix):
        share = _shares(log + np.log(share), prior)
    return share


def _shares(joint: Array, prior: Array) -> Array:
    weight = np.exp(joint - logsumexp(joint, axis=-1, keepdims=True))
    counts = weight.sum(axis=-2) + DRIFT.prior_rows * prior
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


def _with_new(
    Z: Array, log: Array, train: Array, pieces: Pieces, share: Array
) -> tuple[Array, float]:
    """Log density of all rows with a piece of the domain's own, and its share.

    It starts at the quarter of the rows that the others explain least, with a
    covariance that is pulled to the mean one of the pieces.
    """
    seen, p = Z[train], Z.shape[1]
    level = logsumexp(log[train] + np.log(share), axis=1)
    weight = (level <= np.quantile(level, 0.25)).astype(float)
    inverse = np.einsum("mpq,mrq->mpr", pieces.roots[:-1], pieces.roots[:-1])
    pooled = np.linalg.inv(np.einsum("m,mpr->pr", pieces.share[:-1], inverse))
    rows = p + 2.0
    shares = np.append(share, 0.0)
    prior = np.append(pieces.share, 0.0)
    for _ in range(DRIFT.n_new):
        mass = max(weight.sum(), 1e-9)
        mean = weight @ seen / mass
        centred = seen - mean
        spread = (centred.T * weight) @ centred + rows * pooled
        one = _one_piece(mean, spread / (mass + rows))
        own = _residuals(seen, one)[0]
        counts = np.append(_shares_counts(log[train], shares[:-1], weight), mass)
        shares = (counts + DRIFT.prior_rows * prior) / (
            counts.sum() + DRIFT.prior_rows
        )
        joint = np.hstack([log[train], own]) + np.log(np.maximum(shares, 1e-300))
        weight = np.exp(joint[:, -1] - logsumexp(joint, axis=1))
    full = np.hstack([log, _residuals(Z, one)[0]])
    return logsumexp(full + np.log(np.maximum(shares, 1e-300)), axis=1), shares[-1]


def _shares_counts(log: Array, share: Array, taken: Array) -> Array:
    """Rows of each piece, of what the new one has not taken."""
    joint = log + np.log(np.maximum(share, 1e-300))
    weight = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    return np.asarray((1 - taken) @ weight)


def _one_piece(mean: Array, covariance: Array) -> Pieces:
    factor = np.linalg.cholesky(covariance)
    root = solve_triangular(factor, np.eye(len(mean)), lower=True).T
    return Pieces(np.ones(1), mean[None], root[None])


def move_all(Z: Array, pieces: Pieces, share: Array) -> tuple[Array, Array]:
    """The likeliest offset of all columns, and the mix with it, by EM."""
    inverse = np.einsum("mpq,mrq->mpr", pieces.roots, pieces.roots)
    offset = np.zeros(Z.shape[1])
    for _ in range(DRIFT.n_move):
        log, pulled = _residuals(Z + offset, pieces)
        joint = log + np.log(share)
        weight = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        stiff = np.einsum("m,mpr->pr", weight.sum(axis=0), inverse)
        pull = np.einsum("nm,nmp->p", weight, pulled)
        # a move must be worth some rows: the prior of the offset
        stiff += DRIFT.prior_rows * np.eye(len(offset))
        offset = offset - np.linalg.solve(stiff, pull + DRIFT.prior_rows * offset)
        share = _shares(joint, pieces.share)
    return offset, share


class Units(NamedTuple):
    """Another unit for each column alone, and the mix of the pieces with it."""

    factor: Array  # (p,)
    offset: Array  # (p,)
    share: Array  # (p, m)


def other_units(
    Z: Array, log: Array, pulled: Array, pieces: Pieces, share: Array
) -> Units:
    """The likeliest unit of each column, from two starts: as it is, and as matched."""
    starts = []
    spread = np.maximum(Z.std(axis=0), 1e-3)
    target = np.sqrt((pieces.share[:-1] @ (pieces.means[:-1] ** 2)) + 1.0)
    target = np.clip(target, 0.5, 3)
    centre = pieces.share[:-1] @ pieces.means[:-1] / pieces.share[:-1].sum()
    factor = target / spread
    for first in (
        (np.ones(Z.shape[1]), np.zeros(Z.shape[1])),
        (factor, centre - factor * Z.mean(axis=0)),
    ):
        units = Units(*first, np.tile(share, (Z.shape[1], 1)))
        for _ in range(DRIFT.n_move):
            units = _improve(Z, log, pulled, pieces, units)
        starts.append(units)
    reached = [
        unit_densities(Z, log, pulled, pieces, units).sum(axis=1) for units in starts
    ]
    second = reached[1] > reached[0]
    return Units(
        *(
            np.where(second if a.ndim == 1 else second[:, None], b, a)
            for a, b in zip(*starts, strict=True)
        )
    )


def _stiffness(pieces: Pieces) -> Array:
    """Diagonal of the inverse covariances, (m, p)."""
    return np.asarray((pieces.roots**2).sum(axis=2))


def _unit_joint(
    Z: Array, log: Array, pulled: Array, pieces: Pieces, units: Units
) -> Array:
    """Log density of rows and pieces with one column changed, (p, n, m)."""
    change = ((units.factor - 1) * Z + units.offset).T[:, :, None]
    stiff = _stiffness(pieces).T[:, None, :]
    moved = log - change * pulled.transpose(2, 0, 1) - 0.5 * change**2 * stiff
    return np.asarray(moved + np.log(units.share)[:, None, :])


def unit_densities(
    Z: Array, log: Array, pulled: Array, pieces: Pieces, units: Units
) -> Array:
    """Log density of rows, with each column in its other unit in turn, (p, n)."""
    joint = _unit_joint(Z, log, pulled, pieces, units)
    return np.asarray(logsumexp(joint, axis=2) + np.log(units.factor)[:, None])


def _improve(
    Z: Array, log: Array, pulled: Array, pieces: Pieces, units: Units
) -> Units:
    """One step of EM: the posterior of the pieces, then unit and shares in closed form.

    Given the posterior, the likelihood is n log(factor) less a quadratic in factor and
    offset; ``prior_rows`` speak for the unit as it is.
    """
    joint = _unit_joint(Z, log, pulled, pieces, units)
    weight = np.exp(joint - logsumexp(joint, axis=2, keepdims=True))
    stiff = _stiffness(pieces).T[:, None, :]
    a = (weight * stiff).sum(axis=2)  # (p, n)
    b = (weight * pulled.transpose(2, 0, 1)).sum(axis=2) - a * Z.T
    z, extra = Z.T, DRIFT.prior_rows
    A, Ax, Axx = a.sum(axis=1), (a * z).sum(axis=1), (a * z**2).sum(axis=1)
    B, Bx = b.sum(axis=1), (b * z).sum(axis=1)
    A, Axx, Bx = A + extra, Axx + extra, Bx
    C = np.maximum(Axx - Ax**2 / A, 1e-9)
    D = Bx - B * Ax / A
    n = len(Z) + extra
    factor = (-D + np.sqrt(D**2 + 4 * C * n)) / (2 * C)
    factor = np.clip(factor, 1e-6, 1e6)
    offset = -(B + factor * Ax) / A
    return Units(factor, offset, _shares(joint, pieces.share))
