"""Domains as codes and names; numbers of classes, and weights."""

import math
import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import column_or_1d

from shoal.exceptions import IdentifiabilityWarning, UnseenDomainWarning
from shoal.validation._arguments import as_number, first_line, is_whole, shown, taken_in

# ---- Where rows come from: columns of any hashable kind as codes and names -----------

Array = np.ndarray[Any, Any]

INTEGERS = ("i", "u", "b")
# Sums of larger weights lose the smaller ones, or overflow.
LARGEST_WEIGHT = 1e100
ADAPT = "Use adapt(X) for a new domain, or domains=None"
STRATIFY = (
    "Only these can be scored; in cross-validation, split rows by "
    "StratifiedKFold(shuffle=True)"
)


def check_domains(
    domains: Any, *, n_samples: int, least: int = 2
) -> tuple[Array, Array]:
    """Turn domains of any hashable kind into codes and sorted distinct names."""
    codes, names = encode_column(domains, name="domains")
    if len(codes) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, domains has {len(codes)}; pass both from the "
            "same table (inconsistent numbers of samples)"
        )
    if len(names) < least:
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
    endless = _is_infinite(column)
    if endless.any():
        raise ValueError(
            f"{name} has {int(endless.sum())} infinite values (first in row "
            f"{int(np.argmax(endless))}); give these rows a name or a finite number"
        )
    names, codes = _distinct(column, name)
    return codes, names


def encode_domains(
    domains: Any, names: Array, *, n_samples: int, scoring: bool = False
) -> Array | None:
    """Codes of ``domains`` among the fitted ``names``; None stays None.

    ``domains`` may be one scalar for all rows, or one value per row. A value that
    fit has not seen is a ValueError that names it. Of rows to score (``scoring``) it is
    warned of as well: a search goes on after the error and takes its first settings.
    """
    if domains is None:
        return None
    domains = _as_given(domains, "domains")
    if is_scalar(domains):
        of_numpy = isinstance(domains, (np.ndarray, np.generic))
        scalar = _as_keys(np.asarray(domains)[None]) if of_numpy else [domains]
        return np.broadcast_to(_look_up(scalar, names, scoring), n_samples)
    values = _as_column(domains, "domains")
    if len(values) != n_samples:
        raise ValueError(
            f"X has {n_samples} rows, domains has {len(values)}; pass one domain "
            "per row, one scalar for all rows, or None"
        )
    distinct, inverse = _distinct(values, "domains")
    return _look_up(_as_keys(distinct), names, scoring)[inverse]


def _look_up(values: list[Any], names: Array, scoring: bool) -> Array:
    """Index of each value among the fitted names."""
    keys = _as_keys(names)
    code_of = {key: code for code, key in enumerate(keys)}
    unseen = [value for value in values if value not in code_of]
    if unseen:
        known = ", ".join(repr(key) for key in keys[:6]) + ", ..." * (len(keys) > 6)
        others = f" and {len(unseen) - 1} more" if len(unseen) > 1 else ""
        text = f"domains has values that fit has not seen: {shown(unseen[0])}{others}"
        if scoring:
            told = f"no score: {text}. {STRATIFY}"
            warnings.warn(told, UnseenDomainWarning, stacklevel=4)
        raise ValueError(f"{text}; known: {known}. {STRATIFY if scoring else ADAPT}")
    return np.array([code_of[value] for value in values], dtype=np.intp)


def is_scalar(value: Any) -> bool:
    """One value for all rows, rather than a column of them."""
    return isinstance(value, (str, bytes)) or (
        not isinstance(value, (list, tuple)) and np.asarray(value).ndim == 0
    )


def _as_given(values: Any, name: str) -> Any:
    """One name for all rows as it is; anything else if an array can be made of it."""
    if sparse.issparse(values):
        raise TypeError(f"{name} is a sparse matrix; pass a list of names or numbers")
    return values if isinstance(values, (str, bytes)) else taken_in(values, name)


