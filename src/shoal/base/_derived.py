"""Estimators made of a fitted one: classes merged, mixes learned on."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.utils import gen_batches

from shoal.analysis._unknown import Strangers
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold
from shoal.base._estimator import LatentShiftEstimator, class_ids
from shoal.base._hooks import VANISHING
from shoal.base._shown import UsualRow
from shoal.probability import TINY, canonical_order

Array = np.ndarray[Any, Any]

# ---- classes merged: their probabilities simply add up -------------------------------


class MergedClasses(LatentShiftEstimator):
    """A fitted estimator seen through fewer classes.

    Made by ``estimator.merge(...)``. The original is kept in ``estimator``, so that a
    merge can be undone; p_d(y|x) of a merged class is the sum over its parts.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
    groups : sequence of sequences of int
        The classes of ``estimator`` that make up each class here.
    """

    def __init__(self, estimator: Any, groups: Sequence[Sequence[int]]) -> None:
        self.estimator = estimator
        self.groups = groups

    def _dump(self, writer: Any) -> dict[str, Any]:
        return {
            "groups": [[int(index) for index in group] for group in self.groups],
            "names": list(self.class_names_),
            "estimator": writer.model(self.estimator),
        }

    @classmethod
    def _load(cls, content: Any, reader: Any) -> Self:
        origin = reader.model(content["estimator"])
        groups = [[int(index) for index in group] for group in content["groups"]]
        # who belongs to whom is kept as tables of classes by classes
        reader.budget.pay_array([4, origin._origin.n_classes_, origin.n_classes_], 8)
        members = sorted(index for group in groups for index in group)
        if members != list(range(origin.n_classes_)) or [] in groups:
            raise ValueError("the merged classes do not add up")
        return cls(origin, groups)._see_through([str(one) for one in content["names"]])

    def fit(self, X: Any, y: Any = None, *, domains: Any = None) -> Self:
        """Refuse: refit the original, then merge again."""
        raise ValueError(
            "merged classes cannot be fitted; fit the original and merge again"
        )

    def _see_through(self, names: list[str]) -> Self:
        """Store what follows from the original's solution."""
        origin = self._origin
        # from the classes of the fit, also where merged classes were merged again
        below = self.estimator._add_up(np.eye(origin.n_classes_))
        parts = [below[:, list(group)].sum(axis=1) for group in self.groups]
        self._sum = np.stack(parts, axis=1)
        prevalence = origin.prevalence_ @ self._sum
        self._store(prevalence, origin.domains_, origin.domain_weight_)
        self.class_names_ = names
        self.n_features_in_ = origin.n_features_in_
        if hasattr(origin, "feature_names_in_"):
            self.feature_names_in_ = origin.feature_names_in_
        new_class = self._sum.argmax(axis=1)
        self.labels_ = new_class[origin.labels_]
        return self

    @property
    def _origin(self) -> Any:
        return self.estimator._origin

    def _add_up(self, table: Array) -> Array:
        return np.asarray(table @ self._sum)

    def _class_given_x(self, X: Any) -> Array:
        return self._add_up(self._origin._class_given_x(X))

    def _posterior(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Array:
        if prevalence is not None:
            prevalence = self._split_prevalence(prevalence)
        return self._add_up(self._origin._posterior(X, codes, prevalence))

    def _split_prevalence(self, prevalence: Array) -> Array:
        """Shares of the classes of the fit: as in training within each merged class."""
        part = self._origin.class_weight_
        whole = self._sum.T @ part
        share = np.divide(prevalence, whole, out=np.zeros_like(whole), where=whole > 0)
        split = part * (self._sum @ share)
        return np.asarray(split / split.sum())

    def _score_rows(self, X: Any, codes: Array, sample_weight: Any) -> float:
        return self._origin._score_rows(X, codes, sample_weight)

    def _in_doubt(self, X: Any, codes: Array) -> list[Array]:
        return list(self.estimator._in_doubt(X, codes))

    def _told_apart(self) -> str:
        return str(self.estimator._told_apart())

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        extended = self.estimator._with_domain(domains, prevalence)
        return type(self)(extended, self.groups)._see_through(list(self.class_names_))

    def _fitted_arrays(self) -> list[Array]:
        return [self._sum, *self._origin._fitted_arrays()]

    def _lean(self) -> Self:
        copied = super()._lean()
        copied.estimator = self.estimator._lean()
        return copied

    def _check_rows(self, X: Any) -> Any:
        return self._origin._check_rows(X)


def merge_classes(
    estimator: Any, classes: Sequence[Any], name: str | None = None
) -> MergedClasses:
    """Merge some classes of a fitted estimator; see ``estimator.merge``."""
    members = sorted({estimator._class_index(key) for key in classes})
    if len(members) < 2:
        raise ValueError(
            "merge needs at least two different classes, got "
            f"{', '.join(map(str, classes))}"
        )
    if len(members) == estimator.n_classes_:
        raise ValueError("merge would leave one class; keep at least two")
    groups = [members, *([i] for i in range(estimator.n_classes_) if i not in members)]
    table = np.stack([estimator.prevalence_[:, g].sum(axis=1) for g in groups], axis=1)
    order = canonical_order(table)
    merged = MergedClasses(estimator, [groups[i] for i in order])
    names = _names_after(estimator.class_names_, merged.groups, name)
    return merged._see_through(names)


def _names_after(
    old: list[str], groups: Sequence[Sequence[int]], name: str | None
) -> list[str]:
    """Names of the classes after a merge.

    A class that was never named is called by its id, which is a new one: the old id may
    be that of another class by now.
    """
    old_ids = class_ids(len(old))
    names, taken, joined = [], set(), ""
    for index, group in enumerate(groups):
        key, own = f"c{index}", "+".join(old[part] for part in group)
        if len(group) > 1:
            own = joined = name or own
        else:
            taken |= {key, own}
            own = key if own in old_ids else own
        names.append(own)
    if joined in taken:
        raise ValueError(
            f"class names must differ, got name={joined!r}, which another class has"
        )
    return names


# ---- mixes learned on: of known domains, and of new ones -----------------------------

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
