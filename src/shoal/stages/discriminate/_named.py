"""Discriminators by short name, and the features that linear models use."""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse.linalg import svds
from scipy.spatial.distance import pdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from shoal.stages.discriminate._early_stopping import (
    EarlyStoppedBoosting,
    EarlyStoppedMLP,
)
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]

FLOATS = [np.float64, np.float32]


class _Columns(TransformerMixin, BaseEstimator):
    """Columns made of columns, in the precision of X."""

    def transform(self, X: Any) -> Array:
        """The new columns of rows."""
        check_is_fitted(self)
        return self._make(validate_data(self, X, reset=False, dtype=FLOATS))

    def _make(self, X: Array) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@dataclass(eq=False, repr=False)
class RBFFeatures(_Columns):
    """The columns of X, followed by Gaussian RBFs at k-means centres.

    The width of all of them is half the median distance between centres.

    Parameters
    ----------
    n_centers : int, default=100
        At most half the number of rows are used.
    max_samples : int, default=10_000
        Rows, drawn at random, that the centres are computed from.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    centers_ : ndarray of shape (n_centers, n_features)
    width_ : float
    """

    n_centers: int = 100
    _: KW_ONLY
    max_samples: int = 10_000
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Place the centres; ``y`` is ignored."""
        from sklearn.cluster import KMeans

        X = validate_data(self, X, dtype=FLOATS)
        random_state = check_random_state(self.random_state)
        if len(X) > self.max_samples:
            X = X[random_state.choice(len(X), self.max_samples, replace=False)]
        distinct = len(np.unique(X, axis=0))
        n_centers = max(1, min(self.n_centers, distinct, len(X) // 2))
        kmeans = KMeans(n_centers, n_init=1, max_iter=50, random_state=random_state)
        self.centers_ = kmeans.fit(X).cluster_centers_
        self.width_ = rbf_width(self.centers_)
        return self

    def _make(self, X: Array) -> Array:
        expanded = rbf_features(X, self.centers_, self.width_)
        return np.hstack([X, expanded.astype(X.dtype, copy=False)])


class LeadingComponents(_Columns):
    """Principal components in place of the columns of X, which are centred already.

    Scikit-learn's PCA wants to know how many columns there will be, and its solver for
    large tables depends on their order.

    Parameters
    ----------
    n_components : int, default=10
        At most as many as there are rows or columns are used.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_components)
        Their mean variance is one.
    """

    def __init__(self, n_components: int = 10) -> None:
        self.n_components = n_components

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the directions of largest variance; ``y`` is ignored."""
        X = validate_data(self, X, dtype=FLOATS)
        root = np.sqrt(len(X), dtype=X.dtype)
        self.components_ = unit_components(X / root, self.n_components)
        return self

    def _make(self, X: Array) -> Array:
        return np.asarray(X @ self.components_)


def _log_linear(*expansion: Any) -> Any:
    """Multinomial logistic regression on standardized, maybe expanded, columns."""
    from sklearn.linear_model import LogisticRegression

    return make_pipeline(
        StandardScaler(), *expansion, LogisticRegression(max_iter=1000)
    )


def _boost(counts: Array) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Its held-out tenth is stratified, which needs a row of each domain in any half
    # of the rows (two folds); without that, few rounds instead of early stopping.
    roomy = counts.min() >= 4 and counts.sum() >= 20 * len(counts)
    return HistGradientBoostingClassifier(
        max_iter=200 if roomy else 20, max_leaf_nodes=15, early_stopping=bool(roomy)
    )


# From simple to flexible; each takes the rows of each domain.
MAKERS: dict[str, Callable[[Array], Any]] = {
    "components": lambda counts: _log_linear(
        LeadingComponents(few_components(counts.sum()))
    ),
    "logistic": lambda counts: _log_linear(),
    "quadratic": lambda counts: _log_linear(PolynomialFeatures(2, include_bias=False)),
    "rbf": lambda counts: _log_linear(RBFFeatures()),
    "mlp": lambda counts: make_pipeline(StandardScaler(), EarlyStoppedMLP()),
    "boost": _boost,
    "lightgbm": lambda counts: EarlyStoppedBoosting(),
}


