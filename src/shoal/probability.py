"""Row-stochastic algebra: one exact identity per function.

Every matrix says what it conditions on: ``a_given_b`` has one row per b and one
column per a, and its rows sum to 1. Products then read from left to right::

    domain_given_x       =  class_given_x       @  domain_given_class
    cluster_given_domain =  class_given_domain  @  cluster_given_class

``domain_weight`` is q(d), the share of each domain in the mixing distribution Q of
the paper; ``None`` means equal shares (assumption A.3).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

Array = NDArray[Any]

# Probabilities below this are treated as "impossible" inside logarithms and ratios.
TINY = 1e-300
CHECKED_ROWS = 4096


def normalize_rows(matrix: ArrayLike, *, empty: ArrayLike | None = None) -> Array:
    """Scale non-negative rows to sum to 1.

    A row of zeros has no direction of its own: it becomes ``empty`` (a distribution
    over the columns), or uniform when ``empty`` is None.

    >>> normalize_rows([[1, 3], [0, 0]])
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    matrix = np.asarray(matrix)
    if not np.issubdtype(matrix.dtype, np.floating):
        matrix = matrix.astype(np.float64)
    total = _row_sums(matrix)
    dead = total[:, 0] <= 0
    if not dead.any():
        return np.asarray(matrix / total)
    result = matrix / np.where(total > 0, total, 1)
    result[dead] = 1 / matrix.shape[1] if empty is None else np.asarray(empty)
    return np.asarray(result)


def _row_sums(matrix: Array) -> Array:
    """Sums of rows as a column: for the few columns we have, einsum is the fastest.

    It adds in another order where columns lie together, and bits must not depend on it.
    """
    return np.asarray(np.einsum("ij->i", np.ascontiguousarray(matrix)))[:, None]


def check_stochastic(matrix: ArrayLike, name: str, *, atol: float = 1e-5) -> Array:
    """Return ``matrix`` as a float array if each of its rows is a distribution.

    Raises
    ------
    ValueError
        If the matrix is not numeric, not 2-D or empty, has NaN or negative entries, or
        rows that do not sum to 1 within ``atol``. The message names the first
        offending row.
    """
    try:
        array = np.asarray(matrix)
        if not np.issubdtype(array.dtype, np.floating):
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a table of numbers: {error}") from error
    if array.ndim != 2:
        raise ValueError(f"{name} must be a 2-D array of probabilities, got shape "
                         f"{array.shape}")  # fmt: skip
    if not array.size:
        raise ValueError(f"{name} is empty, got shape {array.shape}")
    if _are_distributions(array, atol):
        return array
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise ValueError(f"{name} has NaN or infinite values (first in row {row})")
    if (array < -atol).any():
        row = int(np.argmax((array < -atol).any(axis=1)))
        raise ValueError(
            f"{name} has negative values (row {row}: {array[row].min():.3g}); "
            "probabilities cannot be negative"
        )
    total = array.sum(axis=1)
    wrong = np.abs(total - 1) > atol
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"rows of {name} must sum to 1, row {row} sums to {total[row]:.6g}; "
            "normalize them (shoal.probability.normalize_rows)"
        )
    return array


def _are_distributions(rows: Array, atol: float) -> bool:
    """Whether all is well: two quick passes over rows that stay in the cache."""
    ones = np.ones(rows.shape[1], dtype=rows.dtype)
    for start in range(0, len(rows), CHECKED_ROWS):
        block = rows[start : start + CHECKED_ROWS]
        # NaN and infinity reach the sum of their row, and NaN is not within anything.
        with np.errstate(invalid="ignore"):
            sums_to_one = np.abs(block @ ones - 1).max() <= atol
        if not (sums_to_one and block.min() >= -atol):
            return False
    return True


