"""The model refitted by likelihood alone, and how it departs from the data.

A fit that is wanted for its classes may be pulled by penalties; here the question is
whether *any* such model near the fitted one explains the rows. So the likelihood is
climbed again from the fitted q(d|y) with hardly any penalty, and what remains
unexplained is compared with the same numbers on domains drawn from that very model and
refitted in the same way (a parametric bootstrap): that takes out the noise, the freedom
of the fit and its penalties at once.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from shoal.analysis.diagnose._rows import DiagnosisRows
from shoal.analysis.diagnose._settings import EFFORT
from shoal.likelihood._problem import Fit, MixtureProblem, optimize
from shoal.likelihood._starts import anchor_starts, best_start, optimize_from
from shoal.probability import balance_domains, class_posterior

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Departure:
    """How far counts of cells by domains lie from a model of q(d|x).

    Attributes
    ----------
    misfit : float
        Mean over cells and domains of (observed - expected)^2 / variance, about 1
        when the model is true.
    unexplained : float
        The same excess over noise, on the scale of ``signal``.
    signal : float
        What there is to explain: the excess over noise if domains were all alike.
    """

    misfit: float
    unexplained: float
    signal: float


@dataclass(frozen=True)
class Shifts:
    """How far each class, in each domain, lies from its own mean over all domains.

    Attributes
    ----------
    square : ndarray of shape (n_classes, n_domains)
        Squared distance of the means, averaged over columns, in variances of the
        class, less what sampling adds; NaN where the domain has too few such rows.
    mass : ndarray of shape (n_classes, n_domains)
        Posterior mass behind each entry, 0 where it is NaN.
    """

    square: Array
    mass: Array

    @property
    def by_class(self) -> Array:
        """Mean of ``square`` over the domains of each class."""
        total = np.maximum(self.mass.sum(axis=1), 1e-300)
        return np.asarray((np.nan_to_num(self.square) * self.mass).sum(axis=1) / total)

    @property
    def overall(self) -> float:
        """Mean of ``square`` over all classes and domains."""
        total = max(float(self.mass.sum()), 1e-300)
        return float((np.nan_to_num(self.square) * self.mass).sum() / total)


@dataclass(frozen=True)
class Comparison:
    """One fit by likelihood alone, and what it says of the rows."""

    fit: Fit
    class_given_x: Array  # q(y|x)
    posterior: Array  # p_d(y|x)
    departure: Departure
    shifts: Shifts


@dataclass(frozen=True)
class Restart:
    """A climb from another start, beside the refit.

    Attributes
    ----------
    excess : float
        Objective minus that of the refit; below 0 it is the better one.
    agreement : float
        Share of rows (domains weighted) in the same class, classes matched.
    """

    excess: float
    agreement: float


def refit(rows: DiagnosisRows, domain_given_class: Array) -> Comparison:
    """Climb the likelihood from a q(d|y) and compare the outcome with the rows."""
    fit = optimize_from(
        rows.problem,
        domain_given_class,
        rows.penalties,
        n_frozen=EFFORT.n_frozen,
        n_joint=EFFORT.n_joint,
    )
    return compare(rows, fit)


def compare(rows: DiagnosisRows, fit: Fit) -> Comparison:
    """What a fit says of the rows, and how far they depart from it."""
    problem = rows.problem
    class_given_x = problem.class_given_x(fit.weights).astype(float)
    class_given_x /= class_given_x.sum(axis=1, keepdims=True)
    T = fit.domain_given_class
    posterior = class_posterior(class_given_x, T, problem.codes)
    blocks = domain_blocks(rows, class_given_x, T)
    return Comparison(
        fit,
        class_given_x,
        posterior,
        cell_departure(rows.cells, problem.codes, blocks, n_domains=T.shape[1]),
        class_shifts(rows.columns, problem, posterior),
    )


def domain_blocks(
    rows: DiagnosisRows, class_given_x: Array, domain_given_class: Array
) -> Iterator[tuple[slice, Array]]:
    """q(d|x) at the shares that domains have among the rows, some rows at a time.

    With thousands of domains, that of all rows would take gigabytes.
    """
    problem = rows.problem
    share = np.bincount(problem.codes, minlength=problem.n_domains) / problem.n_rows
    step = max(EFFORT.most_entries // problem.n_domains, 1)
    for start in range(0, problem.n_rows, step):
        block = slice(start, start + step)
        domain_given_x = class_given_x[block] @ domain_given_class
        yield block, balance_domains(domain_given_x, rows.domain_weight, share)


def simulate(
    rows: DiagnosisRows, fitted: Comparison, draws: Array
) -> Iterator[Comparison]:
    """Refits to domains drawn from the fitted q(d|x), one per row of ``draws``.

    Each climb starts at the truth of its simulation, so that few iterations do.
    ``draws`` are uniform numbers of shape (n_simulations, n_rows).
    """
    for codes in _draw_domains(rows, fitted, draws):
        order = np.argsort(codes, kind="stable")
        simulated = rows.with_domains(order, codes[order])
        fit = optimize(
            simulated.problem,
            fitted.fit.weights,
            fitted.fit.domain_given_class,
            rows.penalties,
            max_iter=EFFORT.n_warm,
        )
        yield compare(simulated, fit)


def _draw_domains(rows: DiagnosisRows, fitted: Comparison, draws: Array) -> Array:
    """Domain of each row in each simulation, by the fitted q(d|x)."""
    last = rows.problem.n_domains - 1
    codes = np.empty(draws.shape, dtype=np.intp)
    T = fitted.fit.domain_given_class
    for block, domain_given_x in domain_blocks(rows, fitted.class_given_x, T):
        cumulative = domain_given_x.cumsum(axis=1)
        for drawn, uniform in zip(codes[:, block], draws[:, block], strict=True):
            drawn[:] = (uniform[:, None] > cumulative).sum(axis=1)
    return np.minimum(codes, last)


def restart(
    rows: DiagnosisRows, fitted: Comparison, rng: np.random.Generator
) -> Restart:
    """Climb from starts of its own, found by clustering with another seed."""
    problem, penalties = rows.problem, rows.penalties
    n_classes = len(fitted.fit.weights)
    starts = anchor_starts(problem, n_classes, rng)
    _, fit = best_start(problem, starts, penalties, rng)
    start = fit.weights, fit.domain_given_class
    fit = optimize(problem, *start, penalties, max_iter=EFFORT.n_polish)
    posterior = class_posterior(
        problem.class_given_x(fit.weights), fit.domain_given_class, problem.codes
    )
    agreement = weighted_agreement(fitted.posterior, posterior, rows.row_weight)
    return Restart(fit.objective - fitted.fit.objective, agreement)


def richer(rows: DiagnosisRows, n_classes: int, rng: np.random.Generator) -> Comparison:
    """The best climb with so many classes, from anchors of its own."""
    starts = anchor_starts(rows.problem, n_classes, rng)
    _, fit = best_start(rows.problem, starts, rows.penalties, rng)
    start = fit.weights, fit.domain_given_class
    found = optimize(rows.problem, *start, rows.penalties, max_iter=EFFORT.n_polish)
    return compare(rows, found)


def weighted_agreement(first: Array, second: Array, weight: Array) -> float:
    """Share of rows whose most probable class is the same, classes matched."""
    n_classes = first.shape[1]
    flat = first.argmax(axis=1) * n_classes + second.argmax(axis=1)
    both = np.bincount(flat, weight, minlength=n_classes**2)
    both = both.reshape(n_classes, n_classes)
    return float(both[linear_sum_assignment(both, maximize=True)].sum() / both.sum())


def cell_departure(
    cells: Array,
    codes: Array,
    domain_given_x: Iterable[tuple[slice, Array]],
    *,
    n_domains: int,
) -> Departure:
    """Compare how often each domain occurs in each cell with what the model says.

    Parameters
    ----------
    cells : ndarray of shape (n,)
        Any partition of the inputs that does not look at the domains.
    codes : ndarray of shape (n,)
    domain_given_x : iterable of (slice, ndarray)
        As of :func:`domain_blocks`.
    n_domains : int
    """
    n_cells = int(cells.max()) + 1
    flat = cells.astype(np.int64) * n_domains + codes
    observed = np.bincount(flat, minlength=n_cells * n_domains)
    observed = observed.reshape(n_cells, n_domains).astype(float)
    expected, variance = np.zeros((2, n_cells, n_domains))
    for block, share in domain_given_x:
        np.add.at(expected, cells[block], share)
        np.add.at(variance, cells[block], share * (1 - share))
    size = observed.sum(axis=1, keepdims=True)
    share = observed.sum(axis=0) / observed.sum()
    plain = size * share * (1 - share)
    use = (variance > EFFORT.least_variance) & (plain > EFFORT.least_variance)
    if not use.any():
        return Departure(1.0, 0.0, 0.0)
    square = (observed - expected)[use] ** 2
    from_plain = (observed - size * share)[use] ** 2
    variance, plain = variance[use], plain[use]
    return Departure(
        misfit=float((square / variance).mean()),
        unexplained=float(((square - variance) / plain).mean()),
        signal=float(((from_plain - plain) / plain).mean()),
    )


def class_shifts(columns: Array, problem: MixtureProblem, posterior: Array) -> Shifts:
    """Distance of each class's mean in each domain from its mean over all domains.

    If p(x|y) is the same in every domain, rows weighted by p_d(y|x) have the same mean
    in every domain, whatever the class mix. Their spread around it gives the sampling
    error, which is subtracted.
    """
    n_classes, n_domains = posterior.shape[1], problem.n_domains
    square = np.full((n_classes, n_domains), np.nan)
    mass = np.zeros((n_classes, n_domains))
    present = np.unique(problem.codes)
    edges = np.searchsorted(problem.codes, present)
    row_weight = problem.row_weight.astype(float)
    for label in range(n_classes):
        share = posterior[:, label]
        heavy = row_weight * share
        if heavy.sum() <= 0:
            continue
        centred = columns - heavy @ columns / heavy.sum()
        variance = np.maximum(heavy @ centred**2 / heavy.sum(), 1e-12)
        mean, error, size = _domain_means(centred, share, edges)
        enough = size >= EFFORT.least_rows
        excess = ((mean**2 - error) / variance).mean(axis=1)
        square[label, present[enough]] = excess[enough]
        weight = np.add.reduceat(heavy, edges)
        mass[label, present[enough]] = weight[enough]
    return Shifts(square, mass)


def _domain_means(
    centred: Array, share: Array, edges: Array
) -> tuple[Array, Array, Array]:
    """Weighted mean of each domain, its squared error, and its worth in rows."""
    total = np.add.reduceat(share, edges)
    square = np.add.reduceat(share**2, edges)
    safe = np.maximum(total, 1e-12)[:, None]
    mean = np.add.reduceat(share[:, None] * centred, edges) / safe
    first = np.add.reduceat((share**2)[:, None] * centred, edges)
    second = np.add.reduceat((share**2)[:, None] * centred**2, edges)
    error = (second - 2 * mean * first + mean**2 * square[:, None]) / safe**2
    worth = total**2 / np.maximum(square, 1e-300)
    # as for a plain variance: one row's worth is spent on the mean
    error *= (worth / np.maximum(worth - 1, 1e-12))[:, None]
    return mean, error, worth
