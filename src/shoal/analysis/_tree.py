"""One tree from two classes to all: which class splits into which."""

import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._profile import contrast_features, feature_names_of, numeric_columns
from shoal.analysis._refits import with_classes
from shoal.exceptions import ShoalWarning

Array = np.ndarray[Any, Any]

# ---- the tree ------------------------------------------------------------------------

Members = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ClassSplit:
    """One class becomes two.

    Attributes
    ----------
    n_classes : int
        Classes after it.
    parts : pair of tuple of int
        Classes of the model in each of the two, the one with more rows first.
    rows : pair of int
    agreement : float
        Share of the rows that a fit with so many classes would class as the tree does.
    columns : list of tuple of str and float
        What sets the parts apart: the mean of the first less that of the second, in
        standard deviations, the largest first. Empty where a row has no columns.
    """

    n_classes: int
    parts: tuple[Members, Members]
    rows: tuple[int, int]
    agreement: float
    columns: list[tuple[str, float]]

    @property
    def whole(self) -> Members:
        """Classes of the model in the class before it."""
        return tuple(sorted(self.parts[0] + self.parts[1]))


@dataclass(frozen=True, eq=False)
class ClassTree:
    """Which class splits into which, from two classes to those of a model.

    Attributes
    ----------
    splits : list of ClassSplit
        In the order of their number of classes, the first one into two.
    class_names : list of str
        Of the model.
    n_rows : int
    seconds : float
        Of the fits with fewer classes; 0 where these were given.
    """

    splits: list[ClassSplit]
    class_names: list[str]
    n_rows: int
    seconds: float
    model: Any = field(repr=False)

    @property
    def n_classes(self) -> int:
        """Classes of the model."""
        return len(self.class_names)

    def groups(self, n_classes: int) -> list[Members]:
        """Classes of the model that make up each class of a level."""
        if isinstance(n_classes, bool) or n_classes not in range(2, self.n_classes + 1):
            raise ValueError(
                f"n_classes must be a whole number from 2 to {self.n_classes}, the "
                f"classes of the model, got {n_classes!r}"
            )
        found: list[Members] = []
        for split in self.splits[: int(n_classes) - 1]:
            found = [one for one in found if one != split.whole]
            found += split.parts
        return sorted(found)

    def cut(self, n_classes: int) -> Any:
        """A fitted estimator with so many classes; the model itself for all of them.

        Its probabilities and prevalences are sums of those of the model, as of
        ``model.merge``.
        """
        groups, found = self.groups(n_classes), self.model
        origin = self.model._origin.n_classes_
        before = self.model._add_up(np.eye(origin)).argmax(axis=1)
        for group in (one for one in groups if len(one) > 1):
            now = found._add_up(np.eye(origin)).argmax(axis=1)
            members = {int(now[before == one][0]) for one in group}
            found = found.merge(*sorted(members))
        return found

    def name(self, members: Members) -> str:
        """What some classes are called together."""
        return "+".join(self.class_names[one] for one in members)

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per split."""
        return [
            {
                "n_classes": one.n_classes,
                "class": self.name(one.whole),
                "first": self.name(one.parts[0]),
                "second": self.name(one.parts[1]),
                "first_rows": one.rows[0],
                "second_rows": one.rows[1],
                "agreement": one.agreement,
                "columns": "; ".join(f"{name} {by:+.2f}" for name, by in one.columns),
            }
            for one in self.splits
        ]

    def to_pandas(self) -> Any:
        """Table with one row per split."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the model, as JSON takes it."""
        return {
            "n_classes": self.n_classes,
            "classes": list(map(str, self.class_names)),
            "n_rows": self.n_rows,
            "seconds": self.seconds,
            "splits": [
                {
                    "n_classes": one.n_classes,
                    "parts": [list(part) for part in one.parts],
                    "rows": list(one.rows),
                    "agreement": one.agreement,
                    "columns": [[name, by] for name, by in one.columns],
                }
                for one in self.splits
            ],
        }

    def plot(self, *, ax: Any = None) -> Any:
        """The figure of :func:`shoal.plots.plot_tree`."""
        from importlib import import_module

        return import_module("shoal.plots").plot_tree(self, ax=ax)


# ---- how it grows --------------------------------------------------------------------

# Fits with two classes, three and so on are free of each other, and need not nest. The
# tree does: from the classes of the model downwards, the two are joined that bring the
# rows nearest to the classes of the fit with one class fewer. How many rows that fit
# would class otherwise is said beside each split.

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
