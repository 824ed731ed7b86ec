"""Agreement with labels that were held aside: the one part that reads labels."""

from typing import Any

import numpy as np

from shoal.metrics import (
    adjusted_rand,
    majority_accuracy,
    match_classes,
    matched_accuracy,
    prevalence_error,
    true_prevalence,
)
from shoal.report.gather import ReportRows

__all__ = ["describe_score"]

Array = np.ndarray[Any, Any]
MOST_LABELS = 30


def describe_score(rows: ReportRows) -> dict[str, Any] | None:
    """Accuracy, prevalence error by domain and confusion table, after matching.

    Rows without a label (None or NaN) do not count.
    """
    if rows.labels is None:
        return None
    given = np.array([label is not None and label == label for label in rows.labels])
    if not given.any():
        return None
    labels = np.array([str(label) for label in rows.labels[given]], dtype=object)
    classes, codes = rows.classes[given], rows.codes[given]
    matching = match_classes(labels, classes)
    truth, names, present = true_prevalence(labels, codes)
    estimate = np.asarray(rows.model.prevalence_)[present]
    errors = [
        prevalence_error(t[None], e[None], matching=matching, label_names=names)
        for t, e in zip(truth, estimate, strict=True)
    ]
    column = {name: index for index, name in enumerate(names)}
    confusion = np.zeros((rows.n_classes, len(names)), dtype=int)
    np.add.at(confusion, (classes, [column[label] for label in labels]), 1)
    shown = np.sort(np.argsort(-confusion.sum(axis=0), kind="stable")[:MOST_LABELS])
    return {
        "n_rows": int(given.sum()),
        "accuracy": matched_accuracy(labels, classes, matching=matching),
        "majority": majority_accuracy(labels, codes),
        "adjusted_rand": adjusted_rand(labels, classes),
        "prevalence_error": prevalence_error(
            truth, estimate, matching=matching, label_names=names
        ),
        "by_domain": [
            {"domain": int(domain), "prevalence_error": error}
            for domain, error in zip(present, errors, strict=True)
        ],
        # a pair without a row in common fills up the matching; it is no name of a class
        "matching": {
            f"c{index}": str(name)
            for index, name in matching.items()
            if confusion[index, column[name]]
        },
        "n_labels": len(names),
        "labels": [str(names[index]) for index in shown],
        "confusion": confusion[:, shown].tolist(),
    }
