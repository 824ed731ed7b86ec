"""Whether probabilities are as frequent as they say."""

from typing import Any

import numpy as np

from shoal.metrics.matching import as_mapping, match_classes
from shoal.metrics.rows import check_same_rows, encode_rows
from shoal.probability import check_stochastic
from shoal.validation import check_whole

__all__ = ["calibration_error"]

Array = np.ndarray[Any, Any]


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
    check_whole(1, n_bins=n_bins)
    proba = check_stochastic(proba, "proba")
    codes, names = encode_rows(labels, "labels")
    check_same_rows(codes, proba, "proba")
    label_of = (
        match_classes(labels, proba) if matching is None else as_mapping(matching)
    )
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
