"""What analysis, io, report and scale ask of an estimator, and what most answer.

Nobody asks which class an estimator is. Where one can do better than the answer here,
or knows what others do not, it overrides the hook; so a new estimator brings all of
itself along. Merges of classes are looked through by ``_origin``: all hooks but those
about merges are asked of ``estimator._origin``, and what it says of the classes of the
fit goes through ``estimator._add_up``.
"""

import copy
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from shoal._work import one_thread
from shoal.analysis._novelty import familiarity
from shoal.analysis._unknown import Strangers
from shoal.validation._arguments import check_work

if TYPE_CHECKING:
    from shoal.analysis._choose import Evidence
    from shoal.analysis._refits import Trials
    from shoal.analysis._resample import Resampler
    from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold

Array = np.ndarray[Any, Any]


# Share of the mixing distribution of a domain added after the fit.
VANISHING = 1e-12
# Part of a row: a share that no row speaks for is small, and not zero.
PSEUDO_COUNTS = 0.1


class FitsRows:
    """The ``fit`` of estimators of rows; ``_fit`` says what they do."""

    def fit(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> Self:
        """Discover the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            A sparse matrix, and NaN where a value misses, if the class takes them.
        y : array-like of shape (n_samples,)
            Alias of ``domains``, for scikit-learn's tools.
        domains : array-like of shape (n_samples,)
            Where each row comes from.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row within its domain.

        Returns
        -------
        self
        """
        check_work(self.get_params(deep=False))  # type: ignore[attr-defined]
        with one_thread():
            return self._fit(X, y if domains is None else domains, sample_weight)

    def _fit(self, X: Any, domains: Any, sample_weight: Any) -> Self:
        raise NotImplementedError


class EstimatorHooks:
    """Hooks of a fitted estimator with the answers that suit most."""

    prevalence_: Array
    domains_: Array
    domain_weight_: Array
    n_classes_: int
    class_names_: list[str]
    # Whether a row of X is an image, for a network that computes on a device.
    _takes_images: bool = False
    # Whether how rows look tells classes apart, where the mixes of domains cannot.
    _sees_looks: bool = False
    # Whether a fit with one class more can take the place of this one.
    _grows: bool = False
    # Whether ``fit`` can be told classes that are known of some rows.
    _takes_known: bool = False
    # Whether a fit to a sample can be made exact over data read in parts (shoal.scale).
    _fits_in_parts: bool = False

    # ---- what was merged ----------------------------------------------------------

    @property
    def _origin(self) -> Any:
        """The estimator that was fitted, below all merges of its classes."""
        return self

    def _add_up(self, table: Array) -> Array:
        """Shares of the classes of the fit, in the last axis, as those of this one."""
        return table

    def _split_prevalence(self, prevalence: Array) -> Array:
        """Shares of the classes of the fit behind shares of the classes of this one."""
        return prevalence

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        """A copy that knows one domain more, the last of ``domains``.

        ``prevalence`` is the mix of the classes of the fit in it. Its share of the
        mixing distribution vanishes, so that q(y|x) stays as fitted.
        """
        extended = copy.copy(self)
        extended._store(
            np.vstack([self.prevalence_, prevalence]),
            domains,
            np.append(self.domain_weight_ * (1 - VANISHING), VANISHING),
        )
        extended.class_names_ = list(self.class_names_)
        return extended

    def _with_mixes(self, domains: Array, prevalence: Array, labels: Array) -> Any:
        """A copy with other mixes: of its domains, and of others that follow them.

        ``prevalence`` are the mixes of the classes of the fit, whose looks stay;
        ``labels`` are these classes of the rows that the mixes were learned from.
        """
        from shoal.base._derived import updated

        return updated(self, domains, prevalence, labels)

    def _larger(self, seed: int) -> Any:
        """The estimator of the fit with one class more, not fitted."""
        from sklearn.base import clone

        return clone(self).set_params(  # type: ignore[arg-type, union-attr]
            n_classes=self.n_classes_ + 1, random_state=seed
        )

    # ---- what a row is ------------------------------------------------------------

    @property
    def _counts_words(self) -> bool:
        """Whether a row of X is a bag of words, of which each counts; else rows do."""
        return False

    @property
    def _was_weighted(self) -> bool:
        """Whether fit was given ``sample_weight``."""
        return bool(vars(self).get("weighted_", False))

    def _used_columns(self, X: Any) -> Any:
        """Columns of validated rows that the fit has looked at."""
        return X

    def _familiarity(self, X: Any) -> Array:
        """Share of the rows of fit that are at least as strange as each row of X.

        NaN where the estimator keeps no record of them.
        """
        quantiles = self._novelty_quantiles()
        if quantiles is None:
            return np.full(X.shape[0], np.nan)
        return familiarity(self._novelty(X), quantiles)

    def _novelty_quantiles(self) -> Array | None:
        """Quantiles of ``_novelty`` over rows of fit, None without a record of them."""
        novelty = vars(self).get("novelty_")
        return None if novelty is None else novelty.quantiles

    def _strangers(self) -> Strangers | None:
        """How strange rows of an unknown class would be; None where nobody asked."""
        return getattr(vars(self).get("novelty_"), "strangers", None)

    def _novelty(self, X: Any) -> Array:
        """Distance of rows to what fit has seen, larger is stranger; X is validated."""
        return vars(self)["novelty_"].distance(self._familiar_space(X))

    def _familiar_space(self, X: Any) -> Any:
        """Rows in the space where fit has learned what is familiar."""
        return X

    # ---- analysis -----------------------------------------------------------------

    def _resampler(self, X: Any, codes: Array, weight: Array | None) -> "Resampler":
        """How ``bootstrap`` refits: by default prevalences alone, with q(y|x) kept.

        ``X`` is validated, ``codes`` are the domains of its rows, ``weight`` is as in
        fit.
        """
        from shoal.analysis._resample import proportions_resampler

        return proportions_resampler(self, X, codes, weight)

    def _in_doubt(self, X: Any, codes: Array) -> list[Array]:
        """How far each other fit of the rows moves ``prevalence_``.

        Of the classes of the fit, as ``_add_up`` takes them.
        """
        return []

    def _without_drift(self, X: Any, codes: Array) -> tuple[Any, Any]:
        """The fit and its rows, without what it has learned domains to add to them."""
        return self, X

    def _diagnosed_rows(
        self, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
    ) -> "DiagnosedRows":
        """Rows that ``diagnose`` judges: those given, or ``max_rows`` of them.

        By default with RBF features beside the columns.
        """
        from shoal.analysis.diagnose._rows import rows_with_rbf

        return rows_with_rbf(self, X, codes, max_rows, rng)

    def _out_of_fold(
        self, rows: "DiagnosedRows", folds: Array, rng: np.random.Generator
    ) -> "OutOfFold":
        """Classes of the rows by fits that have not seen their fold.

        By default a clone is fitted to the other folds, and its classes are matched.
        """
        from shoal.analysis.diagnose._rows import fit_out_of_fold

        return fit_out_of_fold(self, rows, folds)

    def _evidence(self, X: Any, domains: Any, trials: "Trials") -> "Evidence":
        """What :func:`shoal.choose_n_classes` rests on; asked before a fit.

        By default a clone is fitted for every number of classes and fold.
        """
        from shoal.analysis._refits import evidence_of_rows

        return evidence_of_rows(self, X, domains, trials)

    # ---- io -----------------------------------------------------------------------

    def _probe_rows(self, n_rows: int) -> Any:
        """Made-up rows whose probabilities tell a loaded model from a damaged one.

        None where rows cannot be made up: the model is then saved without a probe.
        """
        return None

    def _probing(self) -> AbstractContextManager[None]:
        """While it lasts, the estimator computes as it would on any machine."""
        return nullcontext()

    def _dump(self, writer: Any) -> dict[str, Any]:
        """What ``shoal.save`` keeps, as JSON; arrays and parts go to the ``writer``."""
        return writer.plain(self)  # type: ignore[no-any-return]

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Any:
        """The fit of :meth:`_dump`; nothing in ``content`` is to be believed."""
        return reader.plain(cls, content)

    # ---- report -------------------------------------------------------------------

    def _told_apart(self) -> str:
        """In a sentence: the evidence that the classes of the fit come from."""
        return "Classes by shift: they are what moves together between domains."

    def _filled(self, X: Any) -> Any:
        """Validated rows with what the fit expects where a value misses."""
        return X

    def _word_counts(self) -> Array | None:
        """Expected occurrences of words by class, (n_classes, n_words).

        None where the fit has no words.
        """
        return None

    # ---- scale --------------------------------------------------------------------

    def _for_parts(self) -> Self:
        """The estimator to fit where all rows are never seen at once; not fitted."""
        return self

    def _lean(self) -> Self:
        """A copy that predicts alike, without what it keeps of each row of fit."""
        copied = copy.copy(self)
        vars(copied).pop("labels_", None)
        return copied

    def _fitted_arrays(self) -> list[Array]:
        """What tells this fit from others, alike for a model from a file."""
        return [self.prevalence_]

    def _pseudo_counts(self, n_rows: int) -> float:
        """Imaginary rows in each class and domain beside ``n_rows`` of them."""
        return PSEUDO_COUNTS

    def _cluster_counts(self, codes: Array) -> Array | None:
        """Rows of fit by domain and cluster; None where it is not made of such counts.

        ``codes`` are the domains of the rows, in the order of fit.
        An estimator with clusters also has ``_clusters(X)`` and
        ``_factorize_counts(counts, seed)``: the fit again from counts of all rows.
        """
        return None

    def _reorder_classes(self, order: Array) -> None:
        """Put the classes of a fit in another order, in place."""
        self._store(self.prevalence_[:, order], self.domains_, self.domain_weight_)
        novelty: Any = vars(self).get("novelty_")
        if getattr(novelty, "strangers", None) is not None:
            moved = novelty.strangers.take(order)
            vars(self)["novelty_"] = replace(novelty, strangers=moved)

    def _store(self, prevalence: Array, domains: Array, domain_weight: Array) -> None:
        raise NotImplementedError


def made_up_rows(n_rows: int, used: Array, centre: Array, spread: Array) -> Array:
    """Rows like those of fit in centre and spread, but none of them.

    ``used`` is the mask of the columns that ``centre`` and ``spread`` are about.
    """
    noise = np.random.default_rng(0).normal(size=(n_rows, len(used)))
    rows = np.zeros_like(noise)
    rows[:, used] = centre + spread * noise[:, used]
    return rows
