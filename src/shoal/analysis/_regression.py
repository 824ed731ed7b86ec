"""Log odds of classes over domains: a random effect for each, and shuffled residuals.

For each class, y_d = x_d b + u_d + e_d: the log odds of the class in domain d, what its
covariates explain, how domains differ beyond them (variance t, one per class), and the
noise of the estimate (variance v_d, known). Domains weigh 1 / (t + v_d), with t at
least that of all classes together; the residual variance of a class is moderated by
that of the others (Smyth 2004).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma
from scipy.stats import f as f_distribution

from shoal.analysis._formula import NUMBERS, Design

Array = np.ndarray[Any, Any]


class LogOdds(NamedTuple):
    """Of each class in each domain, and the variance of its noise."""

    value: Array  # (n_domains, n_classes)
    noise: Array  # (n_domains, n_classes)


def log_odds(counts: Array) -> Array:
    """Of each class against all others; classes are the last axis."""
    rest = counts.sum(axis=-1, keepdims=True) - counts
    return np.asarray(np.log((counts + NUMBERS.added) / (rest + NUMBERS.added)))


def log_odds_of_counts(counts: Array) -> LogOdds:
    """From rows of each class, every one of them known."""
    rest = counts.sum(axis=1, keepdims=True) - counts
    noise = 1 / (counts + NUMBERS.added) + 1 / (rest + NUMBERS.added)
    return LogOdds(log_odds(counts), noise)


def log_odds_of_draws(prevalence: Array, draws: Array, n_rows: Array) -> LogOdds:
    """From estimated shares and their resamples, (n_resamples, n_domains, n_classes).

    What moves all domains of a resample alike is no noise between them, and is taken
    out; less than that of counting rows the noise cannot be.
    """
    size = np.asarray(n_rows, dtype=float)[:, None]
    value, floor = log_odds_of_counts(prevalence * size)
    moved = log_odds(draws * size) - value
    moved -= moved.mean(axis=1, keepdims=True)
    return LogOdds(value, np.maximum(moved.var(axis=0, ddof=1), floor))


# ---- variances -----------------------------------------------------------------------


def between_domains(columns: Array, odds: LogOdds) -> float:
    """Variance t at which weighted squares are as many as freedoms (Paule, Mandel).

    One for all the classes of ``odds`` together.
    """
    n_domains, n_classes = odds.value.shape
    freedoms = n_domains - columns.shape[1]

    def excess(variance: float) -> float:
        root = 1 / np.sqrt(variance + odds.noise)
        weighted = zip(odds.value.T * root.T, root.T, strict=True)
        squares = sum(rest_of(rows, columns * one[:, None]) for rows, one in weighted)
        return float(squares - freedoms * n_classes)

    if excess(0.0) <= 0:
        return 0.0
    most = float(odds.value.var(axis=0).max() * n_domains / freedoms)
    return float(brentq(excess, 0.0, most))


def rest_of(rows: Array, columns: Array) -> float:
    """Squares that columns leave unexplained."""
    basis = np.linalg.qr(columns)[0]
    return float(rows @ rows - ((basis.T @ rows) ** 2).sum())


class CommonVariance(NamedTuple):
    """What the variances of all classes say of any one of them."""

    freedoms: float
    variance: float

    def moderate(self, variance: Any, freedoms: int) -> Any:
        """The variance of a class, drawn towards that of the others."""
        total = self.freedoms + freedoms
        return (self.freedoms * self.variance + freedoms * variance) / total


def common_variance(variances: Array, freedoms: int) -> CommonVariance:
    """Scaled inverse chi-square fitted to variances, by moments of their logarithms.

    It counts at most as much as the other classes together less one, since shares
    that add to one are not free: with two classes, not at all.
    """
    most = float((len(variances) - 2) * freedoms)
    if most <= 0:
        return CommonVariance(0.0, 1.0)
    half = freedoms / 2
    logs = np.log(np.maximum(variances, np.finfo(float).tiny)) - digamma(half)
    logs += np.log(half)
    spread = float(logs.var(ddof=1) - polygamma(1, half))
    known = most if spread <= polygamma(1, most / 2) else _inverse_trigamma(spread) * 2
    centre = float(logs.mean() + digamma(known / 2) - np.log(known / 2))
    return CommonVariance(known, float(np.exp(centre)))


def _inverse_trigamma(value: float) -> float:
    # trigamma falls from infinity to zero, between 1/x and 1/x + 1/x^2
    low, high = 1 / (value + 1), 2 / value + 2 / np.sqrt(value)
    return float(brentq(lambda x: polygamma(1, x) - value, low * 0.1, high))


# ---- one regression for each class ---------------------------------------------------


@dataclass(frozen=True, eq=False)
class Regression:
    """Weighted least squares of the log odds of every class on a design."""

    design: Design
    odds: LogOdds

    @property
    def freedoms(self) -> int:
        """Domains beyond coefficients."""
        return len(self.odds.value) - self._columns.shape[1]

    @cached_property
    def between(self) -> Array:
        """Variance between domains of each class, beyond covariates and noise."""
        value, noise = self.odds
        own = [LogOdds(value[:, [y]], noise[:, [y]]) for y in self._classes]
        return np.array([between_domains(self._columns, one) for one in own])

    @cached_property
    def _assumed(self) -> Array:
        """The same, as far as domains are weighed by it.

        A class of a few domains may seem to vary by noise alone, and the largest domain
        would then decide; so it is taken to vary as all classes together do, at least.
        """
        return np.maximum(self.between, between_domains(self._columns, self.odds))

    @cached_property
    def prior(self) -> CommonVariance:
        """Of the residual variances."""
        rest = [rest_of(*self._whitened(y, self._columns)) for y in self._classes]
        return common_variance(np.array(rest) / self.freedoms, self.freedoms)

    def coefficients(self) -> tuple[Array, Array]:
        """Estimates and standard errors, each (n_effects, n_classes)."""
        n_effects = len(self.design.effects)
        estimate = np.empty((n_effects, len(self._classes)))
        error = np.empty_like(estimate)
        for index in self._classes:
            rows, columns = self._whitened(index, self._columns)
            inverse = np.linalg.inv(columns.T @ columns)
            estimate[:, index] = (inverse @ columns.T @ rows)[:n_effects]
            squares = rest_of(rows, columns) / self.freedoms
            scale = self.prior.moderate(squares, self.freedoms)
            error[:, index] = np.sqrt(scale * np.diag(inverse)[:n_effects])
        return estimate, error

    def test(self, asked: list[int], shuffles: Array) -> tuple[Array, Array, Array]:
        """F of some effects, for each class; its p by shuffles, and by the model.

        Residuals of the model without these effects are shuffled (Freedman, Lane), by
        ``shuffles`` of shape (n_permutations, n_domains).
        """
        found = [self._test_one(index, asked, shuffles) for index in self._classes]
        statistic, p_value = np.array(found).T
        total = self.freedoms + self.prior.freedoms
        return statistic, p_value, f_distribution.sf(statistic, len(asked), total)

    def _test_one(self, index: int, asked: list[int], shuffles: Array) -> Any:
        others = np.delete(self._columns, asked, axis=1)
        rows, known = self._whitened(index, others)
        _, tested = self._whitened(index, self._columns[:, asked])
        basis = np.linalg.qr(known)[0]
        direction = np.linalg.qr(tested - basis @ (basis.T @ tested))[0]
        rest = rows - basis @ (basis.T @ rows)
        drawn = np.vstack([rest, rest[shuffles]])
        explained = ((drawn @ direction) ** 2).sum(axis=1)
        lost = ((drawn @ basis) ** 2).sum(axis=1) + explained
        squares = np.maximum(rest @ rest - lost, 0) / self.freedoms
        scale = self.prior.moderate(squares, self.freedoms)
        statistic = explained / len(asked) / np.maximum(scale, np.finfo(float).tiny)
        as_large = statistic[1:] >= statistic[0] * (1 - NUMBERS.same_statistic)
        return statistic[0], (1 + as_large.sum()) / (1 + len(shuffles))

    @property
    def _classes(self) -> range:
        return range(self.odds.value.shape[1])

    @cached_property
    def _columns(self) -> Array:
        return np.column_stack([self.design.columns, self.design.nuisance])

    def _whitened(self, index: int, columns: Array) -> tuple[Array, Array]:
        """Log odds and columns, weighted; weights are about 1 in the mean."""
        variance = self._assumed[index] + self.odds.noise[:, index]
        root = np.sqrt(variance.mean() / variance)
        return self.odds.value[:, index] * root, columns * root[:, None]


def shuffled_rows(blocks: Array, n_shuffles: int, rng: np.random.Generator) -> Array:
    """Rows in other orders, (n_shuffles, n_domains), each within its block."""
    keys = rng.random((n_shuffles, len(blocks))) + blocks
    order = np.argsort(keys, axis=1)
    shuffles = np.empty_like(order)
    shuffles[:, np.argsort(blocks, kind="stable")] = order
    return shuffles


def n_arrangements(column: Array, blocks: Array) -> float:
    """Ways to deal the values of a column out within blocks that differ in their F.

    Where values lie as on both sides of a mirror, each way has a twin: the groups
    swapped.
    """
    ways, mirrored = 1.0, True
    for block in np.unique(blocks):
        own = np.sort(column[blocks == block])
        mirrored &= bool(np.ptp(own + own[::-1]) <= NUMBERS.same_statistic)
        placed = 0
        for count in np.unique(own, return_counts=True)[1]:
            for one in range(1, count + 1):
                placed += 1
                ways *= placed / one
    return ways / 2 if mirrored else ways


def false_discovery_rate(p_values: Array) -> Array:
    """Benjamini and Hochberg's q-values along the last axis.

    Examples
    --------
    >>> false_discovery_rate(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.04, 0.04])
    """
    n_tests = p_values.shape[-1]
    order = np.argsort(-p_values, axis=-1)
    rank = n_tests - np.arange(n_tests)
    steps = np.take_along_axis(p_values, order, axis=-1) * n_tests / rank
    lowest = np.minimum(np.minimum.accumulate(steps, axis=-1), 1)
    result = np.empty_like(lowest)
    np.put_along_axis(result, order, lowest, axis=-1)
    return result
