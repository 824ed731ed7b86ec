"""The class mix of a domain that fit has not seen, with its classes kept."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._resample import mixture_proportions, prevalence_interval
from shoal.analysis._unknown import NOT_KNOWN, UnknownShare

Array = np.ndarray[Any, Any]

N_RESAMPLES = 200
# Weights of resamples held at once: 32 MB of them.
CHUNK = 4_000_000


@dataclass(frozen=True, eq=False)
class Adaptation:
    """Class mix of a new domain.

    Attributes
    ----------
    prevalence : ndarray of shape (n_classes,)
        p(y) in the new domain.
    low, high : ndarray of shape (n_classes,)
        Interval around each share. It covers the chance in which rows were seen, not
        errors of the fitted classes.
    fit_score : float
        How well the new rows fit any class, from 0 to 1: twice the mean share of
        training rows that are at least as strange, at most 1. Rows like the training
        rows give values near 1; below about .5, many rows are unlike anything seen;
        near 0 all of them are, and the prevalence means nothing. NaN when the
        estimator keeps no record of its training rows.
    level : float
        Nominal coverage of the interval.
    n_rows : int
        Number of rows behind it; of a single bag, the number of its words.
    class_names : list of str
    unknown : UnknownShare
        Share of the rows that belong to no class of the model, with ``low``, ``high``
        and a ``verdict``: "present", "negligible" or "cannot tell". The prevalence is
        that of the known classes; with much unknown it means little.
    parts : ndarray of shape (n_classes of the fit,) or None
        p(y) of the classes as they were fitted; ``prevalence`` adds up those that were
        merged. None where only the sums are known.
    """

    prevalence: Array
    low: Array
    high: Array
    fit_score: float
    unknown: UnknownShare
    level: float
    n_rows: int
    class_names: list[str]
    estimator: Any = field(repr=False)
    parts: Array | None = field(default=None, repr=False)

    def predict_proba(self, X: Any) -> Array:
        """p(y|x) of rows of the new domain, of shape (n_samples, n_classes)."""
        found = self.estimator._origin.predict_proba(X, prevalence=self._known())
        return np.asarray(self.estimator._add_up(found), dtype=float)

    def predict(self, X: Any) -> Array:
        """Most probable class of rows of the new domain."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def as_domain(self, name: Any) -> Any:
        """Copy of the estimator that knows the new domain by ``name``.

        The domain joins with a vanishing share of the mixing distribution: q(y|x) and
        what is said of all other domains stay as fitted. Rows of the new domain can be
        classed, but not scored: nothing was learned from them about q(d|x).

        Parameters
        ----------
        name : hashable
            Of the kind of the other domains, and none of them.
        """
        known = self.estimator.domains_.tolist()
        if name in known:
            raise ValueError(f"name={name!r} is a domain of the estimator already")
        return self.estimator._with_domain(_as_names([*known, name]), self._known())

    def to_pandas(self) -> Any:
        """Table with one row per class."""
        import pandas as pd

        return pd.DataFrame(
            {
                "class_id": np.arange(len(self.prevalence)),
                "class_name": self.class_names,
                "estimate": self.prevalence,
                "low": self.low,
                "high": self.high,
                "level": self.level,
                "n_rows": self.n_rows,
            }
        )

    def _known(self) -> Array:
        """Shares of the classes of the fit, split as in training if need be."""
        if self.parts is not None:
            return self.parts
        return np.asarray(self.estimator._split_prevalence(self.prevalence))


class Units(NamedTuple):
    """What is counted, rows or words, and what is drawn again."""

    class_given_x: Array  # (n_units, n_classes), q(y|x) of each
    weight: Array  # (n_units,), how often it occurs
    bags: Any = None  # (n_bags, n_units), where whole bags are drawn

    @property
    def n_draws(self) -> int:
        return int(self.weight.sum()) if self.bags is None else self.bags.shape[0]


