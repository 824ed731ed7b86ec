"""Prevalences against the truth, any metric by domain, and calibration."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.metrics._agreement import (
    as_mapping,
    as_rows,
    check_same_rows,
    complete_matching,
    count_agreement,
    encode_rows,
    match_classes,
)
from shoal.probability import check_stochastic, normalize_rows
from shoal.validation import check_whole
from shoal.validation._arguments import is_whole

# ---- True prevalences, and how far estimates are from them ---------------------------

Array = np.ndarray[Any, Any]


def true_prevalence(labels: Any, domains: Any) -> tuple[Array, list[Any], list[Any]]:
    """Share of each label in each domain.

    Returns
    -------
    prevalence : ndarray of shape (n_domains, n_labels)
    label_names : list
        Labels of the columns, sorted.
    domain_names : list
        Domains of the rows, sorted like ``domains_`` of every estimator.
    """
    counts, domain_names, label_names = count_agreement(labels, domains, "domains")
    return normalize_rows(counts), label_names, domain_names


def prevalence_error(
    true: Any,
    estimated: Any,
    *,
    matching: Any = None,
    label_names: Any = None,
) -> float:
    """Mean absolute difference of two prevalence tables after matching columns.

    Parameters
    ----------
    true : array-like of shape (n_domains, n_labels)
        Prevalence of the labels, see :func:`true_prevalence`.
    estimated : array-like of shape (n_domains, n_classes)
        ``prevalence_`` of an estimator; rows in the same order of domains.
    matching : mapping or sequence, default=None
        Label of each class. With :func:`match_classes` of test rows this is the
        paper's error: the permutation that gives the accuracy also gives the error.
        Classes and labels that the matching leaves open are paired as closely as they
        can be. None matches the columns themselves: the smallest error of all.
    label_names : sequence of length n_labels, default=None
        Labels of the columns of ``true`` as ``matching`` calls them; 0, 1, ... when
        None.

    Returns
    -------
    float
        Mean over ``n_domains * max(n_labels, n_classes)`` entries; a class without a
        label, or a label without a class, is compared with 0.

    Examples
    --------
    >>> prevalence_error([[0.75, 0.25], [0, 1]], [[0.25, 0.75], [0.5, 0.5]])
    0.25
    """
    true = check_stochastic(true, "true")
    estimated = check_stochastic(estimated, "estimated")
    if true.shape[0] != estimated.shape[0]:
        raise ValueError(
            f"true has {true.shape[0]} domains, estimated has {estimated.shape[0]}; "
            "pass the same domains in the same order"
        )
    pairs = _column_pairs(matching, label_names, estimated.shape[1], true.shape[1])
    size = max(true.shape[1], estimated.shape[1])
    true, estimated = _widen(true, size), _widen(estimated, size)
    distance = np.abs(estimated.T[:, None, :] - true.T[None, :, :]).mean(axis=2)
    pairs = complete_matching(pairs, -distance)
    return float(np.mean([distance[c, y] for c, y in pairs.items()]))


def _column_pairs(
    matching: Any, label_names: Any, n_classes: int, n_labels: int
) -> dict[int, int]:
    """Check ``matching`` and turn it into estimated column to true column."""
    if matching is None:
        return {}
    names = list(range(n_labels)) if label_names is None else list(label_names)
    if len(names) != n_labels:
        raise ValueError(
            f"label_names has {len(names)} entries, true has {n_labels} columns"
        )
    column = {name: y for y, name in enumerate(names)}
    label_of = as_mapping(matching)
    for c, label in label_of.items():
        if not is_whole(c) or not 0 <= c < n_classes:
            raise ValueError(
                f"matching has class {c!r}, estimated has columns 0 to {n_classes - 1}"
            )
        if label not in column:
            raise ValueError(
                f"matching has label {label!r}, the columns of true are {names[:6]}; "
                "pass label_names"
            )
    if len(set(label_of.values())) != len(label_of):
        raise ValueError("matching gives the same label to two classes")
    return {int(c): column[label] for c, label in label_of.items()}


def _widen(table: Array, n_columns: int) -> Array:
    """Append columns of zeros."""
    return np.pad(table, ((0, 0), (0, n_columns - table.shape[1])))


# ---- Any metric, in every domain -----------------------------------------------------


@dataclass(frozen=True)
class ByDomain:
    """A metric over all rows and in every domain.

    Attributes
    ----------
    metric : str
        Name of the metric.
    overall : float
        The metric of all rows together.
    by_domain : dict
        Maps domain to the metric of its rows, in sorted order.
    n_rows : dict
        Maps domain to its number of rows.
    """

    metric: str
    overall: float
    by_domain: dict[Any, float]
    n_rows: dict[Any, int]

    def to_pandas(self) -> Any:
        """DataFrame with one row per domain: the metric and the number of rows."""
        import pandas as pd

        index = pd.Index(list(self.by_domain), name="domain", tupleize_cols=False)
        columns = {
            self.metric: list(self.by_domain.values()),
            "n_rows": list(self.n_rows.values()),
        }
        return pd.DataFrame(columns, index=index)


def by_domain(
    metric: Callable[..., float],
    labels: Any,
    classes: Any,
    domains: Any,
    **options: Any,
) -> ByDomain:
    """Compute a metric over all rows and in every domain.

    Parameters
    ----------
    metric : callable
        ``metric(labels, classes, **options) -> float``: one of this module, of
        scikit-learn, or any other. If it takes ``matching``, classes are matched once,
        over all rows: a matching of its own would flatter every domain.
    labels : array-like of shape (n_samples,)
    classes : array-like of shape (n_samples,) or (n_samples, n_classes)
        Discovered classes, or probabilities where the metric wants them.
    domains : array-like of shape (n_samples,)
    **options
        Passed to the metric.

    Returns
    -------
    ByDomain
        With ``.overall``, ``.by_domain`` and ``.to_pandas()``.

    Examples
    --------
    >>> from shoal.metrics import matched_accuracy
    >>> labels, classes = ["cat", "cat", "dog", "dog"], [1, 1, 0, 1]
    >>> result = by_domain(matched_accuracy, labels, classes, ["a", "a", "b", "b"])
    >>> result.overall, result.by_domain
    (0.75, {'a': 1.0, 'b': 0.5})
    """
    labels = as_rows(labels, "labels")
    two_dimensional = np.ndim(classes) == 2
    classes = np.asarray(classes) if two_dimensional else as_rows(classes, "classes")
    codes, names = encode_rows(domains, "domains")
    check_same_rows(labels, codes, "domains")
    check_same_rows(labels, classes, "classes")
    if _matches_itself(metric) and options.get("matching") is None:
        options["matching"] = match_classes(labels, classes)
    rows_of = {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}
    return ByDomain(
        metric=getattr(metric, "__name__", "metric"),
        overall=float(metric(labels, classes, **options)),
        by_domain={
            name: float(metric(labels[rows], classes[rows], **options))
            for name, rows in rows_of.items()
        },
        n_rows={name: len(rows) for name, rows in rows_of.items()},
    )


def _matches_itself(metric: Callable[..., float]) -> bool:
    """Whether the metric would match classes to labels when not told how."""
    try:
        parameters = inspect.signature(metric).parameters
    except ValueError:  # some compiled functions have no signature
        return False
    return "matching" in parameters and parameters["matching"].default is None


# ---- Whether probabilities are as frequent as they say -------------------------------


def calibration_error(
    labels: Any,
    proba: Any,
    *,
    kind: str = "top",
    n_bins: int = 15,
    matching: Any = None,
) -> float:
    """Measure how far p_d(y|x) is from frequencies, after matching classes to labels.

    The expected calibration error: probabilities are sorted into bins of equal width;
    in each bin their mean should be the share of rows for which the event came true.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        True labels, of any hashable kind.
    proba : array-like of shape (n_samples, n_classes)
        Class probabilities, such as ``predict_proba(X, domains)``.
    kind : {"top", "classwise"}, default="top"
        "top" asks whether the most probable class is right as often as it says;
        "classwise" asks it of every class and takes the mean. A label that no class
        is matched to counts as a class of probability 0.
    n_bins : int, default=15
        Number of bins.
    matching : mapping or sequence, default=None
        Label of each class (column); :func:`match_classes` of these rows when None.

    Returns
    -------
    float
        Between 0 (calibrated) and 1.

    Examples
    --------
    >>> calibration_error(["cat", "cat", "dog", "cat"], [[0.25, 0.75]] * 4)
    0.0
    """
    if kind not in ("top", "classwise"):
        raise ValueError(f"kind must be 'top' or 'classwise', got {kind!r}")
    check_whole(1, n_bins=n_bins)
    proba = check_stochastic(proba, "proba")
    codes, names = encode_rows(labels, "labels")
    check_same_rows(codes, proba, "proba")
    label_of = (
        match_classes(labels, proba) if matching is None else as_mapping(matching)
    )
    code_of = {name: code for code, name in enumerate(names)}
    # -1: a class whose label, if it has one, is on none of these rows.
    matched = np.array(
        [code_of.get(label_of.get(c), -1) for c in range(proba.shape[1])]
    )
    if kind == "top":
        top = proba.argmax(axis=1)
        return _binned_gap(proba.max(axis=1), matched[top] == codes, n_bins)
    gaps = [
        _binned_gap(p, codes == y, n_bins)
        for p, y in zip(proba.T, matched, strict=True)
    ]
    shares = np.bincount(codes) / len(codes)
    missed = [shares[y] for y in range(len(names)) if y not in matched]
    return float(np.mean(gaps + missed))


def _binned_gap(probability: Array, event: Array, n_bins: int) -> float:
    """Mean over rows of |mean probability - frequency of the event| in their bin."""
    bins = np.minimum((probability * n_bins).astype(int), n_bins - 1)
    gap = np.bincount(bins, weights=probability - event, minlength=n_bins)
    return float(np.abs(gap).sum() / len(event))
