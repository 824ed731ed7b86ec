"""A fitted estimator whose mixes were learned on: of known domains, and of new ones."""

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils import gen_batches

from shoal._unknown import Strangers
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold
from shoal.base._estimator import LatentShiftEstimator
from shoal.base._explained import UsualRow
from shoal.base._hooks import VANISHING
from shoal.base._merged import MergedClasses
from shoal.probability import TINY

Array = np.ndarray[Any, Any]

# Weights of domains that joined a model by themselves: they vanish.
VANISHED = 1e-9


class UpdatedMixes(LatentShiftEstimator):
    """Classes as they were fitted, in domains whose mixes were learned later.

    Made by :func:`shoal.update`. What classes look like is that of the fit; q(y) and
    the weights of domains are those of all domains together.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
        Of its own classes, none of them merged.
    domains : ndarray of shape (n_domains,)
        Those of the fit first.
    prevalence : ndarray of shape (n_domains, n_classes)
    domain_weight : ndarray of shape (n_domains,), default=None
        None: that of the fit, and of its mean domain for a new one.
    """

    def __init__(
        self,
        estimator: Any,
        domains: Array,
        prevalence: Array,
        domain_weight: Array | None = None,
    ) -> None:
        self.estimator = estimator
        self.domains = domains
        self.prevalence = prevalence
        self.domain_weight = domain_weight

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Refuse: fit the original, then update again."""
        raise ValueError(
            "an updated model cannot be fitted; fit the original and update again"
        )

    def _settle(self, labels: Array) -> Self:
        """Store what follows."""
        fit, weight = self.estimator, self.domain_weight
        if weight is None:
            known = np.asarray(fit.domain_weight_)
            known = np.where(known > VANISHED, known, known.mean())
            new = np.full(len(self.domains) - len(known), known.mean())
            weight = np.append(known, new)
        self._store(self.prevalence, self.domains, weight / weight.sum())
        self.n_features_in_ = fit.n_features_in_
        if hasattr(fit, "feature_names_in_"):
            self.feature_names_in_ = fit.feature_names_in_
        self.labels_ = labels
        return self

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        weight = np.append(self.domain_weight_ * (1 - VANISHING), VANISHING)
        mixes = np.vstack([self.prevalence_, prevalence])
        extended = type(self)(self.estimator, domains, mixes, weight)
        extended._settle(self.labels_).class_names_ = list(self.class_names_)
        return extended

    # ---- prediction ---------------------------------------------------------------

    @property
    def _block_rows(self) -> int | None:  # type: ignore[override]
        return self.estimator._block_rows  # type: ignore[no-any-return]

    def _check_rows(self, X: Any) -> Any:
        return self.estimator._check_rows(X)

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        """That of the fit; a domain that it has not seen changes no looks."""
        fit = self.estimator
        known = len(fit.domains_)
        if codes is None or (codes >= known).all():
            return np.asarray(fit._log_evidence(X, None))
        if (codes < known).all():
            return np.asarray(fit._log_evidence(X, codes))
        result = np.empty((X.shape[0], self.n_classes_))
        old = np.flatnonzero(codes < known)
        new = np.flatnonzero(codes >= known)
        result[old] = fit._log_evidence(X[old], codes[old])
        result[new] = fit._log_evidence(X[new], None)
        return result

    def _class_given_x(self, X: Any) -> Array:
        return self._by_prior(X, None, self.class_weight_)

    def _posterior_blocks(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Iterator[tuple[slice, Array]]:
        prior = self.prevalence_.mean(axis=0) if prevalence is None else prevalence
        for rows in gen_batches(X.shape[0], self._block_rows or max(X.shape[0], 1)):
            own = None if codes is None else codes[rows]
            mix = prior if own is None else self.prevalence_[own]
            yield rows, self._by_prior(X[rows], own, mix)

    def _by_prior(self, X: Any, codes: Array | None, mix: Array) -> Array:
        logs = self._log_evidence(X, codes) + np.log(np.maximum(mix, TINY))
        return np.asarray(softmax(logs, axis=1))

    # ---- hooks: what rows look like is asked of the fit -----------------------------

    @property
    def _takes_images(self) -> bool:  # type: ignore[override]
        return bool(self.estimator._takes_images)

    @property
    def _sees_looks(self) -> bool:  # type: ignore[override]
        return bool(self.estimator._sees_looks)

    @property
    def _grows(self) -> bool:  # type: ignore[override]
        return bool(self.estimator._grows)

    def _larger(self, seed: int) -> Any:
        return self.estimator._larger(seed)

    def _told_apart(self) -> str:
        return str(self.estimator._told_apart())

    def _used_columns(self, X: Any) -> Any:
        return self.estimator._used_columns(X)

    def _usual_row(self) -> UsualRow | None:
        return self.estimator._usual_row()  # type: ignore[no-any-return]

    def _filled(self, X: Any) -> Any:
        return self.estimator._filled(X)

    def _novelty(self, X: Any) -> Array:
        return np.asarray(self.estimator._novelty(X))

    def _novelty_quantiles(self) -> Array | None:
        return self.estimator._novelty_quantiles()  # type: ignore[no-any-return]

    def _strangers(self) -> Strangers | None:
        return self.estimator._strangers()  # type: ignore[no-any-return]

    def _probe_rows(self, n_rows: int) -> Any:
        return self.estimator._probe_rows(n_rows)

    def _fitted_arrays(self) -> list[Array]:
        return [self.prevalence_, *self.estimator._fitted_arrays()]

    def _out_of_fold(
        self, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
    ) -> OutOfFold:
        """The looks of classes are kept, in every fold."""
        n_folds = int(folds.max()) + 1
        return OutOfFold(
            self._class_given_x(rows.rows.X),
            np.repeat(self.domain_given_class_[None], n_folds, axis=0),
            np.repeat(self.class_weight_[None], n_folds, axis=0),
        )

    def _lean(self) -> Self:
        copied = super()._lean()
        copied.estimator = self.estimator._lean()
        return copied

    # ---- io -----------------------------------------------------------------------

    def _dump(self, writer: Any) -> dict[str, Any]:
        plain = copy.copy(self)
        plain.estimator = None
        return {**writer.plain(plain), "fit": writer.model(self.estimator)}

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Self:
        parts = {key: content[key] for key in ("params", "state")}
        model = reader.plain(cls, parts)
        model.estimator = fit = reader.model(content["fit"])
        names = [str(one) for one in model.class_names_]
        expected = len(model.domains), fit.n_classes_
        known = list(model.domains[: len(fit.domains_)])
        if np.shape(model.prevalence) != expected or known != list(fit.domains_):
            raise ValueError("the updated mixes are not those of the model in it")
        model._settle(model.labels_)
        model.class_names_ = names
        return model  # type: ignore[no-any-return]


def updated(model: Any, domains: Array, prevalence: Array, labels: Array) -> Any:
    """A copy of a model with other mixes: of its domains, and of those that follow.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    domains : ndarray of shape (n_domains,)
        Those of the model first.
    prevalence : ndarray of shape (n_domains, n_classes of the fit)
    labels : ndarray of shape (n_samples,)
        Classes of the fit, of the rows that were learned from.
    """
    fit = model._origin
    # mixes that were updated before are in those that are given
    looks = fit.estimator if isinstance(fit, UpdatedMixes) else fit
    result = UpdatedMixes(looks, domains, prevalence)._settle(labels)
    member = model._add_up(np.eye(fit.n_classes_))
    names = list(model.class_names_)
    if member.shape[0] == member.shape[1]:
        result.class_names_ = names
        return result
    groups = [np.flatnonzero(column).tolist() for column in member.T]
    return MergedClasses(result, groups)._see_through(names)
