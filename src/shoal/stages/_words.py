"""Inputs as words: distinct rows, and bags that count how often each word occurs.

A *bag* is one row of a matrix with one column per word. A single word is the bag that
holds it once, so that rows and documents share all later steps.
"""

from bisect import bisect_right
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import check_random_state

from shoal.stages.discretize import KMeansDiscretizer
from shoal.validation._domains import encode_column

Array = np.ndarray[Any, Any]


def find_words(rows: Array, names: Any = None) -> tuple[Array, Array]:
    """Distinct rows, in the order of their columns, and the word of each row.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_columns)
        Of any kind: numbers, strings, or hashable objects that differ by column.
    names : sequence of length n_columns, default=None
        Names of the columns, for error messages; their index when None.

    Returns
    -------
    words : ndarray of shape (n_samples,)
        Index of each row in ``vocabulary``.
    vocabulary : ndarray of shape (n_words, n_columns)

    Examples
    --------
    >>> rows = np.array([["red", "round"], ["blue", "flat"], ["red", "round"]])
    >>> find_words(rows)[0]
    array([1, 0, 1])
    """
    words = np.zeros(len(rows), dtype=np.intp)
    for index in range(rows.shape[1]):
        name = repr(names[index]) if names is not None else str(index)
        codes, values = encode_column(rows[:, index], name=f"X, column {name},")
        # Prefix and column stay below n_samples each: their product fits 64 bits.
        _, words = np.unique(words * len(values) + codes, return_inverse=True)
    _, first = np.unique(words, return_index=True)
    return words, rows[first]


def look_up_words(rows: Array, vocabulary: Array, names: Any = None) -> Array:
    """Index of each row in ``vocabulary``; ``len(vocabulary)`` for those not there."""
    if _comparable(rows, vocabulary):
        both = np.concatenate([vocabulary, rows])
    else:  # numpy would turn numbers into strings
        both = np.concatenate([vocabulary.astype(object), rows.astype(object)])
    words, _ = find_words(both, names)
    known, asked = words[: len(vocabulary)], words[len(vocabulary) :]
    index = np.full(len(both), len(vocabulary))
    index[known] = np.arange(len(vocabulary))
    return index[asked]


def words_by_clustering(
    representation: Any, n_clusters: int, *, n_dimensions: int, random_state: Any = None
) -> Pipeline:
    """Unfitted pipeline whose ``predict`` makes words of numeric rows (Algorithm 3).

    Parameters
    ----------
    representation : {None, "identity", "pca", "ica"} or transformer
        What comes before k-means; an object is cloned.
    n_clusters : int
    n_dimensions : int
        Of the output of PCA and ICA.
    random_state : int, RandomState instance or None, default=None
    """
    rng = check_random_state(random_state)
    # Seeds, not the generator: a fitted part should not keep it alive.
    first, second = (int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=2))
    named = {
        "identity": "passthrough",
        "pca": PCA(n_dimensions, random_state=first),
        "ica": FastICA(n_dimensions, max_iter=1000, random_state=first),
    }
    step = "identity" if representation is None else representation
    if isinstance(step, str) and step not in named:
        raise ValueError(
            f"representation must be None, one of {list(named)} or a transformer, got "
            f"{step!r}"
        )
    return make_pipeline(
        named[step] if isinstance(step, str) else clone(step),
        KMeansDiscretizer(n_clusters, random_state=second),
    )


def single_word_bags(words: Array, n_words: int) -> Any:
    """Bags of one word each, as a sparse matrix of shape (n_samples, n_words)."""
    n_samples = len(words)
    ones, starts = np.ones(n_samples), np.arange(n_samples + 1)
    return sparse.csr_array((ones, words, starts), shape=(n_samples, n_words))


def sum_by_domain(bags: Any, codes: Array, n_domains: int, weight: Any = None) -> Array:
    """Word counts of each domain, a dense array of shape (n_domains, n_words).

    ``weight`` has one entry per bag; all count once when it is None.
    """
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    member = (codes, np.arange(len(codes)))
    domain_of = sparse.csr_array((weight, member), shape=(n_domains, len(codes)))
    total: Any = domain_of @ bags
    return np.asarray(total if isinstance(total, np.ndarray) else total.toarray())


def thin_words(table: Array, max_words: int, rng: np.random.Generator) -> Array:
    """At most ``max_words`` words, as evenly from all domains as these allow.

    Parameters
    ----------
    table : ndarray of shape (n_domains, n_words)
        Whole numbers.
    max_words : int
        Of each domain one word is kept at least.
    rng : numpy Generator

    Returns
    -------
    ndarray of shape (n_domains, n_words)
        Words drawn without replacement.
    """
    sizes = table.sum(axis=1)
    if sizes.sum() <= max_words:
        return table
    level = bisect_right(
        range(int(sizes.max()) + 1),
        max_words,
        key=lambda most: np.minimum(sizes, most).sum(),
    )
    quota = np.minimum(sizes, max(level - 1, 1))
    return np.array(
        [rng.multivariate_hypergeometric(*pair, method="marginals")
         for pair in zip(table, quota, strict=True)]
    )  # fmt: skip


def list_words(table: Array) -> tuple[Array, Array]:
    """Domain and word of every occurrence in a table of counts, by domain and word.

    Examples
    --------
    >>> list_words(np.array([[2, 0], [1, 1]]))
    (array([0, 0, 1, 1]), array([0, 0, 0, 1]))
    """
    each = np.indices(table.shape).reshape(2, -1)
    codes, words = np.repeat(each, table.ravel(), axis=1)
    return codes, words


def check_counts(X: Any, *, allow_empty: bool = True) -> Any:
    """Return a dense or sparse matrix if all of it is whole numbers from 0.

    With ``allow_empty=False`` every row must have at least one word.
    """
    values = X if isinstance(X, np.ndarray) else X.data
    if (values < 0).any():
        raise ValueError(
            f"X has negative counts (smallest {values.min():g}); pass how often each "
            "word occurs"
        )
    broken = values[values % 1 != 0]
    if broken.size:
        raise ValueError(
            f"X has counts that are not whole numbers (such as {broken.flat[0]:g}); "
            "pass raw counts, not frequencies or tf-idf"
        )
    empty = np.flatnonzero(np.ravel(X.sum(axis=1)) == 0)
    if empty.size and not allow_empty:
        raise ValueError(
            f"X has {empty.size} rows without any word (first: row {empty[0]}); drop "
            "them"
        )
    return X


def _comparable(rows: Array, vocabulary: Array) -> bool:
    """Whether stacking both keeps every value what it was."""
    kinds = {rows.dtype.kind, vocabulary.dtype.kind}
    return len(kinds) == 1 or kinds <= set("biuf")
