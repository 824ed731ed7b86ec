"""Agreement of classes and labels, row by row."""

from typing import Any

from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from shoal.metrics.matching import as_mapping, complete_matching, count_agreement
from shoal.metrics.rows import encode_pair

__all__ = [
    "adjusted_rand",
    "majority_accuracy",
    "matched_accuracy",
    "normalized_mutual_information",
]


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
