"""From counts to a few columns: weights, variable columns, principal directions."""

import copy
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd, svd_flip

from shoal.counts._settings import SETTINGS
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]

COUNTED = ("tfidf", "log")
WEIGHTINGS = (*COUNTED, "none", "points")


class Components:
    """Rows of counts as points among which likeness means something.

    Parameters
    ----------
    weighting : {"tfidf", "log", "none", "points"}
        ``"tfidf"``, for texts: 1 + log of each count, times the log of how rare the
        word is, rows of length one before and after the singular vectors.
        ``"log"``, for cells: counts as if all rows were of the median size, log(1 + x),
        the most variable columns. ``"none"``: numbers that are normalized already.
        ``"points"``: what an encoder made, whose directions are those of all that
        varies, also between domains.
    n_components : int
    random_state : int
        Of the random projection that finds the directions of many columns.
    """

    def __init__(self, weighting: str, n_components: int, random_state: int) -> None:
        self.weighting = weighting
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, codes: Array) -> Self:
        """Learn weights and directions; ``codes`` are the domains of the rows."""
        self.size_ = float(np.median(row_sums(X))) if self.weighting == "log" else 1.0
        self.columns_ = self._choose_columns(X)
        self.idf_ = self._rareness(X)
        weighted = self._weigh(X)
        self.directions_ = self._find_directions(weighted, codes)
        self.centre_ = np.zeros(len(self.directions_))
        if self.weighting != "tfidf":
            self.centre_ = column_means(weighted) @ self.directions_.T
        return self

    def transform(self, X: Any) -> Array:
        """Points of rows, (n_rows, n_components)."""
        points = self._weigh(X) @ self.directions_.T - self.centre_
        if self.weighting == "tfidf":
            points = normalize(points, copy=False)
        return np.asarray(points)

    def leading(self, n_components: int) -> "Components":
        """The same with its first directions alone."""
        few = copy.copy(self)
        few.directions_ = self.directions_[:n_components]
        few.centre_ = self.centre_[:n_components]
        return few

    # ---- weights ------------------------------------------------------------------

    def _weigh(self, X: Any) -> Any:
        if self.weighting not in COUNTED:
            return X[:, self.columns_]
        if self.weighting == "log":
            return log_normalized(X, self.size_)[:, self.columns_]
        part = sparse.csr_array(X[:, self.columns_], dtype=float, copy=True)
        part.eliminate_zeros()
        part.data = 1 + np.log(part.data)
        part.data *= self.idf_[part.indices]
        return normalize(part, copy=False)

    def _rareness(self, X: Any) -> Array:
        """Log of how rare a word is, with one imaginary row that has them all."""
        rows = rows_with(X)[self.columns_]
        return np.asarray(np.log((1 + X.shape[0]) / (1 + rows)) + 1)

    def _choose_columns(self, X: Any) -> Array:
        """Columns that can tell rows apart; of genes, those that vary most."""
        least = min(SETTINGS.least_rows, X.shape[0])
        if self.weighting == "points":
            return np.arange(X.shape[1])
        if self.weighting == "tfidf":
            held = rows_with(X)
            kept = held >= min(2, X.shape[0])
            return np.flatnonzero(kept if kept.any() else held > 0)
        if self.weighting == "log":
            score = overdispersion(X, self.size_)
            score[rows_with(X) < least] = 0
        else:
            score = column_variances(X)
        most = np.argsort(-score, kind="stable")[: SETTINGS.variable]
        kept = np.sort(most[score[most] > 0])
        return kept if len(kept) else np.arange(X.shape[1])

    # ---- directions ---------------------------------------------------------------

    def _find_directions(self, weighted: Any, codes: Array) -> Array:
        n_components = min(self.n_components, *weighted.shape)
        if self.weighting == "tfidf":
            found = randomized_svd(
                weighted,
                n_components,
                n_iter=7,
                transpose=False,
                random_state=self.random_state,
            )
            return np.asarray(found[2])
        if self.weighting == "points":
            codes = np.zeros_like(codes)
        gram = within_covariance(weighted, codes)
        directions = np.linalg.eigh(gram)[1][:, ::-1][:, :n_components].T
        return np.asarray(svd_flip(None, directions, u_based_decision=False)[1])


# ---- small helpers -------------------------------------------------------------------


def log_normalized(X: Any, size: float) -> Any:
    """Log(1 + x) of counts as if every row were of one size."""
    factor = size / np.maximum(row_sums(X), 1)
    if is_sparse(X):
        scaled = sparse.csr_array(X, dtype=float, copy=True)
        scaled.data = np.log1p(scaled.data * np.repeat(factor, np.diff(scaled.indptr)))
        return scaled
    return np.log1p(X * factor[:, None])


def overdispersion(X: Any, size: float) -> Array:
    """Variance of each column over that of counts with its mean.

    Counts of one size whose rate varies alike in all columns have the variance
    m + phi m^2: phi is the median of the columns, and what varies more than that tells
    rows apart.
    """
    factor = size / np.maximum(row_sums(X), 1)
    even = sparse.diags_array(factor) @ X
    mean, variance = column_means(even), column_variances(even)
    some = mean > 0
    excess = (variance[some] - mean[some]) / mean[some] ** 2
    phi = max(float(np.median(excess)), 0.0) if some.any() else 0.0
    expected = np.maximum(mean + phi * mean**2, 1e-300)
    return np.asarray(np.where(some, variance / expected, 0.0))


def within_covariance(X: Any, codes: Array) -> Array:
    """Covariance of the columns inside of domains.

    What sets whole domains apart, such as an instrument, takes no direction.
    """
    n_rows, n_columns = X.shape
    size = np.bincount(codes)
    member = sparse.csr_array((np.ones(n_rows), (codes, np.arange(n_rows))))
    total = member @ X
    total = total.toarray() if is_sparse(total) else np.asarray(total)
    gram = np.zeros((n_columns, n_columns))
    for first in range(0, n_rows, SETTINGS.block_rows):
        block = X[first : first + SETTINGS.block_rows]
        square = block.T @ block
        gram += square.toarray() if is_sparse(square) else square
    gram -= total.T @ (total / np.maximum(size, 1)[:, None])
    return gram / n_rows


def rows_with(X: Any) -> Array:
    """Rows in which each column is not zero."""
    return np.asarray((X != 0).sum(axis=0)).ravel()


def row_sums(X: Any) -> Array:
    """Sum of each row."""
    return np.asarray(X.sum(axis=1)).ravel()


def column_means(X: Any) -> Array:
    """Mean of each column."""
    return np.asarray(X.mean(axis=0)).ravel()


def column_variances(X: Any) -> Array:
    """Variance of each column."""
    if not is_sparse(X):
        return np.asarray(X.var(axis=0))
    square = np.asarray(X.multiply(X).mean(axis=0)).ravel()
    return np.maximum(square - column_means(X) ** 2, 0)
