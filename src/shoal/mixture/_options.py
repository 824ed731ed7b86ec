"""What a search may choose, how held-out rows judge it, and the fit of all rows."""

import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from shoal.likelihood._features import EXPANSIONS, SCALES, FeatureMap, TrainingRows
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    optimize_by_em,
)
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import Recipe, fill_empty_classes, optimize_from
from shoal.probability import HeldOut, normalize_rows
from shoal.validation import check_choice, check_real, check_whole
from shoal.validation._arguments import check_flag
from shoal.validation._rows import is_sparse

Array = np.ndarray[Any, Any]

#: What ``by`` can be.
ROUTES = ("auto", "shift", "looks")


@dataclass(frozen=True)
class SearchOptions:
    """What is fixed ("auto" is chosen) and how hard to look."""

    looks: bool = True  # asked beside shift, of rows that have any
    search: bool = True
    scale: str = "auto"
    expansion: str = "auto"
    ridge: float | None = None  # None: chosen
    confidence: float | None = None  # None: chosen
    dirichlet: float | None = None  # pseudo-counts a class and domain; None: chosen
    volume: float = 0.0
    solver: str = "lbfgs"
    n_folds: int = 3
    n_jobs: int | None = None
    max_search_rows: int = 20_000
    max_iter: int = 400
    tol: float = 1e-7

    def hears_looks(self, rows: TrainingRows) -> bool:
        """Whether looks are asked beside shift."""
        return (
            self.looks
            and not is_sparse(rows.X)
            and rows.n_rows >= SETTINGS.route_rows_per_domain * rows.n_domains
        )

    @property
    def quick_rows(self) -> int:
        """Rows of a single optimization, which can afford more than a search."""
        return self.max_search_rows * SETTINGS.quick_times_rows

    def race_rows(self, n_domains: int) -> int:
        """Rows that starts, penalties and features are compared on."""
        wanted = max(SETTINGS.race_rows, SETTINGS.race_rows_per_domain * n_domains)
        return min(self.max_search_rows, wanted)

    def first_penalties(self, problem: MixtureProblem, n_classes: int) -> Penalties:
        """Penalties of a single optimization: what is given, a rule for the rest."""
        ridge = SETTINGS.ridge_per_variance * problem.total_variance
        cells = n_classes * problem.n_domains
        rows = SETTINGS.first_dirichlet if self.dirichlet is None else self.dirichlet
        return Penalties(
            ridge if self.ridge is None else self.ridge,
            SETTINGS.first_confidence if self.confidence is None else self.confidence,
            dirichlet=rows * cells / problem.n_rows,
            volume=self.volume,
        )

    def race_penalties(self, problem: MixtureProblem, n_classes: int) -> Penalties:
        """Penalties that starts are compared under."""
        first, n_rows = self.first_penalties(problem, n_classes), problem.n_rows
        ridge, dirichlet = first.ridge, first.dirichlet
        if self.ridge is None:
            ridge = max(ridge, SETTINGS.race_ridge_times_rows / n_rows)
        if self.dirichlet is None:
            cells = n_classes * problem.n_domains
            wanted = SETTINGS.race_dirichlet * cells / n_rows
            dirichlet = max(dirichlet, min(wanted, SETTINGS.race_most_dirichlet))
        return replace(first, ridge=ridge, dirichlet=dirichlet)


def read_options(estimator: Any) -> SearchOptions:
    """What the parameters of a DomainMixture ask for, checked."""
    given = estimator.get_params(deep=False)
    check_choice(ROUTES, by=given["by"])
    check_choice(("auto", *SCALES), scale=given["scale"])
    check_choice(("auto", *EXPANSIONS), expansion=given["expansion"])
    check_choice(("lbfgs", "em"), solver=given["solver"])
    check_whole(1, **{name: given[name] for name in ("max_iter", "max_search_rows")})
    check_real(0, volume=given["volume"], tol=given["tol"])
    check_flag(search=given["search"])
    check_flag(check_identifiable=given["check_identifiable"])
    if given["solver"] == "em" and given["volume"]:
        raise ValueError("solver='em' cannot take volume; use solver='lbfgs'")
    for name in ("ridge", "confidence", "dirichlet"):
        given[name] = _amount(name, given[name])
    free = given["by"] == given["expansion"] == "auto"
    given["looks"] = free and given["search"]
    known = {field.name for field in fields(SearchOptions)}
    return SearchOptions(**{name: given[name] for name in known & set(given)})


def _amount(name: str, value: Any) -> float | None:
    """A penalty's weight; None where it is to be chosen."""
    if isinstance(value, str) and value == "auto":
        return None
    if not isinstance(value, numbers.Real) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name} must be 'auto' or a number from 0, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class Found:
    """Where a search ends.

    Attributes
    ----------
    features : FeatureMap
    start : str
        The start that won.
    fit : Fit
        Of all rows.
    penalties : Penalties
        Those of ``fit``.
    class_given_domain : ndarray of shape (n_domains, n_classes)
        Mean posterior of each domain's rows.
    """

    features: FeatureMap
    start: str
    fit: Fit
    penalties: Penalties
    class_given_domain: Array


def polish(
    problem: MixtureProblem,
    features: FeatureMap,
    start: str,
    fit: Fit,
    penalties: Penalties,
    options: SearchOptions,
) -> Found:
    """Fit all rows from the solution of a sample; classes still empty are filled."""
    solve = optimize if options.solver == "lbfgs" else optimize_by_em

    def climb(fit: Fit) -> Fit:
        return solve(
            problem,
            fit.weights,
            fit.domain_given_class,
            penalties,
            max_iter=options.max_iter,
            tol=options.tol,
        )

    final = climb(fit)
    filled = fill_empty_classes(problem, final, penalties, np.random.default_rng(0))
    if filled is not final:
        final = climb(filled)
    final.history = fit.history + final.history
    T = final.domain_given_class
    mass = problem.value_and_gradient(final.weights, T, penalties)[2]
    return Found(features, start, final, penalties, normalize_rows(mass.T))


