"""New rows and domains join a model: its classes stay, and what has changed is said."""

import warnings
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._adapt import _as_names, unknown_share
from shoal.analysis._before import (
    Before,
    DomainUpdate,
    ModelUpdate,
    Movement,
    RowsMix,
    mix_of,
    read_before,
)
from shoal.analysis._difference import NUMBERS
from shoal.analysis._resample import (
    match_by_rows,
    prevalence_interval,
    shrunken,
    stretched_quantile,
)
from shoal.analysis._unknown import UnknownShare
from shoal.exceptions import ShoalWarning
from shoal.validation import check_domains
from shoal.validation._domains import is_scalar
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]


def update(
    model: Any,
    X: Any,
    domains: Any,
    *,
    before: Any = None,
    feature_names: Any = None,
    level: float = 0.9,
    random_state: Any = 0,
) -> ModelUpdate:
    """Let new rows and new domains join a model.

    Classes, their ids and names stay, and so does what they look like. The mix of a new
    domain is learned from its rows, as by ``adapt``; that of a known one from its rows
    of then and now together. It is said where the mix or the looks of new rows are
    not those of the fit. A class joins only if rows that belong to none are there
    beyond doubt, and come together in one class of a fit to all rows.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : array-like of shape (n_samples, n_features)
        New rows.
    domains : array-like of shape (n_samples,)
        Where they come from: domains that the model knows, or others.
    before : pair of rows and domains, or Intervals, default=None
        The rows of the fit; or how many they were and how sure their mix, as
        ``model.bootstrap`` says. Needed for new rows of known domains. Drift of looks
        is told by column, and a new class joins, only where rows are given.
    feature_names : sequence of str, default=None
        Names of the columns, for a model that was fitted without them.
    level : float, default=0.9
        Nominal coverage of the intervals.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    ModelUpdate

    Examples
    --------
    >>> import shoal
    >>> from shoal.datasets import make_latent_shift
    >>> X, domains, _ = make_latent_shift(
    ...     3000, n_classes=3, n_domains=6, separation=3.0, random_state=0)
    >>> old = domains < 5
    >>> model = shoal.DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(X[old], domains[old])
    >>> found = shoal.update(model, X[~old], domains[~old])
    >>> print(found)
    New domain 5, with 500 rows.
    >>> found.model.prevalence_.shape
    (6, 3)
    """
    check_is_fitted(model)
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    asked = _NewRows(model, X, domains, before, feature_names, level, random_state)
    grown, reason = asked.grow()
    if grown is None:
        return asked.joined(model, reason)
    return asked.joined(grown, reason, new_class=grown.class_names_[-1])


