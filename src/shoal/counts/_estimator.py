"""CountMixture: classes of texts and cells, whose rows count words or genes."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from shoal._work import one_thread
from shoal.counts._bags import Bags
from shoal.counts._components import COUNTED, WEIGHTINGS, Components
from shoal.counts._search import SearchesBags, draw_seed
from shoal.counts._settings import SETTINGS
from shoal.density import DensityMixture
from shoal.mixture import DomainMixture
from shoal.mixture._options import ROUTES
from shoal.probability import canonical_order
from shoal.validation import check_choice, check_whole, check_X_domains
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]


@dataclass(eq=False, repr=False)
class CountMixture(SearchesBags):
    """Discover classes of documents or cells, one class each.

    Counts become a few components (TF-IDF and singular vectors for texts; counts of
    one size, their logarithms, the most variable columns and principal directions of
    what varies inside of domains for cells), on which a mixture finds the classes.
    Classes of counts are then polished as bags: words drawn from the shares of one
    class, with a mix for each domain, by EM from several starts. The start is taken,
    and the polish kept, by how well domains of held-out rows are told.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses it (see :func:`shoal.choose_n_classes`).
    weighting : {"auto", "tfidf", "log", "none", "points"}, default="auto"
        ``"tfidf"`` is for texts, ``"log"`` for cells and other counts, ``"none"`` for
        numbers that are normalized already, ``"points"`` for an encoder's. "auto" takes
        "log" where all numbers are whole and none is negative, else "none".
    by : {"auto", "shift", "looks"}, default="auto"
        What tells classes apart, as in :class:`shoal.DomainMixture`: how domains shift,
        how rows look, or what held-out rows say of both. "auto" is "shift" for texts.
    n_components : int, default=None
        Number of components; None: 20, as far as rows and columns allow.
    mixture : LatentShiftEstimator, default=None
        What finds classes among the components: it is cloned, and gets the number of
        classes and the seed from here, but not ``by``. None: a DomainMixture, all
        components on one scale, or a DensityMixture for ``by="looks"``.
    polish : bool, default=True
        Whether classes of counts are polished as bags. Never where domains change how a
        class looks, nor where the mixture heard looks alone.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution.
    check_identifiable : bool, default=True
        Refuse more classes than domains; False only warns.
    n_jobs : int, default=None
        Optimizations that run side by side; the result does not depend on it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row.
    components_ : Components
    head_ : LatentShiftEstimator
        The mixture, fitted to the components.
        The DensityMixture where looks spoke.
    route_ : Route or None
        What spoke, shift or looks, why, and how far the other agrees; None where
        ``mixture`` does not weigh the two.
    bags_ : Bags or None
        What words say of classes; None where the mixture has the last word.
    held_out_ : dict of str to float
        Log-likelihood of the domains of held-out rows through the classes, by the
        start and what words weigh and, for "mixture", without the polish.
    n_classes_, n_features_in_, class_names_

    See Also
    --------
    shoal.DiscreteMixture : Bags that mix classes; single words; anchors.
    shoal.DomainMixture : Numbers of any kind.

    Examples
    --------
    >>> import numpy as np
    >>> from shoal import CountMixture
    >>> rng = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1, 0, 1], [80, 20, 40, 60])
    >>> shares = np.array([[4, 4, 1, 1, 1], [1, 1, 4, 4, 1]]) / 11
    >>> X = np.array([rng.multinomial(40, shares[y]) for y in labels])
    >>> model = CountMixture(2, random_state=0).fit(X, np.repeat(["a", "b"], 100))
    >>> bool(abs(model.prevalence_ - [[0.8, 0.2], [0.4, 0.6]]).max() < 0.1)
    True
    """

    n_classes: int | None = None
    _: KW_ONLY
    weighting: str = "auto"
    by: str = "auto"
    n_components: int | None = None
    mixture: Any = None
    polish: bool = True
    domain_weight: Any = "equal"
    check_identifiable: bool = True
    n_jobs: int | None = None
    random_state: Any = None

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            One row for each document or cell, one column for each word or gene.
        y : array-like of shape (n_samples,)
            Alias of ``domains``, for scikit-learn's tools.
        domains : array-like of shape (n_samples,)
            Where each row comes from.

        Returns
        -------
        self
        """
        domains = y if domains is None else domains
        X, codes, names = check_X_domains(self, X, domains, accept_sparse=True)
        rng = check_random_state(self.random_state)
        with one_thread():
            whole = self._components(X, codes, rng)
            self.components_ = whole.leading(self._n_components)
            points = self.components_.transform(X)
            k = self._resolve_n_classes(X, names[codes], rng)
            fitted = self._head(rng, n_classes=k).fit(points, domains=names[codes])
            # where looks spoke, their twin is what was fitted: all questions are for it
            self.head_, self.route_ = fitted._origin, getattr(fitted, "route_", None)
            self.bags_: Bags | None = None
            self.held_out_: dict[str, float] = {}
            if self._polishes():
                self._polish(X, codes, whole, rng)
            self._keep()
        self.labels_ = self._most_probable(X, codes)
        if self.route_ is not None:
            self.route_ = self.route_.against(self.labels_, self.n_classes_)
        return self

    # ---- components and the mixture on them ---------------------------------------

    @property
    def _n_components(self) -> int:
        return self.n_components or SETTINGS.components

    def _components(self, X: Any, codes: Array, rng: Any) -> Components:
        """Directions for every start."""
        check_choice(("auto", *WEIGHTINGS), weighting=self.weighting)
        if self.n_components is not None:
            check_whole(1, n_components=self.n_components)
        if self.n_classes is not None and X.shape[1] < self.n_classes:
            raise ValueError(
                f"X has {X.shape[1]} words, too few for n_classes={self.n_classes}; "
                "use fewer classes"
            )
        weighting = self.weighting
        if weighting == "auto":
            weighting = "log" if is_counts(X) else "none"
        if weighting in COUNTED and smallest(X) < 0:
            raise ValueError(
                f"weighting={weighting!r} is for counts, and X has negative numbers; "
                'use weighting="none"'
            )
        most = int(self._n_components * max(1.0, *SETTINGS.further))
        return Components(weighting, most, draw_seed(rng)).fit(X, codes)

    def _head(self, rng: Any, **changes: Any) -> Any:
        """The mixture of components, not fitted; with the settings that it knows."""
        head = self._plain_head() if self.mixture is None else clone(self.mixture)
        known = head.get_params(deep=False)
        shared = {
            "n_classes": self.n_classes,
            "domain_weight": self.domain_weight,
            "check_identifiable": self.check_identifiable,
            "n_jobs": self.n_jobs,
            "random_state": draw_seed(rng),
            **changes,
        }
        return head.set_params(**{key: shared[key] for key in shared if key in known})

    def _plain_head(self) -> Any:
        """Looks alone, or both, or shift; of texts, which look alike, shift alone."""
        check_choice(ROUTES, by=self.by)
        if self.by == "looks":
            return DensityMixture(scale="global")
        text = self.by == "auto" and self.weighting == "tfidf"
        return DomainMixture(by="shift" if text else self.by, scale="global")

    def _keep(self) -> None:
        """Store the solution with its classes in canonical order."""
        head, bags = self.head_, self.bags_
        if bags is not None:
            order = canonical_order(bags.prevalence)
            head._reorder_classes(order)
            self.bags_ = bags = bags.take(order)
        prevalence = head.prevalence_ if bags is None else bags.prevalence
        self._store(prevalence, head.domains_, head.domain_weight_)


def is_counts(X: Any) -> bool:
    """Whether all numbers are whole and none is negative."""
    values = X.data if is_sparse(X) else X
    return bool((values >= 0).all() and (values % 1 == 0).all())


def smallest(X: Any) -> float:
    """The smallest number of a matrix."""
    return float(X.min()) if X.shape[0] and X.shape[1] else 0.0
