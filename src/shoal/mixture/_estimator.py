"""DomainMixture: q(d|x) = q(y|x) q(d|y) by maximum likelihood."""

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal._work import one_thread
from shoal.analysis._choose import Evidence
from shoal.analysis._rank import NO_SIGNAL
from shoal.analysis._refits import Trials
from shoal.exceptions import CollapseWarning, IdentifiabilityWarning
from shoal.likelihood._features import FeatureMap, TrainingRows, log_proba
from shoal.likelihood._problem import Fit
from shoal.likelihood._settings import SETTINGS
from shoal.mixture._gaps import fair_weight, settle_gaps
from shoal.mixture._n_classes import curve_evidence, has_signal, pick_n_classes
from shoal.mixture._options import SearchOptions, read_options
from shoal.mixture._route import HearsLooks, fit_looks, only_route
from shoal.mixture._search import Search
from shoal.probability import canonical_order
from shoal.validation import check_X_domains
from shoal.validation._arguments import is_whole
from shoal.validation._domains import check_n_classes, check_sample_weight
from shoal.validation._known import Given, Knowledge, read_known, too_few_classes
from shoal.validation._rows import is_sparse, sort_rows, varying_columns

Array = np.ndarray[Any, Any]


@dataclass(eq=False, repr=False)
class DomainMixture(HearsLooks):
    """Discover classes as the hidden step between a row and its domain.

    The domain of a row is modelled through k classes, q(d|x) = q(y|x) q(d|y): a
    softmax gives the class from the features, and each class has its own distribution
    over domains. Both are fitted together by the likelihood of the domains, started
    from anchors that the stages find, and everything else (scale and expansion of the
    features, penalties, start) is chosen by that likelihood on held-out rows.

    That is the evidence of *shift*. How rows *look* is heard as well, through a
    :class:`shoal.DensityMixture` with as many classes, which speaks instead where
    domains change the looks of a class, where their mixes tell nothing, or where it
    says better which domain held-out rows come from.

    Cells of X may be NaN. Looks integrate them out; for shift, what the other cells of
    the row let expect stands there, or the mean of the column, if held-out rows say so
    or with ``search=False``.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None chooses it (see :func:`shoal.choose_n_classes`).
    by : {"auto", "shift", "looks"}, default="auto"
        What tells classes apart; "auto" hears both and chooses on held-out rows.
        Shift is heard alone with ``search=False``, with an ``expansion`` other than
        "auto", for sparse matrices, and for fewer than 8 rows a domain.
    search : bool, default=True
        Race starts (by anchors and by looks), penalties and features on held-out rows.
        False optimizes once with fixed penalties: what a search begins with, and keeps
        where nothing is better. Of a few thousand rows it is ten times as
        fast and costs accuracy (.05 to .2 on small real tables); of tens of thousands
        two to three times as fast, and little is lost.
    scale : {"auto", "column", "global"}, default="auto"
        Unit spread for every column (measurements with units of their own), or one
        factor for all (embeddings, principal components).
    expansion : {"auto", "linear", "components", "rbf", "quadratic", "nystroem", \
"discriminator"}, default="auto"
        What the softmax sees beside the columns themselves, or principal components
        in their place; "auto" decides between linear and RBFs at k-means centres or,
        where there are under 20 rows a column, between linear and components.
    ridge : float, default="auto"
        Penalty on the squared weights of the softmax.
    confidence : float, default="auto"
        Penalty on the entropy of q(y|x): prefers classes that can be told apart.
    dirichlet : float, default="auto"
        Pseudo-counts: rows added to each class in each domain: keeps q(d|y) off zero.
    volume : float, default=0.0
        Penalty on the volume spanned by the rows of q(d|y).
    solver : {"lbfgs", "em"}, default="lbfgs"
        For the final optimization.
    max_iter : int, default=400
        Iterations of the final optimization.
    tol : float, default=1e-7
        It ends when an iteration gains less than this share of the objective.
    max_search_rows : int, default=20000
        The search compares on a sample of at most so many rows, spread evenly over the
        domains, and of 8,000 where these are 100 a domain; a single optimization takes
        three times as many. The final fit uses all rows.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in the mixing distribution (A.3). Under "equal", a
        row of a very small domain counts at most three times as much as the mean row:
        more, and a class would be spent on a handful of rows. A mapping is taken as
        it is.
    check_identifiable : bool, default=True
        Refuse more classes than domains (A.1); False only warns.
    n_jobs : int, default=None
        Optimizations that run side by side (threads); the result does not depend on it.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    prevalence_ : ndarray of shape (n_domains, n_classes)
        p_d(y), rows in the order of ``domains_``; classes in decreasing mean
        prevalence.
    domain_given_class_ : ndarray of shape (n_classes, n_domains)
        q(d|y).
    domains_ : ndarray of shape (n_domains,)
    labels_ : ndarray of shape (n_samples,)
        Class of each training row.
    weights_ : ndarray of shape (n_classes, n_columns + 1)
        Softmax weights of the scaled and expanded features; the last is the intercept.
    features_ : FeatureMap
    penalties_ : Penalties
        Those of the final fit.
    held_out_ : dict of str to (float, float)
        Held-out log-likelihood and its standard error of every setting compared.
    start_ : str
        The start that won.
    history_ : list of float
        Objective after each iteration: of the winning start under the first penalties,
        then of the final optimization under those chosen.
    n_iter_ : int
        Iterations of the final optimization.
    weighted_ : bool
        Whether fit was given ``sample_weight``.
    route_ : Route
        What spoke, shift or looks, why, and how far the other agrees.
    looks_ : DensityMixture or None
        What answers where looks spoke. The attributes from ``weights_`` on are those of
        the fit by shift, and missing with ``by="looks"``.
    known_ : KnownClasses or None
        What fit was told of classes (``labels``), and how far the rest agrees.
    filling_ : Filling or None
        What the softmax sees where a value misses (``how``), and how many do by column
        (``n_missing``); looks integrate such cells out. None for sparse matrices.
    n_classes_, n_features_in_, class_names_

    See Also
    --------
    shoal.DensityMixture : Classes by looks alone.
    shoal.DDFA : The four stages of the paper.
    shoal.DiscreteMixture : Categorical inputs and counts.

    Examples
    --------
    >>> from shoal import DomainMixture
    >>> from shoal.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = DomainMixture(n_classes=3, random_state=0)
    >>> model.fit(penguins.X, penguins.domains).prevalence_.shape
    (3, 3)
    >>> from shoal.metrics import matched_accuracy
    >>> matched_accuracy(penguins.labels, model.labels_) > 0.98
    True
    """

    n_classes: int | None = None
    _: KW_ONLY
    by: str = "auto"
    search: bool = True
    scale: str = "auto"
    expansion: str = "auto"
    ridge: float | str = "auto"
    confidence: float | str = "auto"
    dirichlet: float | str = "auto"
    volume: float = 0.0
    solver: str = "lbfgs"
    max_iter: int = 400
    tol: float = 1e-7
    max_search_rows: int = 20_000
    domain_weight: Any = "equal"
    check_identifiable: bool = True
    n_jobs: int | None = None
    random_state: Any = None

    def refit(
        self,
        X: Any,
        y: Any = None,
        *,
        domains: Any = None,
        sample_weight: Any = None,
        n_classes: int,
    ) -> Self:
        """Fit another number of classes with the features and penalties found here.

        Returns a new estimator; starts and the pseudo-counts, which are per
        class, are searched again.
        """
        check_is_fitted(self)
        domains = y if domains is None else domains
        other = type(self)(**{**self.get_params(deep=False), "n_classes": n_classes})
        if self.by == "looks":
            return other.fit(X, domains, sample_weight=sample_weight)
        options = replace(
            read_options(other),
            scale=self.features_.scale,
            expansion=self.features_.expansion,
            ridge=self.penalties_.ridge,
            confidence=self.penalties_.confidence,
        )
        with one_thread():
            return other._fit(X, domains, sample_weight, options=options)

    def _fit(
        self,
        X: Any,
        domains: Any,
        sample_weight: Any,
        given: Given | None = None,
        options: SearchOptions | None = None,
    ) -> Self:
        options = read_options(self) if options is None else options
        X, codes, names = check_X_domains(
            self, X, domains, accept_sparse=True, allow_nan=True
        )
        check_sample_weight(sample_weight, X.shape[0], codes=codes, names=names)
        known = read_known(given, codes, names)
        self.looks_ = self.known_ = None
        self.filling_, twin = settle_gaps(self, X, names, codes, sample_weight, given)
        if self.by == "looks":
            self._hear_looks(X, names[codes], sample_weight, given)
            return self
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1)
        )
        told = sample_weight, known
        rows, fit = self._fit_shift(X, codes, names, *told, options, rng)
        self.route_ = only_route("shift", self.n_classes_)
        if options.hears_looks(rows):
            self._weigh(X, codes, sample_weight, given, rng, twin)
        self._warn_about(rows, options, fit)
        return self

    def _fit_shift(
        self,
        X: Any,
        codes: Array,
        names: Array,
        sample_weight: Any,
        known: Knowledge | None,
        options: SearchOptions,
        rng: np.random.Generator,
    ) -> tuple[TrainingRows, Fit]:
        rows = self._training_rows(X, codes, names, sample_weight, known)
        if options.expansion == "discriminator":
            rows = self._with_discriminator(rows, rng)
        n_classes = self._resolve_n_classes(rows, options, rng)
        search = Search(rows, n_classes, options, rng)
        found = search.run()
        self.features_, self.penalties_ = found.features, found.penalties
        self.held_out_, self.start_ = search.record, found.start
        order = self._keep(
            found.fit, found.class_given_domain, names, rows.domain_weight, known
        )
        some = rows.sample(SETTINGS.novelty_rows, rng)
        self.novelty_ = self._fit_familiar(some, int(rng.integers(2**31 - 1)))
        self.labels_ = self._most_probable(X, codes)
        if known is not None:
            self._keep_known(X, codes, self._name_classes(known, order))
        return rows, found.fit

    def _for_parts(self) -> Self:
        """Densities are fitted to rows, not to counts of them."""
        return self.set_params(by="shift") if self.by == "auto" else self

    # ---- looks --------------------------------------------------------------------

    def _hear_looks(
        self, X: Any, domains: Array, sample_weight: Any, given: Given | None
    ) -> None:
        """Classes by looks alone."""
        if is_sparse(X):
            raise ValueError(
                "by='looks' takes no sparse matrix; use by='shift', or pass X.toarray()"
            )
        self.weighted_ = sample_weight is not None
        weight = self.domain_weight
        self._listen_to(
            fit_looks(self, self.n_classes, weight, X, domains, sample_weight, given)
        )
        self.route_ = only_route("looks", self.n_classes_)

    # ---- before the search --------------------------------------------------------

    def _training_rows(
        self,
        X: Any,
        codes: Array,
        names: Array,
        sample_weight: Any,
        known: Knowledge | None = None,
    ) -> TrainingRows:
        """Rows without constant columns, in an order only their content decides."""
        self.weighted_ = sample_weight is not None
        sample_weight = check_sample_weight(
            sample_weight, X.shape[0], codes=codes, names=names
        )
        X = self._filled(X)
        self.varying_ = varying_columns(X)
        X = X if self.varying_.all() else X[:, self.varying_]
        weight = fair_weight(self.domain_weight, names, codes, sample_weight)
        even = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        plain = FeatureMap("column").fit(X, even)
        rows = sort_rows(X, plain.transform(X), codes, sample_weight)
        told = None if known is None else known.take(rows.order)
        return TrainingRows(rows.X, rows.codes, rows.weight, weight, known=told)

    def _with_discriminator(
        self, rows: TrainingRows, rng: np.random.Generator
    ) -> TrainingRows:
        from shoal.stages.discriminate import Discriminator

        discriminator = Discriminator(
            cross_fit=3, random_state=int(rng.integers(2**31)), n_jobs=self.n_jobs
        ).fit(rows.X, rows.codes)
        return replace(
            rows,
            discriminator=discriminator,
            log_domain_given_x=log_proba(discriminator.domain_given_x_),
        )

    def _resolve_n_classes(
        self, rows: TrainingRows, options: SearchOptions, rng: np.random.Generator
    ) -> int:
        least = 0 if rows.known is None else len(rows.known.names)
        if self.n_classes is None:
            blind = replace(rows, known=None)
            return max(pick_n_classes(blind, options, rng), least)
        if is_whole(self.n_classes) and 0 < self.n_classes < least:
            raise too_few_classes(self.n_classes, rows.known)
        if rows.known is not None and rows.known.n_told == self.n_classes:
            return self.n_classes  # known rows tell them apart, whatever the domains
        return check_n_classes(
            self.n_classes, rows.n_domains, check_identifiable=self.check_identifiable
        )

    # ---- after the search ---------------------------------------------------------

    def _keep(
        self,
        fit: Fit,
        prevalence: Array,
        names: Array,
        weight: Array,
        known: Knowledge | None,
    ) -> Array:
        """Store the fit with its classes in canonical order, which is returned."""
        if known is not None:
            prevalence = known.impose(prevalence)
        order = canonical_order(prevalence)
        self.weights_ = fit.weights[order]
        self._store(prevalence[:, order], names, weight)
        self.objective_ = fit.objective
        self.history_ = fit.history
        self.n_iter_ = max(fit.n_iter, 1)
        self.converged_ = fit.converged
        return order

    def _warn_about(self, rows: TrainingRows, options: SearchOptions, fit: Fit) -> None:
        """Say what is wrong with the solution, if anything is."""
        share = self.class_weight_
        by_shift = self.route_.by == "shift"  # looks have warned of their own
        if by_shift and share.min() < SETTINGS.collapsed:
            few = int((share < SETTINGS.collapsed).sum())
            sizes = np.bincount(self.labels_, minlength=self.n_classes_)
            warnings.warn(
                f"{few} of {self.n_classes_} classes hold almost no rows (rows per "
                f"class: {sizes.tolist()}); use fewer classes",
                CollapseWarning,
                stacklevel=4,
            )
        tail = fit.history[-min(self.n_iter_, SETTINGS.last_iterations) :]
        if by_shift and not fit.converged and tail[0] - tail[-1] > SETTINGS.unfinished:
            warnings.warn(
                f"the final optimization was cut at max_iter={self.max_iter} while the "
                f"objective still fell; raise max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        unknown = rows.known is None or rows.known.n_told < self.n_classes_
        if (
            self.n_classes is not None
            and unknown
            and not has_signal(
                replace(rows, known=None),
                options,
                self.features_,
                fit.domain_given_class,
                self.penalties_,
            )
        ):
            warnings.warn(NO_SIGNAL, IdentifiabilityWarning, stacklevel=4)

    def _evidence(self, X: Any, domains: Any, trials: Trials) -> Evidence:
        X, codes, names = check_X_domains(
            self, X, domains, accept_sparse=True, allow_nan=True
        )
        options = replace(read_options(self), n_jobs=trials.n_jobs)
        self.filling_, _ = settle_gaps(self, X, names, codes)
        rows = self._training_rows(X, codes, names, None)
        return curve_evidence(rows, options, trials)