def _as_column(values: Any, name: str) -> Array:
    """One value per row, as a one-dimensional array."""
    values = _as_given(values, name)
    if is_scalar(values):
        raise ValueError(
            f"{name} must have one entry per row, got the single value "
            f"{shown(values)}; y should be a 1d array"
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
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", None) in INTEGERS:
        # scikit-learn makes floats of pandas' nullable integers: 2**53 + 1 is lost.
        values = values.to_numpy(dtype=object)
    try:
        return np.asarray(column_or_1d(values, warn=True))
    except ValueError as error:
        raise ValueError(
            f"{name} must be one-dimensional, y should be a 1d array, got "
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
    except Exception:  # pandas.NA refuses to be a bool, and others more than that
        return False


def _is_infinite(values: Array) -> Array:
    """Numbers without end: no place where rows come from."""
    if values.dtype.kind == "f":
        return np.isinf(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), dtype=bool)
    return np.array([isinstance(v, float) and math.isinf(v) for v in values])


def _distinct(values: Array, name: str) -> tuple[Array, Array]:
    """Sorted distinct values and each row's index among them.

    Mixed kinds, which do not compare, sort by kind and text.
    """
    if values.dtype.kind in "iu" and len(values):
        counted = _distinct_integers(values)
        if counted is not None:
            return counted
    if values.dtype.kind == "U":  # few of many: faster than sorting all rows
        names = np.unique(values)
        return names, np.searchsorted(names, values)
    if values.dtype.kind != "O":
        names, codes = np.unique(values, return_inverse=True)
        return names, codes
    try:
        names_list = _in_order(set(values))
    except Exception as error:  # of their own __hash__, __eq__ or __repr__
        raise TypeError(
            f"{name} must be strings, numbers or other hashable values: "
            f"{first_line(error)}"
        ) from error
    code_of = {value: code for code, value in enumerate(names_list)}
    codes = np.array([code_of[value] for value in values], dtype=np.intp)
    return _tidy_names(names_list), codes


def _in_order(present: set[Any]) -> list[Any]:
    """Sorted values that can all be told as text."""
    for value in present:
        repr(value)
    try:
        return sorted(present)
    except TypeError:
        return sorted(present, key=lambda v: (type(v).__name__, str(v)))


def _distinct_integers(values: Array) -> tuple[Array, Array] | None:
    """As np.unique, by counting instead of sorting; None for far-flung integers."""
    low, high = int(values.min()), int(values.max())
    if high - low > len(values):
        return None
    # Differences of small signed integers may not fit in their own type.
    wide = values if values.dtype.kind == "u" else values.astype(np.int64)
    first = wide.dtype.type(low)
    offset = (wide - first).astype(np.intp)
    present = np.bincount(offset) > 0
    names = first + np.flatnonzero(present).astype(wide.dtype)
    return names.astype(values.dtype), (np.cumsum(present) - 1)[offset]


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


# ---- Numbers of classes and weights: what is given beside the rows -------------------


def check_n_classes(
    n_classes: Any, n_domains: int, *, check_identifiable: bool = True
) -> int:
    """Check a given number of classes against the number of domains (A.1)."""
    if not is_whole(n_classes) or n_classes < 2:
        raise ValueError(
            f"n_classes must be a whole number from 2, or None to choose it, got "
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
        for name in names.tolist():
            number = as_number(domain_weight[name])
            if number is None or number <= 0:
                raise ValueError(
                    f"domain_weight must be positive and finite everywhere, got "
                    f"{shown(domain_weight[name])} for domain {name!r}"
                )
        weight = np.array([domain_weight[name] for name in names.tolist()], dtype=float)
    elif isinstance(domain_weight, str) and domain_weight == "equal":
        weight = np.ones(len(names))
    elif isinstance(domain_weight, str) and domain_weight == "size":
        weight = np.asarray(mass, dtype=float)
    else:
        raise ValueError(
            "domain_weight must be 'equal', 'size' or a mapping of domain to weight, "
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
    weight = _as_weights(sample_weight)
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must have one entry per row ({n_samples}), got shape "
            f"{weight.shape}"
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight must be finite and not negative, got {weight[row]:g} in "
            f"row {row}; give it a weight from 0"
        )
    if not weight.max(initial=0) <= LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight must be {LARGEST_WEIGHT:g} at most, got {weight.max():g}; "
            "divide all weights by their mean"
        )
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


def _as_weights(sample_weight: Any) -> Array:
    """Any array of real numbers, as floats."""
    given = taken_in(sample_weight, "sample_weight")
    try:
        array = np.asarray(given)
        if array.dtype.kind in "cmM":
            raise TypeError(f"they are {array.dtype}")
        return array.astype(float)
    except Exception as error:
        raise ValueError(
            f"sample_weight must be numbers, one per row: {first_line(error)}"
        ) from error
