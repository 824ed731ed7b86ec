"""How many classes a cluster-by-domain table supports."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import random_table
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils import check_random_state

from shoal.exceptions import IdentifiabilityWarning

Array = np.ndarray[Any, Any]

# ---- How many classes a cluster-by-domain table supports -----------------------------


# Words (clusters) rarer than this share one column: alone, each would be a perfect
# sign of the domain it happens to occur in, in the data as in every permutation.
LEAST_COUNT = 5
#: What estimators say where domains do not differ.
NO_SIGNAL = (
    "domains do not differ beyond chance, so there is nothing to learn from; classes "
    "will mean nothing: pass domains whose mixes differ"
)
# Standard deviations of chi-square beyond which domains differ for certain.
CLEARLY = 10.0


@dataclass(frozen=True)
class RankResult:
    """Outcome of :func:`supported_rank`.

    Attributes
    ----------
    n_classes : int
        Number of classes the table supports; 2 when it supports none.
    singular_values : ndarray of shape (min(n_domains, n_clusters) - 1,)
        Of the chi-square standardized table, largest first: 0 when domains do not
        differ, 1 when a cluster names its domain.
    null : ndarray of shape (n_null,)
        Largest singular value of each table drawn with permuted domains.
    """

    n_classes: int
    singular_values: Array
    null: Array


def supported_rank(
    counts: Any, codes: Any = None, *, n_null: int = 20, random_state: Any = None
) -> RankResult:
    """Largest number of classes that a cluster-by-domain table can tell apart.

    One class, plus one for each singular value of the chi-square standardized table
    above the largest that any permutation of the domains produced (parallel analysis).
    Permutations make all domains alike; where they differ much, the noise is larger
    than that. So the last class also has to beat tables drawn from the fit with one
    class less, and is dropped otherwise.

    Parameters
    ----------
    counts : array-like of shape (n_domains, n_clusters) or (n_samples,)
        Whole numbers: how often each cluster occurs in each domain; or, with
        ``codes``, the cluster of each row.
    codes : array-like of shape (n_samples,), default=None
        Domain of each row, 0..n_domains-1.
    n_null : int, default=20
        Number of permutations; the chance to find a class where there is none is
        about 1 / (n_null + 1).
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    RankResult
        ``n_classes`` lies between 2 and the number of domains. Nothing above the null
        is an :class:`~shoal.exceptions.IdentifiabilityWarning`.

    References
    ----------
    J. L. Horn (1965). A rationale and test for the number of factors in factor
    analysis. Psychometrika 30. M. Greenacre (2007). Correspondence Analysis in
    Practice.

    Examples
    --------
    >>> from shoal.analysis._rank import supported_rank
    >>> two_classes = [[90, 10, 50], [10, 90, 50], [50, 50, 50], [30, 70, 50]]
    >>> supported_rank(two_classes, random_state=0).n_classes
    2
    """
    table = _as_table(counts) if codes is None else _tabulate(counts, codes)
    table = _pool_rare(table[table.sum(axis=1) > 0])
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rng = np.random.default_rng(seed)
    singular = _singular_values(table)
    null = _null_of_equal_domains(table, n_null, rng)
    n_classes = 1 + int(np.sum(singular > null.max() + 1e-9))
    while n_classes > 2 and not _beats_fewer(table, n_classes, n_null, rng):
        n_classes -= 1
    if n_classes < 2:
        warnings.warn(
            "domains do not differ: no singular value of the cluster-by-domain table "
            f"(largest {singular.max(initial=0):.3g}) exceeds those of permuted "
            f"domains ({null.max():.3g}); n_classes=2 is a guess",
            IdentifiabilityWarning,
            stacklevel=2,
        )
    return RankResult(max(n_classes, 2), singular, null)


def domains_differ(counts: Any) -> bool:
    """Whether the domains of a word-by-domain table differ beyond chance.

    Most that do differ by so much that no permutations are needed to see it.
    """
    table = _as_table(counts)
    table = _pool_rare(table[table.sum(axis=1) > 0])
    if min(table.shape) < 2:  # too little was counted to say
        return True
    singular = _singular_values(table)
    free = (table.shape[0] - 1) * (table.shape[1] - 1)
    chi_square = table.sum() * float((singular**2).sum())
    if chi_square > free + CLEARLY * np.sqrt(2 * free):
        return True
    null = _null_of_equal_domains(table, 20, np.random.default_rng(0))
    return bool(singular.max(initial=0) > null.max() + 1e-9)


def _null_of_equal_domains(
    table: Array, n_null: int, rng: np.random.Generator
) -> Array:
    """Largest singular value of tables with the same margins and nothing else."""
    if min(table.shape) < 2:  # nothing to permute, and no singular value to compare
        return np.zeros(n_null)
    draws = random_table(table.sum(axis=1), table.sum(axis=0))
    return np.array(
        [_singular_values(draws.rvs(random_state=rng))[0] for _ in range(n_null)]
    )


def _beats_fewer(
    table: Array, n_classes: int, n_null: int, rng: np.random.Generator
) -> bool:
    """Whether the last singular value is larger than ``n_classes - 1`` classes explain.

    The null is drawn from the table's own best approximation of that rank.
    """
    last = n_classes - 2
    fitted = _low_rank(table, n_classes - 1)
    draws = (rng.multinomial(table.sum(axis=1), fitted) for _ in range(n_null))
    largest = max(_singular_values(draw)[last] for draw in draws)
    return bool(_singular_values(table)[last] > largest)


def _singular_values(table: Array) -> Array:
    """Non-trivial singular values of the chi-square standardized table, descending."""
    scale = _expected_root(table)
    residual = np.divide(table, scale, out=np.zeros(table.shape), where=scale > 0)
    residual -= scale / max(table.sum(), 1)
    # The smaller Gram matrix: noise level is what matters here, not the last digits.
    wide = table.shape[0] <= table.shape[1]
    gram = residual @ residual.T if wide else residual.T @ residual
    squared = np.linalg.eigvalsh(gram)[::-1]
    return np.sqrt(np.maximum(squared[: min(table.shape) - 1], 0))


def _low_rank(table: Array, rank: int) -> Array:
    """Row-stochastic approximation of rank ``rank`` in the chi-square metric."""
    scale = _expected_root(table)
    left, singular, right = np.linalg.svd(table / scale, full_matrices=False)
    approximation = (left[:, :rank] * singular[:rank]) @ right[:rank]
    positive = np.maximum(approximation * scale, 0)
    # A domain with clusters of its own may be all that the rank leaves out.
    lost = positive.sum(axis=1) < 1e-9 * table.sum(axis=1)
    positive[lost] = table.sum(axis=0)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))


def _expected_root(table: Array) -> Array:
    """Square root of the product of the margins."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    return np.asarray(np.sqrt(rows.astype(float))[:, None] * np.sqrt(columns))


