"""Other methods beside shoal, on the data of the demo."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from shoal.cli.progress import Stage, Stages

if TYPE_CHECKING:
    from shoal.cli.fitting import Fitted

__all__ = ["OTHERS", "compare", "compare_plan"]

Record = dict[str, Any]


def _kmeans(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from sklearn.cluster import KMeans

    return KMeans(k, n_init=10, random_state=seed).fit_predict(X), None


def _gaussians(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from sklearn.mixture import GaussianMixture

    model = GaussianMixture(k, n_init=10, reg_covar=1e-3, random_state=seed)
    return model.fit_predict(X), None


def _published(X: Any, domains: Any, k: int, seed: int) -> tuple[Any, Any]:
    from shoal.benchmark import paper

    model = paper.ddfa(k, random_state=seed).fit(X, domains)
    return model.labels_, model.prevalence_


#: Classes of the rows and, where a method gives them, prevalences of the domains.
OTHERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "k-means": _kmeans,
    "Gaussian mixture": _gaussians,
    "DDFA as published": _published,
}


def compare_plan() -> dict[str, Stage]:
    """A stage for each method."""
    return {name: Stage(f"comparing: {name}", 2) for name in OTHERS}


def compare(stages: Stages, fitted: "Fitted", seed: int) -> list[Record]:
    """Agreement of every method with the labels that none of them saw.

    Others get the number of classes that shoal found, and columns of unit spread.
    """
    from sklearn.preprocessing import StandardScaler

    from shoal.metrics import majority_accuracy

    table, model = fitted.table, fitted.model
    scaled = StandardScaler().fit_transform(table.X)
    records = [agree("shoal", table, model.labels_, model.prevalence_)]
    for name, method in OTHERS.items():
        stages.begin(name)
        found = method(scaled, table.domains, model.n_classes_, seed)
        records.append(agree(name, table, *found))
    majority = {
        "method": "most common label of each domain",
        "accuracy": majority_accuracy(table.labels, table.domains),
        "prevalence_error": None,
    }
    return [*records, majority]


def agree(method: str, table: Any, classes: Any, prevalence: Any = None) -> Record:
    """Accuracy and prevalence error under one matching of classes to labels.

    Without ``prevalence``, the share of each class among the rows of each domain
    stands for it.
    """
    from shoal.metrics import (
        match_classes,
        matched_accuracy,
        prevalence_error,
        true_prevalence,
    )

    truth, names, _ = true_prevalence(table.labels, table.domains)
    if prevalence is None:
        prevalence = true_prevalence(classes, table.domains)[0]
    matching = match_classes(table.labels, classes)
    return {
        "method": method,
        "accuracy": matched_accuracy(table.labels, classes, matching=matching),
        "prevalence_error": prevalence_error(
            truth, prevalence, matching=matching, label_names=names
        ),
    }
