"""How well discovered classes agree with true labels.

Discovered classes are numbered, true labels are named, and which is which is found by
matching. Outside ``shoal.benchmark`` this is the only module that reads labels.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from shoal.probability import check_stochastic, normalize_rows
from shoal.validation import encode_column, is_whole

__all__ = [
    "ByDomain",
    "adjusted_rand",
    "by_domain",
    "calibration_error",
    "majority_accuracy",
    "match_classes",
    "matched_accuracy",
    "normalized_mutual_information",
    "prevalence_error",
    "true_prevalence",
]

Array = np.ndarray[Any, Any]


# ---- matching classes to labels ---------------------------------------------------


def match_classes(labels: Any, classes: Any) -> dict[Any, Any]:
    """Label of each discovered class, so that the most rows agree.

    The Hungarian algorithm finds the one-to-one matching with the highest accuracy.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        True labels, of any hashable kind.
    classes : array-like of shape (n_samples,) or (n_samples, n_classes)
        Discovered classes, or their probabilities. With probabilities the most
        probable class of each row counts; a class that is nowhere the most probable is
        matched last, to the label that gives it the most probability.

    Returns
    -------
    dict
        Maps class to label. With fewer labels than classes some classes are left out,
        with fewer classes than labels some labels are.

    Examples
    --------
    >>> match_classes(["cat", "cat", "dog", "dog"], [1, 1, 0, 2])
    {0: 'dog', 1: 'cat'}
    """
    if np.ndim(classes) == 2:
        return _match_probabilities(labels, classes)
    agreement, class_names, label_names = _count_agreement(labels, classes)
    pairs = _complete_matching({}, agreement)
    return {class_names[c]: label_names[y] for c, y in pairs.items()}


def _match_probabilities(labels: Any, proba: Any) -> dict[int, Any]:
    proba = check_stochastic(proba, "classes")
    codes, names = _encode(labels, "labels")
    _check_same_rows(codes, proba, "classes")
    top = proba.argmax(axis=1)
    agreement, present, _ = _count_agreement(labels, top)
    pairs = _complete_matching({}, agreement)
    chosen = {present[c]: y for c, y in pairs.items()}
    by_label = [proba[codes == y].sum(axis=0) for y in range(len(names))]
    pairs = _complete_matching(chosen, np.stack(by_label, axis=1))
    return {c: names[y] for c, y in pairs.items()}


def _complete_matching(pairs: Mapping[int, int], gain: Array) -> dict[int, int]:
    """Add to ``pairs`` the best one-to-one matching of the rows and columns left."""
    rows = [row for row in range(gain.shape[0]) if row not in pairs]
    columns = [
        column for column in range(gain.shape[1]) if column not in pairs.values()
    ]
    chosen = linear_sum_assignment(gain[np.ix_(rows, columns)], maximize=True)
    added = {rows[i]: columns[j] for i, j in zip(*chosen, strict=True)}
    return dict(sorted({**pairs, **added}.items()))


def _count_agreement(
    labels: Any, classes: Any, name: str = "classes"
) -> tuple[Array, list[Any], list[Any]]:
    """Rows of each class that carry each label, with the names of both."""
    label_codes, label_names = _encode(labels, "labels")
    class_codes, class_names = _encode(classes, name)
    _check_same_rows(label_codes, class_codes, name)
    flat = class_codes * len(label_names) + label_codes
    counts = np.bincount(flat, minlength=len(class_names) * len(label_names))
    return counts.reshape(len(class_names), -1), class_names, label_names


# ---- agreement of rows ------------------------------------------------------------


def matched_accuracy(labels: Any, classes: Any, *, matching: Any = None) -> float:
    """Share of rows whose class is matched to their label.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        True labels, of any hashable kind.
    classes : array-like of shape (n_samples,)
        Discovered classes. There may be more or fewer of them than labels: rows of a
        class without a label are wrong.
    matching : mapping or sequence, default=None
        Label of each class; :func:`match_classes` of these rows when None.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> matched_accuracy(["cat", "cat", "dog", "dog"], [1, 1, 0, 2])
    0.75
    """
    agreement, class_names, label_names = _count_agreement(labels, classes)
    if matching is None:
        pairs = _complete_matching({}, agreement)
    else:
        label_of = _mapping(matching)
        column = {name: y for y, name in enumerate(label_names)}
        matched = [column.get(label_of.get(name)) for name in class_names]
        pairs = {c: y for c, y in enumerate(matched) if y is not None}
    agreeing = sum(int(agreement[c, y]) for c, y in pairs.items())
    return float(agreeing / agreement.sum())


def adjusted_rand(labels: Any, classes: Any) -> float:
    """Rand index, adjusted: 1 for the same partition, about 0 for a random one."""
    return float(adjusted_rand_score(*_encode_pair(labels, classes)))


def normalized_mutual_information(labels: Any, classes: Any) -> float:
    """Mutual information over the mean of both entropies, between 0 and 1."""
    return float(normalized_mutual_info_score(*_encode_pair(labels, classes)))


def majority_accuracy(labels: Any, domains: Any) -> float:
    """Accuracy of always answering the most frequent label of the row's domain.

    The trivial baseline beside every accuracy: it knows each domain's true prevalence
    and never looks at x.

    Examples
    --------
    >>> majority_accuracy(["cat", "cat", "dog", "dog"], ["inn", "inn", "inn", "farm"])
    0.75
    """
    counts, _, _ = _count_agreement(labels, domains, "domains")
    return float(counts.max(axis=1).sum() / counts.sum())


# ---- prevalence -------------------------------------------------------------------


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
    counts, domain_names, label_names = _count_agreement(labels, domains, "domains")
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
    pairs = _complete_matching(pairs, -distance)
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
    label_of = _mapping(matching)
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


# ---- calibration ------------------------------------------------------------------


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
    if not is_whole(n_bins) or n_bins < 1:
        raise ValueError(f"n_bins must be a whole number from 1, got {n_bins!r}")
    proba = check_stochastic(proba, "proba")
    codes, names = _encode(labels, "labels")
    _check_same_rows(codes, proba, "proba")
    label_of = match_classes(labels, proba) if matching is None else _mapping(matching)
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


# ---- any metric, by domain --------------------------------------------------------


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
    >>> labels, classes = ["cat", "cat", "dog", "dog"], [1, 1, 0, 1]
    >>> result = by_domain(matched_accuracy, labels, classes, ["a", "a", "b", "b"])
    >>> result.overall, result.by_domain
    (0.75, {'a': 1.0, 'b': 0.5})
    """
    labels = _as_rows(labels, "labels")
    two_dimensional = np.ndim(classes) == 2
    classes = np.asarray(classes) if two_dimensional else _as_rows(classes, "classes")
    codes, names = _encode(domains, "domains")
    _check_same_rows(labels, codes, "domains")
    _check_same_rows(labels, classes, "classes")
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