def _pool_rare(table: Array) -> Array:
    """Merge rare clusters into one; chosen by the margin alone, so the null holds."""
    total = table.sum(axis=0)
    rare = (total > 0) & (total < LEAST_COUNT)
    common = table[:, total >= LEAST_COUNT]
    if not rare.any():
        return common
    return np.column_stack([common, table[:, rare].sum(axis=1)])


def _tabulate(clusters: Any, codes: Any) -> Array:
    """Count the (domain, cluster) pairs."""
    if len(clusters) != len(codes):
        raise ValueError(
            f"counts has {len(clusters)} rows, codes has {len(codes)}; pass "
            "the cluster and the domain of the same rows"
        )
    return np.asarray(contingency_matrix(codes, clusters))


def _as_table(counts: Any) -> Array:
    """Return counts as whole numbers, or raise a ValueError."""
    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iuf":
        raise ValueError(
            "counts must be a table of shape (n_domains, n_clusters), got shape "
            f"{table.shape} and dtype {table.dtype}; pass codes for one cluster per row"
        )
    if not np.isfinite(table).all() or (table < 0).any() or (table % 1 != 0).any():
        raise ValueError("counts must be whole numbers from 0; pass counts, not shares")
    return table.astype(np.int64)


# ---- estimates, kept off zero --------------------------------------------------------


def soften(
    domain_given_x: Array, domain_weight: Any, n_rows: float, imaginary: float = 1.0
) -> Array:
    """Mix a fit of ``n_rows`` rows with one more whose domain is drawn from q(d).

    A zero among estimates only means "rarer than could be seen": one held-out row must
    not cost minus infinity.

    Parameters
    ----------
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Or of any shape that broadcasts with ``domain_weight``.
    domain_weight : array-like of shape (n_domains,)
    n_rows : float
    imaginary : float, default=1.0
        Number of rows mixed in.

    Returns
    -------
    ndarray of shape (n_samples, n_domains)
        Positive; rows sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> soften(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), n_rows=4)
    array([[0.9, 0.1]])
    """
    mixed = n_rows * domain_given_x + imaginary * domain_weight
    return np.asarray(mixed / (n_rows + imaginary))
