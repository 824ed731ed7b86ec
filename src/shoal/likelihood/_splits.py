"""Out of an optimum with classes to spare: empty ones take a half of others."""

from typing import Any, NamedTuple

import numpy as np

from shoal.likelihood._problem import Fit, MixtureProblem, Penalties, optimize
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    class_share,
    cluster_rows,
    joint_table,
    relative_entropy,
    softmax_of_partition,
)
from shoal.probability import class_posterior, normalize_rows

Array = np.ndarray[Any, Any]


class Split(NamedTuple):
    """A class cut in two: what that would gain, and how."""

    gain: float  # nats, if both halves were told apart
    of: int
    domain_given_half: Array  # (2, n_domains)
    weights: Array  # (2, n_columns + 1), to be added to those of the class


def empty_classes(problem: MixtureProblem, fit: Fit) -> Array:
    """Numbers of the classes that hold next to no rows."""
    share = class_share(problem, fit)
    return np.flatnonzero(share < SETTINGS.nearly_empty / len(share))


def fill_empty_classes(
    problem: MixtureProblem, fit: Fit, penalties: Penalties, rng: np.random.Generator
) -> Fit:
    """Climb with halves of the classes that gain most by it, while that pays.

    Where halves for all empty classes do not pay, those of fewer may.
    """
    for _ in range(SETTINGS.most_splits):
        empty = empty_classes(problem, fit)
        if not len(empty):
            break
        splits = best_splits(problem, fit, empty, penalties.ridge, rng)
        n_filled = min(len(splits), len(empty))
        better = None
        while better is None and n_filled:
            better = _fill(problem, fit, penalties, empty, splits[:n_filled])
            n_filled //= 2
        if better is None:
            break
        fit = better
    return fit


def _fill(
    problem: MixtureProblem,
    fit: Fit,
    penalties: Penalties,
    empty: Array,
    splits: list["Split"],
) -> Fit | None:
    """The climb from these halves, if it ends in a better objective."""
    T, weights = fit.domain_given_class.copy(), fit.weights.copy()
    for freed, split in zip(empty, splits, strict=False):
        T[[split.of, freed]] = split.domain_given_half
        weights[[split.of, freed]] = weights[split.of] + split.weights
    other = optimize(problem, weights, T, penalties, max_iter=SETTINGS.final_joint)
    other.history = fit.history + other.history
    return other if other.objective < fit.objective else None


def best_splits(
    problem: MixtureProblem,
    fit: Fit,
    empty: Array,
    ridge: float,
    rng: np.random.Generator,
) -> list[Split]:
    """Halves of the other classes by k-means, the largest gain first."""
    posterior = class_posterior(
        problem.class_given_x(fit.weights), fit.domain_given_class, problem.codes
    )
    labels = posterior.argmax(axis=1)
    splits = []
    for number in np.setdiff1d(np.arange(posterior.shape[1]), empty):
        rows = np.flatnonzero(labels == number)
        if len(rows) >= SETTINGS.least_split:
            splits.append(_split(problem, int(number), rows, ridge, rng))
    return sorted(splits, key=lambda split: -split.gain)


def _split(
    problem: MixtureProblem,
    number: int,
    rows: Array,
    ridge: float,
    rng: np.random.Generator,
) -> Split:
    own = MixtureProblem(
        problem.design[rows],
        problem.codes[rows],
        problem.row_weight[rows],
        problem.n_domains,
    )
    halves = cluster_rows(own.design, 2, own.row_weight, rng)
    table = joint_table(own, halves, 2)
    mass, shares = table.sum(axis=1), normalize_rows(table)
    both = normalize_rows(table.sum(axis=0, keepdims=True))[0]
    gain = sum(
        m * relative_entropy(half, both) for m, half in zip(mass, shares, strict=True)
    )
    # half a row a domain, by chance, gains this much
    present = (table.sum(axis=0) > 0).sum()
    chance = (present - 1) / 2 * own.row_weight.sum() / len(rows)
    even = normalize_rows(table + SETTINGS.start_floor * table.sum() / table.size)
    weights = softmax_of_partition(own, halves, 2, ridge)
    return Split(float(gain - chance), number, even, weights)