def domain_given_class(
    class_given_domain: ArrayLike, domain_weight: ArrayLike | None = None
) -> Array:
    """q(d|y) from p_d(y): Bayes' rule under the mixing distribution (Lemma 6).

    Parameters
    ----------
    class_given_domain : array-like of shape (n_domains, n_classes)
    domain_weight : array-like of shape (n_domains,), default=None
        q(d); equal when None.

    Returns
    -------
    ndarray of shape (n_classes, n_domains)
        A class that occurs in no domain gets ``domain_weight`` itself.
    """
    prevalence = np.asarray(class_given_domain, dtype=float)
    weight = _weights(domain_weight, prevalence.shape[0])
    return normalize_rows((prevalence * weight[:, None]).T, empty=weight)


def class_given_domain(domain_given_class: ArrayLike, class_weight: ArrayLike) -> Array:
    """p_d(y) from q(d|y) and q(y): the inverse of :func:`domain_given_class`.

    Returns
    -------
    ndarray of shape (n_domains, n_classes)
    """
    joint = np.asarray(domain_given_class) * np.asarray(class_weight)[:, None]
    return normalize_rows(joint.T)


def class_posterior(
    class_given_x: ArrayLike,
    domain_given_class: ArrayLike,
    codes: ArrayLike,
    class_weight: ArrayLike | None = None,
) -> Array:
    """p_d(y|x) proportional to q(d|y) q(y|x) (Lemma 2), one domain code per row.

    Where the domain rules out every class that x allows, x contradicts it and only the
    domain is left to go by: such a row gets p_d(y), proportional to q(d|y) q(y), with
    ``class_weight`` as q(y), equal when None.
    """
    codes = np.asarray(codes)
    class_in_domain = np.ascontiguousarray(np.asarray(domain_given_class).T)
    joint = np.asarray(class_given_x) * class_in_domain.take(codes, axis=0)
    total = _row_sums(joint)
    dead = total[:, 0] <= 0
    if dead.any():
        share = 1 if class_weight is None else np.asarray(class_weight)
        joint[dead] = class_in_domain[codes[dead]] * share
        return normalize_rows(joint)
    joint /= total
    return np.asarray(joint)


def shift_prior(
    class_given_x: ArrayLike, source: ArrayLike, target: ArrayLike
) -> Array:
    """q(y|x) under prior ``source`` turned into the posterior under prior ``target``.

    With p(x|y) fixed, the posterior is proportional to q(y|x) target(y) / source(y).
    A class with source probability 0 cannot be revived and keeps 0.
    """
    source = np.asarray(source, dtype=float)
    target = np.asarray(target, dtype=float)
    ratio = np.divide(target, source, out=np.zeros_like(target), where=source > 0)
    return normalize_rows(np.asarray(class_given_x) * ratio, empty=target)


def balance_domains(
    domain_given_x: ArrayLike, fitted_weight: ArrayLike, wanted_weight: ArrayLike
) -> Array:
    """Move q(d|x) learned with domain shares ``fitted_weight`` to ``wanted_weight``.

    Exact by Bayes' rule: q'(d|x) is proportional to q(d|x) wanted(d) / fitted(d).
    """
    return shift_prior(domain_given_x, fitted_weight, wanted_weight)