class _NewRows:
    """New rows beside a model and what is known of the rows of its fit."""

    def __init__(
        self,
        model: Any,
        X: Any,
        domains: Any,
        before: Any,
        feature_names: Any,
        level: float,
        random_state: Any,
    ) -> None:
        self.model, self.fit, self.level = model, model._origin, level
        if self.fit._counts_words:
            raise ValueError(
                "update is for rows of one class each, and this model takes bags of "
                "words; use model.adapt"
            )
        self.X = model._check_rows(X)
        n_rows = self.X.shape[0]
        each = [domains] * n_rows if is_scalar(domains) else domains
        codes, present = check_domains(each, n_samples=n_rows, least=1)
        known = model.domains_.tolist()
        new = [one for one in present.tolist() if one not in known]
        _refuse_other_kind(known, new)
        self.names = _as_names([*known, *new])
        place = {name: code for code, name in enumerate(self.names.tolist())}
        self.codes = np.array([place[one] for one in present.tolist()])[codes]
        self.given, self.n_known = before, len(known)
        self.columns = self._column_names(feature_names)
        self.rng = check_random_state(random_state)
        self.before = self._read_before(model)
        self.unknown = self._unknown(level, self._mixes(model))

    def _column_names(self, given: Any) -> list[str]:
        if given is not None:
            return [str(name) for name in given]
        own = getattr(self.model, "feature_names_in_", range(self.X.shape[-1]))
        return [str(name) for name in own]

    def _read_before(self, model: Any) -> Before:
        codes = [int(one) for one in np.unique(self.codes) if one < self.n_known]
        present = [self._place(model, code) for code in codes]
        return read_before(model, self.given, present, self.rng)

    def _place(self, model: Any, code: int) -> int:
        """Number of a domain in a model."""
        return int(model.domains_.tolist().index(self.names.tolist()[code]))

    def _rows(self, code: int) -> Array:
        return np.flatnonzero(self.codes == code)

    def _mixes(self, model: Any) -> dict[int, RowsMix]:
        """Mix of the new rows of each domain."""
        fit, found = model._origin, {}
        for code in map(int, np.unique(self.codes)):
            known = self.names.tolist()[code] in fit.domains_.tolist()
            own = self._place(fit, code) if known else None
            found[code] = mix_of(fit, self.X[self._rows(code)], own, self.rng)
        return found

    # ---- a new class --------------------------------------------------------------

    def _unknown(
        self, level: float, mixes: dict[int, RowsMix]
    ) -> dict[int, UnknownShare]:
        """Share of rows of no known class, by domain."""
        result = {}
        for code, mixed in mixes.items():
            X = self.X[self._rows(code)]
            given = self.fit._class_given_x(X)
            result[code] = unknown_share(self.fit, X, given, mixed.parts, level)
        self.mixes = mixes
        return result

    def grow(self) -> tuple[Any, str]:
        """The model with one class more, if it has to have one; and why or why not."""
        n_questions = len(self.mixes)
        sure = 1 - (1 - NUMBERS.sure) / n_questions
        found = self._unknown(sure, self.mixes)
        many = {code: one.low * len(self._rows(code)) for code, one in found.items()}
        if max(many.values()) == 0:
            return None, "No sign, beyond doubt, of rows outside of the known classes."
        if sum(many.values()) < NUMBERS.least_rows:
            few = "There are too few of them to say what they have in common."
            return None, few
        if self.fit.n_classes_ != self.model.n_classes_:
            return None, "Classes were merged: fit anew for a class more."
        if self.before.X is None or not self.fit._grows or is_sparse(self.X):
            return None, "A class more needs a fit, with the rows of then and now."
        return self._larger()

    def _larger(self) -> tuple[Any, str]:
        """A fit of one class more to all rows, its classes called as before."""
        before, n_classes = self.before, self.fit.n_classes_
        assert before.X is not None
        assert before.codes is not None
        rows = np.concatenate([before.X, self.X])
        domains = self.names[np.concatenate([before.codes, self.codes])]
        larger = self.fit._larger(int(self.rng.randint(2**31 - 1)))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ShoalWarning)
                larger.fit(rows, domains=domains)
        except ValueError as error:
            return None, f"A class more could not be fitted: {error}."
        n_old = len(before.codes)
        old = self.fit._most_probable(before.X, before.codes)
        renamed = match_by_rows(old, larger.labels_[:n_old], n_classes + 1)
        labels = renamed[larger.labels_]
        kept = [np.mean(labels[:n_old][old == y] == y) for y in np.unique(old)]
        if min(kept) < NUMBERS.kept:
            return None, "A fit of one class more would deal the known classes anew."
        share = np.mean(labels[n_old:] == n_classes)
        was = np.mean(labels[:n_old] == n_classes)
        if share < NUMBERS.rarer * was or share == 0:
            return None, "They do not come together in a class of their own."
        larger._reorder_classes(np.argsort(renamed))
        larger.labels_ = labels
        names = list(self.model.class_names_)
        own = f"c{n_classes}"
        larger.class_names_ = [*names, own if own not in names else f"new {own}"]
        count = int((labels[n_old:] == n_classes).sum())
        return larger, f"{count:,} of {len(self.codes):,} new rows belong to it."

    # ---- what has changed ---------------------------------------------------------

    def joined(
        self, model: Any, reason: str, *, new_class: str | None = None
    ) -> ModelUpdate:
        """The updated model, and what each domain with new rows says."""
        before, mixes = self.before, self.mixes
        if new_class is not None:
            before, mixes = self._read_before(model), self._mixes(model)
        if new_class is None:
            parts = self._pooled(model, before, mixes)
        else:  # it was fitted to all rows
            places = [self._place(model, code) for code in range(len(self.names))]
            parts = model.prevalence_[places]
        n_tests = len(mixes) * max(model.n_classes_, len(self.columns))
        doubt = float(norm.ppf(1 - NUMBERS.doubt / (2 * n_tests)))
        domains = [
            self._describe(model, before, code, mixed, parts[code], doubt)
            for code, mixed in mixes.items()
        ]
        if new_class is None:
            model = model._with_mixes(self.names, parts, self._labels(parts))
        return ModelUpdate(
            model=model,
            domains=domains,
            class_names=list(model.class_names_),
            new_class=new_class,
            reason=reason,
            looks_known=before.looks is not None,
            level=self.level,
        )

    def _pooled(self, model: Any, before: Before, mixes: dict[int, RowsMix]) -> Array:
        """Mix of all rows of each domain, of the classes of the fit."""
        fit = model._origin
        parts = np.zeros((len(self.names), fit.n_classes_))
        parts[: self.n_known] = fit.prevalence_
        for code, mixed in mixes.items():
            n_before = before.n_rows[code] if code < self.n_known else 0
            old = n_before * parts[code]
            parts[code] = (old + mixed.n_rows * mixed.parts) / (n_before + mixed.n_rows)
        return parts

    def _labels(self, parts: Array) -> Array:
        """Class of the fit of each new row."""
        labels = np.empty(len(self.codes), dtype=np.intp)
        for code, mixed in self.mixes.items():
            labels[self._rows(code)] = (mixed.ratio * parts[code]).argmax(axis=1)
        return labels

    def _describe(
        self,
        model: Any,
        before: Before,
        code: int,
        mixed: RowsMix,
        parts: Array,
        doubt: float,
    ) -> DomainUpdate:
        new = code >= self.n_known
        place = None if new else self._place(model, code)
        n_before = 0 if place is None else int(before.n_rows[place])
        n_all = n_before + mixed.n_rows
        found, prevalence = model._add_up(mixed.parts), model._add_up(parts)
        chance = model._add_up(mixed.drawn).var(axis=0, ddof=1)
        was = None if place is None else before.prevalence[place]
        variance, moved = chance, []
        if was is not None:
            then = before.variance[place]
            variance = (n_before**2 * then + mixed.n_rows**2 * chance) / n_all**2
            sizes = (n_before, mixed.n_rows)
            moved = _moved(model, was, then, found, chance, sizes, doubt, self.level)
        low, high = prevalence_interval(prevalence, variance, n_all, self.level)
        X = self.X[self._rows(code)]
        familiar = self.fit._familiarity(X).mean()
        return DomainUpdate(
            name=self.names.tolist()[code],
            is_new=new,
            n_rows=mixed.n_rows,
            n_before=n_before,
            found=found,
            before=was,
            prevalence=prevalence,
            low=low,
            high=high,
            moved=moved,
            drifted=self._drifted(model, before, code, mixed, doubt),
            unknown=self.unknown[code],
            fit_score=float(np.minimum(1, 2 * familiar)),
        )

    def _drifted(
        self, model: Any, before: Before, code: int, mixed: RowsMix, doubt: float
    ) -> list[Movement]:
        """Columns with another look; not asked where rows are of no known class."""
        grown = model is not self.model  # the new class has no looks of before
        unlike = grown or self.unknown[code].verdict == "present"
        if before.looks is None or unlike or mixed.n_rows < 2:
            return []
        X = model._origin._filled(self.X[self._rows(code)])
        own = self._place(model, code) if code < self.n_known else None
        size, error = before.looks.offset(X, mixed.posterior, own)
        far = np.abs(size) > np.maximum(doubt * error, NUMBERS.least_offset)
        order = np.argsort(-np.abs(size), kind="stable")
        reach = norm.ppf((1 + self.level) / 2) * error
        return [
            Movement(
                self.columns[one],
                float(size[one]),
                float(size[one] - reach[one]),
                float(size[one] + reach[one]),
            )
            for one in order
            if far[one]
        ]


def _refuse_other_kind(known: list[Any], new: list[Any]) -> None:
    """Raise where new domains are numbers and those of the model words, or so."""
    words = [isinstance(one, str) for one in known]
    odd = [one for one in new if isinstance(one, str) not in words]
    if odd:
        raise ValueError(
            f"domains has {odd[0]!r}, a {type(odd[0]).__name__}, and those of the "
            f"model are like {known[0]!r}; pass names of the same kind"
        )


def _moved(
    model: Any,
    was: Array,
    then: Array,
    found: Array,
    chance: Array,
    sizes: tuple[int, int],
    doubt: float,
    level: float,
) -> list[Movement]:
    """Classes whose share is another; at 0 and 1 one row more or less is no news."""
    centre, first = shrunken(was, then, sizes[0])
    centre_now, second = shrunken(found, chance, sizes[1])
    error = np.sqrt(first + second)
    difference = centre_now - centre
    reach = stretched_quantile(level) * error
    return [
        Movement(
            str(model.class_names_[y]),
            float(difference[y]),
            float(difference[y] - reach[y]),
            float(difference[y] + reach[y]),
        )
        for y in range(len(was))
        if abs(difference[y]) > doubt * error[y]
    ]