def named_discriminator(name: str, counts: Array) -> Any:
    """Make the classifier called ``name``.

    Parameters
    ----------
    name : {"components", "logistic", "quadratic", "rbf", "mlp", "boost", "lightgbm"}
        Logistic regression on principal components of the standardized columns, on
        these themselves ("logistic"), with their squares and products
        ("quadratic") or with Gaussian RBFs at k-means centres ("rbf"); a network with
        the best held-out epoch ("mlp"); trees with early stopping, of scikit-learn
        ("boost") or of lightgbm.
    counts : ndarray of shape (n_domains,)
        Rows of each domain.

    Returns
    -------
    An unfitted scikit-learn classifier.
    """
    if name not in MAKERS:
        raise ValueError(
            f"unknown discriminator {name!r}; use 'auto', one of "
            f"{', '.join(map(repr, MAKERS))}, a classifier or a callable"
        )
    return MAKERS[name](counts)


# ---- RBF features --------------------------------------------------------------------


def rbf_width(centers: Array) -> float:
    """Half the median distance between centres; 1 for a single one.

    Examples
    --------
    >>> rbf_width(np.array([[0.0, 0.0], [3.0, 4.0]]))
    2.5
    """
    apart = pdist(centers)
    return max(float(np.median(apart)) / 2, 1e-12) if len(apart) else 1.0


def rbf_features(points: Array, centers: Array, width: float) -> Array:
    """Gaussian RBF at each centre: exp(-distance^2 / (2 width^2)).

    Parameters
    ----------
    points : ndarray of shape (n_samples, n_columns)
    centers : ndarray of shape (n_centers, n_columns)
    width : float

    Returns
    -------
    ndarray of shape (n_samples, n_centers)

    Examples
    --------
    >>> rbf_features(np.array([[0.0], [1.0]]), np.array([[0.0]]), 1.0).round(3)
    array([[1.   ],
           [0.607]])
    """
    distance = (points**2).sum(axis=1)[:, None] + (centers**2).sum(axis=1)
    distance -= 2 * (points @ centers.T.astype(points.dtype))
    distance *= -1 / (2 * width**2)
    return np.exp(np.minimum(distance, 0, out=distance), out=distance)


# ---- principal components of wide tables ---------------------------------------------

# A column needs so many rows to be learned from.
ROWS_PER_COLUMN = 20
# Fewer columns than these are few in any case.
WIDE_COLUMNS = 10
ROWS_PER_COMPONENT = 40
MOST_COMPONENTS = 50
# Up to this many rows or columns all directions are found at once.
EXACT = 100


def few_components(n_rows: int) -> int:
    """Principal components that so many rows can carry; two at least.

    Examples
    --------
    >>> few_components(240), few_components(100_000)
    (6, 50)
    """
    return max(2, min(int(n_rows) // ROWS_PER_COMPONENT, MOST_COMPONENTS))


def is_wide(n_rows: int, n_columns: int) -> bool:
    """Whether there are too few rows for the columns, and far fewer components.

    Examples
    --------
    >>> is_wide(240, 50), is_wide(24_000, 50), is_wide(240, 8)
    (True, False, False)
    """
    if n_columns < WIDE_COLUMNS or n_rows >= ROWS_PER_COLUMN * n_columns:
        return False
    return few_components(n_rows) <= n_columns // 2


def unit_components(rows: Any, count: int) -> Array:
    """Directions of the largest variance, scaled to a mean variance of one.

    Parameters
    ----------
    rows : {ndarray, sparse array} of shape (n_rows, n_columns)
        Centred, and divided by the root of their number (or times that of weights
        that sum to one).
    count : int
        How many, at most as many as there are rows or columns.

    Returns
    -------
    ndarray of shape (n_columns, count)
    """
    values, directions = _leading_directions(rows, min(count, *rows.shape))
    scale = np.sqrt(np.mean(values**2))
    return np.asarray(directions.T / (scale if scale > 0 else 1)).astype(rows.dtype)


def _leading_directions(rows: Any, count: int) -> tuple[Array, Array]:
    """Largest singular values of a matrix, and their directions as rows."""
    if min(rows.shape) <= max(EXACT, 2 * count):
        dense = rows.toarray() if is_sparse(rows) else rows
        _, values, directions = np.linalg.svd(dense, full_matrices=False)
        return values[:count], directions[:count]
    # the search begins where the order of rows and columns has no say
    squares = rows.multiply(rows) if is_sparse(rows) else rows**2
    first = np.asarray(squares.sum(axis=int(rows.shape[0] < rows.shape[1]))).ravel()
    if not first.any():
        return np.zeros(count), np.eye(count, rows.shape[1])
    _, values, directions = svds(rows, count, v0=first)
    return values[::-1], directions[::-1]
