"""What DDFA, DiscreteMixture and DomainMixture share: everything after the fit.

A subclass fits, then hands its solution to :meth:`LatentShiftEstimator._store`, and
says how to compute q(y|x) in :meth:`LatentShiftEstimator._class_given_x`. Prediction,
scoring, adaptation and naming then follow from the probability algebra alone.
"""

import copy
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import ClassifierTags, gen_batches
from sklearn.utils.validation import check_is_fitted

from shoal.base._hooks import EstimatorHooks
from shoal.base._shown import ExplainsRows, NotebookRepr, ShowsItself
from shoal.exceptions import DomainMissingError
from shoal.probability import (
    class_posterior,
    domain_given_class,
    mean_log_likelihood,
    shift_prior,
)
from shoal.validation import check_X
from shoal.validation._domains import check_sample_weight, encode_domains

if TYPE_CHECKING:
    from shoal.analysis._adapt import Adaptation
    from shoal.analysis._bootstrap import Intervals
    from shoal.analysis.diagnose._result import Diagnosis
    from shoal.base._derived import MergedClasses

Array = np.ndarray[Any, Any]

# Class mixes that differ by less, each class relative to itself, are the same mix.
SAME_MIX = 1e-12


def class_ids(n_classes: int) -> list[str]:
    """What classes are called until somebody names them."""
    return [f"c{index}" for index in range(n_classes)]


