"""Numbers of classes and weights: what is given beside the rows."""

import math
import numbers
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from shoal.exceptions import IdentifiabilityWarning

__all__ = [
    "check_n_classes",
    "check_real",
    "check_sample_weight",
    "check_whole",
    "is_whole",
    "resolve_domain_weight",
    "row_weights",
]

Array = np.ndarray[Any, Any]


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


def check_whole(least: int, **given: Any) -> None:
    """Refuse settings, given by name, that are not whole numbers from ``least``."""
    for name, value in given.items():
        if not is_whole(value) or value < least:
            raise ValueError(
                f"{name} must be a whole number from {least}, got {value!r}"
            )


def check_real(
    least: float, most: float = np.inf, *, above: bool = False, **given: Any
) -> None:
    """Refuse settings, given by name, that are not finite numbers of a range.

    With ``above``, ``least`` itself is refused too.
    """
    expected = f"{'above' if above else 'from'} {least:g}"
    if np.isfinite(most):
        expected += f", {most:g} at most" if above else f" to {most:g}"
    for name, value in given.items():
        number = _as_number(value)
        inside = number is not None and least <= number <= most
        if not inside or (above and number == least):
            raise ValueError(f"{name} must be a number {expected}, got {value!r}")


def _as_number(value: Any) -> float | None:
    """A finite number, also from an array without axes; None for all else."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


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
    try:
        weight = np.asarray(sample_weight, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must be numbers: {error}") from error
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


def is_whole(value: Any) -> bool:
    """Tell whether ``value`` is an integer (bool and float are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)