def cluster_given_domain(
    clusters: ArrayLike,
    codes: ArrayLike,
    n_clusters: int,
    n_domains: int,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """Share of each domain's rows in each cluster, Q_{c(X)|D} transposed.

    Returns
    -------
    ndarray of shape (n_domains, n_clusters)
    """
    # Small integer types would overflow in the product.
    flat = np.asarray(codes, dtype=np.intp) * n_clusters + np.asarray(clusters)
    counts = np.bincount(
        flat,
        weights=None if sample_weight is None else np.asarray(sample_weight),
        minlength=n_domains * n_clusters,
    )
    return normalize_rows(counts.reshape(n_domains, n_clusters))


def mean_log_likelihood(
    domain_given_x: ArrayLike,
    codes: ArrayLike,
    domain_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over domains of the mean log q(d|x) of their rows, in nats.

    ``domain_given_x`` has all domains as columns. Only domains that have rows count;
    their weights are scaled to sum to 1.
    """
    matrix = np.asarray(domain_given_x)
    codes = np.asarray(codes)
    n_domains = matrix.shape[1]
    row_weight = np.ones(len(codes)) if sample_weight is None else sample_weight
    # In double precision: TINY is zero in single.
    own = matrix[np.arange(len(codes)), codes].astype(float)
    log_q = np.log(np.maximum(own, TINY))
    mass = np.bincount(codes, weights=row_weight, minlength=n_domains)
    total = np.bincount(codes, weights=row_weight * log_q, minlength=n_domains)
    present = mass > 0
    weight = _weights(domain_weight, n_domains)[present]
    return float((total[present] / mass[present]) @ weight / weight.sum())


def project_to_simplex(points: ArrayLike) -> Array:
    """Euclidean projection of each row onto the probability simplex."""
    rows = np.asarray(points, dtype=float)
    # Moving a row along the all-ones direction keeps its projection, and its bits.
    rows = rows - rows.max(axis=1, keepdims=True)
    sorted_desc = -np.sort(-rows, axis=1)
    excess = np.cumsum(sorted_desc, axis=1) - 1
    position = np.arange(1, rows.shape[1] + 1)
    support = (sorted_desc * position > excess).sum(axis=1)
    threshold = excess[np.arange(len(rows)), support - 1] / support
    return np.asarray(np.maximum(rows - threshold[:, None], 0))


def condition_number(matrix: ArrayLike) -> float:
    """Ratio of the extreme singular values in the 2-norm; inf when rank-deficient."""
    singular = np.linalg.svd(np.asarray(matrix, dtype=float), compute_uv=False)
    if singular[-1] <= singular[0] * np.finfo(float).eps:
        return float("inf")
    return float(singular[0] / singular[-1])


def match_rows(reference: ArrayLike, rows: ArrayLike) -> Array:
    """Permutation ``perm`` that makes ``rows[perm]`` closest to ``reference`` in L1.

    Both have the same shape; this is label-free, for comparing factors, restarts and
    resamples.
    """
    reference, rows = np.asarray(reference), np.asarray(rows)
    if reference.shape != rows.shape:
        raise ValueError(
            f"reference and rows must have the same shape, got {reference.shape} and "
            f"{rows.shape}"
        )
    cost = np.abs(reference[:, None, :] - rows[None, :, :]).sum(axis=2)
    return np.asarray(linear_sum_assignment(cost)[1])


def canonical_order(class_given_domain: ArrayLike) -> Array:
    """Order of classes by decreasing mean prevalence; ties by the first domain.

    The mean is over domains, each counted once whatever its weight. Rounded to 12
    digits, so that the last bits never decide.
    """
    prevalence = np.round(np.asarray(class_given_domain, dtype=float), 12)
    mean = np.round(prevalence.mean(axis=0), 12)
    # lexsort reads its last key first: the mean, then domain 0, 1, ...
    return np.lexsort([*(-prevalence[::-1]), -mean])


# ---- rows that took no part in a fit -------------------------------------------------


@dataclass(frozen=True)
class HeldOut:
    """How well rows that took no part in a fit are predicted: one number a row.

    The one statistic behind every choice: of features, penalties, numbers of classes
    and epochs, and of the guessers that ``diagnose`` compares.

    Attributes
    ----------
    each : ndarray of shape (n,)
        Log-likelihood of every row's domain, or its gain over q(d), in nats.
    weight : ndarray of shape (n,)
        Sums to 1; domains as heavy as q(d) says.
    name : str
        What predicted.
    """

    each: Array
    weight: Array
    name: str = ""

    @property
    def mean(self) -> float:
        """Weighted mean, in nats."""
        return float(self.weight @ self.each)

    def standard_error(self, other: "HeldOut | None" = None) -> float:
        """Standard error of the mean, or of the paired difference to ``other``."""
        values = self.each if other is None else self.each - other.each
        centred = values - self.weight @ values
        return float(np.sqrt((self.weight**2) @ centred**2))


def _weights(domain_weight: ArrayLike | None, n_domains: int) -> Array:
    if domain_weight is None:
        return np.full(n_domains, 1 / n_domains)
    weight = np.asarray(domain_weight, dtype=float)
    return np.asarray(weight / weight.sum())
