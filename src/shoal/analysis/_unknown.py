"""What share of rows belongs to no class of a fit: open-set label shift.

A row is rejected when it is stranger than most rows of the classes it may belong to. In
a domain of known classes alone, however it mixes them, a known share is rejected. What
is rejected beyond that belongs to no class. How much of an unknown class is rejected
nobody can know; the classes of the fit tell what to expect: each is left out in turn,
and its rows are judged by what remains.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit
from scipy.stats import norm, t

from shoal.analysis._novelty import (
    Novelty,
    familiarity,
    find_centres,
    fit_novelty,
    novelty_quantiles,
)
from shoal.probability import normalize_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class UnknownSettings:
    """How rows are rejected, and what is said of the rest."""

    # Shares of known rows to reject: few for classes far apart, many where they touch.
    levels: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    # Enough to know each share rejected to within one in a hundred.
    max_rows: int = 5_000
    # A class that so few rows speak for tells nothing of others like it.
    least_rows: int = 10
    # Rejecting an unknown class hardly more often than known ones finds nothing.
    least_power: float = 0.05
    # An interval that ends below has nothing to hide.
    negligible: float = 0.05


SETTINGS = UnknownSettings()


@dataclass(frozen=True, eq=False)
class Strangers:
    """How rows of known classes, and of one left out, look to a fit.

    Attributes
    ----------
    quantiles : ndarray of shape (n_classes, n_quantiles)
        Of the novelty of the rows of each class.
    known : ndarray of shape (n_classes, n_levels)
        Share of its rows that is rejected at each level.
    unknown : ndarray of shape (n_classes, n_levels)
        The same when the fit does not know the class; NaN of classes with few rows.
    counts : ndarray of shape (n_classes,)
        Rows behind.
    drift : ndarray of shape (n_levels,)
        Variance of the share rejected from domain to domain, beyond chance.
    """

    quantiles: Array
    known: Array
    unknown: Array
    counts: Array
    drift: Array

    def rejected(self, novelty: Array, class_given_x: Array) -> Array:
        """Which rows are strange, at each level; shape (n_rows, n_levels)."""
        return _familiar(novelty, class_given_x, self.quantiles) <= _levels()

    def take(self, order: Array) -> "Strangers":
        """The same with its classes in another order."""
        by_class = ("quantiles", "known", "unknown", "counts")
        return replace(self, **{name: getattr(self, name)[order] for name in by_class})

    def share(
        self, rejected: Array, n_rows: int, prevalence: Array, level: float
    ) -> "UnknownShare":
        """Share of unknown rows in a domain.

        Parameters
        ----------
        rejected : ndarray of shape (n_levels,)
            Share of its rows that is rejected at each level.
        n_rows : int
            Number of its rows.
        prevalence : ndarray of shape (n_classes,)
            Mix of the known classes in it.
        level : float
            Nominal coverage of the interval.
        """
        told = self.unknown[~np.isnan(self.unknown).any(axis=1)]
        if not len(told):  # no class could be left out: nothing to compare with
            return replace(NOT_KNOWN, level=level)
        expected = prevalence @ self.known
        variance = self._variance(expected, prevalence, n_rows)
        best = self._best_level(told, expected, variance)
        at, chance = rejected[best], expected[best]
        # of a share of 0 too: an imaginary row on either side
        centre = (n_rows * at + 1) / (n_rows + 2)
        spread = variance[best] - chance * (1 - chance) / n_rows
        reach = norm.ppf((1 + level) / 2) * np.sqrt(
            spread + centre * (1 - centre) / n_rows
        )
        # where classes overlap, some are rejected more often than their mix says
        at_worst = self.known[:, best].max()
        usual = told[:, best].mean()
        hardest = _hardest(told[:, best], self.counts.max(), level)
        return UnknownShare(
            share=_beyond(at, chance, usual, np.nan),
            low=_beyond(min(centre - reach, at), at_worst, 1.0, 0.0),
            high=_beyond(max(centre + reach, at), chance, hardest, 1.0),
            level=level,
            power=float(max(hardest - chance, 0) / (1 - chance)),
        )

    def _variance(self, expected: Array, prevalence: Array, n_rows: int) -> Array:
        """Of what is rejected among known classes: rows here, of fit, and drift."""
        few = prevalence**2 / np.maximum(self.counts, 1)
        of_fit = few @ (self.known * (1 - self.known))
        return np.asarray(expected * (1 - expected) / n_rows + of_fit + self.drift)

    @staticmethod
    def _best_level(told: Array, expected: Array, variance: Array) -> int:
        """Where classes left out stand out most from chance; rows are not asked."""
        power = np.maximum(told.mean(axis=0) - expected, 0)
        return int(np.argmax(power / np.sqrt(np.maximum(variance, 1e-12))))


@dataclass(frozen=True)
class UnknownShare:
    """Share of the rows of a domain that belong to no class of the fit.

    Attributes
    ----------
    share : float
        The best guess, if a new class is as strange to the fit as its own classes are
        to one another; NaN where the fit cannot tell.
    low, high : float
        Interval. It begins at what is there even if every row of the new classes were
        rejected, and ends at what could be there if they were as hard to see as a
        further class may be, judged by those of the fit: 1 where such a class cannot
        be seen at all, or where the fit has too few classes to judge by.
    level : float
        Nominal coverage of the interval.
    power : float
        Share of the rows of such a hard class that would be seen beyond chance. NaN
        where nothing is known.
    """

    share: float
    low: float
    high: float
    level: float
    power: float

    @property
    def verdict(self) -> str:
        """``"present"``, ``"negligible"``, or ``"cannot tell"``."""
        if self.low > 0:
            return "present"
        return "negligible" if self.high < SETTINGS.negligible else "cannot tell"

    def __str__(self) -> str:
        """In a sentence."""
        if np.isnan(self.power):
            return "Whether rows belong to no known class cannot be told of this model."
        if self.verdict == "present":
            about = "" if np.isnan(self.share) else f"about {_percent(self.share)}, "
            return (
                f"At least {_percent(self.low)} of the rows belong to no known class: "
                f"{about}up to {_percent(self.high)}."
            )
        if self.verdict == "negligible":
            return (
                "No sign of rows outside of the known classes: at most "
                f"{_percent(self.high)}."
            )
        return (
            "Rows outside of the known classes were not seen, but up to "
            f"{_percent(self.high)} could be there unseen: a new class may look like a "
            "known one."
        )


# Of an estimator that keeps no record of strange rows.
NOT_KNOWN = UnknownShare(np.nan, 0.0, 1.0, np.nan, np.nan)


def fit_familiar(
    Z: Any, class_given_x: Array, posterior: Array, codes: Array, random_state: Any
) -> Novelty:
    """Where rows lie, and how strange those of an unknown class would be.

    Parameters
    ----------
    Z : ndarray or sparse matrix of shape (n_rows, n_columns)
        Scaled features of the training rows.
    class_given_x, posterior : ndarray of shape (n_rows, n_classes)
        q(y|x), and p_d(y|x) in the domain of each row.
    codes : ndarray of shape (n_rows,)
        Domains of the rows.
    random_state : int, RandomState instance or None

    Returns
    -------
    Novelty
        That of :func:`shoal.analysis._novelty.fit_novelty`, with ``strangers``.
    """
    novelty, near, other, seed = fit_novelty(Z, random_state=random_state)
    if not other.size:
        return novelty
    rng = np.random.default_rng(seed)
    classes = draw_classes(posterior, rng)
    near, other = (half[sampled_rows(len(half), rng)] for half in (near, other))
    rows, without = Z[other], []
    for left_out in range(posterior.shape[1]):
        rest = near[classes[near] != left_out]
        centres = find_centres(Z[rest], seed) if rest.size else None
        apart = Novelty(*centres, np.zeros(0)).distance(rows) if centres else np.inf
        without.append(np.broadcast_to(apart, len(other)))
    judged = (np.stack(without, axis=1), class_given_x[other], classes[other])
    found = learn_strangers(novelty.distance(rows), *judged, codes[other])
    return replace(novelty, strangers=found)


def learn_strangers(
    novelty: Array, without: Array, class_given_x: Array, classes: Array, codes: Array
) -> Strangers:
    """Judge rows by a fit, and by what is left of it without each class.

    Parameters
    ----------
    novelty : ndarray of shape (n_rows,)
        How strange rows are to the fit.
    without : ndarray of shape (n_rows, n_classes)
        How strange they are to the fit without each class.
    class_given_x : ndarray of shape (n_rows, n_classes)
        q(y|x).
    classes : ndarray of shape (n_rows,)
        Drawn from p_d(y|x): a row near a border is on one side of it by chance.
    codes : ndarray of shape (n_rows,)
        Domains of the rows.

    Returns
    -------
    Strangers
    """
    n_classes = class_given_x.shape[1]
    counts = np.bincount(classes, minlength=n_classes)
    quantiles = _quantiles(novelty, classes, n_classes)
    rejected = _familiar(novelty, class_given_x, quantiles) <= _levels()
    known = _means(rejected, classes, n_classes)
    unknown = np.full_like(known, np.nan)
    # of a class that has all rows, nothing would be left
    told = (counts >= SETTINGS.least_rows) & (counts < len(classes))
    for left_out in np.flatnonzero(told):
        others = np.arange(n_classes) != left_out
        apart, rows = without[:, left_out], classes == left_out
        seen = _quantiles(apart[~rows], classes[~rows], n_classes)[others]
        given = normalize_rows(class_given_x[rows][:, others])
        unknown[left_out] = (_familiar(apart[rows], given, seen) <= _levels()).mean(0)
    drift = _drift(rejected - known[classes], codes)
    return Strangers(quantiles, known, unknown, counts.astype(float), drift)


def sampled_rows(n_rows: int, rng: np.random.Generator) -> Array:
    """As many rows as it takes, in order."""
    some = rng.permutation(n_rows)[: SETTINGS.max_rows]
    return np.asarray(np.sort(some))


def draw_classes(posterior: Array, rng: np.random.Generator) -> Array:
    """A class for each row, drawn from its p(y|x)."""
    edges = np.cumsum(posterior, axis=1)[:, :-1]
    return np.asarray((rng.random(len(posterior))[:, None] > edges).sum(axis=1))


def _beyond(rejected: float, chance: float, power: float, blind: float) -> float:
    """Unknown share that explains what is rejected, where ``power`` of it would be.

    ``blind`` where the unknown is rejected hardly more often than the known.
    """
    if power - chance < SETTINGS.least_power:
        return blind
    return float(np.clip((rejected - chance) / (power - chance), 0, 1))


def _hardest(told: Array, n_rows: float, level: float) -> float:
    """Share rejected of a further class, were it hard to see among its like.

    The lower end of a prediction interval on the scale of logits; it is never above
    that of the hardest class that is known, and 0 where there is but one.
    """
    if len(told) < 2:
        return 0.0
    near_one = 0.5 / max(n_rows, 1)  # what so many rows cannot tell from 0 or 1
    seen = logit(np.clip(told, near_one, 1 - near_one))
    reach = t.ppf((1 + level) / 2, len(told) - 1) * np.sqrt(1 + 1 / len(told))
    return float(min(told.min(), expit(seen.mean() - reach * seen.std(ddof=1))))


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def _levels() -> Array:
    return np.array(SETTINGS.levels)


def _familiar(novelty: Array, class_given_x: Array, quantiles: Array) -> Array:
    """Share of the rows of its own class that are at least as strange, (n_rows, 1)."""
    shares = [familiarity(novelty, one) for one in quantiles]
    return np.einsum("ny,yn->n", class_given_x, np.array(shares))[:, None]


def _quantiles(novelty: Array, classes: Array, n_classes: int) -> Array:
    """By class; of all rows where a class has none."""
    every = [novelty[classes == one] for one in range(n_classes)]
    return np.array([novelty_quantiles(one if one.size else novelty) for one in every])


def _means(values: Array, groups: Array, n_groups: int) -> Array:
    """Mean of the rows of each group; of all rows where a group has none."""
    every = [values[groups == one] for one in range(n_groups)]
    return np.array([(one if len(one) else values).mean(axis=0) for one in every])


def _drift(excess: Array, codes: Array) -> Array:
    """Variance between domains of what is rejected too much, less that of chance.

    With one standard error of a variance on top: few domains tell little of the next.
    """
    sizes = np.bincount(codes)
    used = np.flatnonzero(sizes >= SETTINGS.least_rows)
    if len(used) < 2:
        return np.zeros(excess.shape[1])
    groups = [excess[codes == one] for one in used]
    between = np.var([one.mean(axis=0) for one in groups], axis=0, ddof=1)
    chance = np.mean([one.var(axis=0, ddof=1) / len(one) for one in groups], axis=0)
    unsure = np.sqrt(2 / (len(used) - 1)) * between
    return np.maximum(between - chance + unsure, 0)
