"""What ``shoal demo`` computes, as plain records that its tables and files show.

Numpy and scikit-learn are imported inside the functions: the command line must be able
to print its help without them.
"""

from collections.abc import Iterator
from typing import Any

__all__ = ["STAGES", "discover"]

STAGES = (
    "reading 342 penguins of three islands",
    "discovering classes: DomainMixture",
    "intervals: 200 resamples of the rows",
    "asking whether to trust them: diagnose",
    "comparing: k-means",
    "comparing: Gaussian mixture",
    "comparing: DDFA as published",
)

Record = dict[str, Any]


def discover(stages: Iterator[str], seed: int) -> tuple[Record, list[Record]]:
    """Fit the penguins without their species, then compare with the species.

    Parameters
    ----------
    stages : iterator
        Advanced before each part of :data:`STAGES` but the first.
    seed : int

    Returns
    -------
    summary : dict
        What was found; ``json`` can write it.
    assignments : list of dict
        One record per penguin.
    """
    from threadpoolctl import threadpool_limits

    from shoal.datasets import load_penguins

    # so few rows only wait for each other's threads
    with threadpool_limits(1):
        return _discover(stages, load_penguins(), seed)


def _discover(
    stages: Iterator[str], data: Any, seed: int
) -> tuple[Record, list[Record]]:
    from shoal import DomainMixture

    next(stages)
    model = DomainMixture(random_state=seed).fit(data.X, data.domains)
    next(stages)
    intervals = model.bootstrap(data.X, data.domains, random_state=seed)
    next(stages)
    diagnosis = model.diagnose(data.X, data.domains, random_state=seed)
    agreement = [agree("shoal", data, model.labels_, model.prevalence_)]
    agreement += compare(stages, data, model.n_classes_, seed)
    summary = {
        "dataset": "penguins",
        "n_rows": len(data.X),
        "features": data.feature_names,
        "domain_name": data.domain_name,
        "seed": seed,
        "n_classes": model.n_classes_,
        "prevalence": list_prevalence(intervals),
        "verdict": diagnosis.verdict,
        "findings": diagnosis.to_dict()["findings"],
        "agreement": agreement,
    }
    return summary, list_assignments(model, data)


# ---- what was found --------------------------------------------------------------


def list_prevalence(intervals: Any) -> list[Record]:
    """One record per domain and class, with its interval."""
    return [
        {
            "domain": str(domain),
            "class_id": f"c{index}",
            "class_name": name,
            "estimate": float(intervals.prevalence[row, index]),
            "lo": float(intervals.low[row, index]),
            "hi": float(intervals.high[row, index]),
            "level": intervals.level,
            "n_rows": int(intervals.n_rows[row]),
        }
        for row, domain in enumerate(intervals.domains)
        for index, name in enumerate(intervals.class_names)
    ]


def list_assignments(model: Any, data: Any) -> list[Record]:
    """Class of each row, all probabilities, and by how much the class won."""
    import numpy as np

    proba = model.predict_proba(data.X, data.domains)
    ranked = np.sort(proba, axis=1)
    return [
        {
            "row_id": row,
            "domain": str(data.domains[row]),
            "class_id": f"c{model.labels_[row]}",
            **{f"p_c{index}": float(value) for index, value in enumerate(proba[row])},
            "margin": float(ranked[row, -1] - ranked[row, -2]),
        }
        for row in range(len(proba))
    ]


# ---- how it compares -------------------------------------------------------------


def compare(
    stages: Iterator[str], data: Any, n_classes: int, seed: int
) -> list[Record]:
    """Agreement of other methods with the species, given the same number of classes."""
    from sklearn.cluster import KMeans
    from sklearn.mixture import GaussianMixture
    from sklearn.preprocessing import StandardScaler

    from shoal.benchmark import paper
    from shoal.metrics import majority_accuracy

    scaled = StandardScaler().fit_transform(data.X)
    next(stages)
    kmeans = KMeans(n_classes, n_init=10, random_state=seed).fit_predict(scaled)
    next(stages)
    gmm = GaussianMixture(n_classes, n_init=10, random_state=seed)
    next(stages)
    ddfa = paper.ddfa(n_classes, random_state=seed).fit(data.X, data.domains)
    return [
        agree("k-means", data, kmeans),
        agree("Gaussian mixture", data, gmm.fit_predict(scaled)),
        agree("DDFA as published", data, ddfa.labels_, ddfa.prevalence_),
        {
            "method": "most common species of each island",
            "accuracy": majority_accuracy(data.labels, data.domains),
            "prevalence_error": None,
            "species": None,
        },
    ]


def agree(method: str, data: Any, classes: Any, prevalence: Any = None) -> Record:
    """Accuracy and prevalence error under one matching of classes to species.

    Without ``prevalence``, the share of each class among the rows of each island
    stands for it.
    """
    from shoal.metrics import (
        match_classes,
        matched_accuracy,
        prevalence_error,
        true_prevalence,
    )

    truth, species, _ = true_prevalence(data.labels, data.domains)
    if prevalence is None:
        prevalence = true_prevalence(classes, data.domains)[0]
    matching = match_classes(data.labels, classes)
    return {
        "method": method,
        "accuracy": matched_accuracy(data.labels, classes, matching=matching),
        "prevalence_error": prevalence_error(
            truth, prevalence, matching=matching, label_names=species
        ),
        "species": {f"c{index}": str(name) for index, name in matching.items()},
    }