# ---- what is compared, and how -------------------------------------------------------


def list_scales(sample: TrainingRows, options: SearchOptions) -> list[str]:
    """Scales to compare, the usual one first."""
    if options.scale != "auto":
        return [options.scale]
    n_columns = sample.X.shape[1]
    if not options.search and n_columns < SETTINGS.many_columns:
        return ["column"]
    spread = FeatureMap("column").fit(sample.X, sample.row_weight).spread_
    if spread.max() < SETTINGS.alike * spread.min():
        return ["column"]
    return ["column", "global"]


def beats(score: HeldOut, simple: HeldOut) -> bool:
    """Whether a likelihood is better than that of simpler features, beyond doubt."""
    doubt = SETTINGS.doubt * score.standard_error(simple)
    return score.mean - simple.mean > doubt + SETTINGS.least_gain


# ---- the likelihood of held-out rows -------------------------------------------------

# Every fold makes its own start from its training rows, or goes on from what it found
# in them: nothing that held-out rows say of their domains reaches the fit judged by
# them.


@dataclass(frozen=True)
class Trial:
    """One start under one setting, fitted without each fold in turn."""

    start: Recipe
    penalties: Penalties
    fits: list[Fit]
    score: HeldOut

    @property
    def mean(self) -> float:
        """Held-out log-likelihood, in nats."""
        return self.score.mean

    def beats(self, other: "Trial", errors: float, least: float = 0.0) -> bool:
        """Whether it is better by more than so many paired standard errors."""
        doubt = errors * self.score.standard_error(other.score)
        return self.mean - other.mean > doubt + least


class HeldOutSplit(NamedTuple):
    """One fold: the rows that fit, and those that judge."""

    number: int
    rows: Array
    train: MixtureProblem
    held_out: Array
    test: MixtureProblem


class Folds:
    """Fits without each fold in turn, judged by the domains of the rows left out.

    Parameters
    ----------
    problem : MixtureProblem
    fold_of_row : ndarray of shape (n,)
    n_jobs : int, default=None
        Fits side by side (threads); results do not depend on it.
    """

    def __init__(
        self,
        problem: MixtureProblem,
        fold_of_row: Array,
        n_jobs: int | None = None,
    ) -> None:
        self.problem, self.n_jobs = problem, n_jobs
        self.parts: list[HeldOutSplit] = []
        light = problem.in_single_precision()
        for fold in range(int(fold_of_row.max()) + 1):
            rows = np.flatnonzero(fold_of_row != fold)
            rest = np.flatnonzero(fold_of_row == fold)
            train, test = light.take(rows), light.take(rest)
            self.parts.append(HeldOutSplit(fold, rows, train, rest, test))

    def start(
        self,
        starts: Sequence[Recipe],
        penalties: Penalties,
        *,
        n_frozen: int,
        n_joint: int,
    ) -> list[Trial]:
        """Climb from each start, read by every fold from its training rows alone."""

        def climb(part: HeldOutSplit, start: Recipe) -> Fit:
            guess = start.guess(part.train, part.rows)
            known = guess.weights is not None
            return optimize_from(
                part.train,
                guess.domain_given_class,
                penalties,
                weights=guess.weights,
                n_frozen=SETTINGS.known_frozen if known else n_frozen,
                n_joint=n_joint,
            )

        fits = self._run(climb, starts)
        return [
            Trial(start, penalties, found, self._judge(found))
            for start, found in zip(starts, fits, strict=True)
        ]

    def go_on(
        self, trial: Trial, grid: Sequence[Penalties], *, n_joint: int
    ) -> list[Trial]:
        """Climb on from what each fold has found, under other penalties."""

        def climb(part: HeldOutSplit, penalties: Penalties) -> Fit:
            fit = trial.fits[part.number]
            return optimize(
                part.train,
                fit.weights,
                fit.domain_given_class,
                penalties,
                max_iter=n_joint,
            )

        fits = self._run(climb, grid)
        return [
            Trial(trial.start, penalties, found, self._judge(found))
            for penalties, found in zip(grid, fits, strict=True)
        ]

    def solutions(self, trials: Sequence[Trial]) -> list[tuple[float, Trial, Fit]]:
        """What folds have found, the most ahead of the others on its own rows first."""
        each = np.array([trial.score.each for trial in trials])
        ahead = (each - each.mean(axis=0)) * self.problem.row_weight
        found = []
        for part in self.parts:
            mass = self.problem.row_weight[part.held_out].sum()
            gains = ahead[:, part.held_out].sum(axis=1) / max(float(mass), 1e-12)
            for trial, gain in zip(trials, gains, strict=True):
                found.append((float(gain), trial, trial.fits[part.number]))
        return sorted(found, key=lambda solution: -solution[0])

    def _run(
        self, climb: Callable[[HeldOutSplit, Any], Fit], settings: Sequence[Any]
    ) -> list[list[Fit]]:
        jobs = [(part, setting) for setting in settings for part in self.parts]
        fits = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(climb)(*job) for job in jobs
        )
        n = len(self.parts)
        return [fits[index * n : (index + 1) * n] for index in range(len(settings))]

    def _judge(self, fits: list[Fit]) -> HeldOut:
        each = np.empty(self.problem.n_rows)
        for part, fit in zip(self.parts, fits, strict=True):
            each[part.held_out] = part.test.log_likelihood(
                fit.weights, fit.domain_given_class
            )
        return HeldOut(each, self.problem.row_weight.astype(float))
