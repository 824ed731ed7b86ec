"""The one door through which X and domains enter an estimator.

Each check raises one clear line: the argument, the value got, the fix.
"""

import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.validation import validate_data

from shoal.exceptions import (
    ConstantColumnWarning,
    DomainMissingError,
    IdentifiabilityWarning,
)

__all__ = [
    "check_X",
    "check_X_domains",
    "check_domains",
    "check_n_classes",
    "encode_domains",
    "is_whole",
    "resolve_domain_weight",
    "row_weights",
    "varying_columns",
]

Array = np.ndarray[Any, Any]


def check_X_domains(  # noqa: N802
    estimator: Any,
    X: Any,
    domains: Any,
    *,
    accept_sparse: bool | str = False,
    dtype: Any = (np.float64, np.float32),
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
    X = check_X(estimator, X, reset=True, accept_sparse=accept_sparse, dtype=dtype)
    codes, names = check_domains(domains, n_samples=X.shape[0])
    return X, codes, names


def check_X(  # noqa: N802
    estimator: Any,
    X: Any,
    *,
    reset: bool = False,
    accept_sparse: bool | str = False,
    dtype: Any = (np.float64, np.float32),
) -> Any:
    """Validate rows alone (predict, adapt); ``reset=True`` at fit."""
    _check_column_names(X)
    try:
        checked = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr" if accept_sparse else False,
            dtype=list(dtype) if isinstance(dtype, tuple) else dtype,
            ensure_all_finite=False,
            ensure_min_samples=2 if reset else 1,
        )
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(_locate_text(X)) from error
        raise
    _check_finite(checked, X)
    return checked


def check_domains(domains: Any, *, n_samples: int) -> tuple[Array, Array]:
    """Turn domains of any hashable kind into codes and sorted distinct names."""
    values = _as_column(domains)
    if len(values) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, domains has {len(values)}; pass both from the "
            "same table (inconsistent numbers of samples)"
        )
    missing = _is_missing(values)
    if missing.any():
        raise ValueError(
            f"domains has {int(missing.sum())} missing values (NaN or None, first in "
            f"row {int(np.argmax(missing))}); drop those rows or give them a domain"
        )
    names, codes = _distinct(values)
    if len(names) < 2:
        raise ValueError(
            f"domains has only one class of value ({names.tolist()[0]!r}): all rows come from "
            "one domain, and shoal learns from differences between domains"
        )
    return codes, names


def encode_domains(domains: Any, names: Array, *, n_samples: int) -> Array | None:
    """Codes of ``domains`` among the fitted ``names``; None stays None.

    ``domains`` may be one scalar for all rows, or one value per row. A value that
    fit has not seen is a ValueError that names it.
    """
    if domains is None:
        return None
    if np.ndim(domains) == 0 or isinstance(domains, (str, bytes)):
        values = np.empty(1, dtype=object)
        values[0] = domains
    else:
        values = _as_column(domains)
        if len(values) != n_samples:
            raise ValueError(
                f"X has {n_samples} rows, domains has {len(values)}; pass one domain "
                "per row, one scalar for all rows, or None"
            )
    lookup = {name: code for code, name in enumerate(names.tolist())}
    distinct, inverse = _distinct(values)
    unseen = [value for value in distinct.tolist() if value not in lookup]
    if unseen:
        known = ", ".join(repr(name) for name in names.tolist()[:6])
        more = ", ..." if len(names) > 6 else ""
        raise ValueError(
            f"domains has values that fit has not seen: {unseen[0]!r}"
            f"{f' and {len(unseen) - 1} more' if len(unseen) > 1 else ''}; known: "
            f"{known}{more}. Use adapt(X) for a new domain, or domains=None"
        )
    codes = np.array([lookup[value] for value in distinct.tolist()], np.intp)[inverse]
    return np.broadcast_to(codes, n_samples) if len(values) != n_samples else codes


def check_n_classes(
    n_classes: Any, n_domains: int, *, check_identifiable: bool = True
) -> int:
    """Check a given number of classes against the number of domains (A.1)."""
    if not is_whole(n_classes) or n_classes < 2:
        raise ValueError(
            f"n_classes must be a whole number from 2, or None to choose it; got "
            f"{n_classes!r}"
        )
    if n_classes > n_domains:
        message = (
            f"n_classes={n_classes} cannot be told apart with {n_domains} domains "
            "(assumption A.1 needs at least as many domains as classes)"
        )
        if check_identifiable:
            raise ValueError(
                f"{message}; use n_classes={n_domains} or less, finer domains, or "
                "check_identifiable=False"
            )
        warnings.warn(message, IdentifiabilityWarning, stacklevel=3)
    return int(n_classes)


def resolve_domain_weight(domain_weight: Any, names: Array, mass: Array) -> Array:
    """q(d) from ``'equal'``, ``'size'`` or a mapping of domain to weight.

    ``mass`` is the number of rows (or their weight) per domain.
    """
    if isinstance(domain_weight, Mapping):
        absent = [name for name in names.tolist() if name not in domain_weight]
        if absent:
            raise ValueError(
                f"domain_weight has no entry for domain {absent[0]!r}; give every "
                "domain a weight"
            )
        weight = np.array([domain_weight[name] for name in names.tolist()], dtype=float)
        if not np.isfinite(weight).all() or (weight <= 0).any():
            raise ValueError("domain_weight must be positive and finite everywhere")
    elif domain_weight == "equal":
        weight = np.ones(len(names))
    elif domain_weight == "size":
        weight = np.asarray(mass, dtype=float)
    else:
        raise ValueError(
            "domain_weight must be 'equal', 'size' or a mapping of domain to weight; "
            f"got {domain_weight!r}"
        )
    return np.asarray(weight / weight.sum())


