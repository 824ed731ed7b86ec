"""Rows of features, checked, and in an order that only their content decides."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from shoal.exceptions import ConstantColumnWarning, DomainMissingError
from shoal.validation._arguments import column_name, column_names, explain, taken_in
from shoal.validation._domains import check_domains

# ---- rows ----------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

# Squares of larger numbers overflow when they are summed.
LARGEST = 1e150


def check_X_domains(  # noqa: N802
    estimator: Any,
    X: Any,
    domains: Any,
    *,
    accept_sparse: bool | str = False,
    dtype: Any = (np.float64, np.float32),
    allow_nan: bool = False,
) -> tuple[Any, Array, Array]:
    """Validate the training rows and where they come from.

    Returns
    -------
    X : array or sparse matrix of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Index of each row's domain in ``names``.
    names : ndarray of shape (n_domains,)
        The distinct domains, sorted.
    """
    if domains is None:
        raise DomainMissingError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but "
            "the target y is None: pass domains=..., one entry per row, that says "
            "where each row comes from"
        )
    X = check_X(
        estimator,
        X,
        reset=True,
        accept_sparse=accept_sparse,
        dtype=dtype,
        allow_nan=allow_nan,
    )
    codes, names = check_domains(domains, n_samples=X.shape[0])
    return X, codes, names


def check_X(  # noqa: N802
    estimator: Any,
    X: Any,
    *,
    reset: bool = False,
    accept_sparse: bool | str = False,
    dtype: Any = (np.float64, np.float32),
    allow_nan: bool = False,
) -> Any:
    """Validate rows alone (predict, adapt); ``reset=True`` at fit."""
    X = taken_in(X, "X")
    try:
        _check_column_names(X)
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=list(dtype) if isinstance(dtype, tuple) else dtype,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
    except MemoryError:
        raise
    except Exception as error:  # whatever an object says of itself
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(explain(X, error)) from error
    _check_dates(X)
    _check_finite(checked, X, allow_nan)
    return checked


def varying_columns(X: Any) -> Array:
    """Mask of the columns that vary; warns about those that do not.

    All columns constant is a ValueError: there is nothing to learn from. So are
    numbers beyond 1e150, which cannot be squared.
    """
    high, low = (_dense(extreme(axis=0)) for extreme in (X.max, X.min))
    size = np.maximum(high, -low)
    if float(size.max()) > LARGEST:  # as float32 the bound would be infinite
        raise ValueError(
            f"X has values of size {size.max():.3g} in column {size.argmax()}, too "
            "large to square; rescale that column"
        )
    varies = np.asarray(high != low)
    if not varies.any():
        raise ValueError(
            f"X has only constant columns ({X.shape[1]}): the same in every row, "
            "nothing to learn from; pass features that vary"
        )
    if not varies.all():
        constant = np.flatnonzero(~varies)
        shown = ", ".join(map(str, constant[:5])) + ", ..." * (constant.size > 5)
        warnings.warn(
            f"X has {constant.size} constant columns (index {shown}); set aside",
            ConstantColumnWarning,
            stacklevel=3,
        )
    return varies


def is_sparse(X: Any) -> bool:
    """Tell whether ``X`` is a scipy sparse array or matrix."""
    return bool(sparse.issparse(X))


def _dense(extremes: Any) -> Array:
    """Make one number per column of what ``max(axis=0)`` gives, dense or sparse."""
    to_dense = getattr(extremes, "toarray", None)
    return np.ravel(extremes if to_dense is None else to_dense())


def _check_dates(X: Any) -> None:
    """Refuse dates: as numbers, they would be nanoseconds."""
    for dtype in [getattr(X, "dtype", None), *getattr(X, "dtypes", ())]:
        of_polars = getattr(dtype, "is_temporal", None)
        if getattr(dtype, "kind", None) in ("m", "M") or (of_polars and of_polars()):
            raise ValueError(
                f"X holds dates ({dtype}); pass numbers, such as days since the first"
            )


def _check_column_names(X: Any) -> None:
    names = column_names(X)
    if len(set(names)) != len(names):
        first = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"X has duplicate column names: {first!r}; rename or drop the copies"
        )


def _check_finite(checked: Any, X: Any, allow_nan: bool) -> None:
    thin = is_sparse(checked)
    values = checked.data if thin else checked
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=float)  # one pass, no mask, when all is well
    if np.isfinite(total):
        return
    bad = np.isinf(values) if allow_nan and not thin else ~np.isfinite(values)
    if not bad.any():
        return
    if thin:
        raise ValueError(
            f"X has {int(bad.sum())} NaN or infinite values; impute or drop them"
        )
    row, column = np.argwhere(bad)[0]
    raise ValueError(
        f"X has {int(bad.sum())} NaN or infinite values in "
        f"{int(bad.any(axis=0).sum())} columns (first: row {row}, column "
        f"{column_name(X, int(column))}); impute them or drop the rows"
    )


# ---- Training rows in an order that only their content decides -----------------------

BLOCK_ROWS = 8192

# Whole-number weights become repeated rows, up to a table this much longer.
MOST_REPEATS = 10


class CanonicalRows(NamedTuple):
    """Rows to train on.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Domain of each row.
    weight : ndarray of shape (n_rows,) or None
        Positive; None where every row counts once.
    order : ndarray of shape (n_rows,)
        Which of the given rows each of them is.
    """

    X: Any
    codes: Array
    weight: Array | None
    order: Array

    def restore_order(
        self, domain_given_x: Array, discriminator: Any, discretizer: Any
    ) -> None:
        """Let stages keep what they say of each row as fit was given the rows.

        Rows without weight get what the fitted stages say of them.

        Parameters
        ----------
        domain_given_x : ndarray of shape (n_samples, n_domains)
            q(d|x) of the rows as given.
        discriminator : fitted Discriminator
        discretizer : fitted discretizer or None
        """
        left_out = np.ones(len(domain_given_x), dtype=bool)
        left_out[self.order] = False
        restored = domain_given_x.copy()
        restored[self.order] = discriminator.domain_given_x_
        discriminator.domain_given_x_ = restored
        if discretizer is None:
            return
        labels = np.empty(len(domain_given_x), dtype=np.intp)
        labels[self.order] = discretizer.labels_
        if left_out.any():
            labels[left_out] = discretizer.predict(domain_given_x[left_out])
        discretizer.labels_ = labels


def sort_rows(X: Any, scaled: Any, codes: Array, weight: Array | None) -> CanonicalRows:
    """Sort rows by domain and content; rows without weight are left out.

    A row of weight 3 becomes three rows where all weights are whole numbers.

    Parameters
    ----------
    X, scaled : ndarray of shape (n_samples, n_features)
        ``scaled`` has columns of like spread, whose sums tell rows apart.
    codes : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,) or None

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[3.0], [1.0], [2.0]]), np.array([1, 1, 0])
    >>> sort_rows(X, X, codes, np.array([2, 1, 1])).X.ravel()
    array([2., 1., 3., 3.])
    """
    order = canonical_rows(scaled, codes)
    if weight is not None:
        order = order[weight[order] > 0]
        copies = copies_of(weight)
        if copies is not None:
            order = np.repeat(order, copies[order])
            weight = None
        else:
            weight = weight[order]
    return CanonicalRows(X[order], codes[order], weight, order)


def canonical_rows(Z: Any, codes: Array) -> Array:
    """Order of rows by domain, then by content.

    The content key is symmetric in the columns and computed row by row, so neither
    shuffled rows nor shuffled columns change the order.
    """
    key = np.zeros(Z.shape[0])
    for start in range(0, len(key), BLOCK_ROWS):
        block = Z[start : start + BLOCK_ROWS]
        square = block.multiply(block) if is_sparse(Z) else block * block
        total = np.asarray(block.sum(axis=1), dtype=float).ravel()
        total += 0.37 * np.asarray(square.sum(axis=1), dtype=float).ravel()
        key[start : start + BLOCK_ROWS] = total
    # the last digits depend on the order of the sum
    key = np.round(key, 9)
    order = np.lexsort([key, codes])
    tied = (np.diff(key[order]) == 0) & (np.diff(codes[order]) == 0)
    if is_sparse(Z) or not tied.any():
        return order
    return np.lexsort([*Z.T, key, codes])


def copies_of(weight: Array) -> Array | None:
    """Weights as numbers of equal rows; None where they are not whole, or large.

    Examples
    --------
    >>> copies_of(np.array([2.0, 0.0, 1.0]))
    array([2, 0, 1])
    >>> copies_of(np.array([0.5, 1.0])) is None
    True
    """
    whole = (weight == np.rint(weight)).all()
    if not whole or weight.sum() > MOST_REPEATS * len(weight):
        return None
    return np.asarray(weight, dtype=np.intp)


def row_keys(X: Array, codes: Array) -> Array:
    """A number for each row that its values and its domain decide, for looking up.

    Different rows have different numbers, but for one chance in 2^64 a pair.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
        Domain of each row.

    Returns
    -------
    ndarray of shape (n_samples,)
        Unsigned integers of 64 bits.
    """
    key = _scramble(codes.astype(np.uint64))
    for column in X.T:
        values = column.astype(np.float64) + 0.0  # so that -0 and 0 have the same bits
        key = _scramble(key ^ values.view(np.uint64))
    return key


def match_keys(known: Array, keys: Array) -> Array:
    """Position in ``known`` of each of ``keys``, -1 for those not there.

    Equal keys are given to equal ones in their order, the last of them again and again
    where ``known`` has fewer.

    Examples
    --------
    >>> match_keys(np.array([7, 5, 7]), np.array([5, 7, 7, 7, 9]))
    array([ 1,  0,  2,  2, -1])
    """
    order, wanted = (np.argsort(each, kind="stable") for each in (known, keys))
    sorted_known, sorted_keys = known[order], keys[wanted]
    first = np.searchsorted(sorted_known, sorted_keys, side="left")
    last = np.searchsorted(sorted_known, sorted_keys, side="right") - 1
    turn = np.arange(len(keys)) - np.searchsorted(sorted_keys, sorted_keys, side="left")
    found = np.full(len(keys), -1)
    there = last >= first
    found[wanted[there]] = order[np.minimum(first + turn, last)[there]]
    return found


def _scramble(key: Array) -> Array:
    """Spread every bit over all 64 (the finish of the SplitMix64 generator)."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> np.uint64(31)))


