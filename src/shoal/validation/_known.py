"""What is known before a fit: classes of some rows, rows of one class, shares.

Nothing of it is ever required. A known class is not a *label* (a true class that only
scores may see): whoever passes it wants the fit to use it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shoal.validation._domains import encode_domains

Array = np.ndarray[Any, Any]

# Shares that somebody typed add up to one within this.
ROUNDED = 1e-6
# What pandas, which need not be there, writes where a value misses.
GAPS = ("NAType", "NaTType")


class Given(NamedTuple):
    """The arguments of ``fit``, as they were passed."""

    labels: Any = None
    together: Any = None
    prevalence: Any = None


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What is known of some rows.

    Attributes
    ----------
    names : tuple of str
        Of the known classes; the first of those that are fitted.
    classes : ndarray of shape (n_rows,)
        Known class of each row, -1 where there is none.
    groups : ndarray of shape (n_rows,)
        Rows with the same number from 0 are of one class, whichever, and of one domain;
        -1 stands alone.
    shares : ndarray of shape (n_domains, n_names)
        Known shares of classes in domains, NaN elsewhere.
    orders : tuple of (int, tuple of int)
        A domain and its classes, the most common first.
    """

    names: tuple[str, ...]
    classes: Array
    groups: Array
    shares: Array
    orders: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @property
    def rows(self) -> Array:
        """Numbers of the rows whose class is known."""
        return np.flatnonzero(self.classes >= 0)

    @property
    def n_told(self) -> int:
        """Number of classes that some row is known of."""
        return len(np.unique(self.classes[self.rows]))

    def take(self, rows: Array) -> "Knowledge":
        """What is known of a subset of the rows, or of repeated ones."""
        return replace(self, classes=self.classes[rows], groups=self.groups[rows])

    def without(self, hidden: Array) -> "Knowledge":
        """The same, blind to the classes of some rows."""
        classes = self.classes.copy()
        classes[hidden] = -1
        return replace(self, classes=classes)

    def moved(self, place: Array, names: tuple[str, ...]) -> "Knowledge":
        """With class y called ``place[y]``, and the names of all classes of a fit."""
        told = self.classes >= 0
        classes = np.where(told, place[np.where(told, self.classes, 0)], -1)
        shares = np.full((len(self.shares), len(names)), np.nan)
        shares[:, place[: len(self.names)]] = self.shares
        orders = tuple(
            (domain, tuple(int(place[y]) for y in order))
            for domain, order in self.orders
        )
        return replace(self, names=names, classes=classes, shares=shares, orders=orders)

    def full_shares(self, n_classes: int) -> Array:
        """Shares of all classes: where the known ones add up to one, others are 0."""
        shares = np.full((len(self.shares), n_classes), np.nan)
        shares[:, : self.shares.shape[1]] = self.shares
        whole = np.nansum(shares, axis=1) > 1 - ROUNDED
        shares[whole] = np.nan_to_num(shares[whole])
        return shares

    def impose(self, prevalence: Array) -> Array:
        """Mixes whose known shares are exact; the others share what is left."""
        shares = self.full_shares(prevalence.shape[1])
        free = np.isnan(shares)
        if free.all():
            return prevalence
        left = 1 - np.nansum(shares, axis=1, keepdims=True)
        rest = np.where(free, np.maximum(prevalence, 1e-12), 0)
        rest *= left / np.maximum(rest.sum(axis=1, keepdims=True), 1e-12)
        mixed = np.where(free, rest, np.nan_to_num(shares))
        told = ~free.all(axis=1, keepdims=True)
        return np.where(told, mixed / mixed.sum(axis=1, keepdims=True), prevalence)


# ---- from what was passed ------------------------------------------------------------


def read_known(given: Given | None, codes: Array, domains: Array) -> Knowledge | None:
    """What is known, checked; None where it is nothing.

    Parameters
    ----------
    given : Given or None
    codes : ndarray of shape (n_rows,)
        Domain of each row.
    domains : ndarray of shape (n_domains,)

    Examples
    --------
    >>> given = Given(labels=["b", None, -1, "a"])
    >>> known = read_known(given, np.array([0, 0, 1, 1]), np.array(["x", "y"]))
    >>> known.names, known.classes.tolist()
    (('a', 'b'), [1, -1, -1, 0])
    """
    if given is None:
        return None
    cells = _cells(given.labels, "labels", len(codes))
    shares = _read_prevalence(given.prevalence, domains)
    names = _sorted_names([*cells, *(name for mix in shares.values() for name in mix)])
    place = {name: index for index, name in enumerate(names)}
    classes = np.array(
        [-1 if name is None else place[name] for name in cells], dtype=np.intp
    )
    links = _cells(given.together, "together", len(codes))
    classes, groups = _join_groups(classes, links, names)
    table = np.full((len(domains), len(names)), np.nan)
    orders = []
    for domain, mix in shares.items():
        if isinstance(mix, dict):
            table[domain, [place[name] for name in mix]] = list(mix.values())
        else:
            orders.append((domain, tuple(place[name] for name in mix)))
    if not names and not (groups >= 0).any():
        return None
    known = Knowledge(tuple(names), classes, groups, table, tuple(orders))
    _refuse_absent(known, codes, domains)
    _refuse_apart(known, codes, domains)
    return known


def _cells(values: Any, name: str, n_rows: int) -> list[str | None]:
    """One name a row; None for -1, None and NaN."""
    if values is None:
        return [None] * n_rows
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} must be one value per row, got {values!r}")
    column = list(values)
    if len(column) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows, {name} has {len(column)}; pass one value per row, "
            "-1 or None where it is unknown"
        )
    return [_name(value, name) for value in column]


