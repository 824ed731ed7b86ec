"""The choice among discriminators, by held-out loss alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.probability import TINY
from shoal.stages.discriminate.crossfit import cross_fit_proba
from shoal.stages.discriminate.named import RadialBumps
from shoal.validation import row_weights

__all__ = ["AUTO_CANDIDATES", "Choice", "choose_discriminator", "worth_trying"]

Array = np.ndarray[Any, Any]

# From simple to flexible: a tie goes to the earlier one.
AUTO_CANDIDATES = ("logistic", "quadratic", "rbf", "mlp")

# An expansion is tried with this many rows per column (below, the plain columns
# win), and up to this many numbers in the expanded table (about 400 MB).
ROWS_PER_COLUMN = 20
MAX_CELLS = 50_000_000
ROWS_FOR_MLP = 2_000


@dataclass(frozen=True)
class Choice:
    """What was chosen, and what it was chosen from.

    Attributes
    ----------
    index : int
        Position of the chosen candidate.
    domain_given_x : ndarray of shape (n_samples, n_domains)
        Its out-of-fold q(d|x).
    losses : ndarray of shape (n_candidates,)
        Out-of-fold cross-entropy of each candidate, domains weighted by q(d).
    """

    index: int
    domain_given_x: Array
    losses: Array


def worth_trying(name: str, n_samples: int, n_features: int) -> bool:
    """Tell whether a named candidate suits a table of this size."""
    if name == "mlp":
        return n_samples >= ROWS_FOR_MLP
    columns = {
        "quadratic": n_features * (n_features + 3) // 2,
        "rbf": n_features + RadialBumps().n_centers,
    }.get(name)
    if columns is None:
        return True
    enough_rows = n_samples >= ROWS_PER_COLUMN * columns
    return enough_rows and n_samples * columns <= MAX_CELLS


def choose_discriminator(
    candidates: Sequence[Any],
    X: Any,
    codes: Array,
    domain_weight: Array,
    *,
    n_folds: int = 5,
    sample_weight: Array | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Choice:
    """Cross-fit each candidate on the same folds and keep the best.

    The loss is the cross-entropy of the out-of-fold q(d|x) with domains weighted by
    ``domain_weight``. The earliest candidate that is within one standard error of the
    smallest loss wins; the error is that of the difference, row by row.

    Parameters
    ----------
    candidates : sequence of scikit-learn classifiers
        From simple to flexible.
    X : {array, sparse matrix} of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
    domain_weight : ndarray of shape (n_domains,)
        q(d).
    n_folds : int, default=5
    sample_weight : ndarray of shape (n_samples,), default=None
    random_state : int, default=None
    n_jobs : int, default=None

    Returns
    -------
    Choice
    """
    tables, row_losses = [], []
    for candidate in candidates:
        table = cross_fit_proba(
            candidate,
            X,
            codes,
            len(domain_weight),
            n_folds,
            sample_weight=sample_weight,
            domain_weight=domain_weight,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        own = table[np.arange(len(codes)), codes].astype(float)
        row_losses.append(-np.log(np.maximum(own, TINY)))
        tables.append(table)
    weight = row_weights(codes, domain_weight, sample_weight)
    index, losses = simplest_within_error(np.array(row_losses), weight)
    return Choice(index, tables[index], losses)


def simplest_within_error(row_losses: Array, weight: Array) -> tuple[int, Array]:
    """First candidate within one standard error of the best, and all mean losses.

    Parameters
    ----------
    row_losses : ndarray of shape (n_candidates, n_samples)
    weight : ndarray of shape (n_samples,)
        Sums to 1.
    """
    losses = row_losses @ weight
    excess = row_losses - row_losses[losses.argmin()]
    mean = excess @ weight
    error = np.sqrt((excess - mean[:, None]) ** 2 @ weight**2)
    return int(np.argmax(mean <= error)), losses
