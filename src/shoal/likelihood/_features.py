"""Training rows in canonical order, and the features z(x) of the softmax.

Features are a scaling, then an optional expansion, both label-free.
``scale='column'`` gives every column unit spread (measurements with their own units);
``'global'`` divides all columns by one number (embeddings and principal components,
whose small columns are mostly noise that unit spread would blow up).
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.kernel_approximation import Nystroem

from shoal.likelihood._known import sample_rows
from shoal.likelihood._problem import MixtureProblem
from shoal.likelihood._settings import SETTINGS
from shoal.stages.discriminate._named import (
    ROWS_PER_COLUMN,
    few_components,
    is_wide,
    rbf_features,
    rbf_width,
    unit_components,
)
from shoal.validation import row_weights
from shoal.validation._known import Knowledge
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]

SCALES = ("column", "global")
EXPANSIONS = (
    "linear",
    "components",
    "rbf",
    "quadratic",
    "nystroem",
    "discriminator",
)
# Those whose logits are linear in the scaled columns; they need no dense rows either.
LINEAR = ("linear", "components")


class FeatureMap:
    """Scaling and expansion of rows, fitted once and applied block by block.

    Parameters
    ----------
    scale : {'column', 'global'}
    expansion : {'linear', 'components', 'rbf', 'quadratic', 'nystroem', \
'discriminator'}
        What stands beside the scaled columns: nothing; nothing, and principal
        components in their place; Gaussian RBFs at k-means centres, half the median
        distance between centres wide; squares and products; a Nystroem kernel map;
        the logarithm of a discriminator's q(d|x).
    n_components : int
        Number of principal components, RBF centres or kernel components.
    discriminator : fitted Discriminator, default=None
        Needed by ``expansion='discriminator'``.
    random_state : int
    """

    def __init__(
        self,
        scale: str = "column",
        expansion: str = "linear",
        *,
        n_components: int = 100,
        discriminator: Any = None,
        random_state: int = 0,
    ) -> None:
        self.scale = scale
        self.expansion = expansion
        self.n_components = n_components
        self.discriminator = discriminator
        self.random_state = random_state

    def fit(self, X: Any, row_weight: Array) -> Self:
        """Learn centre, spread and expansion from rows weighted by ``row_weight``."""
        self.dtype_ = X.dtype
        self.dense_ = not is_sparse(X)
        if not self.dense_ and self.expansion not in LINEAR:
            raise ValueError(
                f"expansion={self.expansion!r} needs dense X; use "
                "expansion='linear' for sparse matrices"
            )
        if is_sparse(X):
            self._fit_sparse(X, row_weight)
        else:
            self._fit_dense(X, row_weight)
        if self.expansion in ("rbf", "nystroem"):
            self._fit_kernel(self.scaled(X), row_weight)
        if self.expansion == "components":
            self._fit_components(self.scaled(X), row_weight)
        return self

    def transform(self, X: Any, *, log_domain_given_x: Array | None = None) -> Any:
        """Design matrix of rows.

        ``log_domain_given_x`` replaces the discriminator's own output, which for
        training rows must be out-of-fold.
        """
        if not self.dense_:
            scaled = self.scaled(X)
            linear = self.expansion == "linear"
            return scaled if linear else scaled @ self.components_
        n_rows = X.shape[0]
        result: Array | None = None
        for start in range(0, n_rows, SETTINGS.feature_rows):
            rows = slice(start, start + SETTINGS.feature_rows)
            known = None if log_domain_given_x is None else log_domain_given_x[rows]
            block = self._expand(X[rows], known)
            if result is None:
                result = np.empty((n_rows, block.shape[1]), dtype=self.dtype_)
            result[rows] = block
        assert result is not None
        return result

    def logits(self, X: Any, weights: Array) -> Array:
        """Weights times z(x), and their intercept; shape (n_classes, n_samples).

        Plain columns need no design matrix: their spread divides the weights, and
        their centre, where that costs no digits, goes into the intercept.
        """
        slope, intercept = np.split(weights.astype(self.dtype_), [-1], axis=1)
        if self.expansion == "components":
            slope = slope @ self.components_.T
        linear = self.expansion in LINEAR
        plain = self.dense_ and linear and not is_sparse(X)
        with np.errstate(over="ignore"):
            folded = slope / self.spread_.astype(self.dtype_) if plain else slope
        if not plain or not np.isfinite(folded).all():
            values = (self.scaled(X) if linear else self.transform(X)) @ slope.T
        elif self._near_zero():
            values = self._clip(X) @ folded.T
            intercept = intercept - (folded @ self.centre_)[:, None]
        else:
            values = self._centred(X) @ folded.T
        return np.add(values.T, intercept, order="C")

    def _near_zero(self) -> bool:
        """Whether adding the centres of columns keeps 12 digits of what is added to."""
        digits = 1e-12 / np.finfo(np.dtype(self.dtype_)).eps
        return bool((np.abs(self.centre_) <= digits * self.spread_).all())

    # ---- scaling ------------------------------------------------------------------

    def _fit_dense(self, X: Array, row_weight: Array) -> None:
        quarter, self.centre_, three = np.percentile(
            X, [25, 50, 75], axis=0, method="nearest"
        ).astype(np.float64)
        spread = (three - quarter) / 1.349
        reach = np.where(spread > 0, SETTINGS.wild * spread, np.inf)
        self.low_, self.high_ = self.centre_ - reach, self.centre_ + reach
        clipped = self._clip(X)
        weight = row_weight / row_weight.sum()
        self.centre_ = weight @ clipped
        # two passes: the shifted square keeps its digits
        variance = np.zeros(X.shape[1])
        for start in range(0, len(X), SETTINGS.feature_rows):
            rows = slice(start, start + SETTINGS.feature_rows)
            variance += weight[rows] @ (clipped[rows] - self.centre_) ** 2
        self.spread_ = self._spread(variance)

    def _fit_sparse(self, X: Any, row_weight: Array) -> None:
        """No centring, so that zeros stay zeros."""
        weight = row_weight / row_weight.sum()
        mean = np.asarray(weight @ X).ravel()
        square = np.asarray(weight @ X.multiply(X)).ravel()
        self.centre_ = np.zeros(X.shape[1])
        self.low_ = np.full(X.shape[1], -np.inf)
        self.high_ = -self.low_
        self.spread_ = self._spread(np.maximum(square - mean**2, 0))

    def _spread(self, variance: Array) -> Array:
        if self.scale == "global":
            return np.full(len(variance), max(np.sqrt(variance.mean()), 1e-150))
        return np.where(variance > 0, np.sqrt(variance), 1.0)

    def _clip(self, X: Array) -> Array:
        low, high = self.low_.astype(X.dtype), self.high_.astype(X.dtype)
        # Columns of like size are seen to be tame at a glance, three times as fast.
        tame = X.min() >= low.max() and X.max() <= high.min()
        if tame or ((X >= low).all() and (X <= high).all()):
            return X
        return np.clip(X, low, high)

    def scaled(self, X: Any) -> Any:
        """Rows after scaling, before any expansion."""
        if not self.dense_:
            X = X if is_sparse(X) else sparse.csr_array(X)
            scaled = X.multiply(1 / self.spread_).tocsr()
            return scaled.astype(self.dtype_)
        scaled = self._centred(X)
        scaled /= self.spread_.astype(self.dtype_)
        return scaled

    def _centred(self, X: Any) -> Array:
        """Dense rows, wild values pulled in, around the centre of each column."""
        if is_sparse(X):
            X = X.toarray()  # centring fills the zeros anyway
        return np.asarray(self._clip(X) - self.centre_.astype(self.dtype_))

    # ---- expansions ---------------------------------------------------------------

    def _fit_kernel(self, Z: Array, row_weight: Array) -> None:
        """Centres by k-means; half the median distance between them is the width."""
        count = min(self.n_components, len(Z) // 2)
        kmeans = KMeans(count, n_init=1, max_iter=30, random_state=self.random_state)
        self.centres_ = kmeans.fit(Z, sample_weight=row_weight).cluster_centers_
        self.width_ = rbf_width(self.centres_)
        if self.expansion == "nystroem":
            self.kernel_ = Nystroem(
                gamma=1 / (2 * self.width_**2),
                n_components=len(self.centres_),
                random_state=self.random_state,
            ).fit(self.centres_)

    def _fit_components(self, Z: Any, row_weight: Array) -> None:
        """Directions of the largest variance, scaled to a mean variance of one."""
        root = np.sqrt(row_weight / row_weight.sum()).astype(self.dtype_)
        weighted = Z.multiply(root[:, None]) if is_sparse(Z) else root[:, None] * Z
        self.components_ = unit_components(weighted, self.n_components)

    def _expand(self, X: Array, log_domain_given_x: Array | None) -> Array:
        Z = self.scaled(X)
        if self.expansion == "linear":
            return Z
        if self.expansion == "components":
            return np.asarray(Z @ self.components_)
        if self.expansion == "quadratic":
            left, right = np.triu_indices(Z.shape[1])
            extra = Z[:, left] * Z[:, right]
        elif self.expansion == "rbf":
            extra = rbf_features(Z, self.centres_, self.width_)
        elif self.expansion == "nystroem":
            # its columns are small; as many as there are, they get unit spread
            extra = self.kernel_.transform(Z) * np.sqrt(len(self.centres_))
        else:
            if log_domain_given_x is None:
                proba = self.discriminator.predict_proba(X)
                log_domain_given_x = log_proba(proba)
            extra = log_domain_given_x
        return np.hstack([Z, extra.astype(self.dtype_, copy=False)])


def log_proba(domain_given_x: Array) -> Array:
    """Centred logarithm of probabilities, kept away from minus infinity."""
    logs = np.log(np.maximum(domain_given_x, 1e-4))
    return np.asarray(logs - logs.mean(axis=1, keepdims=True))


# ---- training rows, and the features that they can carry -----------------------------


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
    known : Knowledge or None
        What is known of their classes.
    """

    X: Any
    codes: Array
    sample_weight: Array | None
    domain_weight: Array
    discriminator: Any = None
    log_domain_given_x: Array | None = None
    known: Knowledge | None = None

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
            None if self.known is None else self.known.take(rows),
        )

    def sample(self, max_rows: int, rng: np.random.Generator) -> "TrainingRows":
        """Stratified sample of at most ``max_rows`` rows; self when there are fewer."""
        if self.n_rows <= max_rows:
            return self
        return self.take(sample_rows(self.codes, self.known, max_rows, rng))

    def design(self, features: FeatureMap) -> Any:
        """Features z(x) of these rows."""
        return features.transform(self.X, log_domain_given_x=self.log_domain_given_x)

    def problem(self, features: FeatureMap) -> MixtureProblem:
        """Likelihood of these rows under ``features``."""
        return MixtureProblem(
            self.design(features),
            self.codes,
            self.row_weight,
            self.n_domains,
            self.known,
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
    most = SETTINGS.most_weight * mass / mass.sum()
    if (domain_weight <= most).all():
        return domain_weight
    limited = np.minimum(domain_weight, most)
    return np.asarray(limited / limited.sum())


def list_expansions(
    sample: TrainingRows,
    expansion: str,
    n_centres: tuple[int, ...] = SETTINGS.n_centres,
    n_rows: int | None = None,
) -> list[str]:
    """Expansions to compare, simplest first; ``n_centres`` are numbers of RBFs to try.

    Whether there are too few rows for the columns is asked of the whole table, of
    ``n_rows``: all of them are fitted in the end.
    """
    if expansion != "auto":
        return [expansion]
    if is_wide(sample.n_rows if n_rows is None else n_rows, sample.X.shape[1]):
        return ["components", "linear"]
    if sparse.issparse(sample.X) or _n_centres(sample, n_centres) is None:
        return ["linear"]
    return ["linear", "rbf"]


def _n_centres(sample: TrainingRows, n_centres: tuple[int, ...]) -> int | None:
    """As many RBF centres as the rows can carry, or None."""
    for count in n_centres:
        if sample.n_rows >= ROWS_PER_COLUMN * (sample.X.shape[1] + count):
            return count
    return None


def feature_map(
    sample: TrainingRows,
    scale: str,
    expansion: str,
    n_centres: tuple[int, ...],
    seed: int,
) -> FeatureMap:
    """Features of one rung, fitted; as many RBF centres as the rows can carry."""
    n_components = _n_centres(sample, n_centres) or n_centres[-1]
    if expansion == "components":
        n_components = few_components(sample.n_rows)
    features = FeatureMap(
        scale,
        expansion,
        n_components=n_components,
        discriminator=sample.discriminator,
        random_state=seed,
    )
    return features.fit(sample.X, sample.row_weight)
