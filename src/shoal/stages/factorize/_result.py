"""What a factorization gives back: both factors and how far to trust them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.probability import (
    canonical_order,
    condition_number,
    domain_given_class,
    normalize_rows,
)

Array = NDArray[Any]

# Among clusters this close to the purest, the one with most mass is the anchor: a
# cluster of three rows is easily pure.
PURITY_MARGIN = 0.001


class Solution(NamedTuple):
    """What a solver found, before classes are ordered and the fit is measured."""

    class_given_domain: Array
    cluster_given_class: Array
    n_iter: int
    converged: bool = True
    history: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Factorization:
    """Both factors of ``cluster_given_domain``, in canonical class order.

    Attributes
    ----------
    class_given_domain : ndarray of shape (n_domains, n_classes)
        Prevalences p_d(y); rows sum to 1.
    cluster_given_class : ndarray of shape (n_classes, n_clusters)
        p(c|y); rows sum to 1.
    residual : float
        Frobenius norm of what the product of the factors leaves unexplained. Tiny
        is not proof: many factorizations are exact, one of them is true.
    condition_number : float
        Of ``class_given_domain``; inf when classes cannot be told apart (A.2).
    anchors : ndarray of shape (n_classes,)
        The strongest anchor cluster of each class: the heaviest of its purest.
    n_iter : int
        Iterations of the solver; the number of anchors for SPA and SNPA.
    anchor_purity : ndarray of shape (n_classes,)
        q(y|c) of each anchor; 1 when only its class can produce the cluster (A.4).
    divergence : float
        Mean over domains of KL(table || product), in nats.
    domain_weight : ndarray of shape (n_domains,)
        q(d), the share of each domain.
    converged : bool
        Whether the solver met its tolerance within its iterations.
    history : tuple of float
        Loss after each iteration, for solvers that have one.
    method : str
        Name of the solver.
    """

    class_given_domain: Array = field(repr=False)
    cluster_given_class: Array = field(repr=False)
    residual: float
    condition_number: float
    anchors: Array
    n_iter: int
    anchor_purity: Array
    divergence: float
    domain_weight: Array = field(repr=False)
    converged: bool = True
    history: tuple[float, ...] = field(default=(), repr=False)
    method: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes k."""
        return int(self.cluster_given_class.shape[0])

    @property
    def class_weight(self) -> Array:
        """q(y), the prevalence over all domains, of shape (n_classes,)."""
        return np.asarray(self.domain_weight @ self.class_given_domain)

    @property
    def domain_given_class(self) -> Array:
        """q(d|y), of shape (n_classes, n_domains): what the adjust stage needs."""
        return domain_given_class(self.class_given_domain, self.domain_weight)

    @property
    def class_given_cluster(self) -> Array:
        """q(y|c), of shape (n_clusters, n_classes)."""
        return _class_given_cluster(self.cluster_given_class, self.class_weight)


def describe(
    solution: Solution, table: Array, domain_weight: Array, method: str
) -> Factorization:
    """Order the classes of a solution and measure how well it fits its table."""
    order = canonical_order(solution.class_given_domain)
    prevalence = solution.class_given_domain[:, order]
    clusters = solution.cluster_given_class[order]
    product = prevalence @ clusters
    anchors, purity = _strongest_anchors(clusters, domain_weight @ prevalence)
    return Factorization(
        class_given_domain=prevalence,
        cluster_given_class=clusters,
        residual=float(np.linalg.norm(table - product)),
        condition_number=condition_number(prevalence),
        anchors=anchors,
        n_iter=solution.n_iter,
        anchor_purity=purity,
        divergence=kl_divergence(table, product, domain_weight),
        domain_weight=domain_weight,
        converged=solution.converged,
        history=solution.history,
        method=method,
    )


def kl_divergence(table: Array, product: Array, domain_weight: Array) -> float:
    """Weighted mean over rows of KL(table || product), in nats."""
    seen = table > 0
    with np.errstate(divide="ignore"):
        log_ratio = np.log(table[seen]) - np.log(product[seen])
    weighted = (domain_weight[:, None] * table)[seen]
    return max(float(weighted @ log_ratio), 0.0)


def _strongest_anchors(clusters: Array, class_weight: Array) -> tuple[Array, Array]:
    posterior = _class_given_cluster(clusters, class_weight).T  # (k, m)
    pure = posterior >= posterior.max(axis=1, keepdims=True) - PURITY_MARGIN
    anchors = np.where(pure, class_weight @ clusters, -1).argmax(axis=1)
    return anchors, posterior[np.arange(len(anchors)), anchors]


def _class_given_cluster(clusters: Array, class_weight: Array) -> Array:
    return normalize_rows((clusters * class_weight[:, None]).T, empty=class_weight)
