"""Rows drawn again within domains, with the weights that fit gave them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shoal.canonical import copies_of

__all__ = [
    "Refit",
    "Resample",
    "count_bags",
    "count_units",
    "count_words_or_bags",
    "draw_rows",
]

Array = np.ndarray[Any, Any]


class Resample(NamedTuple):
    """One refit, its classes matched to those of the fit."""

    prevalence: Array  # (n_domains, n_classes)
    classes: Array  # (n_samples,), of the rows that were passed in


Refit = Callable[[np.random.Generator], Resample]


def count_units(codes: Array, weight: Array | None, n_domains: int) -> Array:
    """Number of rows behind each domain, as whole numbers.

    A whole weight is that many rows; of other weights, rows count as many as equal
    weights would need to be as precise (Kish's effective sample size).
    """
    if weight is None:
        return np.bincount(codes, minlength=n_domains)
    copies = copies_of(weight)
    if copies is not None:
        return np.bincount(codes, copies, minlength=n_domains).astype(np.int64)
    total = np.bincount(codes, weight, minlength=n_domains)
    square = np.bincount(codes, weight**2, minlength=n_domains)
    return np.maximum(total**2 / square, 1).astype(np.int64)


def count_bags(bags: Any, codes: Array, n_domains: int) -> Array:
    """Number of bags of each domain that hold any word."""
    filled = np.ravel(bags.sum(axis=1)) > 0
    return np.bincount(codes[filled], minlength=n_domains)


def count_words_or_bags(bags: Any, codes: Array, n_domains: int) -> Array:
    """Number of draws behind each domain: its bags, or the words of its only one.

    Words of one bag come together, so that a hundred of them in one of many bags say
    no more of the mix than the bag does.
    """
    n_bags = count_bags(bags, codes, n_domains)
    size = np.ravel(bags.sum(axis=1))
    n_words = np.bincount(codes, size, minlength=n_domains)
    return np.where(n_bags > 1, n_bags, n_words).astype(np.int64)


def draw_rows(
    codes: Array, generator: np.random.Generator, weight: Array | None = None
) -> Array:
    """Weight of each row when every domain draws as many rows as it has.

    A row of whole weight is that many rows to draw from. Otherwise rows of positive
    weight are drawn, and a row counts its weight as often as it is drawn.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    copies = copies_of(weight)
    units = (weight > 0).astype(np.intp) if copies is None else copies
    count = np.empty(len(codes), dtype=np.int64)
    by_domain = np.argsort(codes, kind="stable")
    for rows in np.split(by_domain, np.cumsum(np.bincount(codes))[:-1]):
        last = np.cumsum(units[rows])
        drawn = generator.integers(last[-1], size=last[-1])
        drawn = np.searchsorted(last, drawn, side="right")
        count[rows] = np.bincount(drawn, minlength=len(rows))
    return count if copies is not None else count * weight
