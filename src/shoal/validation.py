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
    "check_sample_weight",
    "encode_column",
    "encode_domains",
    "is_sparse",
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
    codes, names = encode_column(domains, name="domains")
    if len(codes) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, domains has {len(codes)}; pass both from the "
            "same table (inconsistent numbers of samples)"
        )
    if len(names) < 2:
        raise ValueError(
            f"domains has only one class of value ({names.tolist()[0]!r}): all rows "
            "come from one domain, and shoal learns from differences between domains"
        )
    return codes, names


def encode_column(values: Any, *, name: str) -> tuple[Array, Array]:
    """Codes and sorted distinct values of one column of hashable, present values.

    ``name`` is the argument's name in error messages.

    >>> codes, names = encode_column(["b", "a", "b"], name="domains")
    >>> codes, names
    (array([1, 0, 1]), array(['a', 'b'], dtype='<U1'))
    """
    column = _as_column(values, name)
    missing = _is_missing(column)
    if missing.any():
        raise ValueError(
            f"{name} has {int(missing.sum())} missing values (NaN or None, first in "
            f"row {int(np.argmax(missing))}); drop those rows or fill them in"
        )
    names, codes = _distinct(column, name)
    return codes, names


def encode_domains(domains: Any, names: Array, *, n_samples: int) -> Array | None:
    """Codes of ``domains`` among the fitted ``names``; None stays None.

    ``domains`` may be one scalar for all rows, or one value per row. A value that
    fit has not seen is a ValueError that names it.
    """
    if domains is None:
        return None
    if _is_scalar(domains):
        scalar = domains.item() if isinstance(domains, np.ndarray) else domains
        return np.broadcast_to(_look_up([scalar], names), n_samples)
    values = _as_column(domains, "domains")
    if len(values) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, domains has {len(values)}; pass one domain "
            "per row, one scalar for all rows, or None"
        )
    distinct, inverse = _distinct(values, "domains")
    return _look_up(_as_keys(distinct), names)[inverse]


def _look_up(values: list[Any], names: Array) -> Array:
    """Index of each value among the fitted names."""
    keys = _as_keys(names)
    code_of = {key: code for code, key in enumerate(keys)}
    unseen = [value for value in values if value not in code_of]
    if unseen:
        known = ", ".join(repr(key) for key in keys[:6]) + ", ..." * (len(keys) > 6)
        others = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
        raise ValueError(
            f"domains has values that fit has not seen: {unseen[0]!r}{others}; known: "
            f"{known}. Use adapt(X) for a new domain, or domains=None"
        )
    return np.array([code_of[value] for value in values], dtype=np.intp)


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
    elif isinstance(domain_weight, str) and domain_weight == "equal":
        weight = np.ones(len(names))
    elif isinstance(domain_weight, str) and domain_weight == "size":
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


