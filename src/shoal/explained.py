"""How well k classes explain the domains: what solutions are compared by."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.probability import mean_log_likelihood
from shoal.stages.adjust import maximum_likelihood

__all__ = ["likeliest", "soften"]

Array = np.ndarray[Any, Any]


def soften(
    domain_given_x: Array, domain_weight: Any, n_rows: float, imaginary: float = 1.0
) -> Array:
    """Mix a fit of ``n_rows`` rows with one more whose domain is drawn from q(d).

    A zero among estimates only means "rarer than could be seen": one held-out row must
    not cost minus infinity.

    Parameters
    ----------
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Or of any shape that broadcasts with ``domain_weight``.
    domain_weight : array-like of shape (n_domains,)
    n_rows : float
    imaginary : float, default=1.0
        Number of rows mixed in.

    Returns
    -------
    ndarray of shape (n_samples, n_domains)
        Positive; rows sum to 1.

    Examples
    --------
    >>> import numpy as np
    >>> soften(np.array([[1.0, 0.0]]), np.array([0.5, 0.5]), n_rows=4)
    array([[0.9, 0.1]])
    """
    mixed = n_rows * domain_given_x + imaginary * domain_weight
    return np.asarray(mixed / (n_rows + imaginary))


def likeliest(
    solutions: Sequence[Array],
    domain_given_x: Array,
    codes: Array,
    domain_weight: Array,
    n_rows: int,
) -> int:
    """Position of the q(d|y) through which q(d|x) explains the domains best.

    Each row is replaced by its likeliest mixture of the classes; what that says of the
    row's own domain counts, in nats, each domain equally.

    Parameters
    ----------
    solutions : sequence of ndarray of shape (n_classes, n_domains)
        Candidates for q(d|y).
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Out-of-fold.
    codes : ndarray of shape (n_samples,)
    domain_weight : ndarray of shape (n_domains,)
    n_rows : int
        Number of rows that the solutions were made from.

    Examples
    --------
    >>> import numpy as np
    >>> domain_given_x, codes = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 1])
    >>> flat, sharp = np.full((2, 2), 0.5), np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> likeliest([flat, sharp], domain_given_x, codes, np.full(2, 0.5), n_rows=100)
    1
    """
    scores = []
    for domain_given_class in solutions:
        class_given_x = maximum_likelihood(domain_given_x, domain_given_class)
        explained = class_given_x @ domain_given_class
        softened = soften(explained, domain_weight, n_rows)
        scores.append(mean_log_likelihood(softened, codes))
    return int(np.argmax(scores))
