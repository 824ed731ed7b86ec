"""Which class of one fit is which of another, from the rows they share."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

__all__ = ["match_by_rows"]

Array = np.ndarray[Any, Any]


def match_by_rows(reference: Array, classes: Array, n_classes: int) -> Array:
    """Give each class of ``classes`` the index of its counterpart in ``reference``.

    Classes are paired one to one so that the rows they share, as cosines, are most:
    small classes count as much as large ones. Unlike a comparison of their
    prevalences, this also tells classes apart that shift alike.

    Parameters
    ----------
    reference, classes : ndarray of shape (n_samples,)
        Class of the same rows in two fits, 0..n_classes-1.
    n_classes : int

    Returns
    -------
    ndarray of shape (n_classes,)
        ``renamed`` with ``renamed[classes]`` closest to ``reference``.

    Examples
    --------
    >>> match_by_rows(np.array([0, 0, 1, 2]), np.array([1, 1, 2, 0]), 3)
    array([2, 0, 1])
    """
    flat = np.bincount(classes * n_classes + reference, minlength=n_classes**2)
    shared = flat.reshape(n_classes, n_classes).astype(float)
    size = np.sqrt(np.outer(shared.sum(axis=1), shared.sum(axis=0)))
    cosine = np.divide(shared, size, out=np.zeros_like(shared), where=size > 0)
    return np.asarray(linear_sum_assignment(-cosine)[1])
