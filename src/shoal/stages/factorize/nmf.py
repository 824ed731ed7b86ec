"""NMF: scikit-learn's, with the paper's settings and renormalization (Appendix D).

Kept for comparison. A product of non-negative matrices has many non-negative
factorizations, and a random start finds any of them: a reconstruction error of 1e-10
says nothing about the prevalences.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from shoal.probability import normalize_rows
from shoal.stages.factorize.result import Solution
from shoal.stages.factorize.starts import check_effort, starting_points

__all__ = ["nmf", "renormalize"]

Array = NDArray[Any]


def renormalize(prevalence: Array, clusters: Array) -> tuple[Array, Array]:
    """Turn NMF's factors into distributions, as the paper does.

    Normalize each class's clusters, push the norms into the other factor so that the
    product stays, then normalize that one too.
    """
    norms = clusters.sum(axis=1)
    return normalize_rows(prevalence * norms), normalize_rows(clusters)


def nmf(
    table: Array,
    n_classes: int,
    weight: Array,
    *,
    init: str = "random",
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    random_state: Any = None,
) -> Solution:
    """Factorize by coordinate descent on the Frobenius norm, as published.

    The defaults are the published settings: one run from scikit-learn's random start
    on the (n_domains, n_clusters) table, 200 iterations, tolerance 1e-4.

    Parameters
    ----------
    table : ndarray of shape (n_domains, n_clusters)
        ``cluster_given_domain``.
    n_classes : int
    weight : ndarray of shape (n_domains,)
        q(d), used by the anchors of ``init``; NMF itself counts domains equally.
    init : {'random', 'spa', 'snpa', 'volume'}, default='random'
        'random' is scikit-learn's; the others start at a geometric solution.
    n_init : int, default=1
        Number of starts, the first as ``init`` says; the smallest residual is kept.
    max_iter : int, default=200
    tol : float, default=1e-4
    random_state : int, RandomState or None, default=None
    """
    check_effort(init, n_init, max_iter)
    random = check_random_state(random_state)
    best: Solution | None = None
    smallest = np.inf
    for run in range(n_init):
        start = None
        if init != "random" and run == 0:
            start = next(starting_points(init, 1, table, n_classes, weight, random))
        found, error = run_nmf(table, n_classes, start, max_iter, tol, random)
        if error < smallest:
            best, smallest = found, error
    assert best is not None
    return best


def run_nmf(
    table: Array,
    n_classes: int,
    start: tuple[Array, Array] | None,
    max_iter: int,
    tol: float,
    random: Any,
) -> tuple[Solution, float]:
    """One run of scikit-learn's NMF; its reconstruction error beside the solution."""
    model = NMF(
        n_components=n_classes,
        init="random" if start is None else "custom",
        solver="cd",
        beta_loss="frobenius",
        max_iter=max_iter,
        tol=tol,
        random_state=random,
    )
    factors = {} if start is None else {"W": start[0].copy(), "H": start[1].copy()}
    with warnings.catch_warnings():
        # Not lost: Factorization.converged says it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        prevalence = model.fit_transform(table, **factors)
    prevalence, clusters = renormalize(prevalence, model.components_)
    n_iter = int(model.n_iter_)
    solution = Solution(prevalence, clusters, n_iter, converged=n_iter < max_iter)
    return solution, float(model.reconstruction_err_)
