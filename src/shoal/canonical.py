"""Training rows in an order that only their content decides.

Folds, restarts and samples draw row numbers. If these meant other rows whenever the
table is shuffled, the same data would give other classes, and one row of weight 3
would not be the same as three rows.
"""

from typing import Any, NamedTuple

import numpy as np

__all__ = ["CanonicalRows", "sort_rows"]

Array = np.ndarray[Any, Any]

# Whole-number weights become repeated rows, up to a table this much longer.
MOST_REPEATS = 10


class CanonicalRows(NamedTuple):
    """Rows to train on.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    codes : ndarray of shape (n_rows,)
        Domain of each row.
    weight : ndarray of shape (n_rows,) or None
        Positive; None where every row counts once.
    order : ndarray of shape (n_rows,)
        Which of the given rows each of them is.
    """

    X: Any
    codes: Array
    weight: Array | None
    order: Array

    def restore_order(
        self, domain_given_x: Array, discriminator: Any, discretizer: Any
    ) -> None:
        """Let stages keep what they say of each row as fit was given the rows.

        Rows without weight get what the fitted stages say of them.

        Parameters
        ----------
        domain_given_x : ndarray of shape (n_samples, n_domains)
            q(d|x) of the rows as given.
        discriminator : fitted Discriminator
        discretizer : fitted discretizer or None
        """
        left_out = np.ones(len(domain_given_x), dtype=bool)
        left_out[self.order] = False
        restored = domain_given_x.copy()
        restored[self.order] = discriminator.domain_given_x_
        discriminator.domain_given_x_ = restored
        if discretizer is None:
            return
        labels = np.empty(len(domain_given_x), dtype=np.intp)
        labels[self.order] = discretizer.labels_
        if left_out.any():
            labels[left_out] = discretizer.predict(domain_given_x[left_out])
        discretizer.labels_ = labels


def sort_rows(X: Any, scaled: Any, codes: Array, weight: Array | None) -> CanonicalRows:
    """Sort rows by domain and content; rows without weight are left out.

    A row of weight 3 becomes three rows where all weights are whole numbers.

    Parameters
    ----------
    X, scaled : ndarray of shape (n_samples, n_features)
        ``scaled`` has columns of like spread, whose sums tell rows apart.
    codes : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,) or None

    Examples
    --------
    >>> import numpy as np
    >>> X, codes = np.array([[3.0], [1.0], [2.0]]), np.array([1, 1, 0])
    >>> sort_rows(X, X, codes, np.array([2, 1, 1])).X.ravel()
    array([2., 1., 3., 3.])
    """
    from shoal.mixture.rows import canonical_rows  # which sorts its own rows here

    order = canonical_rows(scaled, codes)
    if weight is not None:
        order = order[weight[order] > 0]
        whole = (weight == np.rint(weight)).all()
        if whole and weight.sum() <= MOST_REPEATS * len(weight):
            order = np.repeat(order, weight[order].astype(np.intp))
            weight = None
        else:
            weight = weight[order]
    return CanonicalRows(X[order], codes[order], weight, order)