def _name(value: Any, argument: str) -> str | None:
    """What a class is called: whole numbers without a point, None if unknown."""
    if isinstance(value, (list, tuple, np.ndarray, dict, set)):
        raise ValueError(
            f"{argument} must be one value per row, got {type(value).__name__} in one"
        )
    if value is None or type(value).__name__ in GAPS:
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, float, np.number)):
        number = float(value)
        if math.isnan(number) or number == -1:
            return None
        return str(int(number)) if number.is_integer() else str(number)
    return str(value)


def _sorted_names(names: Iterable[str | None]) -> list[str]:
    """Distinct names: numbers by value, before words."""

    def key(name: str) -> tuple[bool, float, str]:
        try:
            return False, float(name), name
        except ValueError:
            return True, 0.0, name

    return sorted({name for name in names if name is not None}, key=key)


def _join_groups(
    classes: Array, links: list[str | None], names: list[str]
) -> tuple[Array, Array]:
    """Groups with a known row are known as a whole; the others get a number."""
    members: dict[str, list[int]] = {}
    for row, link in enumerate(links):
        if link is not None:
            members.setdefault(link, []).append(row)
    groups = np.full(len(classes), -1, dtype=np.intp)
    number = 0
    for link, rows in members.items():
        told = np.unique(classes[rows])
        told = told[told >= 0]
        if len(told) > 1:
            first, second = (names[index] for index in told[:2])
            raise ValueError(
                f"together says that the rows of {link!r} are of one class, labels "
                f"says {first!r} and {second!r}; correct one of them"
            )
        if len(told):
            classes[rows] = told[0]
        elif len(rows) > 1:
            groups[rows] = number
            number += 1
    return classes, groups


def _read_prevalence(
    prevalence: Any, domains: Array
) -> dict[int, dict[str, float] | tuple[str, ...]]:
    """By domain: shares of some classes, or classes in order."""
    if prevalence is None:
        return {}
    if not isinstance(prevalence, Mapping):
        raise ValueError(
            "prevalence must be a mapping of domains, such as {'A': {'ill': 0.3}}, got "
            f"{type(prevalence).__name__}"
        )
    result: dict[int, dict[str, float] | tuple[str, ...]] = {}
    for domain, told in prevalence.items():
        code = _domain_code(domain, domains)
        if isinstance(told, Mapping):
            result[code] = _checked_shares(domain, told)
        elif isinstance(told, (list, tuple)):
            result[code] = _checked_order(domain, told)
        else:
            raise ValueError(
                f"prevalence of {domain!r} must be shares by class or a list of "
                f"classes, the most common first, got {told!r}"
            )
    return result


def _domain_code(domain: Any, domains: Array) -> int:
    try:
        codes = encode_domains([domain], domains, n_samples=1)
    except ValueError:
        shown = ", ".join(repr(name) for name in domains[:6].tolist())
        raise ValueError(
            f"prevalence names {domain!r}, which is not in domains; known: {shown}"
        ) from None
    assert codes is not None
    return int(codes[0])


def _checked_shares(domain: Any, told: Mapping[Any, Any]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for label, share in told.items():
        name = _name(label, "prevalence")
        number = isinstance(share, (int, float, np.number))
        if name is None or not number or not 0 <= float(share) <= 1:
            raise ValueError(
                f"prevalence of {label!r} in {domain!r} must be a share from 0 to 1, "
                f"got {share!r}"
            )
        shares[name] = float(share)
    total = sum(shares.values())
    if total > 1 + ROUNDED:
        raise ValueError(
            f"prevalence of {domain!r} adds up to {total:.6g}; shares add up to 1 at "
            "most"
        )
    return shares


def _checked_order(domain: Any, told: Any) -> tuple[str, ...]:
    names = tuple(_name(label, "prevalence") or "" for label in told)
    if len(set(names)) < max(2, len(names)) or "" in names:
        raise ValueError(
            f"prevalence of {domain!r} must list two or more different classes, the "
            f"most common first, got {told!r}"
        )
    return names


def _refuse_absent(known: Knowledge, codes: Array, domains: Array) -> None:
    """Raise for a row of a class that its domain is said not to have."""
    rows = known.rows
    gone = known.shares[codes[rows], known.classes[rows]] == 0
    if gone.any():
        row = int(rows[np.argmax(gone)])
        name, domain = known.names[known.classes[row]], domains[codes[row]]
        raise ValueError(
            f"prevalence says that {name!r} is absent in {str(domain)!r}, labels that "
            f"row {row} is one; correct one of them"
        )


def _refuse_apart(known: Knowledge, codes: Array, domains: Array) -> None:
    """Raise for a group with rows of several domains."""
    linked = np.flatnonzero(known.groups >= 0)
    first: dict[int, int] = {}
    for row in linked.tolist():
        other = first.setdefault(int(known.groups[row]), row)
        if codes[row] != codes[other]:
            one, two = str(domains[codes[other]]), str(domains[codes[row]])
            raise ValueError(
                f"together joins rows {other} and {row} of the domains {one!r} and "
                f"{two!r}; a group is one draw from one domain: give each its own"
            )


def too_few_classes(n_classes: int, known: Knowledge | None) -> ValueError:
    """The error of more names than classes."""
    names = () if known is None else known.names
    return ValueError(
        f"n_classes={n_classes} is less than the {len(names)} classes that labels or "
        f"prevalence name ({', '.join(names[:5])}); use {len(names)} or more"
    )
