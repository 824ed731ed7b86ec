"""Whether a domain could be a mix of what others hold, or measures otherwise.

Every domain is held against a density of the *other* domains' rows, in as many pieces
as all rows ask for. Its rows are read in several ways, and each reading is judged on
rows that were held out of it:

- the mix of the others, and a mix of its own: what the second gains is the *shift*;
- a mix of its own and one piece that only this domain has, or all rows moved by one
  offset: what the better of them gains over the mix says how far the domain stands
  *apart*. A class that lives nowhere else does so rightly, but seldom in every domain;
- a mix of its own with one column in another unit, u = factor * x + offset. Where that
  gains more than half of what a piece of its own does, it names the *instrument*.

Nothing here needs a fit: ``shoal check`` asks before one, ``diagnose`` after it.
"""

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.analysis.diagnose._readings import (
    Pieces,
    count_pieces,
    density,
    fit_pieces,
    in_units,
    moved,
    other_units,
    own_mix,
    place,
    with_own_piece,
)
from shoal.analysis.diagnose._settings import DRIFT
from shoal.validation._rows import stratified_sample

Array = np.ndarray[Any, Any]
Numbers = dict[str, Any]


@dataclass(frozen=True)
class Instrument:
    """One column of one domain, in another unit.

    Attributes
    ----------
    domain, column : int
    gain, error : float
        What the unit gains over a mix of the others, nats a held-out row.
    beyond, beyond_error : float
        What it gains over the better of that mix and a class of the domain's own.
    rows : int
    evidence : float
        Nats of all rows that the unit gains over that mix, less half of what a class of
        the domain's own gains: such a class bends to any table, a unit to few.
    factor, offset : float
        Values elsewhere = factor * values here + offset.
    size : float
        How far that moves the rows, in spreads of the column.
    here, elsewhere : tuple of float
        The 5% and 95% quantiles of the column.
    """

    domain: int
    column: int
    gain: float
    error: float
    beyond: float
    beyond_error: float
    rows: int
    evidence: float
    factor: float
    offset: float
    size: float
    here: tuple[float, float]
    elsewhere: tuple[float, float]


class Scale(NamedTuple):
    """Centre and spread of the columns in a typical domain."""

    centre: Array
    spread: Array
    varying: Array  # columns that can have another unit


def find_drift(X: Any, codes: Array, rng: np.random.Generator) -> Numbers | None:
    """Hold every domain against the others; None where the table does not allow it.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_columns)
        NaN where a value misses.
    codes : ndarray of shape (n_samples,)
    rng : numpy Generator

    Returns
    -------
    dict
        ``shift``, ``apart`` and their standard errors, nats a held-out row, for every
        domain (NaN of those with too few rows); ``instruments``, most evidence first,
        each as the dict of an :class:`Instrument`.
    """
    if X.shape[1] > DRIFT.most_columns:
        return None
    X = np.asarray(X, dtype=float)
    order = np.lexsort((*X.T, codes))  # by content: the order of rows says nothing
    taken = order[stratified_sample(codes[order], DRIFT.most_rows, rng)]
    X, codes = X[taken], codes[taken]
    sizes = np.bincount(codes)
    judged = np.flatnonzero(sizes >= DRIFT.least_rows)
    if len(judged) < DRIFT.least_domains:
        return None
    scale = typical_scale(X, codes, judged)
    Z = np.where(np.isnan(X), 0, (X - scale.centre) / scale.spread)
    n_pieces = count_pieces(Z, rng) if scale.varying.any() else None
    if n_pieces is None:
        return None
    result = {name: np.full(len(sizes), np.nan)
              for name in ("shift", "shift_error", "apart", "apart_error")}  # fmt: skip
    instruments: list[Instrument] = []
    for group in np.array_split(
        rng.permutation(judged), min(len(judged), DRIFT.groups)
    ):
        others = ~np.isin(codes, group)
        pieces = fit_pieces(Z[others], n_pieces, rng)
        for domain in group:
            own = codes == domain
            readings = read_domain(Z[own], pieces, rng)
            for name, value in readings.told().items():
                result[name][domain] = value
            instruments += _instruments(readings, int(domain), X[own], X[others], scale)
    instruments.sort(key=lambda one: -one.evidence)
    told = [asdict(one) for one in instruments[: DRIFT.n_told]]
    return {**result, "instruments": told}


