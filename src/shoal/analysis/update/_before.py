"""What is known of the rows of a fit, and the mix of some rows under its classes."""

from typing import Any, NamedTuple

import numpy as np

from shoal.analysis._adapt import Units, _resample
from shoal.analysis._draws import mixture_proportions
from shoal.analysis.update._looks import Looks, learn_looks
from shoal.probability import TINY, normalize_rows
from shoal.validation import encode_domains, is_sparse

Array = np.ndarray[Any, Any]


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
