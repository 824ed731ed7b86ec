"""Which discovered class is which label, and how far rows agree."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from shoal.probability import check_stochastic
from shoal.validation._domains import encode_column

# ---- Columns of labels, classes and domains as codes ---------------------------------

Array = np.ndarray[Any, Any]


def encode_rows(values: Any, name: str) -> tuple[Array, list[Any]]:
    """Codes and sorted distinct values; an empty column is an error."""
    codes, names = encode_column(values, name=name)
    if not len(codes):
        raise ValueError(f"{name} is empty: there is nothing to score")
    return codes, names.tolist()


def encode_pair(labels: Any, classes: Any) -> tuple[Array, Array]:
    """Codes of the labels and of the classes that stand beside them."""
    label_codes, _ = encode_rows(labels, "labels")
    class_codes, _ = encode_rows(classes, "classes")
    check_same_rows(label_codes, class_codes, "classes")
    return label_codes, class_codes


def as_rows(values: Any, name: str) -> Array:
    """Array to take rows from; values of mixed kinds stay what they are."""
    codes, names = encode_column(values, name=name)
    return names[codes]


def check_same_rows(labels: Array, other: Array, name: str) -> None:
    """Refuse columns of different lengths."""
    if len(labels) != len(other):
        raise ValueError(f"labels has {len(labels)} rows, {name} has {len(other)}")


# ---- Which discovered class is which label -------------------------------------------


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
    agreement, class_names, label_names = count_agreement(labels, classes)
    pairs = complete_matching({}, agreement)
    return {class_names[c]: label_names[y] for c, y in pairs.items()}


def _match_probabilities(labels: Any, proba: Any) -> dict[int, Any]:
    proba = check_stochastic(proba, "classes")
    codes, names = encode_rows(labels, "labels")
    check_same_rows(codes, proba, "classes")
    top = proba.argmax(axis=1)
    agreement, present, _ = count_agreement(labels, top)
    pairs = complete_matching({}, agreement)
    chosen = {present[c]: y for c, y in pairs.items()}
    by_label = [proba[codes == y].sum(axis=0) for y in range(len(names))]
    pairs = complete_matching(chosen, np.stack(by_label, axis=1))
    return {c: names[y] for c, y in pairs.items()}


def complete_matching(pairs: Mapping[int, int], gain: Array) -> dict[int, int]:
    """Add to ``pairs`` the best one-to-one matching of the rows and columns left."""
    rows = [row for row in range(gain.shape[0]) if row not in pairs]
    columns = [
        column for column in range(gain.shape[1]) if column not in pairs.values()
    ]
    chosen = linear_sum_assignment(gain[np.ix_(rows, columns)], maximize=True)
    added = {rows[i]: columns[j] for i, j in zip(*chosen, strict=True)}
    return dict(sorted({**pairs, **added}.items()))


def count_agreement(
    labels: Any, classes: Any, name: str = "classes"
) -> tuple[Array, list[Any], list[Any]]:
    """Rows of each class that carry each label, with the names of both."""
    label_codes, label_names = encode_rows(labels, "labels")
    class_codes, class_names = encode_rows(classes, name)
    check_same_rows(label_codes, class_codes, name)
    counts = contingency_matrix(class_codes, label_codes)
    return np.asarray(counts), class_names, label_names


def as_mapping(matching: Any) -> Mapping[Any, Any]:
    """Label of each class; in a sequence the position is the class."""
    if isinstance(matching, Mapping):
        return matching
    if np.ndim(matching) != 1:
        raise TypeError(
            "matching must map classes to labels, as match_classes does, got "
            f"{matching!r}"
        )
    return dict(enumerate(np.asarray(matching).tolist()))


# ---- Agreement of classes and labels, row by row -------------------------------------


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
    agreement, class_names, label_names = count_agreement(labels, classes)
    if matching is None:
        pairs = complete_matching({}, agreement)
    else:
        label_of = as_mapping(matching)
        column = {name: y for y, name in enumerate(label_names)}
        matched = [column.get(label_of.get(name)) for name in class_names]
        pairs = {c: y for c, y in enumerate(matched) if y is not None}
    agreeing = sum(int(agreement[c, y]) for c, y in pairs.items())
    return float(agreeing / agreement.sum())


def adjusted_rand(labels: Any, classes: Any) -> float:
    """Rand index, adjusted: 1 for the same partition, about 0 for a random one."""
    return float(adjusted_rand_score(*encode_pair(labels, classes)))


def normalized_mutual_information(labels: Any, classes: Any) -> float:
    """Mutual information over the mean of both entropies, between 0 and 1."""
    return float(normalized_mutual_info_score(*encode_pair(labels, classes)))


def majority_accuracy(labels: Any, domains: Any) -> float:
    """Accuracy of always answering the most frequent label of the row's domain.

    The trivial baseline beside every accuracy: it knows each domain's true prevalence
    and never looks at x.

    Examples
    --------
    >>> majority_accuracy(["cat", "cat", "dog", "dog"], ["inn", "inn", "inn", "farm"])
    0.75
    """
    counts, _, _ = count_agreement(labels, domains, "domains")
    return float(counts.max(axis=1).sum() / counts.sum())