# ---- small helpers ----------------------------------------------------------------


def _mapping(matching: Any) -> Mapping[Any, Any]:
    """Label of each class; in a sequence the position is the class."""
    if isinstance(matching, Mapping):
        return matching
    if np.ndim(matching) != 1:
        raise TypeError(
            "matching must map classes to labels, as match_classes does; got "
            f"{matching!r}"
        )
    return dict(enumerate(np.asarray(matching).tolist()))


def _encode(values: Any, name: str) -> tuple[Array, list[Any]]:
    """Codes and sorted distinct values; an empty column is an error."""
    codes, names = encode_column(values, name=name)
    if not len(codes):
        raise ValueError(f"{name} is empty: there is nothing to score")
    return codes, names.tolist()


def _encode_pair(labels: Any, other: Any, name: str = "classes") -> tuple[Array, Array]:
    label_codes, _ = _encode(labels, "labels")
    other_codes, _ = _encode(other, name)
    _check_same_rows(label_codes, other_codes, name)
    return label_codes, other_codes


def _as_rows(values: Any, name: str) -> Array:
    """Array to take rows from; values of mixed kinds stay what they are."""
    codes, names = encode_column(values, name=name)
    return names[codes]


def _check_same_rows(labels: Array, other: Array, name: str) -> None:
    if len(labels) != len(other):
        raise ValueError(f"labels has {len(labels)} rows, {name} has {len(other)}")
