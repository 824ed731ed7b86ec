"""DDFA: discriminate, discretize, factorize, adjust (Algorithms 1 and 2)."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from shoal.analysis.rank import supported_rank
from shoal.base import LatentShiftEstimator
from shoal.mixture.rows import stratified_sample
from shoal.probability import (
    canonical_order,
    class_given_domain,
    cluster_given_domain,
    domain_given_class,
    mean_log_likelihood,
)
from shoal.stages.adjust import Adjuster, maximum_likelihood
from shoal.stages.discretize import GivenClusters, KMeansDiscretizer
from shoal.stages.discriminate import Discriminator, OracleDiscriminator
from shoal.stages.factorize import (
    Factorization,
    Factorizer,
    minimum_volume_polytope,
)
from shoal.validation import (
    check_n_classes,
    check_X_domains,
    is_whole,
    resolve_domain_weight,
    row_weights,
    varying_columns,
)

__all__ = ["DDFA"]

Array = np.ndarray[Any, Any]

# Without n_clusters, these many clusters a class are tried, and the solution through
# which the out-of-fold q(d|x) explains the domains best is kept.
CLUSTERS_PER_CLASS = (1, 2, 3)
JUDGING_ROWS = 20_000


class DDFA(LatentShiftEstimator):
    """Discover classes by the four stages of the paper.

    *Discriminate*: learn q(d|x), the domain of a row from its features. *Discretize*:
    cluster the rows in that space. *Factorize*: split the cluster-by-domain table into
    what each class looks like and how common it is in each domain. *Adjust*: turn
    q(d|x) into p_d(y|x).

    The defaults are the best we know; ``shoal.benchmark.paper.ddfa`` gives the
    configuration as published. :class:`shoal.DomainMixture` is usually more accurate.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses the largest number, up to the number of
        domains, that the data support.
    discriminator : str, estimator or callable, default="auto"
        Model of q(d|x): a short name or any object that
        :class:`~shoal.stages.discriminate.Discriminator` takes, or a Discriminator.
    discretizer : {"kmeans", None}, estimator or array, default="kmeans"
        How rows become clusters; an array gives the cluster of each training row;
        None looks for the corners of q(d|x) itself (Appendix F).
    factorizer : str or Factorizer, default="spa"
        One of the methods of :func:`~shoal.stages.factorize.factorize`.
    adjuster : {"likelihood", "simplex", "pinv"} or Adjuster, default="likelihood"
    n_clusters : int, default=None
        Number m of clusters. None tries one to three per class and keeps the most
        likely solution.
    cross_fit : int, default=5
        Folds for out-of-fold q(d|x); 0 uses the discriminator on its own rows.
    calibration : {None, "temperature", "vector"}, default=None
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.
    check_identifiable : bool, default=True
        Refuse more classes than domains; False only warns.
    n_jobs : int, default=None
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row.
    n_classes_ : int
    discriminator_ : Discriminator
        Fitted on all rows.
    discretizer_ : estimator or None
    factorization_ : Factorization
        Both factors, with residual, condition number and anchors.
    n_features_in_ : int

    See Also
    --------
    shoal.DomainMixture : The same model by maximum likelihood.
    shoal.DiscreteMixture : The case of finitely many inputs.

    References
    ----------
    M. Roberts, P. Mani, S. Garg, Z. C. Lipton (2022). Unsupervised Learning under
    Latent Label Shift. NeurIPS.

    Examples
    --------
    >>> from shoal import DDFA
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, labels = make_latent_shift(
    ...     1500, n_classes=3, n_domains=4, alpha=1.0, random_state=0)
    >>> model = DDFA(n_classes=3, discriminator="logistic", random_state=0)
    >>> model.fit(X, domains).prevalence_.shape
    (4, 3)
    """

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        discriminator: Any = "auto",
        discretizer: Any = "kmeans",
        factorizer: Any = "spa",
        adjuster: Any = "likelihood",
        n_clusters: int | None = None,
        cross_fit: int | None = 5,
        calibration: str | None = None,
        domain_weight: Any = "equal",
        check_identifiable: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.discriminator = discriminator
        self.discretizer = discretizer
        self.factorizer = factorizer
        self.adjuster = adjuster
        self.n_clusters = n_clusters
        self.cross_fit = cross_fit
        self.calibration = calibration
        self.domain_weight = domain_weight
        self.check_identifiable = check_identifiable
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Alias of ``domains``, for scikit-learn's tools.
        domains : array-like of shape (n_samples,)
            Where each row comes from.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        X, codes = self._begin(X, y if domains is None else domains, sample_weight)
        domain_given_x = self._discriminate(X, codes, sample_weight)  # q(d|x)
        discretizers = self._discretize(domain_given_x, codes, sample_weight)  # c(x)
        self._factorize(discretizers, domain_given_x, codes, sample_weight)  # p_d(y)
        self.labels_ = self._adjust(X, codes).argmax(axis=1)  # p_d(y|x)
        return self

    # ---- the four stages ----------------------------------------------------------

    def _discriminate(self, X: Any, codes: Array, sample_weight: Any) -> Array:
        """q(d|x) of the training rows, out of fold where the discriminator allows."""
        given = self.discriminator
        if isinstance(given, (Discriminator, OracleDiscriminator)):
            self.discriminator_ = clone(given)
        else:
            shares = dict(enumerate(self.domain_weight_))
            self.discriminator_ = Discriminator(
                given,
                cross_fit=self.cross_fit,
                calibration=self.calibration,
                domain_weight=shares,
                random_state=self._draw_seed(),
                n_jobs=self.n_jobs,
            )
        self.discriminator_.fit(X, codes, sample_weight=sample_weight)
        return np.asarray(self.discriminator_.domain_given_x_)

    def _discretize(self, points: Array, codes: Array, sample_weight: Any) -> list[Any]:
        """Fitted discretizers to choose from; none at all for corner finding."""
        self.n_classes_ = self._resolve_n_classes(points, codes)
        if self.discretizer is None:
            return []
        if isinstance(self.discretizer, str):
            candidates = [
                KMeansDiscretizer(count, random_state=self._draw_seed())
                for count in self._cluster_counts(len(codes))
            ]
        elif hasattr(self.discretizer, "fit"):
            candidates = [clone(self.discretizer)]
        else:
            candidates = [GivenClusters(self.discretizer)]
        return [one.fit(points, sample_weight=sample_weight) for one in candidates]

    def _factorize(
        self, discretizers: list[Any], points: Array, codes: Array, sample_weight: Any
    ) -> None:
        """Both factors of each cluster-by-domain table; the likeliest are kept."""
        if not discretizers:
            self._find_corners(points, codes, sample_weight)
            return
        found = []
        for discretizer in discretizers:
            table = cluster_given_domain(
                discretizer.labels_,
                codes,
                discretizer.n_clusters_,
                len(self.domains_),
                sample_weight,
            )
            found.append((discretizer, self._factorizer().fit(table).factorization_))
        best = 0 if len(found) == 1 else self._likeliest(found, points, codes)
        self.discretizer_, self.factorization_ = found[best]
        prevalence = self.factorization_.class_given_domain
        self._store(prevalence, self.domains_, self.domain_weight_)

    def _adjust(self, X: Any, codes: Array) -> Array:
        """p_d(y|x) of the training rows, by the discriminator fitted on all of them."""
        adjuster = self.adjuster
        adjuster = Adjuster(adjuster) if isinstance(adjuster, str) else clone(adjuster)
        self.adjuster_ = adjuster.fit(self.domain_given_class_)
        return np.asarray(
            self.adjuster_.predict_proba(self.discriminator_.predict_proba(X), codes)
        )

    def _class_given_x(self, X: Any) -> Array:
        X = X if self.varying_.all() else X[:, self.varying_]
        domain_given_x = self.discriminator_.predict_proba(X)
        return np.asarray(self.adjuster_.predict_proba(domain_given_x))

    # ---- around them --------------------------------------------------------------

    def _begin(self, X: Any, domains: Any, sample_weight: Any) -> tuple[Any, Array]:
        """Validate; what every stage needs to know is set here."""
        X, codes, self.domains_ = check_X_domains(self, X, domains)
        self._check_names()
        self._random = check_random_state(self.random_state)
        self.varying_ = varying_columns(X)
        X = X if self.varying_.all() else X[:, self.varying_]
        mass = np.bincount(codes, weights=sample_weight, minlength=len(self.domains_))
        self.domain_weight_ = resolve_domain_weight(
            self.domain_weight, self.domains_, mass
        )
        if self.n_classes is not None:
            self._resolve_n_classes(None, codes)
        return X, codes

    def _resolve_n_classes(self, points: Array | None, codes: Array) -> int:
        """The number given, or the rank of a fine cluster-by-domain table."""
        n_domains = len(self.domains_)
        if self.n_classes is not None:
            return check_n_classes(
                self.n_classes, n_domains, check_identifiable=self.check_identifiable
            )
        fine = max(min(3 * n_domains, len(codes) // (4 * n_domains)), 2)
        clusters = KMeansDiscretizer(fine, n_init=1, random_state=self._draw_seed())
        labels = clusters.fit(points).labels_
        return supported_rank(labels, codes, random_state=self._draw_seed()).n_classes

    def _cluster_counts(self, n_rows: int) -> list[int]:
        if self.n_clusters is not None:
            if not is_whole(self.n_clusters) or self.n_clusters < self.n_classes_:
                if not self._allows_fewer_clusters():
                    raise ValueError(
                        f"n_clusters must be a whole number from n_classes="
                        f"{self.n_classes_}; got {self.n_clusters!r}"
                    )
            return [self.n_clusters]
        counts = {self.n_classes_ * factor for factor in CLUSTERS_PER_CLASS}
        return sorted(count for count in counts if count <= n_rows) or [self.n_classes_]

    def _allows_fewer_clusters(self) -> bool:
        return bool(getattr(self.factorizer, "allow_fewer", False))

    def _factorizer(self) -> Factorizer:
        if isinstance(self.factorizer, str):
            factorizer = Factorizer(method=self.factorizer)
        else:
            factorizer = clone(self.factorizer)
        return factorizer.set_params(
            n_classes=self.n_classes_,
            domain_weight=self.domain_weight_,
            check_identifiable=self.check_identifiable,
            random_state=self._draw_seed(),
        )

    def _likeliest(self, found: list[Any], points: Array, codes: Array) -> int:
        """Solution through which the out-of-fold q(d|x) explains the domains best."""
        order = np.argsort(codes, kind="stable")
        rng = np.random.default_rng(self._draw_seed())
        rows = order[stratified_sample(codes[order], JUDGING_ROWS, rng)]

        def likelihood(result: Factorization) -> float:
            T = domain_given_class(result.class_given_domain, self.domain_weight_)
            explained = maximum_likelihood(points[rows], T) @ T
            return mean_log_likelihood(explained, codes[rows])

        return int(np.argmax([likelihood(result) for _, result in found]))

    def _find_corners(self, points: Array, codes: Array, sample_weight: Any) -> None:
        """Appendix F: the smallest polytope around q(d|x) has q(d|y) as its corners."""
        corners = minimum_volume_polytope(
            points, self.n_classes_, sample_weight=sample_weight
        )
        weight = row_weights(codes, self.domain_weight_, sample_weight)
        class_weight = weight @ maximum_likelihood(points, corners)
        prevalence = class_given_domain(corners, class_weight)
        prevalence = prevalence[:, canonical_order(prevalence)]
        self.discretizer_, self.factorization_ = None, None
        self._store(prevalence, self.domains_, self.domain_weight_)

    def _check_names(self) -> None:
        if isinstance(self.discretizer, str) and self.discretizer != "kmeans":
            raise ValueError(
                "discretizer must be 'kmeans', None, a discretizer or the cluster of "
                f"each row; got {self.discretizer!r}"
            )

    def _draw_seed(self) -> int:
        return int(self._random.randint(2**31 - 1))