def row_weights(codes: Array, domain_weight: Array, sample_weight: Any = None) -> Array:
    """Weights of rows that sum to ``domain_weight`` within each domain, and to 1."""
    n_domains = len(domain_weight)
    if sample_weight is None:
        mass = np.bincount(codes, minlength=n_domains).astype(float)
        return np.asarray((domain_weight / np.maximum(mass, 1))[codes])
    weight = np.asarray(sample_weight, dtype=float)
    mass = np.bincount(codes, weights=weight, minlength=n_domains)
    if (mass <= 0).any():
        empty = int(np.argmax(mass <= 0))
        raise ValueError(f"sample_weight leaves domain number {empty} without weight")
    return np.asarray(weight * (domain_weight / mass)[codes])


def varying_columns(X: Any) -> Array:
    """Mask of the columns that vary; warns about those that do not.

    All columns constant is a ValueError: there is nothing to learn from.
    """
    if sparse.issparse(X):
        high, low = X.max(axis=0).toarray()[0], X.min(axis=0).toarray()[0]
    else:
        high, low = X.max(axis=0), X.min(axis=0)
    varies = np.asarray(high != low)
    if not varies.any():
        raise ValueError(
            f"X has only constant columns ({X.shape[1]}): the same in every row, "
            "nothing to learn from; pass features that vary"
        )
    if not varies.all():
        constant = np.flatnonzero(~varies)
        shown = ", ".join(map(str, constant[:5])) + (", ..." if constant[5:].size else "")
        warnings.warn(
            f"X has {constant.size} constant columns (index {shown}); set aside",
            ConstantColumnWarning,
            stacklevel=3,
        )
    return varies


def is_whole(value: Any) -> bool:
    """Tell whether ``value`` is an integer (bool and float are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _as_column(domains: Any) -> Array:
    """One value per row, as an array whose entries are hashable."""
    if isinstance(domains, (str, bytes)) or np.ndim(domains) == 0:
        raise ValueError(
            f"domains must have one entry per row, got the single value {domains!r}; "
            "y should be a 1d array"
        )
    try:
        column = column_or_1d(domains, warn=True)
    except ValueError as error:
        raise ValueError(
            "domains must be one-dimensional, y should be a 1d array, got shape "
            f"{np.shape(domains)}"
        ) from error
    if column.dtype.kind == "c":
        raise ValueError("Complex data not supported: domains must not be complex")
    return np.asarray(column)


def _is_missing(values: Array) -> Array:
    """NaN, None and their kin: what is not equal to itself, or will not say."""
    if values.dtype.kind != "O":
        return np.asarray(values != values)
    return np.array([value is None or not _equals_itself(value) for value in values])


def _equals_itself(value: Any) -> bool:
    try:
        return bool(value == value)
    except TypeError:  # pandas.NA refuses to be a bool
        return False


def _distinct(values: Array) -> tuple[Array, Array]:
    """Sorted distinct values and each row's index among them.

    Mixed kinds, which do not compare, sort by kind and text.
    """
    if values.dtype.kind != "O":
        names, codes = np.unique(values, return_inverse=True)
        return names, codes
    try:
        names_list = sorted(set(values))
    except TypeError:
        names_list = sorted(set(values), key=lambda v: (type(v).__name__, str(v)))
    lookup = {name: code for code, name in enumerate(names_list)}
    codes = np.array([lookup[value] for value in values], dtype=np.intp)
    return _tidy_names(names_list), codes


def _tidy_names(names: list[Any]) -> Array:
    """Strings and ints as their own dtype; anything else stays an object array."""
    if all(isinstance(name, str) for name in names):
        return np.array(names)
    tidy = np.empty(len(names), dtype=object)
    tidy[:] = names
    return tidy


def _check_column_names(X: Any) -> None:
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return
    names = list(columns)
    repeated = {name for name in names if names.count(name) > 1} if len(
        set(names)
    ) != len(names) else set()
    if repeated:
        raise ValueError(
            f"X has duplicate column names: {sorted(map(str, repeated))[0]!r}; "
            "rename or drop the copies"
        )


def _column_name(X: Any, index: int) -> str:
    columns = getattr(X, "columns", None)
    return repr(list(columns)[index]) if columns is not None else str(index)


def _locate_text(X: Any) -> str:
    table = np.asarray(X, dtype=object)
    if table.ndim == 2:
        for row, column in np.ndindex(*table.shape):
            try:
                float(table[row, column])
            except (TypeError, ValueError):
                return (
                    f"X has text in column {_column_name(X, column)} (row {row}: "
                    f"{table[row, column]!r}); encode it as numbers or drop it"
                )
    return "X has text; encode it as numbers or drop it"


def _check_finite(checked: Any, X: Any) -> None:
    values = checked.data if sparse.issparse(checked) else checked
    if values.dtype.kind != "f" or np.isfinite(values.sum(dtype=float)):
        return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sparse.issparse(checked):
        raise ValueError(
            f"X has {int(bad.sum())} NaN or infinite values; impute or drop them"
        )
    row, column = np.argwhere(bad)[0]
    raise ValueError(
        f"X has {int(bad.sum())} NaN or infinite values in "
        f"{int(bad.any(axis=0).sum())} columns (first: row {row}, column "
        f"{_column_name(X, int(column))}); impute them or drop the rows"
    )
