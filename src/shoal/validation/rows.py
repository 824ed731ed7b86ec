"""Rows of features: a table of finite numbers, or one line that says what is wrong."""

import reprlib
import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from shoal.exceptions import ConstantColumnWarning, DomainMissingError
from shoal.validation.domains import check_domains

__all__ = [
    "check_X",
    "check_X_domains",
    "is_sparse",
    "varying_columns",
]

Array = np.ndarray[Any, Any]

# What numpy says of tables that it cannot turn into numbers.
NOT_NUMBERS = ("could not convert string", "argument must be", "could not be promoted")
# Squares of larger numbers overflow when they are summed.
LARGEST = 1e150


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
    except (TypeError, ValueError) as error:
        message = _explain(X, str(error))
        if message is None:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(message) from error
    _check_finite(checked, X)
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


def _check_column_names(X: Any) -> None:
    names = _column_names(X)
    if len(set(names)) != len(names):
        first = next(name for name in names if names.count(name) > 1)
        raise ValueError(
            f"X has duplicate column names: {first!r}; rename or drop the copies"
        )


def _column_names(X: Any) -> list[Any]:
    """Names of a table's columns, none of an array's; the columns of Arrow are data."""
    arrow = not hasattr(X, "iloc") and hasattr(X, "column_names")
    columns = X.column_names if arrow else getattr(X, "columns", None)
    return [] if columns is None or callable(columns) else list(columns)


def _column_name(X: Any, index: int) -> str:
    names = _column_names(X)
    return repr(names[index]) if names else str(index)


def _explain(X: Any, said: str) -> str | None:
    """One line instead of what scikit-learn or numpy said; None if that will do.

    Their own words stay where scikit-learn's checks look for them.
    """
    if said.startswith("Expected 2D array"):
        return (
            f"X must have two dimensions, got shape {np.shape(X)}. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if said.startswith("Found array"):  # with no rows, no columns, three dimensions
        return f"X: {said.rstrip('.')}; pass a table (n_samples, n_features)"
    if said.startswith("Complex data"):
        return (
            "Complex data not supported: X must be real; pass real and imaginary "
            "parts as columns"
        )
    if "inhomogeneous shape" in said:
        return "X has rows of different lengths; give every row all columns"
    if any(sign in said for sign in NOT_NUMBERS):
        return _locate_value(X)
    return None


def _locate_value(X: Any) -> str:
    """Say which entry is not a number."""
    table = np.asarray(X, dtype=object)
    for index in np.ndindex(*table.shape):
        value = table[index]
        if value is None:  # counts as missing, and is found later
            continue
        place = f"column {_column_name(X, index[1])} (row {index[0]}"
        fix = "encode it as numbers or drop it"
        try:
            float(value)
        except ValueError:
            return f"X has text in {place}: {value!r}); {fix}"
        except TypeError:
            return (
                f"X has a {type(value).__name__} in {place}: {reprlib.repr(value)}), "
                f"and the argument must be a string of digits or a number; {fix}"
            )
    return "X has text; encode it as numbers or drop it"


def _check_finite(checked: Any, X: Any) -> None:
    thin = is_sparse(checked)
    values = checked.data if thin else checked
    if values.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=float)  # one pass, no mask, when all is well
    if np.isfinite(total):
        return
    bad = ~np.isfinite(values)
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
        f"{_column_name(X, int(column))}); impute them or drop the rows"
    )
