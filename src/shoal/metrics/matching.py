"""Which discovered class is which label."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from shoal.metrics.rows import check_same_rows, encode_rows
from shoal.probability import check_stochastic

__all__ = ["as_mapping", "complete_matching", "count_agreement", "match_classes"]

Array = np.ndarray[Any, Any]


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
    flat = class_codes * len(label_names) + label_codes
    counts = np.bincount(flat, minlength=len(class_names) * len(label_names))
    return counts.reshape(len(class_names), -1), class_names, label_names


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
