"""What an update begins with, and what it says in the end."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from shoal.analysis._adapt import Units, _resample
from shoal.analysis._resample import mixture_proportions
from shoal.analysis._unknown import UnknownShare
from shoal.probability import TINY, normalize_rows
from shoal.validation._domains import encode_domains
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]

# ---- looks of the rows of a class ----------------------------------------------------

# Where only the mix has changed, the mean of a column is the mix of its means in the
# classes, whatever the classes overlap. What is left is an offset: the drift of looks.
# Domains of a fit have offsets of their own, by chance and because no model is quite
# right; a domain that is new has to be further off than these.


class Offset(NamedTuple):
    """How far the rows of a domain are off in each column, in standard deviations."""

    size: Array  # (n_columns,)
    error: Array  # (n_columns,), its standard error


@dataclass(frozen=True, eq=False)
class Looks:
    """What the rows of a fit say of columns.

    Attributes
    ----------
    centre, spread : ndarray of shape (n_columns,)
    means : ndarray of shape (n_classes, n_columns)
        Of each class, standardized.
    variance : ndarray of shape (n_classes, n_columns)
        Of these means.
    offsets : dict of int to (ndarray, ndarray)
        Offset of each domain of the fit, and its variance.
    between : ndarray of shape (n_columns,)
        Variance of these offsets beyond chance.
    """

    centre: Array
    spread: Array
    means: Array
    variance: Array
    offsets: dict[int, tuple[Array, Array]]
    between: Array

    def offset(self, X: Array, posterior: Array, code: int | None) -> Offset:
        """That of the rows of one domain: the ``code``-th of the fit, or a new one."""
        mean, variance = self._left(X, posterior)
        if code in self.offsets:  # against the same domain, as it was
            was, chance = self.offsets[code]
            return Offset(mean - was, np.sqrt(variance + chance))
        share = posterior.mean(axis=0)
        n_domains = max(len(self.offsets), 1)
        variance = variance + share**2 @ self.variance
        variance += self.between * (1 + 1 / n_domains)
        return Offset(mean, np.sqrt(variance))

    def _left(self, X: Array, posterior: Array) -> tuple[Array, Array]:
        """Mean of what the classes do not explain, and its variance."""
        left = (X - self.centre) / self.spread - posterior @ self.means
        return left.mean(axis=0), left.var(axis=0) / len(left)


def learn_looks(X: Array, posterior: Array, codes: Array) -> Looks:
    """From the rows of a fit: p_d(y|x) of each, and the number of its domain."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)  # a constant column has no offset
    Z = (X - centre) / spread
    mass = np.maximum(posterior.sum(axis=0), TINY)[:, None]
    means = posterior.T @ Z / mass
    second = posterior.T @ Z**2 / mass
    variance = np.maximum(second - means**2, 0) / np.maximum(mass, 1)
    empty = np.zeros(X.shape[1])
    looks = Looks(centre, spread, means, variance, {}, empty)
    offsets = {
        int(code): looks._left(X[codes == code], posterior[codes == code])
        for code in np.unique(codes)
        if (codes == code).sum() > 1
    }
    between = empty
    if len(offsets) > 1:
        means_of, chances = map(np.array, zip(*offsets.values(), strict=True))
        # with one standard error on top: few domains tell little of the next
        seen = means_of.var(axis=0, ddof=1)
        unsure = np.sqrt(2 / (len(offsets) - 1)) * seen
        between = np.maximum(seen - chances.mean(axis=0) + unsure, 0)
    return Looks(centre, spread, means, variance, offsets, between)


# ---- what is known of the rows of a fit ----------------------------------------------


class RowsMix(NamedTuple):
    """Mix of some rows, in the classes of a fit.

    Attributes
    ----------
    ratio : ndarray of shape (n_rows, n_classes)
        p(x|y) up to a factor for each row.
    parts : ndarray of shape (n_classes,)
    drawn : ndarray of shape (n_resamples, n_classes)
    posterior : ndarray of shape (n_rows, n_classes)
    """

    ratio: Array
    parts: Array
    drawn: Array
    posterior: Array

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.ratio)


