"""Mixes that walk: from one time to the next their logits take normal steps.

How far, held-out rows say; where a walk changes, shuffled times judge.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import helmert, solveh_banded
from scipy.special import expit, logit, softmax

from shoal.analysis._regression import LogOdds, between_domains
from shoal.analysis._resample import mixture_proportions, stretched_quantile
from shoal.probability import TINY

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TrendNumbers:
    """What decides; see the comments for why."""

    # Standard deviations of a step of the logits over a usual gap that are tried. Below
    # the first a century hardly moves; beyond the last neighbours say nothing.
    steps: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.8, 3.2)
    # Parts of the rows of every time; each is held out once.
    folds: int = 5
    # Shuffles of the times: p-values in steps of 1/1000.
    permutations: int = 999
    # More times cost minutes, and are days that should be months.
    most_times: int = 1000
    # Newton steps end when one more would gain less than this share of a nat a row.
    gain: float = 1e-10
    newton: int = 200
    # One step moves no logit by more: far from the optimum the curvature misleads.
    longest: float = 4.0
    # A class that no row speaks for has a logit all the same.
    least_share: float = 1e-9
    # Keeps the curvature of such a class above zero.
    ridge: float = 1e-9
    # Directions in which responsibilities vary less, relative to the most, are noise.
    flat: float = 1e-9
    # What a statistic may fall short of the one seen, relative to it, and be as large.
    same_statistic: float = 1e-9


NUMBERS = TrendNumbers()


# ---- the likeliest walk --------------------------------------------------------------

# With p(x|y) known up to a factor per row (``ratio``), the mixes p_t maximize
#
#   sum_i w_i log sum_y p_t(i)(y) ratio_iy - strength / 2 sum_t |z_t+1 - z_t|^2 / gap_t
#
# where z_t are the logits of p_t. ``strength`` 0 is every time by itself, infinity one
# mix for all.


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


# ---- how much neighbours count; intervals --------------------------------------------


class Strengths(NamedTuple):
    """What was tried, from one mix for all to every time nearly by itself."""

    tried: Array  # (n_tried,)
    held_out: Array  # (n_tried,), mean log-likelihood of held-out rows, in nats

    @property
    def best(self) -> float:
        """The strength that predicts best; of several, the strongest."""
        return float(self.tried[int(np.argmax(self.held_out))])


def judge_strengths(rows: TimedRows, rng: np.random.Generator) -> Strengths:
    """Every strength by rows that took no part in smoothing."""
    tried = np.array([np.inf, *(step**-2.0 for step in NUMBERS.steps)])
    fold = _folds(rows, rng)
    each = np.zeros((len(tried), len(fold)))
    for held in range(int(fold.max()) + 1):
        out = fold == held
        mixes = None
        for index, strength in enumerate(tried):
            mixes = smooth(rows, 1.0 - out, strength, mixes)
            each[index, out] = np.log(likelihood(rows, mixes))[out]
    return Strengths(tried, each.mean(axis=1))


def _folds(rows: TimedRows, rng: np.random.Generator) -> Array:
    """Part of each row: the rows of every time are dealt out evenly."""
    n_rows = len(rows.place)
    key = np.lexsort([rng.random(n_rows), rows.place])
    place = np.empty(n_rows, dtype=np.intp)
    place[key] = np.arange(n_rows)
    return np.asarray(place % min(NUMBERS.folds, n_rows))


def intervals(
    rows: TimedRows, mixes: Array, strength: float, parts: Array, level: float
) -> tuple[Array, Array]:
    """Around every share: what rows and neighbours leave open, as a walk would have it.

    ``parts`` says which classes of the fit make up each class, (n_fitted, n_classes).
    """
    weight = np.ones(len(rows.place))
    n_fitted = mixes.shape[1]
    added = n_fitted / (2 * len(weight) + n_fitted)  # half a row for each class
    kept = (1 - added) * mixes + added / n_fitted
    blocks = information(rows, weight, kept)
    if np.isinf(strength):
        summed = covariance(blocks.sum(axis=0)[None], np.empty(0))
        spread = np.repeat(summed, rows.n_times, axis=0)
    else:
        spread = covariance(blocks, strength / rows.gap)
    shares = kept @ parts
    inside = kept[:, :, None] * parts / shares[:, None, :]
    outside = kept[:, :, None] * (1 - parts) / (1 - shares)[:, None, :]
    slope = np.einsum("mk,tky->tmy", helmert(n_fitted), inside - outside)
    error = np.sqrt(np.einsum("tmy,tmn,tny->ty", slope, spread, slope))
    reach = stretched_quantile(level) * error
    low, high = expit(logit(shares) - reach), expit(logit(shares) + reach)
    found = mixes @ parts
    return np.minimum(low, found), np.maximum(high, found)


# ---- where mixes change --------------------------------------------------------------

# Times are the replicates. Under one mix for all, the mean over the rows of a time of
# p(y|x) - p(y) has mean zero, however much classes overlap, and noise that falls with
# the rows; what times vary beyond that has a variance of its own. Whitened by both,
# times can be shuffled, and the largest gain of a split into before and after is
# compared with that in shuffled times. A split that is found is followed by a search on
# both of its sides.


class TimeSplit(NamedTuple):
    """The times before and from ``time`` on, and how surprising their difference is."""

    time: int
    p_value: float


class ChangeSearch(NamedTuple):
    """How changes are looked for."""

    alarm: float  # rate at which a series without a change gets one
    n_permutations: int
    add_up: Callable[[Array], Array]  # classes of the fit to those asked about
    rng: np.random.Generator


def least_p(n_times: int, n_permutations: int) -> float:
    """No p-value of so many times says more: a series and its mirror image are one."""
    ways = factorial(n_times) / 2 if n_times < 20 else np.inf
    return float(max(1 / max(ways, 1), 1 / (n_permutations + 1)))


def find_changes(rows: TimedRows, how: ChangeSearch) -> tuple[list[TimeSplit], float]:
    """Splits in the order of time, and the p-value of the first one tried.

    NaN where so few times cannot be shuffled.
    """
    found = best_split(rows, how)
    if found is None:
        return [], float("nan")
    if found.p_value > how.alarm:
        return [], found.p_value
    left, _ = find_changes(rows.take(0, found.time), how)
    right, _ = find_changes(rows.take(found.time, rows.n_times), how)
    moved = [TimeSplit(found.time + time, p_value) for time, p_value in right]
    return [*left, found, *moved], found.p_value


def best_split(rows: TimedRows, how: ChangeSearch) -> TimeSplit | None:
    """The split that tells most; None where shuffles of so few times tell nothing."""
    if least_p(rows.n_times, how.n_permutations) > how.alarm:
        return None
    points, noise = scores(rows, how.add_up)
    if not points.shape[1]:
        return TimeSplit(1, 1.0)
    one = np.ones((len(points), 1))
    spread = np.repeat(noise[:, None], points.shape[1], axis=1)
    between = between_domains(one, LogOdds(points, spread))
    root = 1 / np.sqrt(between + noise)
    mean = (root**2 @ points) / (root**2).sum()
    rest = root[:, None] * (points - mean)
    keys = how.rng.random((how.n_permutations, len(rest)))
    drawn = np.vstack([np.arange(len(rest)), np.argsort(keys, axis=1)])
    gains = np.array([split_gains(rest[order], root) for order in drawn])
    largest = gains.max(axis=1)
    as_large = largest[1:] >= largest[0] * (1 - NUMBERS.same_statistic)
    p_value = (1 + as_large.sum()) / (1 + how.n_permutations)
    return TimeSplit(int(gains[0].argmax()) + 1, float(p_value))


def scores(rows: TimedRows, add_up: Callable[[Array], Array]) -> tuple[Array, Array]:
    """What each time says against one mix for all, whitened, and its noise.

    Points have one column for each direction in which rows tell classes apart.
    """
    whole = mixture_proportions(rows.ratio)
    mixes = np.tile(whole, (rows.n_times, 1))
    away = add_up(responsibility(rows, mixes)) - add_up(whole)
    size = np.bincount(rows.place)
    mean = rows.total(away) / size[:, None]
    inner = away - mean[rows.place]
    freedoms = len(away) - rows.n_times
    if freedoms < away.shape[1]:  # hardly a time has two rows
        inner, freedoms = away, len(away)
    values, vectors = np.linalg.eigh(inner.T @ inner / freedoms)
    kept = values > NUMBERS.flat * max(values.max(), NUMBERS.flat)
    return mean @ (vectors[:, kept] / np.sqrt(values[kept])), 1 / size


def split_gains(points: Array, root: Array) -> Array:
    """Share of the squares of points that each split explains, beyond their mean.

    ``points`` are whitened: each was multiplied by its ``root``.
    """
    weight = np.cumsum(root**2)
    moment = np.cumsum(root[:, None] * points, axis=0)
    before, total = weight[:-1], weight[-1]
    centred = moment[:-1] - (before / total)[:, None] * moment[-1]
    explained = (centred**2).sum(axis=1) * total / (before * (total - before))
    squares = (points**2).sum() - (moment[-1] ** 2).sum() / total
    return np.asarray(explained / max(squares, np.finfo(float).tiny))
