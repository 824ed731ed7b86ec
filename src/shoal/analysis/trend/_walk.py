"""Mixes that walk: from one time to the next their logits take normal steps.

With p(x|y) known up to a factor per row (``ratio``), the mixes p_t maximize

    sum_i w_i log sum_y p_t(i)(y) ratio_iy - strength / 2 sum_t |z_t+1 - z_t|^2 / gap_t

where z_t are the logits of p_t. ``strength`` 0 is every time by itself, infinity one
mix for all.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import helmert, solveh_banded
from scipy.special import softmax

from shoal.analysis._draws import mixture_proportions
from shoal.analysis.trend._settings import NUMBERS
from shoal.probability import TINY

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class TimedRows:
    """Rows in the order of their times, every time with at least one.

    Attributes
    ----------
    ratio : ndarray of shape (n_rows, n_classes)
        p(x|y) up to a factor per row.
    place : ndarray of shape (n_rows,)
        Number of the time of each row, ascending.
    gap : ndarray of shape (n_times - 1,)
        From each time to the next, in usual gaps.
    """

    ratio: Array
    place: Array
    gap: Array

    @property
    def n_times(self) -> int:
        """Number of times."""
        return len(self.gap) + 1

    @property
    def starts(self) -> Array:
        """First row of every time."""
        return np.searchsorted(self.place, np.arange(self.n_times))

    def take(self, first: int, last: int) -> "TimedRows":
        """Rows of the times from ``first`` up to, not including, ``last``."""
        begin, end = np.searchsorted(self.place, [first, last])
        gap = self.gap[first : last - 1]
        return TimedRows(self.ratio[begin:end], self.place[begin:end] - first, gap)

    def total(self, values: Array) -> Array:
        """Sums over the rows of each time."""
        return np.add.reduceat(values, self.starts, axis=0)


def likelihood(rows: TimedRows, mixes: Array) -> Array:
    """p(x of each row) up to its factor, in the mix of its time."""
    inner = (rows.ratio * mixes[rows.place]).sum(axis=1)
    return np.asarray(np.maximum(inner, TINY))


def responsibility(rows: TimedRows, mixes: Array) -> Array:
    """Probability of each class for each row, in the mix of its time."""
    joint = rows.ratio * mixes[rows.place]
    return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY))


def objective(
    rows: TimedRows, weight: Array, logits: Array, strength: float
) -> tuple[float, Array]:
    """What is maximized, and its gradient by the logits, (n_times, n_classes)."""
    mixes = softmax(logits, axis=1)
    value = float(weight @ np.log(likelihood(rows, mixes)))
    away = responsibility(rows, mixes) - mixes[rows.place]
    slope = rows.total(weight[:, None] * away)
    step = np.diff(logits, axis=0)
    pull = strength * step / rows.gap[:, None]
    slope[:-1] += pull
    slope[1:] -= pull
    return value - float((pull * step).sum()) / 2, slope


def smooth(
    rows: TimedRows, weight: Array, strength: float, start: Array | None = None
) -> Array:
    """Mixes of all times, (n_times, n_classes); a first guess may be given."""
    is_walk = rows.n_times > 1 and 0 < strength < np.inf
    if start is None or not is_walk:
        whole = mixture_proportions(rows.ratio, weight)
        if strength == 0:
            return _each_alone(rows, weight, whole)
        start = np.tile(whole, (rows.n_times, 1))
    if not is_walk:
        return start
    return _climb(rows, weight, strength, centred_logits(start))


def centred_logits(mixes: Array) -> Array:
    """Logits that add to zero: what neighbours differ by is then least."""
    logits = np.log(np.maximum(mixes, NUMBERS.least_share))
    return np.asarray(logits - logits.mean(axis=1, keepdims=True))


def _each_alone(rows: TimedRows, weight: Array, whole: Array) -> Array:
    """Every time by itself; the mix of all where no row has weight."""
    found = []
    for own in np.split(np.arange(len(rows.place)), rows.starts[1:]):
        some = weight[own].sum() > 0
        found.append(
            mixture_proportions(rows.ratio[own], weight[own]) if some else whole
        )
    return np.array(found)


def _climb(rows: TimedRows, weight: Array, strength: float, logits: Array) -> Array:
    """Newton steps with the outer products of the scores as curvature."""
    basis = helmert(logits.shape[1])  # a constant added to all logits is nothing
    value, slope = objective(rows, weight, logits, strength)
    for _ in range(NUMBERS.newton):
        mixes = softmax(logits, axis=1)
        blocks = information(rows, weight, mixes)
        step = _solve(blocks, strength / rows.gap, slope @ basis.T) @ basis
        step *= min(1.0, NUMBERS.longest / max(np.abs(step).max(), TINY))
        gain = float((step * slope).sum())
        if gain <= NUMBERS.gain * weight.sum():
            break
        for size in 0.5 ** np.arange(30):
            tried, steeper = objective(rows, weight, logits + size * step, strength)
            if tried >= value + 1e-4 * size * gain:
                break
        else:
            break
        logits, value, slope = logits + size * step, tried, steeper
    return np.asarray(softmax(logits, axis=1))


# ---- curvature: blocks along the diagonal, and one number beside each ----------------


def information(rows: TimedRows, weight: Array, mixes: Array) -> Array:
    """What rows say of the logits of their time, (n_times, n_classes - 1, same).

    In the basis of Helmert, where a constant added to all logits is nothing.
    """
    away = responsibility(rows, mixes) - mixes[rows.place]
    away = (away * np.sqrt(weight)[:, None]) @ helmert(mixes.shape[1]).T
    parts = np.split(away, rows.starts[1:])
    return np.array([part.T @ part for part in parts])


def _with_walk(blocks: Array, pull: Array) -> Array:
    """The same blocks with what neighbours say: each pulls with its own strength."""
    sides = np.zeros(len(blocks))
    sides[:-1] += pull
    sides[1:] += pull
    one = np.eye(blocks.shape[1])
    return np.asarray(blocks + (sides + NUMBERS.ridge)[:, None, None] * one)


def _solve(blocks: Array, pull: Array, right: Array) -> Array:
    """Solution of the chain of blocks, whose neighbours are coupled by -pull."""
    n_times, width = right.shape
    whole = _with_walk(blocks, pull)
    banded = np.zeros((width + 1, n_times * width))
    for row in range(width):
        for column in range(row, width):
            banded[width + row - column, column::width] = whole[:, row, column]
    banded[0, width:] = -np.repeat(pull, width)
    solved = solveh_banded(banded, right.ravel(), check_finite=False)
    return np.asarray(solved.reshape(n_times, width))


def covariance(blocks: Array, pull: Array) -> Array:
    """Of the logits of every time, given all rows: the blocks of the inverse."""
    whole = _with_walk(blocks, pull)
    before, after = whole.copy(), whole.copy()
    for time in range(1, len(whole)):
        before[time] -= pull[time - 1] ** 2 * np.linalg.inv(before[time - 1])
        back = len(whole) - 1 - time
        after[back] -= pull[back] ** 2 * np.linalg.inv(after[back + 1])
    return np.asarray(np.linalg.inv(before + after - whole))