def check_sample_weight(
    sample_weight: Any,
    n_samples: int,
    *,
    codes: Array | None = None,
    names: Array | None = None,
) -> Array | None:
    """Weights of rows as floats: one for each row, not negative; None stays None.

    With the ``codes`` and ``names`` of domains, each of these must have some weight;
    without, some row must.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=float)
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one entry per row ({n_samples}), got shape "
            f"{weight.shape}"
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and not negative")
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; give some row a weight")
    if codes is not None and names is not None:
        mass = np.bincount(codes, weights=weight, minlength=len(names))
        if (mass <= 0).any():
            name = names.tolist()[int(mass.argmin())]
            raise ValueError(
                f"sample_weight is zero in all rows of domain {name!r}, a class of y; "
                "drop these rows or give some of them weight"
            )
    return weight


def varying_columns(X: Any) -> Array:
    """Mask of the columns that vary; warns about those that do not.

    All columns constant is a ValueError: there is nothing to learn from.
    """
    high, low = (_dense(extreme(axis=0)) for extreme in (X.max, X.min))
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


def _dense(extremes: Any) -> Array:
    """Make one number per column of what ``max(axis=0)`` gives, dense or sparse."""
    to_dense = getattr(extremes, "toarray", None)
    return np.ravel(extremes if to_dense is None else to_dense())


def is_sparse(X: Any) -> bool:
    """Tell whether ``X`` is a scipy sparse array or matrix."""
    return bool(sparse.issparse(X))


def is_whole(value: Any) -> bool:
    """Tell whether ``value`` is an integer (bool and float are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_scalar(value: Any) -> bool:
    """One value for all rows, rather than a column of them."""
    return isinstance(value, (str, bytes)) or (
        not isinstance(value, (list, tuple)) and np.asarray(value).ndim == 0
    )


def _as_column(values: Any, name: str) -> Array:
    """One value per row, as a one-dimensional array."""
    if _is_scalar(values):
        raise ValueError(
            f"{name} must have one entry per row, got the single value {values!r}; "
            "y should be a 1d array"
        )
    nested = isinstance(values, (list, tuple)) and any(
        isinstance(value, (list, np.ndarray)) for value in values
    )
    if isinstance(values, (list, tuple)) and not nested:
        # numpy would turn [1, "1"] into twice "1", and tuples into columns.
        column = np.fromiter(values, dtype=object, count=len(values))
        is_complex = any(isinstance(value, complex) for value in values)
    else:
        is_complex = getattr(getattr(values, "dtype", None), "kind", None) == "c"
        column = values if is_complex else _flatten(values, name)
    if is_complex:
        raise ValueError(f"Complex data not supported: {name} must not be complex")
    return column


def _flatten(values: Any, name: str) -> Array:
    """One dimension of anything array-like; a column vector only with a warning."""
    try:
        return np.asarray(column_or_1d(values, warn=True))
    except ValueError as error:
        raise ValueError(
            f"{name} must be one-dimensional, y should be a 1d array; got "
            f"{len(values)} rows with several columns"
        ) from error


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


def _distinct(values: Array, name: str) -> tuple[Array, Array]:
    """Sorted distinct values and each row's index among them.

    Mixed kinds, which do not compare, sort by kind and text.
    """
    if values.dtype.kind != "O":
        names, codes = np.unique(values, return_inverse=True)
        return names, codes
    try:
        present = set(values)
    except TypeError as error:
        raise TypeError(
            f"{name} must be strings, numbers or other hashable values: {error}"
        ) from error
    try:
        names_list = sorted(present)
    except TypeError:
        names_list = sorted(present, key=lambda v: (type(v).__name__, str(v)))
    code_of = {value: code for code, value in enumerate(names_list)}
    codes = np.array([code_of[value] for value in values], dtype=np.intp)
    return _tidy_names(names_list), codes


def _tidy_names(names: list[Any]) -> Array:
    """Values of one kind as their own dtype; anything else stays an object array."""
    for kind, dtypes in (
        (str, "U"),
        (bool, "b"),
        (numbers.Integral, "iu"),
        (float, "f"),
    ):
        if names and all(isinstance(name, kind) for name in names):
            tidy = np.array(names)
            if tidy.dtype.kind in dtypes:  # integers beyond 64 bits stay objects
                return tidy
    return np.fromiter(names, dtype=object, count=len(names))


def _as_keys(names: Array) -> list[Any]:
    """Python values that hash alike whatever array or scalar they came from."""
    if names.dtype.kind == "M":  # nanoseconds would become bare integers
        names = names.astype("datetime64[us]")
    return list(names.tolist())


def _check_column_names(X: Any) -> None:
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return
    names = list(columns)
    if len(set(names)) != len(names):
        first = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"X has duplicate column names: {first!r}; rename or drop the copies"
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
    is_sparse = bool(sparse.issparse(checked))
    values = checked.data if is_sparse else checked
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=float)  # one pass, no mask, when all is well
    if np.isfinite(total):
        return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if is_sparse:
        raise ValueError(
            f"X has {int(bad.sum())} NaN or infinite values; impute or drop them"
        )
    row, column = np.argwhere(bad)[0]
    raise ValueError(
        f"X has {int(bad.sum())} NaN or infinite values in "
        f"{int(bad.any(axis=0).sum())} columns (first: row {row}, column "
        f"{_column_name(X, int(column))}); impute them or drop the rows"
    )