def typical_scale(X: Array, codes: Array, judged: Array) -> Scale:
    """Medians over domains, so that one that measures otherwise does not count."""
    quartiles = np.full((3, len(judged), X.shape[1]), np.nan)
    for place_of, domain in enumerate(judged):
        own = X[codes == domain]
        known = ~np.isnan(own).all(axis=0)
        cut = np.nanpercentile(own[:, known], (25, 50, 75), axis=0)
        quartiles[:, place_of, known] = cut
    values = [x[~np.isnan(x)] for x in X.T]
    empty = np.isnan(quartiles).all(axis=(0, 1))
    low, centre, high = np.nanmedian(np.where(empty, 0, quartiles), axis=1)
    # of many equal values, quartiles may coincide
    overall = np.array([x.std() if len(x) else 0 for x in values])
    spread = np.maximum((high - low) / 1.349, DRIFT.least_spread * overall)
    distinct = np.array([len(np.unique(x)) for x in values])
    varying = (spread > 0) & (distinct >= DRIFT.least_values)
    return Scale(centre, np.where(spread > 0, spread, 1), varying)


# ---- one domain ----------------------------------------------------------------------


class Readings(NamedTuple):
    """Log densities of a domain's rows, each read by what was fitted to other rows."""

    alike: Array  # (n,)
    mix: Array
    own_piece: Array
    moved: Array
    units: Array  # (p, n)
    factor: Array  # (p,), of all rows
    offset: Array
    size: Array

    def told(self) -> dict[str, float]:
        """Shift, how far the domain stands apart, and their errors."""
        shift, shift_error = _mean(self.mix - self.alike)
        ways = [self.own_piece - self.mix, self.moved - self.mix]
        apart, apart_error = max((_mean(way) for way in ways), key=lambda one: one[0])
        return {"shift": shift, "shift_error": shift_error,
                "apart": apart, "apart_error": apart_error}  # fmt: skip


def read_domain(Z: Array, pieces: Pieces, rng: np.random.Generator) -> Readings:
    """All readings of one domain; every row is held out once."""
    folds = rng.permutation(len(Z)) % DRIFT.n_folds
    rows = place(Z, pieces)
    mix, own_piece, offset = (np.empty(len(Z)) for _ in range(3))
    units = np.empty(Z.T.shape)
    for fold in range(DRIFT.n_folds):
        train, test = folds != fold, folds == fold
        share = own_mix(rows.log[train], pieces.share)
        mix[test] = density(rows.log[test], share)
        own_piece[test] = with_own_piece(rows, train, pieces, share)[test]
        offset[test] = moved(rows, train, pieces, share)[test]
        changed = other_units(rows.take(train), pieces, share)
        units[:, test] = in_units(rows.take(test), pieces, changed)
    found = other_units(rows, pieces, own_mix(rows.log, pieces.share))
    size = np.sqrt(np.mean(found.change(Z) ** 2, axis=0))
    alike = density(rows.log, pieces.share)
    return Readings(
        alike, mix, own_piece, offset, units, found.factor, found.offset, size
    )


def _instruments(
    readings: Readings, domain: int, here: Array, elsewhere: Array, scale: Scale
) -> list[Instrument]:
    """The columns whose other unit gains surely, in the units of the table."""
    found = []
    level = max(readings.mix, readings.own_piece, key=np.mean)
    few_gaps = np.isnan(here).mean(axis=0) <= DRIFT.most_gaps
    for column in np.flatnonzero(scale.varying & few_gaps):
        gain, error = _mean(readings.units[column] - readings.mix)
        if gain <= DRIFT.told_from * error:
            continue
        factor = readings.factor[column]
        beyond, beyond_error = _mean(readings.units[column] - level)
        centre, spread = scale.centre[column], scale.spread[column]
        found.append(Instrument(
            domain, int(column), gain, error, beyond, beyond_error, len(here),
            len(here) * (gain + beyond) / 2,
            float(factor),
            float(readings.offset[column] * spread + centre * (1 - factor)),
            float(readings.size[column]),
            _ends(here[:, column]), _ends(elsewhere[:, column]),
        ))  # fmt: skip
    return found


def _mean(each: Array) -> tuple[float, float]:
    return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))


def _ends(values: Array) -> tuple[float, float]:
    low, high = np.nanpercentile(values, (5, 95))
    return float(low), float(high)
