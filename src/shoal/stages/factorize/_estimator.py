"""The door of the stage, and what comes out: both factors and how far to trust them."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from shoal.exceptions import IdentifiabilityWarning
from shoal.probability import (
    canonical_order,
    check_stochastic,
    condition_number,
    domain_given_class,
    normalize_rows,
)
from shoal.stages.factorize._anchors import Solution, snpa, spa
from shoal.stages.factorize._iterative import em, nmf
from shoal.stages.factorize._polytope import volume
from shoal.validation import check_choice
from shoal.validation._domains import check_n_classes

Array = np.ndarray[Any, Any]

# ---- what a factorization gives back -------------------------------------------------

# Among clusters this close to the purest, the one with most mass is the anchor: a
# cluster of three rows is easily pure.
PURITY_MARGIN = 0.001


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


# ---- the door: one function and one small estimator for all solvers ------------------

METHODS: dict[str, Callable[..., Solution]] = {
    "em": em,
    "spa": spa,
    "snpa": snpa,
    "volume": volume,
    "nmf": nmf,
}
# Solvers that can make up more classes than there are clusters.
WITHOUT_ANCHORS = ("nmf", "em")


def factorize(
    cluster_given_domain: ArrayLike,
    n_classes: int,
    *,
    method: str = "em",
    domain_weight: ArrayLike | None = None,
    allow_fewer: bool = False,
    check_identifiable: bool = True,
    random_state: Any = None,
    **options: Any,
) -> Factorization:
    """Split ``cluster_given_domain`` into prevalences and classes.

    ``cluster_given_domain = class_given_domain @ cluster_given_class``, all three with
    rows that sum to 1.

    Parameters
    ----------
    cluster_given_domain : array-like of shape (n_domains, n_clusters)
        Share of each domain's rows in each cluster; rows sum to 1.
    n_classes : int
        Number of classes k.
    method : {'em', 'spa', 'snpa', 'volume', 'nmf'}, default='em'
        - 'em': maximum likelihood started from anchors;
        - 'spa', 'snpa': anchor clusters by successive (nonnegative) projection;
        - 'volume': smallest simplex around the clusters, needs no anchors;
        - 'nmf': scikit-learn's NMF from a random start, as published.
    domain_weight : array-like of shape (n_domains,), default=None
        q(d); equal when None (A.3).
    allow_fewer : bool, default=False
        Let 'nmf' and 'em' run with fewer clusters than classes (Appendix G), with an
        IdentifiabilityWarning instead of an error.
    check_identifiable : bool, default=True
        Whether fewer domains than classes (A.1) is an error or a warning.
    random_state : int, RandomState or None, default=None
    **options
        Of the method: ``init``, ``n_init``, ``max_iter``, ``tol`` for 'em' and 'nmf';
        ``freeze`` for 'em'; ``denoise``, ``min_share`` for 'spa' and 'snpa';
        ``outside`` for 'volume'. See the functions of those names.

    Returns
    -------
    Factorization
        Both factors in canonical class order, with residual, condition number, anchors.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal.stages.factorize import factorize
    >>> prevalence = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    >>> clusters = np.array([[0.5, 0.5, 0.0], [0.0, 0.2, 0.8]])
    >>> found = factorize(prevalence @ clusters, n_classes=2, method="spa")
    >>> found.class_given_domain.round(6)
    array([[0.9, 0.1],
           [0.4, 0.6],
           [0.7, 0.3]])
    >>> found.anchors
    array([0, 2])
    """
    table = _check_table(cluster_given_domain)
    n_domains, n_clusters = table.shape
    solver = _find_solver(method, options)
    weight = _check_weight(domain_weight, n_domains)
    n_classes = check_n_classes(
        n_classes, n_domains, check_identifiable=check_identifiable
    )
    filled = table.sum(axis=0) > 0
    _check_n_clusters(int(filled.sum()), n_clusters, n_classes, method, allow_fewer)
    if "random_state" in inspect.signature(solver).parameters:
        options = {**options, "random_state": random_state}
    # A cluster without rows says nothing about any class and has no row of q(d|c).
    solution = solver(table[:, filled], n_classes, weight, **options)
    clusters = np.zeros((n_classes, n_clusters))
    clusters[:, filled] = solution.cluster_given_class
    solution = solution._replace(cluster_given_class=clusters)
    return describe(solution, table, weight, method)


@dataclass(eq=False, repr=False)
class Factorizer(BaseEstimator):
    """Estimator around :func:`factorize`.

    Parameters
    ----------
    n_classes : int, default=2
    method : {'em', 'spa', 'snpa', 'volume', 'nmf'}, default='em'
    options : dict, default=None
        Options of the method, see :func:`factorize`.
    domain_weight : array-like of shape (n_domains,), default=None
    allow_fewer : bool, default=False
    check_identifiable : bool, default=True
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    factorization_ : Factorization
    class_given_domain_ : ndarray of shape (n_domains, n_classes)
    cluster_given_class_ : ndarray of shape (n_classes, n_clusters)
    n_iter_ : int
    n_features_in_ : int
        Number of clusters.

    Examples
    --------
    >>> from shoal.stages.factorize import Factorizer
    >>> table = [[0.45, 0.47, 0.08], [0.2, 0.32, 0.48], [0.35, 0.41, 0.24]]
    >>> Factorizer(n_classes=2, method="spa").fit(table).class_given_domain_.round(6)
    array([[0.9, 0.1],
           [0.4, 0.6],
           [0.7, 0.3]])
    """

    n_classes: int = 2
    method: str = "em"
    _: KW_ONLY
    options: dict[str, Any] | None = None
    domain_weight: ArrayLike | None = None
    allow_fewer: bool = False
    check_identifiable: bool = True
    random_state: Any = None

    def fit(self, cluster_given_domain: ArrayLike, y: Any = None) -> Self:
        """Factorize a table of shape (n_domains, n_clusters); ``y`` is ignored."""
        self.factorization_ = factorize(
            cluster_given_domain,
            self.n_classes,
            method=self.method,
            domain_weight=self.domain_weight,
            allow_fewer=self.allow_fewer,
            check_identifiable=self.check_identifiable,
            random_state=self.random_state,
            **(self.options or {}),
        )
        self.class_given_domain_ = self.factorization_.class_given_domain
        self.cluster_given_class_ = self.factorization_.cluster_given_class
        self.n_iter_ = self.factorization_.n_iter
        self.n_features_in_ = self.cluster_given_class_.shape[1]
        return self


def _check_table(cluster_given_domain: ArrayLike) -> Array:
    table = np.asarray(cluster_given_domain)
    if table.ndim == 2 and table.dtype.kind in "biuf":
        empty = np.flatnonzero((table == 0).all(axis=1))
        if empty.size:
            raise ValueError(
                f"cluster_given_domain has only zeros in row {empty[0]}: a domain "
                "without rows has no prevalence; drop that domain"
            )
    table = check_stochastic(table, "cluster_given_domain").astype(float)
    return normalize_rows(np.maximum(table, 0))


def _check_weight(domain_weight: ArrayLike | None, n_domains: int) -> Array:
    if domain_weight is None:
        return np.full(n_domains, 1 / n_domains)
    weight = np.asarray(domain_weight, dtype=float)
    if weight.shape != (n_domains,) or not np.isfinite(weight).all():
        raise ValueError(
            f"domain_weight must have one finite entry per domain ({n_domains}), got "
            f"shape {weight.shape}"
        )
    if (weight <= 0).any():
        raise ValueError(
            f"domain_weight must be positive, got {weight.min():.3g} for domain "
            f"{int(weight.argmin())}; drop domains that should not count"
        )
    return np.asarray(weight / weight.sum())


def _find_solver(method: str, options: dict[str, Any]) -> Callable[..., Solution]:
    check_choice(METHODS, method=method)
    parameters = inspect.signature(METHODS[method]).parameters.values()
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise TypeError(
                f"method {method!r} has no option {name!r}; it takes {known}"
            )
    return METHODS[method]


def _check_n_clusters(
    filled: int, n_clusters: int, n_classes: int, method: str, allow_fewer: bool
) -> None:
    if filled >= n_classes:
        return
    count = str(filled) if filled == n_clusters else f"{filled} non-empty"
    message = f"{count} clusters are too few for n_classes={n_classes}"
    if not allow_fewer or method not in WITHOUT_ANCHORS:
        raise ValueError(
            f"{message}; make at least n_classes clusters or ask for fewer classes "
            f"(allow_fewer=True runs anyway with {' or '.join(WITHOUT_ANCHORS)})"
        )
    warnings.warn(
        f"{message}: the classes are not identified",
        IdentifiabilityWarning,
        stacklevel=3,
    )