class LatentShiftEstimator(
    ShowsItself,
    NotebookRepr,
    ExplainsRows,
    EstimatorHooks,
    TransformerMixin,
    BaseEstimator,
):
    """Contract of every estimator: classes, prevalences, per-domain posteriors."""

    # What check_X accepts at predict; a subclass may widen it.
    _accept_sparse = False
    _allow_nan = False
    _input_dtype: Any = (np.float64, np.float32)
    # Rows that are predicted together: what a block needs beyond the result comes once.
    # None: all of them, for what must be asked once.
    _block_rows: int | None = None

    def _class_given_x(self, X: Any) -> Array:
        """q(y|x) under the mix of domains used in fit; X is already validated."""
        raise NotImplementedError

    # ---- storing a solution -------------------------------------------------------

    def _store(self, prevalence: Array, domains: Array, domain_weight: Array) -> None:
        """Keep a solution whose classes are already in canonical order."""
        self.domains_ = domains
        self.domain_weight_ = domain_weight
        self.prevalence_ = prevalence
        self.domain_given_class_ = domain_given_class(prevalence, domain_weight)
        self.class_weight_ = domain_weight @ prevalence
        self.n_classes_ = prevalence.shape[1]
        self.class_names_ = class_ids(self.n_classes_)

    # ---- prediction ---------------------------------------------------------------

    def predict_proba(
        self, X: Any, domains: Any = None, *, prevalence: Any = None
    ) -> Array:
        """Probability of each class for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        domains : array-like of shape (n_samples,), scalar or None, default=None
            Where the rows come from: one domain per row, one for all rows, or None
            for the equal mix of the training domains.
        prevalence : array-like of shape (n_classes,), default=None
            Class mix of a domain that fit has not seen (see ``adapt``).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            p_d(y|x); rows sum to 1.
        """
        check_is_fitted(self)
        X = self._check_rows(X)
        if prevalence is not None and domains is not None:
            raise ValueError("pass domains or prevalence, not both")
        if prevalence is not None:
            prevalence = self._check_prevalence(prevalence)
        codes = encode_domains(domains, self.domains_, n_samples=X.shape[0])
        return self._posterior(X, codes, prevalence)

    def _posterior(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Array:
        """p(y|x) in the domain of each row, under a class mix, or in the equal mix."""
        result = np.empty((X.shape[0], self.n_classes_))
        for rows, block in self._posterior_blocks(X, codes, prevalence):
            if rows.start == 0:
                result = result.astype(block.dtype, copy=False)
            result[rows] = block
        return result

    def _posterior_blocks(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Iterator[tuple[slice, Array]]:
        mix = self._wanted_mix(codes, prevalence)
        for rows in gen_batches(X.shape[0], self._block_rows or max(X.shape[0], 1)):
            own = None if codes is None else codes[rows]
            yield rows, self._in_mix(self._class_given_x(X[rows]), own, mix)

    def _wanted_mix(
        self, codes: Array | None, prevalence: Array | None
    ) -> Array | None:
        """Class mix that q(y|x) has to be moved to; None where it need not move."""
        if codes is not None or prevalence is not None:
            return prevalence
        mix = self.prevalence_.mean(axis=0)
        same = np.abs(mix - self.class_weight_) <= SAME_MIX * self.class_weight_
        return None if same.all() else np.asarray(mix)

    def _in_mix(
        self, class_given_x: Array, codes: Array | None, mix: Array | None
    ) -> Array:
        """Move q(y|x) to the domain of each row, to a class mix, or nowhere."""
        if codes is not None:
            return self._in_domains(class_given_x, codes)
        if mix is None:
            return class_given_x
        return shift_prior(class_given_x, self.class_weight_, mix)

    def _in_domains(self, class_given_x: Array, codes: Array) -> Array:
        """p_d(y|x) from q(y|x), in the domain of each row."""
        return class_posterior(
            class_given_x, self.domain_given_class_, codes, self.class_weight_
        )

    def predict(self, X: Any, domains: Any = None) -> Array:
        """Most probable class of each row, as an index 0..n_classes-1."""
        check_is_fitted(self)
        X = self._check_rows(X)
        codes = encode_domains(domains, self.domains_, n_samples=X.shape[0])
        return self._most_probable(X, codes)

    def _most_probable(self, X: Any, codes: Array | None) -> Array:
        """Class of each row; X is already validated."""
        labels = np.empty(X.shape[0], dtype=np.intp)
        for rows, block in self._posterior_blocks(X, codes, None):
            labels[rows] = block.argmax(axis=1)
        return labels

    def fit_predict(
        self, X: Any, y: Any = None, *, domains: Any = None, **fit_params: Any
    ) -> Array:
        """Fit, then return the class of each training row (``labels_``).

        ``fit_params`` go to ``fit``, such as ``sample_weight`` where it takes one.
        """
        return np.asarray(self.fit(X, y, domains=domains, **fit_params).labels_)

    def transform(self, X: Any) -> Array:
        """``predict_proba`` without domains, as features."""
        return self.predict_proba(X)

    def fit_transform(
        self, X: Any, y: Any = None, *, domains: Any = None, **fit_params: Any
    ) -> Array:
        """Fit, then ``transform`` the same rows."""
        return self.fit(X, y, domains=domains, **fit_params).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns of ``transform``: those of the classes."""
        check_is_fitted(self)
        return np.asarray(list(self.class_names_), dtype=object)

    def score(
        self, X: Any, y: Any = None, *, domains: Any = None, sample_weight: Any = None
    ) -> float:
        """Label-free quality: mean log-likelihood of the domains, higher is better.

        The mean over domains of the mean log q(d|x), in nats, computed through the k
        classes: q(d|x) = q(y|x) q(d|y). Only domains seen in fit can be scored.
        """
        check_is_fitted(self)
        domains = domains if domains is not None else y
        if domains is None:
            raise DomainMissingError(
                "score requires y to be passed, but the target y is None: pass the "
                "domain of each row"
            )
        X = self._check_rows(X)
        n_samples = X.shape[0]
        codes = encode_domains(
            domains, self.domains_, n_samples=n_samples, scoring=True
        )
        assert codes is not None
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X.shape[0])
        return self._score_rows(X, codes, sample_weight)

    def _score_rows(self, X: Any, codes: Array, sample_weight: Any) -> float:
        domain_given_x = self._class_given_x(X) @ self.domain_given_class_
        return mean_log_likelihood(domain_given_x, codes, sample_weight=sample_weight)

    # ---- after the fit ------------------------------------------------------------

    def adapt(
        self, X_new: Any, *, level: float = 0.9, random_state: Any = None
    ) -> "Adaptation":
        """Class mix of a domain that fit has not seen, with its classes kept.

        Parameters
        ----------
        X_new : array-like of shape (n_samples, n_features)
            Rows of ONE new domain.
        level : float, default=0.9
            Nominal coverage of the intervals.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        Adaptation
            ``prevalence``, ``low``, ``high``, a ``fit_score`` that says whether the
            rows look like any class at all, and ``predict_proba``. See
            :class:`shoal.analysis.Adaptation`.
        """
        from shoal.analysis._adapt import adapt

        return adapt(self, X_new, level=level, random_state=random_state)

    def bootstrap(
        self,
        X: Any,
        domains: Any = None,
        *,
        sample_weight: Any = None,
        n_resamples: int = 200,
        level: float = 0.9,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> "Intervals":
        """Intervals for ``prevalence_``: rows resampled within domains.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of fit.
        domains : array-like of shape (n_samples,)
            Where each row comes from.
        sample_weight : array-like of shape (n_samples,), default=None
            The weights of fit, if it had any.
        n_resamples : int, default=200
        level : float, default=0.9
            Nominal coverage of each interval.
        n_jobs : int, default=None
            Threads; the result does not depend on it.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        Intervals
            See :class:`shoal.analysis.Intervals`.
        """
        from shoal.analysis._bootstrap import bootstrap

        return bootstrap(
            self,
            X,
            domains,
            sample_weight=sample_weight,
            n_resamples=n_resamples,
            level=level,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    def diagnose(
        self,
        X: Any,
        y: Any = None,
        *,
        domains: Any = None,
        n_permutations: int = 10,
        random_state: Any = None,
    ) -> "Diagnosis":
        """Ask whether the classes should be trusted: findings and one verdict.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Best the rows of fit; all domains of fit must occur.
        y : array-like of shape (n_samples,)
            Alias of ``domains``.
        domains : array-like of shape (n_samples,)
            Where each row comes from.
        n_permutations : int, default=10
            Shuffles of the domains, for the gain that chance alone gives.
        random_state : int, RandomState instance or None, default=None

        Returns
        -------
        Diagnosis
            See :func:`shoal.analysis.diagnose.diagnose`.
        """
        from shoal.analysis.diagnose import diagnose

        asked = y if domains is None else domains
        how = {"n_permutations": n_permutations, "random_state": random_state}
        found = diagnose(self, X, asked, **how)
        self._remember(found)
        return found

    def set_names(self, names: Any) -> Self:
        """Return a copy whose ``class_names_`` are changed; predictions stay indices.

        ``names`` is a list for all classes, or a mapping from index, ``"c0"``-style id
        or current name to the new name. No name may be the id of another class.
        """
        check_is_fitted(self)
        renamed = list(self.class_names_)
        if isinstance(names, dict):
            for key, name in names.items():
                renamed[self._class_index(key)] = str(name)
        else:
            if isinstance(names, str) or not isinstance(names, Iterable):
                raise ValueError(f"names must be a list or a mapping, got {names!r}")
            renamed = [str(name) for name in names]
            if len(renamed) != self.n_classes_:
                raise ValueError(
                    f"names has {len(renamed)} entries, the model has "
                    f"{self.n_classes_} classes"
                )
        self._check_names(renamed)
        other = copy.copy(self)
        other.class_names_ = renamed
        other._remember(self._remembered())
        return other

    def merge(self, *classes: Any, name: str | None = None) -> "MergedClasses":
        """Return a fitted estimator in which some classes are one.

        Parameters
        ----------
        *classes : int or str
            Two or more classes, by index, ``"c0"``-style id or name.
        name : str, default=None
            Name of the merged class; the joined names of its parts when None.

        Returns
        -------
        MergedClasses
            Its probabilities are sums over the parts, exactly; its ``labels_`` are
            those of the parts, so that where parts only win together ``predict`` says
            otherwise. ``.estimator`` is the original, unchanged.
        """
        from shoal.base._derived import merge_classes

        check_is_fitted(self)
        return merge_classes(self, classes, name)

    def _class_index(self, key: Any) -> int:
        """Index of a class given as index, id ``c0`` or name."""
        ids = class_ids(self.n_classes_)
        known: dict[Any, int] = {index: index for index in range(self.n_classes_)}
        for names in (self.class_names_, ids):  # an id beats a name
            known |= {name: index for index, name in enumerate(names)}
        with suppress(KeyError, TypeError):  # what has no hash is no name
            return known[key]
        raise ValueError(f"no class {key!r}; classes are {', '.join(ids)}")

    def _check_names(self, names: list[str]) -> None:
        """Raise where two names are alike, or a new one is the id of another class."""
        ids = class_ids(self.n_classes_)
        for key, old, name in zip(ids, self.class_names_, names, strict=True):
            if name in ids and name not in (key, old):
                raise ValueError(
                    f"names calls {key} {name!r}, the id of another class; choose "
                    "another name"
                )
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(f"class names must differ, got {twice[0]!r} twice")

    # ---- small helpers ------------------------------------------------------------

    def _check_rows(self, X: Any) -> Any:
        return check_X(
            self,
            X,
            accept_sparse=self._accept_sparse,
            dtype=self._input_dtype,
            allow_nan=self._allow_nan,
        )

    def _encode_domains(self, domains: Any, n_rows: int) -> Array:
        """Number of the domain of each row; every bag of words is one without them."""
        if domains is None:
            if self._origin._counts_words and n_rows == len(self.domains_):
                return np.arange(n_rows)  # as in fit: every document its own domain
            raise ValueError("domains must be passed: the domain of each row")
        return np.array(encode_domains(domains, self.domains_, n_samples=n_rows))

    def _check_prevalence(self, prevalence: Any) -> Array:
        try:
            target = np.asarray(prevalence, dtype=float)
        except (TypeError, ValueError):
            raise ValueError(
                f"prevalence must be one number per class, got {prevalence!r}"
            ) from None
        if target.shape != (self.n_classes_,) or not np.isfinite(target).all():
            raise ValueError(
                f"prevalence must have one finite entry per class ({self.n_classes_}), "
                f"got shape {target.shape}"
            )
        if (target < 0).any():
            raise ValueError(f"prevalence must not be negative, got {target.min():g}")
        if abs(target.sum() - 1) > 1e-6:
            raise ValueError(f"prevalence must sum to 1, sums to {target.sum():.6g}")
        return target

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = bool(self._accept_sparse)
        tags.input_tags.allow_nan = self._allow_nan
        # Not a classifier; but scikit-learn's sparse checks read of anything that has
        # predict_proba whether its columns are the values of y. Ours are not.
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
