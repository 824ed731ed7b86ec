"""True prevalences, and how far estimates are from them."""

from typing import Any

import numpy as np

from shoal.metrics.matching import as_mapping, complete_matching, count_agreement
from shoal.probability import check_stochastic, normalize_rows
from shoal.validation import is_whole

__all__ = ["prevalence_error", "true_prevalence"]

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