class Before(NamedTuple):
    """What the rows of a fit were.

    Attributes
    ----------
    n_rows : ndarray of shape (n_domains,)
    prevalence, variance : ndarray of shape (n_domains, n_classes)
        Of the model, and of its estimates.
    X, codes : rows and their domains, or None
    looks : Looks or None
        Where rows are numbers, and given.
    """

    n_rows: Array
    prevalence: Array
    variance: Array
    X: Any = None
    codes: Array | None = None
    looks: Looks | None = None


def mix_of(fit: Any, X: Any, code: int | None, rng: Any) -> RowsMix:
    """Mix of the rows of one domain: the ``code``-th of the fit, or a new one."""
    codes = None if code is None else np.full(X.shape[0], code)
    logs = fit._log_evidence(X, codes)
    ratio = np.exp(logs - logs.max(axis=1, keepdims=True))
    start = np.maximum(fit.class_weight_, 1e-6)
    parts = mixture_proportions(ratio, start=start / start.sum())
    drawn = _resample(ratio, Units(ratio, np.ones(len(ratio))), parts, rng)
    return RowsMix(ratio, parts, drawn, normalize_rows(np.maximum(ratio * parts, TINY)))


def read_before(model: Any, given: Any, asked: list[int], rng: Any) -> Before:
    """From rows and their domains, from intervals, or from nothing.

    ``asked`` are the known domains that have new rows: of these it must be told how
    many rows they had.
    """
    if given is None:
        if asked:
            name = model.domains_.tolist()[asked[0]]
            raise ValueError(
                f"before must be passed: new rows are from {name!r}, which the "
                "model knows, and its rows of the fit count too; pass (X, domains) of "
                "the fit, or model.bootstrap(X, domains)"
            )
        return Before(np.zeros(len(model.domains_)), model.prevalence_, np.empty(0))
    if hasattr(given, "draws"):
        known = _from_intervals(model, given)
    elif isinstance(given, (tuple, list)) and len(given) == 2:
        known = _from_rows(model, given[0], given[1], rng)
    else:
        raise TypeError(
            "before must be (X, domains) of the fit or the intervals of "
            f"model.bootstrap, got {type(given).__name__}"
        )
    empty = [one for one in asked if not known.n_rows[one]]
    if empty:
        name = model.domains_.tolist()[empty[0]]
        raise ValueError(f"before has no rows of {name!r}; pass all rows of the fit")
    return known


def _from_intervals(model: Any, given: Any) -> Before:
    shape = given.draws.shape[1:]
    if shape != model.prevalence_.shape:
        raise ValueError(
            f"before has intervals of {shape[0]} domains and {shape[1]} classes, the "
            f"model {len(model.domains_)} and {model.n_classes_}; pass those of this "
            "model"
        )
    variance = given.draws.var(axis=0, ddof=1)
    return Before(np.asarray(given.n_rows), model.prevalence_, variance)


def _from_rows(model: Any, X: Any, domains: Any, rng: Any) -> Before:
    X = model._check_rows(X)
    codes = encode_domains(domains, model.domains_, n_samples=X.shape[0])
    if codes is None:
        raise ValueError("before must hold the domains of its rows, got None")
    codes, fit = np.asarray(codes), model._origin
    n_rows = np.bincount(codes, minlength=len(model.domains_))
    posterior = np.empty((X.shape[0], fit.n_classes_))
    prevalence = model.prevalence_.copy()
    variance = np.zeros_like(prevalence)
    for code in np.flatnonzero(n_rows):
        rows = np.flatnonzero(codes == code)
        mixed = mix_of(fit, X[rows], int(code), rng)
        posterior[rows] = mixed.posterior
        prevalence[code] = model._add_up(mixed.parts)
        variance[code] = model._add_up(mixed.drawn).var(axis=0, ddof=1)
    looks = None
    if not is_sparse(X) and X.ndim == 2 and X.dtype.kind in "biuf":
        looks = learn_looks(fit._filled(X), posterior, codes)
    return Before(n_rows, prevalence, variance, X, codes, looks)


