"""Classes of a fitted estimator, some of them merged: probabilities simply add up."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from shoal.base._estimator import LatentShiftEstimator, class_ids
from shoal.probability import canonical_order

Array = np.ndarray[Any, Any]


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

    def _in_doubt(self) -> Array | None:
        doubt: Array | None = self.estimator._in_doubt()
        return doubt

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