# ---- Samples and folds of rows, drawn within domains ---------------------------------

# Where a sample has no room for so many rows of each domain, it takes fewer domains,
# but never fewer than these.
SAMPLED_TOGETHER = 8
SAMPLED_DOMAINS = 50


def stratified_sample(codes: Array, max_rows: int, rng: np.random.Generator) -> Array:
    """At most ``max_rows`` row numbers, spread as evenly over domains as they allow.

    ``codes`` is sorted. A small domain gives all its rows and leaves its unused share
    to the larger ones. Of very many domains some are left out: a row alone in its
    domain says nothing of what comes together.
    """
    n_domains = int(codes[-1]) + 1
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    sizes = np.bincount(codes, minlength=n_domains)
    few = np.minimum(sizes, SAMPLED_TOGETHER)
    if few.sum() > max_rows >= SAMPLED_DOMAINS * SAMPLED_TOGETHER:
        drawn = rng.permutation(n_domains)
        left_out = drawn[np.cumsum(few[drawn]) > max_rows]
        few[left_out] = 0
        quota = few
    else:
        quota = even_quota(sizes, max_rows)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    picks = [
        start + np.sort(rng.choice(size, take, replace=False))
        for start, size, take in zip(starts, sizes, quota, strict=True)
        if take
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
    by_domain = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    for domain, rows in enumerate(np.split(by_domain, ends[:-1])):
        folds[rows] = (rng.permutation(len(rows)) + domain) % n_folds
    return folds
