"""Whether rows of a class look as they did, column by column.

Where only the mix has changed, the mean of a column is the mix of its means in the
classes, whatever the classes overlap. What is left is an offset: the drift of looks.
Domains of a fit have offsets of their own, by chance and because no model is quite
right; a domain that is new has to be further off than these.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal.probability import TINY

Array = np.ndarray[Any, Any]


class Offset(NamedTuple):
    """How far the rows of a domain are off in each column, in standard deviations."""

    size: Array  # (n_columns,)
    error: Array  # (n_columns,), its standard error


@dataclass(frozen=True, eq=False)
class Looks:
    """What the rows of a fit say of columns.

    Attributes
    ----------
    centre, spread : ndarray of shape (n_columns,)
    means : ndarray of shape (n_classes, n_columns)
        Of each class, standardized.
    variance : ndarray of shape (n_classes, n_columns)
        Of these means.
    offsets : dict of int to (ndarray, ndarray)
        Offset of each domain of the fit, and its variance.
    between : ndarray of shape (n_columns,)
        Variance of these offsets beyond chance.
    """

    centre: Array
    spread: Array
    means: Array
    variance: Array
    offsets: dict[int, tuple[Array, Array]]
    between: Array

    def offset(self, X: Array, posterior: Array, code: int | None) -> Offset:
        """That of the rows of one domain: the ``code``-th of the fit, or a new one."""
        mean, variance = self._left(X, posterior)
        if code in self.offsets:  # against the same domain, as it was
            was, chance = self.offsets[code]
            return Offset(mean - was, np.sqrt(variance + chance))
        share = posterior.mean(axis=0)
        n_domains = max(len(self.offsets), 1)
        variance = variance + share**2 @ self.variance
        variance += self.between * (1 + 1 / n_domains)
        return Offset(mean, np.sqrt(variance))

    def _left(self, X: Array, posterior: Array) -> tuple[Array, Array]:
        """Mean of what the classes do not explain, and its variance."""
        left = (X - self.centre) / self.spread - posterior @ self.means
        return left.mean(axis=0), left.var(axis=0) / len(left)


def learn_looks(X: Array, posterior: Array, codes: Array) -> Looks:
    """From the rows of a fit: p_d(y|x) of each, and the number of its domain."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)  # a constant column has no offset
    Z = (X - centre) / spread
    mass = np.maximum(posterior.sum(axis=0), TINY)[:, None]
    means = posterior.T @ Z / mass
    second = posterior.T @ Z**2 / mass
    variance = np.maximum(second - means**2, 0) / np.maximum(mass, 1)
    empty = np.zeros(X.shape[1])
    looks = Looks(centre, spread, means, variance, {}, empty)
    offsets = {
        int(code): looks._left(X[codes == code], posterior[codes == code])
        for code in np.unique(codes)
        if (codes == code).sum() > 1
    }
    between = empty
    if len(offsets) > 1:
        means_of, chances = map(np.array, zip(*offsets.values(), strict=True))
        # with one standard error on top: few domains tell little of the next
        seen = means_of.var(axis=0, ddof=1)
        unsure = np.sqrt(2 / (len(offsets) - 1)) * seen
        between = np.maximum(seen - chances.mean(axis=0) + unsure, 0)
    return Looks(centre, spread, means, variance, offsets, between)
