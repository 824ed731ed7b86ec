"""What every example prints: shoal beside the baselines, against labels held aside."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from shoal.metrics import (
    majority_accuracy,
    match_classes,
    matched_accuracy,
    prevalence_error,
    true_prevalence,
)


def print_comparison(data: Any, model: Any) -> None:
    """Print accuracy and prevalence error of a fitted model and of the baselines."""
    scaled = StandardScaler().fit_transform(data.X)
    k = model.n_classes_
    found = {
        "shoal": (model.labels_, model.prevalence_),
        "k-means": (KMeans(k, n_init=10, random_state=0).fit_predict(scaled), None),
        "Gaussian mixture": (
            GaussianMixture(k, n_init=3, random_state=0).fit_predict(scaled),
            None,
        ),
    }
    print(
        f"{len(data.X)} rows, {len(model.domains_)} domains, "
        f"{len(np.unique(data.labels))} labels, {k} classes, "
        f"score {model.score(data.X, data.domains):.3f} nats"
    )
    print(f"{'':28}accuracy  prevalence error")
    for name, (classes, prevalence) in found.items():
        accuracy, error = compare(data, classes, prevalence)
        print(f"{name:28}{accuracy:8.3f}  {error:8.3f}")
    accuracy = majority_accuracy(data.labels, data.domains)
    print(f"{'most frequent label there':28}{accuracy:8.3f}")


def compare(data: Any, classes: Any, prevalence: Any = None) -> tuple[float, float]:
    """Accuracy and prevalence error under one matching of classes to labels.

    Without ``prevalence``, the share of each class among a domain's rows is used.
    """
    truth, labels, _ = true_prevalence(data.labels, data.domains)
    if prevalence is None:
        shares, present, _ = true_prevalence(classes, data.domains)
        prevalence = np.zeros((len(truth), int(np.max(classes)) + 1))
        prevalence[:, present] = shares
    matching = match_classes(data.labels, classes)
    error = prevalence_error(truth, prevalence, matching=matching, label_names=labels)
    return matched_accuracy(data.labels, classes, matching=matching), error
