"""Iterative solvers and where they start: EM (pLSA, KL-NMF) and scikit-learn's NMF."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from shoal.probability import (
    TINY,
    class_given_domain,
    domain_given_class,
    normalize_rows,
)
from shoal.stages.factorize._anchors import Solution, snpa, spa
from shoal.stages.factorize._polytope import volume
from shoal.validation import check_choice, check_whole

# ---- starts --------------------------------------------------------------------------

Array = NDArray[Any]

STARTS: dict[str, Callable[..., Solution]] = {
    "spa": spa,
    "snpa": snpa,
    "volume": volume,
}


def check_effort(init: str, n_init: int, max_iter: int) -> None:
    """Refuse a start that does not exist, no start at all, and no iteration."""
    check_choice((*STARTS, "random"), init=init)
    check_whole(1, n_init=n_init, max_iter=max_iter)


def starting_points(
    init: str, n_init: int, table: Array, n_classes: int, weight: Array, random: Any
) -> Iterator[tuple[Array, Array]]:
    """Yield ``n_init`` pairs of factors: first as ``init`` says, the others random.

    Fewer clusters than classes leave no choice of anchors: all starts are random.
    """
    n_domains, n_clusters = table.shape
    if init != "random" and n_clusters >= n_classes:
        found = STARTS[init](table, n_classes, weight)
        yield found.class_given_domain, found.cluster_given_class
        n_init -= 1
    for _ in range(n_init):
        prevalence = random.dirichlet(np.ones(n_classes), size=n_domains)
        yield prevalence, random.dirichlet(np.ones(n_clusters), size=n_classes)


# ---- em ------------------------------------------------------------------------------

ROUNDING = 1e-12
# A zero that the likelihood wants raised starts again at this share of independence.
LIFT = 0.01


def em_step(
    joint: Array, corners: Array, class_and_cluster: Array
) -> tuple[Array, Array, float]:
    """One EM iteration.

    Parameters
    ----------
    joint : ndarray of shape (n_domains, n_clusters)
        q(d, c), sums to 1.
    corners : ndarray of shape (n_classes, n_domains)
        q(d|y).
    class_and_cluster : ndarray of shape (n_classes, n_clusters)
        q(y, c), sums to 1.

    Returns
    -------
    pull_domain : ndarray of shape (n_classes, n_domains)
        Factor by which EM multiplies q(d|y), before rows are scaled to sum to 1.
    pull_cluster : ndarray of shape (n_classes, n_clusters)
        Factor by which EM multiplies q(y, c).
    loss : float
        KL(joint || model) before the step, in nats.
    """
    model = np.maximum(corners.T @ class_and_cluster, TINY)
    ratio = joint / model
    seen = joint > 0
    loss = float(joint[seen] @ np.log(ratio[seen]))
    return class_and_cluster @ ratio.T, corners @ ratio, loss


def lift_wrong_zeros(
    joint: Array, corners: Array, class_and_cluster: Array
) -> tuple[Array, Array]:
    """Raise the zeros of a start that the likelihood objects to.

    EM multiplies, so that a zero stays zero. One that EM would multiply by more than 1
    came from noise in the start; the others are as good as optimal, and stay (on an
    exact table all do).
    """
    # Cells below rounding agree with the model whatever their ratio.
    ratio = (joint + ROUNDING) / (corners.T @ class_and_cluster + ROUNDING)
    class_weight = class_and_cluster.sum(axis=1, keepdims=True)
    floor = LIFT * joint.sum(axis=1)
    wrong = (corners < floor) & (class_and_cluster @ ratio.T > 1.01 * class_weight)
    lifted = normalize_rows(np.where(wrong, floor, corners))
    floor = LIFT * class_weight * joint.sum(axis=0)
    wrong = (class_and_cluster < floor) & (corners @ ratio > 1.01)
    raised = np.where(wrong, floor, class_and_cluster)
    return lifted, np.asarray(raised / raised.sum())


def run_em(
    joint: Array,
    corners: Array,
    class_and_cluster: Array,
    *,
    max_iter: int,
    tol: float,
    freeze: int,
) -> tuple[Array, Array, list[float], bool]:
    """Iterate until the loss hardly falls; q(d|y) is held for ``freeze`` iterations."""
    history: list[float] = []
    for iteration in range(max_iter + 1):
        pull_domain, pull_cluster, loss = em_step(joint, corners, class_and_cluster)
        history.append(loss)
        if iteration > freeze and history[-2] - loss <= tol * loss + ROUNDING:
            return corners, class_and_cluster, history, True
        if iteration == max_iter:
            break
        if iteration >= freeze:
            corners = normalize_rows(corners * pull_domain, empty=joint.sum(axis=1))
        class_and_cluster = class_and_cluster * pull_cluster
    return corners, class_and_cluster, history, False


def em(
    table: Array,
    n_classes: int,
    weight: Array,
    *,
    init: str = "spa",
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-3,
    freeze: int = 0,
    random_state: Any = None,
) -> Solution:
    """Factorize by maximum likelihood, started from anchors.

    Parameters
    ----------
    table, n_classes, weight
        As in :func:`by_anchors`.
    init : {'spa', 'snpa', 'volume', 'random'}, default='spa'
        The first start.
    n_init : int, default=1
        Number of starts; those after the first are random. One replaces the best so
        far only if its loss is lower by more than ``tol``. More starts find higher
        likelihoods and, measured on sampled anchored tables, worse prevalences: the
        likelihood does not know about anchors, the first start does.
    max_iter : int, default=200
    tol : float, default=1e-3
        Stop when an iteration lowers the loss, KL(table || product), by less than this
        share of it. What is left of the loss is noise of the counts, so that the same
        share suits few rows and many; going on fits the noise.
    freeze : int, default=0
        Iterations in which q(d|y) of the start is held and only q(y, c) moves.
    random_state : int, RandomState or None, default=None
    """
    check_effort(init, n_init, max_iter)
    random = check_random_state(random_state)
    joint = weight[:, None] * table
    best: Solution | None = None
    for prevalence, clusters in starting_points(
        init, n_init, table, n_classes, weight, random
    ):
        corners = domain_given_class(prevalence, weight)
        both = (weight @ prevalence)[:, None] * clusters
        corners, both = lift_wrong_zeros(joint, corners, both)
        corners, both, history, converged = run_em(
            joint, corners, both, max_iter=max_iter, tol=tol, freeze=freeze
        )
        if best is None or history[-1] < (1 - tol) * best.history[-1] - ROUNDING:
            best = Solution(
                class_given_domain(corners, both.sum(axis=1)),
                normalize_rows(both, empty=joint.sum(axis=0)),
                n_iter=len(history) - 1,
                converged=converged,
                history=tuple(history),
            )
    assert best is not None
    return best


# ---- nmf -----------------------------------------------------------------------------


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
    table, n_classes, weight
        As in :func:`by_anchors`; NMF itself counts domains equally.
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
