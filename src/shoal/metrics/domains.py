"""Any metric, in every domain."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.metrics.matching import match_classes
from shoal.metrics.rows import as_rows, check_same_rows, encode_rows

__all__ = ["ByDomain", "by_domain"]


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