# ---- what an update says -------------------------------------------------------------


@dataclass(frozen=True)
class Movement:
    """How far a share or a column has moved, with an interval or a standard error."""

    name: str
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class DomainUpdate:
    """What new rows of one domain say.

    Attributes
    ----------
    name : hashable
    is_new : bool
        Whether the model has not seen the domain before.
    n_rows, n_before : int
        New rows, and those that the model was fitted to.
    found : ndarray of shape (n_classes,)
        Mix of the new rows.
    before : ndarray of shape (n_classes,) or None
        Mix of the domain in the model.
    prevalence, low, high : ndarray of shape (n_classes,)
        Mix of all its rows, and its interval.
    moved : list of Movement
        Classes whose share among the new rows is another, beyond doubt.
    drifted : list of Movement
        Columns in which rows look otherwise than their classes do, beyond doubt, in
        standard deviations of the column.
    unknown : UnknownShare
        Share of the new rows that belongs to no class that the model had.
    fit_score : float
        As in :class:`shoal.analysis.Adaptation`.
    """

    name: Any
    is_new: bool
    n_rows: int
    n_before: int
    found: Array
    before: Array | None
    prevalence: Array
    low: Array
    high: Array
    moved: list[Movement]
    drifted: list[Movement]
    unknown: UnknownShare
    fit_score: float


@dataclass(frozen=True, eq=False)
class ModelUpdate:
    """A model that has learned from new rows, and what they said.

    Attributes
    ----------
    model : fitted LatentShiftEstimator
        Class ids and names are those of the model that was updated; a new class is the
        last one.
    domains : list of DomainUpdate
        Those with new rows.
    class_names : list of str
    new_class : str or None
    reason : str
        Why there is a new class, or none.
    looks_known : bool
        Whether rows of the fit were there to compare looks with.
    level : float
    """

    model: Any = field(repr=False)
    domains: list[DomainUpdate]
    class_names: list[str]
    new_class: str | None
    reason: str
    looks_known: bool
    level: float

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per domain with new rows and class."""
        return [
            {
                "domain": one.name,
                "class_id": f"c{y}",
                "class_name": name,
                "before": None if one.before is None else float(one.before[y]),
                "found": float(one.found[y]),
                "estimate": float(one.prevalence[y]),
                "low": float(one.low[y]),
                "high": float(one.high[y]),
                "level": self.level,
                "n_rows": one.n_rows,
                "n_before": one.n_before,
            }
            for one in self.domains
            for y, name in enumerate(self.class_names)
        ]

    def to_frame(self) -> Any:
        """The same as a table."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    @property
    def findings(self) -> list[str]:
        """What has changed, in sentences; none where nothing has."""
        said = [f'New class "{self.new_class}": {self.reason}'] * bool(self.new_class)
        for one in self.domains:
            if one.is_new:
                said.append(f"New domain {one.name}, with {one.n_rows:,} rows.")
            said += [
                f"{one.name}: the share of {change.name} moved by "
                f"{change.estimate:+.1%} ({change.low:+.1%} to {change.high:+.1%})."
                for change in one.moved
            ]
            said += [
                f"{one.name}: rows look otherwise in {change.name}, by "
                f"{change.estimate:+.2f} standard deviations."
                for change in one.drifted
            ]
            if one.unknown.verdict == "present" and not self.new_class:
                said.append(f"{one.name}: {one.unknown} {self.reason}")
        return said

    def __str__(self) -> str:
        return "\n".join(self.findings) or "Nothing has changed."
