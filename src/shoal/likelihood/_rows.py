"""Training rows in canonical order, and the features that they can carry."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from shoal._features import ROWS_PER_COLUMN, few_components, is_wide
from shoal._known import Knowledge
from shoal.likelihood._features import FeatureMap
from shoal.likelihood._known import sample_rows
from shoal.likelihood._problem import MixtureProblem
from shoal.likelihood._settings import SETTINGS
from shoal.validation import row_weights

Array = np.ndarray[Any, Any]


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
