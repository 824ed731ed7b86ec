"""Where mixes change: the split of times that tells most, against shuffled times.

Times are the replicates. Under one mix for all, the mean over the rows of a time of
p(y|x) - p(y) has mean zero, however much classes overlap, and noise that falls with the
rows; what times vary beyond that has a variance of its own. Whitened by both, times can
be shuffled, and the largest gain of a split into before and after is compared with that
in shuffled times. A split that is found is followed by a search on both of its sides.
"""

from collections.abc import Callable
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from shoal.analysis._draws import mixture_proportions
from shoal.analysis.compare._regression import LogOdds, between_domains
from shoal.analysis.trend._settings import NUMBERS
from shoal.analysis.trend._walk import TimedRows, responsibility

Array = np.ndarray[Any, Any]


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
