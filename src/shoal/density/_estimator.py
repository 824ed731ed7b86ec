"""DensityMixture: classes by how rows look and how they shift."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._choose import Evidence
from shoal.analysis._novelty import novelty_quantiles
from shoal.analysis._refits import Trials
from shoal.analysis._resample import Resampler
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold
from shoal.base._hooks import made_up_rows
from shoal.base._known import FitsKnown
from shoal.density._choose import Chosen, find_solution, pick_n_classes
from shoal.density._columns import fill_gaps, read_table
from shoal.density._fitted import (
    FittedDensity,
    climb_out_of_fold,
    evidence_on_a_sample,
    judge_known,
    resampler,
    strangers_to,
)
from shoal.density._gaussian import (
    KINDS,
    Rows,
    class_log_densities,
    class_means,
    expected_rows,
    reorder,
)
from shoal.density._settings import DECISIONS
from shoal.density._starts import DensityOptions, read_options
from shoal.exceptions import CollapseWarning
from shoal.probability import TINY, canonical_order
from shoal.validation import check_X_domains, resolve_domain_weight
from shoal.validation._domains import check_sample_weight, encode_domains
from shoal.validation._known import Given, Knowledge, read_known, too_few_classes

Array = np.ndarray[Any, Any]


class DensityMixture(FitsKnown, FittedDensity):
    """Discover classes by their densities, with a mix of classes for each domain.

    p_d(x) = sum_y p_d(y) p(x|y): each class is one or several Gaussians (or t
    distributions, whose tails forgive strange rows), the same in all domains; each
    domain has a mix of its own, shrunken to the common one; and, if that pays, each
    domain moves all classes by an offset, its *drift*. Fitted by EM from several
    starts. Missing values are integrated out: a row has the density of the columns
    that are there.

    The generative twin of :class:`shoal.DomainMixture`: how rows look speaks as well as
    how they shift, so that more classes than domains are possible.

    Parameters
    ----------
    n_classes : int, default=None
        Number of classes; None takes the fewest that explain the domains of held-out
        rows as well as any number does (looks alone where domains do not differ).
    covariance : {"auto", "tied", "diag", "full"}, default="auto"
        One covariance for all classes, variances alone, or a covariance for each
        class; "auto" takes what explains the domains of held-out rows best.
    n_components : int, default=1
        Gaussians in a class.
    tail : float, default="auto"
        Degrees of freedom of t distributions in place of Gaussians; inf for Gaussians,
        "auto" for the likeliest of a few.
    drift : bool or "auto", default="auto"
        Whether domains may move; "auto" where that predicts held-out rows better
        beyond doubt.
    scale : {"column", "global"}, default="column"
        What starts and penalties take for alike: columns divided by their spreads, or
        as they are, such as principal components.
    n_init : int, default=20
        Starts: one by splitting, the others by k-means and around random rows.
    max_iter : int, default=300
        Iterations of the last climb.
    tol : float, default=1e-5
        A climb ends when an iteration gains less, in nats a row.
    max_rows : int, default=200000
        Of more rows, a sample of this size, spread evenly over the domains, is fitted,
        with a SubsampleWarning.
    domain_weight : {"equal", "size"} or mapping, default="equal"
        Share q(d) of each domain in q(y|x), q(d|y) and the score. It does not enter
        the fit: p(x|d) is the same whatever the share of d.
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
    means_ : ndarray of shape (n_classes, n_features)
        Mean of each class, NaN in columns that do not vary.
    drift_ : ndarray of shape (n_domains, n_features) or None
        Offset of each domain, in the units of the columns; None without drift.
    covariance_ : {"tied", "diag", "full"}
    tail_ : float
    identified_by_ : {"looks and shift", "looks"}
        "looks" for more classes than domains: their mixes alone could not tell them
        apart.
    held_out_ : dict of str to (float, float)
        Held-out log-likelihood of the domains, and its standard error, of every
        setting compared; of numbers of classes where these were chosen.
    held_out_rows_ : dict of str to (float, float)
        The same of log p(x|d), in standardized columns.
    start_ : str
        The start that won.
    history_ : list of float
        Penalized log-likelihood of a row after each iteration of the last climb.
    n_iter_ : int
    converged_ : bool
    weighted_ : bool
        Whether fit was given ``sample_weight``.
    known_ : KnownClasses or None
        What fit was told of classes (``labels``), and how far the rest agrees.
    columns_, density_, n_classes_, n_features_in_, class_names_

    See Also
    --------
    shoal.DomainMixture : The same classes by the likelihood of the domains alone.
    shoal.density.shift_and_drift : Whether domains differ in their mix, or in p(x|y).

    Notes
    -----
    Shapes and the number of classes are chosen by the likelihood of the domains, log
    q(d|x), and not by log p(x|d): no class of a real table is Gaussian, so that freer
    shapes and more classes always follow p(x) better, whether they find classes or not.

    References
    ----------
    C. Fraley, A. E. Raftery (2007). Bayesian Regularization for Normal Mixture
    Estimation and Model-Based Clustering. Journal of Classification 24. D. Peel, G. J.
    McLachlan (2000). Robust mixture modelling using the t distribution. Statistics and
    Computing 10.

    Examples
    --------
    >>> from shoal import DensityMixture
    >>> from shoal.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = DensityMixture(n_classes=3, random_state=0)
    >>> model.fit(penguins.X, penguins.domains).prevalence_.shape
    (3, 3)
    >>> from shoal.metrics import matched_accuracy
    >>> matched_accuracy(penguins.labels, model.labels_) > 0.98
    True
    """

    _allow_nan = True
    _sees_looks = True
    _block_rows = DECISIONS.block_rows

    def __init__(
        self,
        n_classes: int | None = None,
        *,
        covariance: str = "auto",
        n_components: int = 1,
        tail: float | str = "auto",
        drift: bool | str = "auto",
        scale: str = "column",
        n_init: int = 20,
        max_iter: int = 300,
        tol: float = 1e-5,
        max_rows: int = 200_000,
        domain_weight: Any = "equal",
        random_state: Any = None,
    ) -> None:
        self.n_classes = n_classes
        self.covariance = covariance
        self.n_components = n_components
        self.tail = tail
        self.drift = drift
        self.scale = scale
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.max_rows = max_rows
        self.domain_weight = domain_weight
        self.random_state = random_state

    def _fit(
        self, X: Any, domains: Any, sample_weight: Any, given: Given | None = None
    ) -> Self:
        options = read_options(self)
        X, codes, names = check_X_domains(self, X, domains, allow_nan=True)
        known = read_known(given, codes, names)
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1)
        )
        rows, weight = self._training_rows(X, codes, names, sample_weight, rng, known)
        n_classes = self._resolve_n_classes(rows, options, rng)
        kinds = self._kinds(rows)
        solution = find_solution(rows, n_classes, kinds, self.drift, options, rng)
        order = self._keep(solution, names, weight)
        self.novelty_quantiles_ = novelty_quantiles(self._novelty(X))
        self.strangers_ = strangers_to(self, X, codes, rng)
        self.labels_ = self._most_probable(X, codes)
        self.known_ = None
        if known is not None:
            known = self._name_classes(known, order)
            self._keep_labels(X, codes, known)
            self.known_ = judge_known(self, X, codes, known)
        self._warn_about(solution)
        return self

    # ---- before the climb ---------------------------------------------------------

    def _training_rows(
        self,
        X: Array,
        codes: Array,
        names: Array,
        sample_weight: Any,
        rng: np.random.Generator,
        known: Knowledge | None = None,
    ) -> tuple[Rows, Array]:
        """Rows in an order that only their content decides, and q(d)."""
        self.weighted_ = sample_weight is not None
        sample_weight = check_sample_weight(
            sample_weight, len(X), codes=codes, names=names
        )
        mass = np.bincount(codes, weights=sample_weight, minlength=len(names))
        weight = resolve_domain_weight(self.domain_weight, names, mass)
        self.columns_, rows = read_table(
            X, codes, len(names), sample_weight, self.max_rows, rng, known, self.scale
        )
        return rows, weight

    def _resolve_n_classes(
        self, rows: Rows, options: DensityOptions, rng: np.random.Generator
    ) -> int:
        self.held_out_: dict[str, tuple[float, float]] = {}
        self.held_out_rows_: dict[str, tuple[float, float]] = {}
        least = 0 if rows.known is None else len(rows.known.names)
        if self.n_classes is not None:
            if self.n_classes < least:
                raise too_few_classes(self.n_classes, rows.known)
            count = self.n_classes * self.n_components
            if count > len(rows.X):
                raise ValueError(
                    f"n_classes={self.n_classes} needs at least {count} rows, got "
                    f"{len(rows.X)}; use fewer classes"
                )
            return int(self.n_classes)
        kind = self._kinds(rows)[-1]
        n_classes, curve = pick_n_classes(rows, kind, options, rng)
        for count, one in curve.items():
            self.held_out_[f"{count} classes"] = (one.mean, one.standard_error())
        return max(n_classes, least)

    def _kinds(self, rows: Rows) -> tuple[str, ...]:
        """Covariances to choose from."""
        if self.covariance != "auto":
            return (self.covariance,)
        wide = rows.X.shape[1] > DECISIONS.most_columns
        if wide or (rows.gaps and len(rows.gaps.patterns) > DECISIONS.most_patterns):
            return ("diag",)
        return KINDS

    # ---- after the climb ----------------------------------------------------------

    def _keep(self, solution: Chosen, names: Array, weight: Array) -> Array:
        """Store the solution with its classes in canonical order, which is returned."""
        fit = solution.fit
        order = canonical_order(fit.density.mix)
        self.density_ = reorder(fit.density, order)
        self._store(self.density_.mix, names, weight)
        self.covariance_ = fit.density.kind
        self.tail_ = float(fit.density.tail)
        self.means_ = self.columns_.features(class_means(self.density_))
        drift = fit.density.drift
        self.drift_ = None if drift is None else self.columns_.restore(drift)
        looks_only = self.n_classes_ > len(names)
        self.identified_by_ = "looks" if looks_only else "looks and shift"
        for name, (of_rows, of_domains) in solution.judged.items():
            self.held_out_[name] = (of_domains.mean, of_domains.standard_error())
            self.held_out_rows_[name] = (of_rows.mean, of_rows.standard_error())
        self.start_, self.history_ = solution.start, fit.history
        self.n_iter_ = len(fit.history)
        self.converged_ = fit.converged
        return order

    def _warn_about(self, solution: Chosen) -> None:
        share = self.class_weight_
        if share.min() < DECISIONS.collapsed:
            few = int((share < DECISIONS.collapsed).sum())
            sizes = np.bincount(self.labels_, minlength=self.n_classes_)
            warnings.warn(
                f"{few} of {self.n_classes_} classes hold almost no rows (rows per "
                f"class: {sizes.tolist()}); use fewer classes",
                CollapseWarning,
                stacklevel=4,
            )
        if not solution.fit.converged:
            warnings.warn(
                f"the last climb was cut at max_iter={self.max_iter} while an "
                f"iteration still gained more than tol={self.tol:g}; raise either",
                ConvergenceWarning,
                stacklevel=4,
            )

    # ---- prediction ---------------------------------------------------------------

    def _class_given_x(self, X: Any) -> Array:
        logs = self._class_logs(X) + np.log(np.maximum(self.class_weight_, TINY))
        return np.asarray(softmax(logs, axis=1))

    def _posterior_blocks(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Iterator[tuple[slice, Array]]:
        if codes is None or self.density_.drift is None:
            yield from super()._posterior_blocks(X, codes, prevalence)
            return
        log_mix = np.log(np.maximum(self.prevalence_, TINY))
        for rows in gen_batches(X.shape[0], self._block_rows):
            own = codes[rows]
            yield rows, softmax(self._class_logs(X[rows], own) + log_mix[own], axis=1)

    def _class_logs(self, X: Any, codes: Array | None = None) -> Array:
        """Log p(x|y) in the columns of the density.

        With drift it is that in the domain of each row or, without ``codes``, in all
        domains together: sum_d q(d|y) p_d(x|y).
        """
        Z, gaps = self.columns_.read(X)
        density = self.density_
        if density.drift is None:
            return class_log_densities(Z, gaps, density)
        if codes is not None:
            return class_log_densities(Z - density.drift[codes], gaps, density)
        log_share = np.log(np.maximum(self.domain_given_class_, TINY))
        parts = [
            class_log_densities(Z - drift, gaps, density) + log_share[:, code]
            for code, drift in enumerate(density.drift)
        ]
        return np.asarray(logsumexp(parts, axis=0))

    def log_likelihood(
        self, X: Any, domains: Any, *, sample_weight: Any = None
    ) -> float:
        """Mean log p(x|d) of rows, in nats a row; higher is better.

        Unlike ``score`` it depends on the units of the columns, and says how well rows
        are described, not how well their domains are told.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        domains : array-like of shape (n_samples,) or scalar
            Where the rows come from.
        sample_weight : array-like of shape (n_samples,), default=None
        """
        check_is_fitted(self)
        X = self._check_rows(X)
        codes = encode_domains(domains, self.domains_, n_samples=X.shape[0])
        if codes is None:
            raise ValueError("domains must be passed: the domain of each row")
        weight = check_sample_weight(sample_weight, X.shape[0])
        logs = self._class_logs(X, codes)
        logs += np.log(np.maximum(self.prevalence_, TINY))[codes]
        each = logsumexp(logs, axis=1) + self.columns_.log_volume(X)
        return float(np.average(each, weights=weight))

    # ---- hooks --------------------------------------------------------------------

    def _used_columns(self, X: Any) -> Any:
        """What is expected stands in gaps: other models take none."""
        filled = self._filled(X)
        return (
            filled if self.columns_.varying.all() else filled[:, self.columns_.varying]
        )

    def _filled(self, X: Any) -> Any:
        missing = np.isnan(X)
        if not missing.any():
            return X
        Z = expected_rows(*self.columns_.read(X), self.density_, self.class_weight_)
        # what is constant has no expectation, and its one value
        return fill_gaps(np.where(missing, self.columns_.features(Z), X))

    def _told_apart(self) -> str:
        if self.identified_by_ == "looks":
            return self._with_known(
                f"Classes by looks alone: {self.n_classes_} classes are more than "
                f"{len(self.domains_)} domains can tell apart by their mix."
            )
        sentence = "Classes by looks: how rows look, with a mix of classes for each"
        return self._with_known(f"{sentence} domain.")

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        extended = super()._with_domain(domains, prevalence)
        drift = self.density_.drift
        if drift is not None:  # nobody knows that of the new domain
            drift = np.vstack([drift, np.zeros(drift.shape[1])])
        extended.density_ = replace(
            self.density_, mix=extended.prevalence_, drift=drift
        )
        return extended

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> Resampler:
        return resampler(self, X, codes, weight)

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        return climb_out_of_fold(self, rows, folds)

    def _evidence(self, X: Any, domains: Any, trials: Trials) -> Evidence:
        return evidence_on_a_sample(self, X, domains, trials)

    def _probe_rows(self, n_rows: int) -> Array:
        columns = self.columns_
        return made_up_rows(n_rows, columns.varying, columns.mean, columns.scale)

    def _pseudo_counts(self, n_rows: int) -> float:
        return DECISIONS.mix_rows / self.n_classes_

    def _reorder_classes(self, order: Array) -> None:
        super()._reorder_classes(order)
        self.density_ = reorder(self.density_, order)
        if self._strangers() is not None:
            self.strangers_ = self.strangers_.take(order)
        self.means_ = self.means_[order]