def adapt(
    estimator: Any, X_new: Any, *, level: float = 0.9, random_state: Any = None
) -> Adaptation:
    """Estimate the class mix of a domain that fit has not seen.

    p(x|y) is kept: the new mix q maximizes the likelihood of the rows, by EM on
    q <- mean of normalize(q(y|x) q / q(y)). Where classes were merged, that is the mix
    of those they are made of, added up: a new domain may mix these as it likes.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
    X_new : array-like of shape (n_samples, n_features)
        Rows of ONE new domain. Of several bags of words, whole bags are drawn for the
        intervals; of a single one, its words.
    level : float, default=0.9
        Nominal coverage of the intervals.
    random_state : int, RandomState instance or None, default=None
        Draws the resamples behind the intervals.

    Returns
    -------
    Adaptation

    See Also
    --------
    shoal.analysis.Intervals : For the domains of fit.

    Examples
    --------
    >>> from shoal.datasets import make_latent_shift
    >>> from shoal.mixture import DomainMixture
    >>> X, domains, _ = make_latent_shift(
    ...     3000, n_classes=3, n_domains=6, separation=2.0, random_state=0)
    >>> known = domains < 5
    >>> model = DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(X[known], domains[known])
    >>> new = model.adapt(X[~known], random_state=0)
    >>> bool((new.low <= new.prevalence).all() and (new.prevalence <= new.high).all())
    True
    """
    check_is_fitted(estimator)
    X_new = estimator._check_rows(X_new)
    fitted = estimator._origin
    units, prior = _units(fitted, X_new), fitted.class_weight_
    given = units.class_given_x
    ratio = np.divide(given, prior, out=np.zeros_like(given), where=prior > 0)
    parts = mixture_proportions(ratio, units.weight, start=prior)
    drawn = _resample(ratio, units, parts, check_random_state(random_state))
    shares = estimator._add_up(parts)
    variance = estimator._add_up(drawn).var(axis=0, ddof=1)
    low, high = prevalence_interval(shares, variance, units.n_draws, level)
    return Adaptation(
        prevalence=shares,
        low=low,
        high=high,
        fit_score=float(np.minimum(1, 2 * fitted._familiarity(X_new).mean())),
        unknown=unknown_share(fitted, X_new, units.class_given_x, parts, level),
        level=level,
        n_rows=units.n_draws,
        class_names=list(estimator.class_names_),
        estimator=estimator,
        parts=parts,
    )


def unknown_share(
    fitted: Any, X: Any, class_given_x: Array, parts: Array, level: float
) -> UnknownShare:
    """Share of rows of no known class; a bag of words has no class of its own."""
    strangers = None if fitted._counts_words else fitted._strangers()
    if strangers is None:
        return NOT_KNOWN
    rejected = strangers.rejected(fitted._novelty(X), class_given_x)
    return strangers.share(rejected.mean(axis=0), len(rejected), parts, level)


def _as_names(names: list[Any]) -> Array:
    """Names of one kind as their own dtype, others as objects."""
    alike = len({type(name) for name in names}) == 1
    return np.array(names) if alike else np.fromiter(names, object, len(names))


def _units(estimator: Any, X: Any) -> Units:
    """Rows, or the words inside bags."""
    if not estimator._counts_words:
        given = np.asarray(estimator._class_given_x(X), dtype=float)
        return Units(given, np.ones(X.shape[0]))
    total = np.ravel(X.sum(axis=0))
    present = np.flatnonzero(total)
    if not present.size:
        raise ValueError(
            "X_new has no words at all; pass rows with at least one count above 0"
        )
    words = sparse.eye_array(X.shape[1], format="csr")[present]
    given = np.asarray(estimator._class_given_x(words), dtype=float)
    filled = np.flatnonzero(np.ravel(X.sum(axis=1)))
    bags = X[filled][:, present] if filled.size > 1 else None
    return Units(given, total[present], bags)


def _resample(ratio: Array, units: Units, shares: Array, random: Any) -> Array:
    """Class mixes of resampled rows, of shape (n_resamples, n_classes)."""
    seed = random.randint(np.iinfo(np.int32).max)
    generator = np.random.default_rng(seed)
    # Off the boundary, so that a class missing by chance may appear.
    start = 0.99 * shares + 0.01 / len(shares)
    largest = len(ratio) if units.bags is None else max(units.bags.shape)
    at_once = int(np.clip(CHUNK // largest, 1, N_RESAMPLES))
    draws = []
    for first in range(0, N_RESAMPLES, at_once):
        size = min(at_once, N_RESAMPLES - first)
        weight = _draw(units, size, generator)
        draws.append(mixture_proportions(ratio, weight, start=start, tol=1e-4))
    return np.concatenate(draws)


def _draw(units: Units, size: int, generator: np.random.Generator) -> Array:
    """How often each unit is drawn, of shape (size, n_units)."""
    n_draws, bags = units.n_draws, units.bags
    if bags is None:
        share = units.weight / units.weight.sum()
        return generator.multinomial(n_draws, share, size=size)
    # words of one bag come together
    drawn = generator.multinomial(n_draws, np.full(n_draws, 1 / n_draws), size=size)
    return np.asarray(drawn @ bags)
