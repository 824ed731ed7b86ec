"""A tree of classes from fits with every number of them.

Fits with two classes, three and so on are free of each other, and need not nest. The
tree does: from the classes of the model downwards, the two are joined that bring the
rows nearest to the classes of the fit with one class fewer. How many rows that fit
would class otherwise is said beside each split.
"""

import time
import warnings
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._profile import (
    contrast_features,
    feature_names_of,
    numeric_columns,
)
from shoal.analysis._refits import with_classes
from shoal.analysis.tree._result import ClassSplit, ClassTree, Members
from shoal.exceptions import ShoalWarning

Array = np.ndarray[Any, Any]

# Columns that are named of a split: more is a table of all.
MOST_COLUMNS = 3


def class_tree(
    model: Any,
    X: Any,
    domains: Any = None,
    *,
    fits: Iterable[Any] | None = None,
    feature_names: Sequence[Any] | None = None,
) -> ClassTree:
    """Which class splits into which, from two classes to those of a model.

    Parameters
    ----------
    model : fitted estimator
    X : array-like of shape (n_samples, n_features)
        The rows of fit.
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    fits : iterable of fitted estimators, default=None
        With two classes, three, and so on up to one less than the model, in any order;
        made with the settings of the model when None, which takes as long as so many
        fits.
    feature_names : sequence of str, default=None
        Of the columns of X; those of fit when None.

    Returns
    -------
    ClassTree
        ``cut(k)`` is a fitted estimator with k classes, ``plot()`` a figure.

    Examples
    --------
    >>> import shoal
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     900, n_classes=3, n_domains=6, separation=3.0, random_state=0)
    >>> model = shoal.DomainMixture(3, search=False, random_state=0).fit(X, domains)
    >>> tree = shoal.class_tree(model, X, domains)
    >>> tree.cut(2).prevalence_.shape, tree.cut(3) is model
    ((6, 2), True)
    """
    check_is_fitted(model)
    rows = model._check_rows(X)
    codes = model._encode_domains(domains, rows.shape[0])
    seconds = 0.0
    if fits is None:
        begun = time.perf_counter()
        fits = _fit_fewer(model, rows, model.domains_[codes])
        seconds = time.perf_counter() - begun
    known = {one.n_classes_: one for one in fits}
    lacking = [k for k in range(2, model.n_classes_) if k not in known]
    if lacking:
        raise ValueError(
            f"fits has none with {lacking[0]} classes; pass one for every number from "
            f"2 to {model.n_classes_ - 1}, or None to make them"
        )
    own = _classes(model, rows, codes)
    others = {k: _classes(known[k], rows, codes) for k in range(2, model.n_classes_)}
    names = feature_names_of(model, X, feature_names)
    columns = _columns(model, rows, names)
    splits = []
    for k, parts, agreement in grow(own, others, model.n_classes_):
        sizes = [int(np.isin(own, part).sum()) for part in parts]
        first, second = parts if sizes[0] >= sizes[1] else parts[::-1]
        told = _set_apart(columns, np.isin(own, first), np.isin(own, second))
        splits.append(
            ClassSplit(k, (first, second), (max(sizes), min(sizes)), agreement, told)
        )
    return ClassTree(
        splits=splits[::-1],
        class_names=list(model.class_names_),
        n_rows=len(own),
        seconds=seconds,
        model=model,
    )


def _fit_fewer(model: Any, rows: Any, domains: Any) -> list[Any]:
    """Fits of the same rows with the settings of the model and fewer classes."""
    found = []
    with warnings.catch_warnings():
        # each fit would repeat what that of the model has said
        warnings.simplefilter("ignore", ShoalWarning)
        for k in range(2, model.n_classes_):
            found.append(with_classes(model._origin, k).fit(rows, domains=domains))
    return found


def _classes(fitted: Any, rows: Any, codes: Array) -> Array:
    return np.asarray(fitted._posterior(rows, codes, None).argmax(axis=1))


# ---- which classes are joined --------------------------------------------------------


def grow(
    own: Array, others: dict[int, Array], n_classes: int
) -> list[tuple[int, tuple[Members, Members], float]]:
    """Joins from all classes down to two, and the two that are left.

    Parameters
    ----------
    own : ndarray of shape (n_rows,)
        Classes of the model.
    others : dict of int to ndarray of shape (n_rows,)
        Classes of the fit with each smaller number of classes.
    n_classes : int

    Returns
    -------
    list of (n_classes, parts, agreement)
        From the largest number of classes to two; the agreement is that of the tree
        with so many classes and the fit with as many.
    """
    groups: list[Members] = [(index,) for index in range(n_classes)]
    found, agreement = [], 1.0
    for k in range(n_classes, 2, -1):
        table = _shared(own, others[k - 1], n_classes, k - 1)
        sums = np.array([table[list(group)].sum(axis=0) for group in groups])
        a, b = max(combinations(range(k), 2), key=lambda pair: _preference(sums, *pair))
        found.append((k, (groups[a], groups[b]), agreement))
        agreement = _agreement(_joined(sums, a, b)) / len(own)
        whole = tuple(sorted(groups[a] + groups[b]))
        groups = [one for i, one in enumerate(groups) if i not in (a, b)] + [whole]
    return [*found, (2, (groups[0], groups[1]), agreement)]


def _preference(sums: Array, a: int, b: int) -> tuple[float, float]:
    """Rows that agree once two groups are one; of equals, those that look alike."""
    norms = np.linalg.norm(sums[[a, b]], axis=1).prod()
    cosine = float(sums[a] @ sums[b] / norms) if norms > 0 else 0.0
    return _agreement(_joined(sums, a, b)), cosine


def _joined(sums: Array, a: int, b: int) -> Array:
    rest = np.delete(sums, [a, b], axis=0)
    return np.vstack([rest, sums[a] + sums[b]])


def _agreement(table: Array) -> float:
    """Rows in pairs of classes, matched so that these are most."""
    return float(table[linear_sum_assignment(-table)].sum())


def _shared(own: Array, other: Array, n_own: int, n_other: int) -> Array:
    flat = np.bincount(own * n_other + other, minlength=n_own * n_other)
    return flat.reshape(n_own, n_other)


# ---- what sets the parts apart -------------------------------------------------------


def _columns(model: Any, rows: Any, names: list[str]) -> tuple[Any, list[str]] | None:
    """Rows as numbers and the names of these; None where rows are images."""
    if rows.ndim != 2:
        return None
    return numeric_columns(model._origin._filled(rows), names)


def _set_apart(
    columns: tuple[Any, list[str]] | None, first: Array, second: Array
) -> list[tuple[str, float]]:
    """The columns in which two sets of rows differ most, in standard deviations."""
    if columns is None or not (first.any() and second.any()):
        return []
    values, names = columns
    kept = first | second
    sides = np.column_stack([first[kept], second[kept]]).astype(float)
    difference = contrast_features(values[kept], sides).difference[0]
    order = np.argsort(-np.abs(difference), kind="stable")[:MOST_COLUMNS]
    return [(names[index], float(difference[index])) for index in order]
