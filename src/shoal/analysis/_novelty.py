"""How strange rows are, measured against the rows of a fit.

The distance of a row to the nearest of a few stored centres, in units of that
cluster's own spread. Its meaning comes from the training rows: a new row is as
familiar as the share of them that lies at least as far out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_random_state

from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class NoveltySettings:
    """How closely the training rows are remembered: small, and fast to ask."""

    max_centres: int = 64
    rows_per_centre: int = 20
    max_rows: int = 5_000
    n_rounds: int = 5  # of k-means: rough centres will do
    block_rows: int = 8192  # whose distances exist at once
    n_quantiles: int = 201
    # A cluster of nearly equal rows would call everything else infinitely far.
    least_spread: float = 0.25


SETTINGS = NoveltySettings()


@dataclass(frozen=True, eq=False)
class Novelty:
    """Where the training rows lie.

    Attributes
    ----------
    centres : ndarray of shape (n_centres, n_columns)
    spread : ndarray of shape (n_centres,)
        Root mean square distance of a cluster's rows to its centre.
    quantiles : ndarray of shape (n_quantiles,)
        Of the distances of training rows that did not help to find the centres.
    strangers : shoal.analysis._unknown.Strangers or None
        How strange rows of an unknown class would be; None where it was not asked.
    """

    centres: Array
    spread: Array
    quantiles: Array
    strangers: Any = None

    def distance(self, Z: Any) -> Array:
        """Distance of rows to their nearest centre, in spreads; shape (n_samples,)."""
        result = np.empty(Z.shape[0])
        squares = _squares(self.centres)
        # [z, |z|^2, 1] times this is |z - c|^2 / spread^2: one product, no passes
        table = np.vstack([-2 * self.centres.T, np.ones_like(squares), squares])
        table /= self.spread**2
        for start in range(0, len(result), SETTINGS.block_rows):
            rows = slice(start, start + SETTINGS.block_rows)
            nearest = (_with_squares(Z[rows]) @ table).min(axis=1)
            result[rows] = np.sqrt(np.maximum(nearest, 0))
        return result


class Halves(NamedTuple):
    """A record of rows, those that gave its centres, and those that were measured."""

    novelty: Novelty
    near: Array
    other: Array
    seed: int


def fit_novelty(Z: Any, *, random_state: Any = None) -> Halves:
    """Learn where rows lie; the result is a few small arrays.

    Parameters
    ----------
    Z : ndarray or sparse matrix of shape (n_samples, n_columns)
        Scaled features of the training rows.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Halves
        The record, and the rows of the two halves that it is made of.

    Notes
    -----
    Beyond 5,000 rows, a random sample of that size is used. One half of the rows gives
    the centres (one for 20 rows, at most 64), the other the quantiles: distances of
    rows to centres fitted on them would be too small to compare new rows with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> novelty = fit_novelty(rng.normal(size=(500, 2)), random_state=0).novelty
    >>> far = novelty.distance(np.array([[0.0, 0.0], [50.0, 50.0]]))
    >>> bool(far[1] > novelty.quantiles[-1] > far[0])
    True
    """
    random = check_random_state(random_state)
    order = random.permutation(Z.shape[0])[: SETTINGS.max_rows]
    seed = int(random.randint(np.iinfo(np.int32).max))
    half = max(len(order) // 2, 1)
    near, other = np.sort(order[:half]), np.sort(order[half:])
    centres = find_centres(Z[near], seed)
    apart = Novelty(*centres, np.zeros(0)).distance(Z[other])
    novelty = Novelty(*centres, novelty_quantiles(apart))
    return Halves(novelty, near, other, seed)


def novelty_quantiles(novelty: Array) -> Array:
    """Quantiles of the novelty of training rows, smallest to largest."""
    return np.quantile(novelty, np.linspace(0, 1, SETTINGS.n_quantiles))


def familiarity(novelty: Array, quantiles: Array) -> Array:
    """Share of training rows that are at least as strange as each row.

    Uniform on [0, 1] for rows like the training rows, 0 for rows beyond all of them.
    """
    below = np.searchsorted(quantiles, novelty, side="left")
    return np.asarray(1 - np.minimum(below / (len(quantiles) - 1), 1))


def find_centres(Z: Any, seed: int) -> tuple[Array, Array]:
    """Centres and spreads by a few rounds of k-means from random rows."""
    random = np.random.default_rng(seed)
    n_rows = Z.shape[0]
    count = min(SETTINGS.max_centres, max(1, n_rows // SETTINGS.rows_per_centre))
    centres = _dense(Z[np.sort(random.choice(n_rows, count, replace=False))])
    for _ in range(SETTINGS.n_rounds):
        nearest, _ = _nearest(Z, centres)
        members = sparse.csr_array(
            (np.ones(n_rows), (nearest, np.arange(n_rows))), shape=(count, n_rows)
        )
        size = members.sum(axis=1)
        filled = size > 0
        centres[filled] = _dense(members @ Z)[filled] / size[filled, None]
    nearest, apart = _nearest(Z, centres)
    size = np.maximum(np.bincount(nearest, minlength=count), 1)
    variance = np.bincount(nearest, weights=apart**2, minlength=count) / size
    overall = max(np.sqrt(np.mean(apart**2)), 1e-12)
    return centres, np.maximum(np.sqrt(variance), SETTINGS.least_spread * overall)


def _nearest(Z: Any, centres: Array) -> tuple[Array, Array]:
    apart = euclidean_distances(Z, centres)
    nearest = apart.argmin(axis=1)
    return nearest, apart[np.arange(len(nearest)), nearest]


def _with_squares(Z: Any) -> Any:
    """Two more columns: the square of each row's length, and 1."""
    if is_sparse(Z):
        Z = Z.astype(float)
        more = np.ones((Z.shape[0], 2))
        more[:, 0] = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
        return sparse.hstack([Z, sparse.csr_array(more)], format="csr")
    rows = np.ones((Z.shape[0], Z.shape[1] + 2))
    rows[:, :-2] = Z
    rows[:, -2] = _squares(rows[:, :-2])
    return rows


def _squares(Z: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", Z, Z))


def _dense(Z: Any) -> Array:
    to_dense = getattr(Z, "toarray", None)
    return np.array(Z if to_dense is None else to_dense(), dtype=float)
