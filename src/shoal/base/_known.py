"""A fit of those who know something: its arguments, and what it keeps of them."""

import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from shoal._work import one_thread
from shoal.base._hooks import FitsRows
from shoal.probability import TINY, HeldOut
from shoal.validation._arguments import check_work
from shoal.validation._known import Given, Knowledge
from shoal.validation._rows import is_sparse, match_keys, row_keys

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class KnownClasses:
    """What a fit was told, and how far the rest agrees.

    Attributes
    ----------
    n_rows : int
        Rows whose class is known, also through rows that are ``together`` with them.
    agreement : float
        Share of them that get their class by fits to which it was not told; NaN where
        no class has two known rows.
    by_class : dict of str to float
        The same among the known rows of each class.
    held_out : ndarray of shape (n_rows,)
        Log probability of the known class by these fits.
    told : Knowledge
        What is known of the rows that something is known of.
    keys : ndarray
        A number for each of them, by which they are found again.
    """

    n_rows: int
    agreement: float
    by_class: dict[str, float]
    held_out: Array
    told: Knowledge
    keys: Array

    def __str__(self) -> str:
        if self.n_rows == 0:
            return "Of classes, no row was known."
        rows = "1 row" if self.n_rows == 1 else f"{self.n_rows:,} rows"
        if np.isnan(self.agreement):
            return f"The class of {rows} was known: too few to leave any out."
        return (
            f"The class of {rows} was known. Left out in turn, {self.agreement:.0%} of "
            "them get it from the rest."
        )

    def of(self, X: Any, codes: Array) -> Knowledge:
        """What is known of these rows, wherever they stand now."""
        place = match_keys(self.keys, keys_of(X, codes))
        found = place >= 0
        nothing = np.full(len(codes), -1, dtype=np.intp)
        classes, groups = nothing.copy(), nothing
        classes[found] = self.told.classes[place[found]]
        groups[found] = self.told.groups[place[found]]
        return replace(self.told, classes=classes, groups=groups)

    def lean(self) -> "KnownClasses":
        """The same without its rows."""
        none = np.arange(0)
        return replace(
            self, held_out=none, told=self.told.take(none), keys=self.keys[:0]
        )


def remember(
    known: Knowledge, X: Any, codes: Array, posterior: Array, folds: Array
) -> KnownClasses:
    """The result of a fit, whose classes ``known`` speaks of.

    ``posterior`` is that of the known rows (in their order) by fits that have not been
    told of them; ``folds`` says which were left out at all.
    """
    rows, names = known.rows, known.names
    own = known.classes[rows]
    judged = folds[rows] >= 0
    right = posterior.argmax(axis=1) == own
    wanted = np.flatnonzero((known.classes >= 0) | (known.groups >= 0))
    return KnownClasses(
        n_rows=len(rows),
        agreement=float(right[judged].mean()) if judged.any() else float("nan"),
        by_class={
            names[y]: float(right[judged & (own == y)].mean())
            for y in np.unique(own[judged]).tolist()
        },
        held_out=np.log(np.maximum(posterior[np.arange(len(own)), own], TINY)),
        told=known.take(wanted),
        keys=keys_of(X[wanted], codes[wanted]),
    )


def keys_of(X: Any, codes: Array) -> Array:
    """Numbers by which rows are found again; sparse ones by a projection."""
    if is_sparse(X):
        X = X @ np.random.default_rng(0).normal(size=(X.shape[1], 3))
    return row_keys(X, codes)


def folds_of_known(known: Knowledge, n_folds: int) -> Array:
    """Fold of each known row, dealt in turn; -1 of others, and of one alone."""
    folds = np.full(len(known.classes), -1)
    for label in np.unique(known.classes[known.rows]):
        own = np.flatnonzero(known.classes == label)
        if len(own) > 1:
            folds[own] = np.arange(len(own)) % n_folds
    return folds


def compare_known(one: KnownClasses, other: KnownClasses) -> HeldOut:
    """By how much one fit tells left-out known rows better than another."""
    gain = one.held_out - other.held_out
    return HeldOut(gain, np.full(len(gain), 1 / max(len(gain), 1)))


class FitsKnown(FitsRows):
    """The ``fit`` of estimators that can be told what is known.

    Attributes
    ----------
    known_ : KnownClasses or None
    """

    _takes_known = True
    known_: KnownClasses | None
    labels_: Array
    prevalence_: Array
    _posterior: Any
    class_names_: list[str]

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        domains: Any = None,
        sample_weight: Any = None,
        labels: Any = None,
        together: Any = None,
        prevalence: Any = None,
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
        labels : array-like of shape (n_samples,), default=None
            What is known already: the class of a few rows, -1, None or NaN elsewhere.
            Classes get the names given here (``class_names_``).
        together : array-like of shape (n_samples,), default=None
            Rows with the same value are one draw of a class (pictures of one animal),
            all from one domain; -1, None or NaN of rows that stand alone. How rows look
            is learned from that; by shift, a group only votes for one class.
        prevalence : mapping, default=None
            Known shares of classes in some domains, ``{"A": {"ill": 0.3}}``, 0 where a
            class is absent; or their order, ``{"A": ["well", "ill"]}``, the most common
            first.

        Returns
        -------
        self
        """
        check_work(self.get_params(deep=False))  # type: ignore[attr-defined]
        given = Given(labels, together, prevalence)
        nothing = all(one is None for one in given)
        with one_thread():
            return self._fit(
                X,
                y if domains is None else domains,
                sample_weight,
                given=None if nothing else given,
            )

    def _fit(
        self, X: Any, domains: Any, sample_weight: Any, given: Given | None = None
    ) -> Self:
        raise NotImplementedError

    def _name_classes(self, known: Knowledge, order: Array) -> Knowledge:
        """Give the classes, put in ``order``, their names; what is known of them."""
        place = np.argsort(order)
        names = list(self.class_names_)
        for index, name in enumerate(known.names):
            names[place[index]] = name
        self._check_names(names)  # type: ignore[attr-defined]
        self.class_names_ = names
        return known.moved(place, tuple(names))

    def _keep_labels(self, X: Any, codes: Array, known: Knowledge) -> None:
        """A known class is what the row is, whatever the fit says; groups agree."""
        self.labels_[known.rows] = known.classes[known.rows]
        linked = np.flatnonzero(known.groups >= 0)
        if len(linked):
            prior = np.log(np.maximum(self.prevalence_[codes[linked]], TINY))
            logs = self._posterior(X[linked], codes[linked], None)
            logs = np.log(np.maximum(logs, TINY)) - prior
            groups = known.groups[linked]
            total = np.zeros((int(groups.max()) + 1, logs.shape[1]))
            np.add.at(total, groups, logs)  # one draw of a class: its prior counts once
            total[groups] += prior
            self.labels_[linked] = total.argmax(axis=1)[groups]

    def _known_of(self, X: Any, codes: Array) -> Knowledge | None:
        """What fit was told of these rows."""
        kept = vars(self).get("known_")
        return None if kept is None else kept.of(X, codes)

    def _with_known(self, sentence: str) -> str:
        """Said of the evidence: also what was known, and how far the rest agrees."""
        kept = vars(self).get("known_")
        return sentence if kept is None else f"{sentence} {kept}"

    def _lean(self) -> Self:
        lean: Self = super()._lean()  # type: ignore[misc]
        if vars(lean).get("known_") is not None:
            lean = copy.copy(lean)
            lean.known_ = lean.known_.lean()  # type: ignore[union-attr]
        return lean
