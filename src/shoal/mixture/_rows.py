"""Training rows in canonical order, and samples and folds within domains."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.mixture._features import FeatureMap
from shoal.mixture._likelihood import MixtureProblem
from shoal.validation import row_weights

# ---- Samples and folds of rows, drawn within domains ---------------------------------

Array = np.ndarray[Any, Any]


def stratified_sample(codes: Array, max_rows: int, rng: np.random.Generator) -> Array:
    """At most ``max_rows`` row numbers, spread as evenly over domains as they allow.

    ``codes`` is sorted. A small domain gives all its rows and leaves its unused share
    to the larger ones.
    """
    n_domains = int(codes[-1]) + 1
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    sizes = np.bincount(codes, minlength=n_domains)
    quota = even_quota(sizes, max_rows)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    picks = [
        start + np.sort(rng.choice(size, take, replace=False))
        for start, size, take in zip(starts, sizes, quota, strict=True)
    ]
    return np.concatenate(picks)


def even_quota(sizes: Array, max_rows: int) -> Array:
    """How many rows each domain gives to a sample of at most ``max_rows``.

    >>> even_quota(np.array([5, 100, 100]), 45)
    array([ 5, 20, 20])
    """
    quota = np.zeros(len(sizes), dtype=int)
    left = max_rows
    for rank, domain in enumerate(np.argsort(sizes, kind="stable")):
        quota[domain] = min(sizes[domain], left // (len(sizes) - rank))
        left -= quota[domain]
    return quota


def fold_of_rows(codes: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Fold of each row; every domain is spread evenly over the folds."""
    folds = np.empty(len(codes), dtype=int)
    for domain in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == domain)
        folds[rows] = (rng.permutation(len(rows)) + domain) % n_folds
    return folds


# ---- training ------------------------------------------------------------------------

# A row counts at most this many times as much as the mean row. Were three rows of a
# tiny domain a tenth of the likelihood, one class would be spent on them alone.
MOST_WEIGHT = 3.0


@dataclass(frozen=True)
class TrainingRows:
    """Rows sorted by domain and content, with the weight of each.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, n_features)
    codes : ndarray of shape (n,)
        Domain of each row, non-decreasing.
    sample_weight : ndarray of shape (n,) or None
    domain_weight : ndarray of shape (n_domains,)
        q(d).
    discriminator : fitted Discriminator or None
        For the expansion of that name.
    log_domain_given_x : ndarray of shape (n, n_domains) or None
        Its out-of-fold output for these rows.
    """

    X: Any
    codes: Array
    sample_weight: Array | None
    domain_weight: Array
    discriminator: Any = None
    log_domain_given_x: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_domains(self) -> int:
        """Number of domains."""
        return len(self.domain_weight)

    @property
    def row_weight(self) -> Array:
        """w_i: sums to q(d) within a domain."""
        return row_weights(self.codes, self.domain_weight, self.sample_weight)

    def take(self, rows: Array) -> "TrainingRows":
        """Subset of the rows; ``rows`` is sorted."""
        return TrainingRows(
            self.X[rows],
            self.codes[rows],
            None if self.sample_weight is None else self.sample_weight[rows],
            self.domain_weight,
            self.discriminator,
            None if self.log_domain_given_x is None else self.log_domain_given_x[rows],
        )

    def sample(self, max_rows: int, rng: np.random.Generator) -> "TrainingRows":
        """Stratified sample of at most ``max_rows`` rows; self when there are fewer."""
        if self.n_rows <= max_rows:
            return self
        return self.take(stratified_sample(self.codes, max_rows, rng))

    def design(self, features: FeatureMap) -> Any:
        """Features z(x) of these rows."""
        return features.transform(self.X, log_domain_given_x=self.log_domain_given_x)

    def problem(self, features: FeatureMap) -> MixtureProblem:
        """Likelihood of these rows under ``features``."""
        return MixtureProblem(
            self.design(features), self.codes, self.row_weight, self.n_domains
        )


def limit_weight(domain_weight: Array, mass: Array) -> Array:
    """q(d) with domains of very few rows held back.

    Parameters
    ----------
    domain_weight : ndarray of shape (n_domains,)
        q(d) as wanted.
    mass : ndarray of shape (n_domains,)
        Rows, or their weight, in each domain.

    Returns
    -------
    ndarray of shape (n_domains,)
        Sums to 1; ``domain_weight`` itself where no domain is that small.

    Examples
    --------
    >>> limit_weight(np.full(4, 0.25), np.array([330, 330, 330, 10])).round(2)
    array([0.32, 0.32, 0.32, 0.04])
    """
    most = MOST_WEIGHT * mass / mass.sum()
    if (domain_weight <= most).all():
        return domain_weight
    limited = np.minimum(domain_weight, most)
    return np.asarray(limited / limited.sum())
