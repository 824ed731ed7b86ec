"""DDFA: discriminate, discretize, factorize, adjust (Algorithms 1 and 2)."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from shoal.analysis._rank import supported_rank
from shoal.analysis._unknown import fit_familiar
from shoal.base._hooks import FitsRows
from shoal.ddfa._fitted import FittedStages, likeliest
from shoal.exceptions import IdentifiabilityWarning, ShoalWarning, SubsampleWarning
from shoal.probability import (
    canonical_order,
    class_given_domain,
    cluster_given_domain,
    mean_log_likelihood,
)
from shoal.stages.adjust import SOLVERS, Adjuster, maximum_likelihood
from shoal.stages.discretize import (
    check_discretizer,
    hellinger_kmeans,
    list_discretizers,
)
from shoal.stages.discriminate import Discriminator, OracleDiscriminator
from shoal.stages.discriminate._calibrate import fit_calibration
from shoal.stages.discriminate._candidates import needs_all_columns, with_seeds
from shoal.stages.discriminate._crossfit import rows_per_domain
from shoal.stages.factorize import Factorization, Factorizer, minimum_volume_polytope
from shoal.stages.factorize._estimator import METHODS
from shoal.validation import check_X_domains, resolve_domain_weight
from shoal.validation._domains import check_n_classes, check_sample_weight
from shoal.validation._rows import CanonicalRows, row_keys, sort_rows, varying_columns

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class StageSettings:
    """Numbers that decide something between the stages."""

    # Of several solutions, the one through which the out-of-fold q(d|x) explains the
    # domains best is kept, judged on a sample of this size.
    judging_rows: int = 20_000
    # A number of classes is looked for in this many clusters a domain.
    clusters_per_domain: int = 3
    # Nats, over all rows, that a temperature of no use hardly gains by chance.
    chance_gain: float = 4.0
    # A learned q(d|x) scatters: this share may lie beyond each facet (Appendix F).
    outside: float = 0.3


SETTINGS = StageSettings()


@dataclass(eq=False, repr=False)
class DDFA(FitsRows, FittedStages):
    """Discover classes by the four stages of the paper.

    *Discriminate*: learn q(d|x), the domain of a row from its features. *Discretize*:
    cluster the rows in that space. *Factorize*: split the cluster-by-domain table into
    what each class looks like and how common it is in each domain. *Adjust*: turn
    q(d|x) into p_d(y|x).

    The defaults are the best we know; ``shoal_bench.paper.ddfa`` gives the
    configuration as published. :class:`shoal.DomainMixture` is usually more accurate.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses the largest number, up to the number of
        domains, that the clusters of q(d|x) support against permuted domains
        (``rank_``): seen through the discriminator, and without another fit.
        :func:`shoal.choose_n_classes` draws the held-out curve beside it, for
        ``estimator=DDFA()`` too; in our measurements it was as often right.
    discriminator : str, estimator or callable, default="auto"
        Model of q(d|x): a short name or any object that
        :class:`~shoal.stages.discriminate.Discriminator` takes, or a Discriminator.
        A callable is taken at its word, as the exact q(d|x) under ``domain_weight``;
        like a frozen classifier it is asked about all columns, also constant ones.
    discretizer : {"kmeans", None}, int, estimator, array or callable, default="kmeans"
        How rows become clusters: k-means in the Hellinger metric, its centers from a
        stated sample beyond 100,000 rows, with one to three clusters a class, of
        which the most likely solution is kept, or with as many as an int says, at
        least the number of classes; any discretizer; the cluster of each training
        row, or a function from q(d|x) to it; None looks for the corners of q(d|x)
        itself (Appendix F).
    factorizer : {"spa", "snpa", "em", "volume", "nmf"} or Factorizer, default="spa"
        How the table is split, see :func:`~shoal.stages.factorize.factorize`.
    adjuster : {"likelihood", "simplex", "pinv"} or Adjuster, default="likelihood"
        How q(d|x) becomes q(y|x), see :func:`~shoal.stages.adjust.adjust`.
    cross_fit : int, default=5
        Folds for out-of-fold q(d|x); 0 uses the discriminator on its own rows. Like
        ``calibration`` and ``n_jobs``, not for a Discriminator, which has its own.
    calibration : {None, "temperature", "vector"}, default=None
        Correction of q(d|x) on the out-of-fold rows.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.
    check_identifiable : bool, default=True
        Refuse more classes than domains; False only warns.
    n_jobs : int, default=None
        Folds fitted at the same time; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Also seeds every ``random_state`` of the stages that is None.

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
        q(d|y).
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row.
    n_classes_ : int
    discriminator_ : Discriminator
        Fitted on all rows.
    discretizer_ : estimator or None
        None where corners were looked for.
    factorization_ : Factorization or None
        Both factors, with residual, condition number and anchors.
    adjuster_ : Adjuster
    rank_ : RankResult
        Only when ``n_classes`` was chosen.
    row_keys_ : ndarray of shape (n_samples,)
        By which ``bootstrap`` knows the rows of fit, in whatever order they come.
    weighted_ : bool
        Whether fit was given ``sample_weight``.
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

    n_classes: int | None = None
    _: KW_ONLY
    discriminator: Any = "auto"
    discretizer: Any = "kmeans"
    factorizer: Any = "spa"
    adjuster: Any = "likelihood"
    cross_fit: int | None = 5
    calibration: str | None = None
    domain_weight: Any = "equal"
    check_identifiable: bool = True
    n_jobs: int | None = None
    random_state: Any = None

    def _fit(self, X: Any, domains: Any, sample_weight: Any) -> Self:
        X, codes, rows = self._begin(X, domains, sample_weight)
        domain_given_x = self._discriminate(rows)  # q(d|x)
        discretizers = self._discretize(domain_given_x, rows)  # c(x)
        self._factorize(discretizers, domain_given_x, rows)  # p_d(y)
        class_given_x = self._adjust(X, rows)  # q(y|x)
        own = self._in_domains(class_given_x, codes)  # p_d(y|x)
        self.labels_ = own.argmax(axis=1)
        self.novelty_ = fit_familiar(
            self.scaler_.transform(X)[rows.order],
            class_given_x[rows.order],
            own[rows.order],
            rows.codes,
            self._familiar_seed,
        )
        return self

    # ---- the four stages ----------------------------------------------------------

    def _discriminate(self, rows: CanonicalRows) -> Array:
        """q(d|x) of the training rows, out of fold where the discriminator allows."""
        given = self.discriminator
        if not isinstance(given, (Discriminator, OracleDiscriminator)):
            given = Discriminator(
                given,
                cross_fit=self.cross_fit,
                calibration=self.calibration,
                n_jobs=self.n_jobs,
            )
        discriminator = with_seeds(given, self._draw_seed())
        if isinstance(discriminator, Discriminator):
            names = self.domains_.tolist()
            shares = dict(zip(names, self.domain_weight_, strict=True))
            discriminator.set_params(domain_weight=shares)
        self.discriminator_ = discriminator.fit(
            rows.X, self.domains_[rows.codes], sample_weight=rows.weight
        )
        domain_given_x = np.asarray(self.discriminator_.domain_given_x_)
        self._warn_without_signal(domain_given_x, rows)
        return domain_given_x

    def _discretize(self, points: Array, rows: CanonicalRows) -> list[Any]:
        """Fitted discretizers to choose from; none at all for corner finding."""
        self.n_classes_ = self._resolve_n_classes(points, rows.codes)
        fitted: list[Any] = []
        for one in list_discretizers(self.discretizer, self.n_classes_, rows.order):
            seeded = with_seeds(one, self._draw_seed())
            with warnings.catch_warnings():
                if fitted:  # a sample is said aloud once
                    warnings.simplefilter("ignore", SubsampleWarning)
                fitted.append(seeded.fit(points, sample_weight=rows.weight))
            if fitted[-1].n_clusters_ < getattr(seeded, "n_clusters", 0):
                break  # all distinct points are clusters: there are no more to find
        return fitted

    def _factorize(
        self, discretizers: list[Any], points: Array, rows: CanonicalRows
    ) -> None:
        """Both factors of each cluster-by-domain table; the likeliest are kept."""
        if not discretizers:
            self._find_corners(points, rows.weight)
            return
        found = []
        for one in discretizers:
            shape = one.n_clusters_, len(self.domains_)
            table = cluster_given_domain(one.labels_, rows.codes, *shape, rows.weight)
            with warnings.catch_warnings():
                # Said once, of the settings, and not again for every table.
                warnings.filterwarnings(
                    "ignore", "n_classes=.* cannot be told", IdentifiabilityWarning
                )
                found.append(self._factorizer(table).fit(table).factorization_)
        best = 0 if len(found) == 1 else self._likeliest(found, points, rows.codes)
        self.discretizer_ = discretizers[best]
        self.factorization_: Factorization | None = found[best]
        self._store(found[best].class_given_domain, self.domains_, self.domain_weight_)

    def _adjust(self, X: Any, rows: CanonicalRows) -> Array:
        """q(y|x) of all rows, by the discriminator fitted on all of them."""
        given = self.adjuster
        adjuster = Adjuster(given) if isinstance(given, str) else clone(given)
        self.adjuster_ = adjuster.fit(self.domain_given_class_)
        domain_given_x = self.discriminator_.predict_proba(X)
        rows.restore_order(domain_given_x, self.discriminator_, self.discretizer_)
        return np.asarray(self.adjuster_.predict_proba(domain_given_x))

    # ---- around the stages --------------------------------------------------------

    def _begin(
        self, X: Any, domains: Any, sample_weight: Any
    ) -> tuple[Any, Array, CanonicalRows]:
        """Validate; what every stage and every later question need is set here."""
        X, codes, self.domains_ = check_X_domains(self, X, domains)
        weight = check_sample_weight(
            sample_weight, len(codes), codes=codes, names=self.domains_
        )
        self.weighted_ = weight is not None
        self.row_keys_ = row_keys(X, codes)
        mass = np.bincount(codes, weights=weight, minlength=len(self.domains_))
        self.domain_weight_ = resolve_domain_weight(
            self.domain_weight, self.domains_, mass
        )
        self._check_settings(X.shape[0])
        every = needs_all_columns(self.discriminator)
        self.varying_ = np.ones(X.shape[1], bool) if every else varying_columns(X)
        X = self._used_columns(X)
        self._random = check_random_state(self.random_state)
        self.scaler_ = StandardScaler().fit(X, sample_weight=weight)
        scaled = self.scaler_.transform(X)
        rows = sort_rows(X, scaled, codes, weight)
        self._familiar_seed = self._draw_seed()
        return X, codes, rows

    def _check_settings(self, n_samples: int) -> None:
        """Whatever can be refused before anything is fitted."""
        known = {"factorizer": list(METHODS), "adjuster": list(SOLVERS)}
        for name, names in known.items():
            value = getattr(self, name)
            fits = hasattr(value, "fit") and not isinstance(value, type)
            if not fits and value not in names:
                listed = ", ".join(map(repr, names))
                raise ValueError(f"{name} must be {listed} or an object, got {value!r}")
        if self.n_classes is not None:
            check_n_classes(
                self.n_classes,
                len(self.domains_),
                check_identifiable=self.check_identifiable,
            )
        allow_fewer = bool(getattr(self.factorizer, "allow_fewer", False))
        check_discretizer(
            self.discretizer, self.n_classes, n_samples, allow_fewer=allow_fewer
        )

    def _warn_without_signal(self, domain_given_x: Array, rows: CanonicalRows) -> None:
        """Worse than guessing: nothing to learn from, or q(d|x) too sure of itself."""
        shares, loss = self.domain_weight_, self.discriminator_.held_out_loss_
        guess = -shares @ np.log(shares)
        if loss is None or loss < guess:
            return
        costs = f"on held-out rows q(d|x) costs {loss:.4f} nats, guessing {guess:.4f}"
        calibrated = getattr(self.discriminator_, "calibration_", None) is not None
        # Calibration is fitted to these rows: what it gains must be beyond chance.
        n_fitted = 2 * len(shares) if self.calibration == "vector" else 1
        if not calibrated:
            domain_given_x = fit_calibration(
                domain_given_x,
                rows.codes,
                domain_weight=shares,
                sample_weight=rows.weight,
            ).apply(domain_given_x)
        score = mean_log_likelihood(domain_given_x, rows.codes, shares, rows.weight)
        if guess + score > SETTINGS.chance_gain * n_fitted / len(rows.codes):
            if calibrated:
                return
            warnings.warn(
                f"q(d|x) is too sure of itself: {costs}; pass "
                "calibration='temperature'",
                ShoalWarning,
                stacklevel=5,
            )
            return
        warnings.warn(
            f"domains cannot be told apart: {costs}; classes will mean nothing",
            IdentifiabilityWarning,
            stacklevel=5,
        )

    def _resolve_n_classes(self, points: Array, codes: Array) -> int:
        """The number given, or the rank of a fine cluster-by-domain table."""
        if self.n_classes is not None:
            return int(self.n_classes)
        n_rows, n_domains = points.shape
        fine = min(SETTINGS.clusters_per_domain * n_domains, n_rows // (4 * n_domains))
        clusters = hellinger_kmeans(max(fine, 2), n_init=1)
        labels = with_seeds(clusters, self._draw_seed()).fit(points).labels_
        self.rank_ = supported_rank(labels, codes, random_state=self._draw_seed())
        return self.rank_.n_classes

    def _factorizer(self, table: Array) -> Factorizer:
        given = self.factorizer
        named = isinstance(given, str)
        factorizer = Factorizer(method=given) if named else clone(given)
        if isinstance(self.discretizer, str) and table.shape[1] < self.n_classes_:
            # q(d|x) has fewer distinct values than classes: EM makes the rest up, and
            # warns of it.
            factorizer = Factorizer(method="em", allow_fewer=True)
        return factorizer.set_params(
            n_classes=self.n_classes_,
            domain_weight=self.domain_weight_,
            check_identifiable=self.check_identifiable,
            random_state=self._draw_seed(),
        )

    def _likeliest(self, found: list[Any], points: Array, codes: Array) -> int:
        quota = np.ceil(np.bincount(codes) * min(SETTINGS.judging_rows / len(codes), 1))
        rows = rows_per_domain(codes, quota, self._random)
        solutions = [one.domain_given_class for one in found]
        return likeliest(
            solutions, points[rows], codes[rows], self.domain_weight_, len(codes)
        )

    def _find_corners(self, points: Array, weight: Array | None) -> None:
        """Appendix F: the smallest polytope around q(d|x) has q(d|y) as its corners."""
        model = getattr(self.discriminator_, "estimator_", self.discriminator_)
        corners = minimum_volume_polytope(
            points,
            self.n_classes_,
            outside=0.0 if isinstance(model, OracleDiscriminator) else SETTINGS.outside,
            sample_weight=weight,
            random_state=self._draw_seed(),
        )
        # q(d) is the mixture of the corners with weights q(y).
        class_weight = maximum_likelihood(self.domain_weight_[None], corners)[0]
        prevalence = class_given_domain(corners, class_weight)
        prevalence = prevalence[:, canonical_order(prevalence)]
        self.discretizer_, self.factorization_ = None, None
        self._store(prevalence, self.domains_, self.domain_weight_)

    def _draw_seed(self) -> int:
        return int(self._random.randint(np.iinfo(np.int32).max))
