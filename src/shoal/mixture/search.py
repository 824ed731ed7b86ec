"""From rows to one solution: features, starts, moves and penalties.

Everything is chosen by the likelihood of the domains on held-out rows; labels do not
exist here. Folds start from the T of the whole sample with W = 0: that keeps the basin
under test without leaking the weights.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from shoal.mixture.features import FeatureMap
from shoal.mixture.moves import improve_by_moves
from shoal.mixture.objective import MixtureProblem, Penalties
from shoal.mixture.optimizer import Fit, optimize, optimize_by_em
from shoal.mixture.rows import fold_of_rows
from shoal.mixture.starts import best_starts, climb, cluster_rows, find_starts
from shoal.mixture.training import TrainingRows

__all__ = ["HeldOut", "Options", "Solution", "find_solution", "held_out"]

Array = np.ndarray[Any, Any]
Report = Callable[[str], None]

# The spread of the logits grows with the number of columns, so the ridge that holds it
# does too; the search tries these multiples of RIDGE_PER_COLUMN * columns.
RIDGE_PER_COLUMN = 1e-5
RIDGE_FACTORS = (0.1, 0.3, 1.0, 3.0, 10.0)
# A little confidence breaks near-ties of the likelihood in favour of classes that can
# be told apart: one class cut in two costs nothing else.
FIRST_CONFIDENCE = 0.03
CONFIDENCES = (0.0, 0.03, 0.1, 0.3)
# From this many columns on, one global factor is worth asking about without a search.
MANY_COLUMNS = 30
PROBE_ROWS = 4_000


@dataclass(frozen=True)
class Options:
    """What is fixed ("auto" is chosen) and how hard to look."""

    search: bool = True
    scale: str = "auto"
    expansion: str = "auto"
    ridge: float | None = None  # None: chosen
    confidence: float | None = None  # None: chosen
    dirichlet: float = 0.0
    volume: float = 0.0
    moves: bool = True
    solver: str = "lbfgs"
    n_random: int = 1
    n_starts: int = 3
    n_folds: int = 3
    max_search_rows: int = 20_000
    max_iter: int = 400
    tol: float = 1e-7
    n_jobs: int | None = None

    @property
    def search_rows(self) -> int:
        """Rows for the search; a single climb can afford more."""
        return self.max_search_rows * (1 if self.search else 3)

    def first_penalties(self, n_columns: int) -> Penalties:
        """Penalties to start with: what is given, and the rule for the rest."""
        ridge = RIDGE_PER_COLUMN * n_columns if self.ridge is None else self.ridge
        confidence = FIRST_CONFIDENCE if self.confidence is None else self.confidence
        return Penalties(ridge, confidence, self.dirichlet, self.volume)


@dataclass(frozen=True)
class HeldOut:
    """Held-out log-likelihood of the domains: every row once, out of fold."""

    each: Array
    weight: Array

    @property
    def mean(self) -> float:
        """Weighted mean, in nats."""
        return float(self.weight @ self.each)

    def standard_error(self, other: "HeldOut | None" = None) -> float:
        """Standard error of the mean, or of the paired difference to ``other``."""
        values = self.each if other is None else self.each - other.each
        centred = values - self.weight @ values
        return float(np.sqrt((self.weight**2) @ centred**2))


@dataclass
class Solution:
    """What the search found and the record of how."""

    features: FeatureMap
    penalties: Penalties
    fit: Fit
    start: str
    held_out: dict[str, tuple[float, float]]  # setting -> mean, standard error
    move_gains: list[float]
    start_objectives: dict[str, float]


def find_solution(
    rows: TrainingRows,
    n_classes: int,
    options: Options,
    rng: np.random.Generator,
    report: Report = lambda stage: None,
) -> Solution:
    """Search on a stated sample of the rows, then fit all of them from there."""
    sample = rows.sample(options.search_rows, rng)
    record: dict[str, tuple[float, float]] = {}
    report("features and starts")
    features, problem, ranked = _choose_features(
        sample, n_classes, options, rng, record
    )
    start, fit = ranked[0]
    gains: list[float] = []
    if options.moves and options.search:
        report("merge and re-seed moves")
        fit, gains = _move(problem, ranked, options, rng)
    penalties = options.first_penalties(problem.n_features)
    if options.search:
        report("penalties")
        penalties = _choose_penalties(problem, fit, options, rng, record)
    report("final fit")
    whole = problem if sample is rows else rows.problem(features)
    fit = _polish(whole, fit, penalties, options)
    return Solution(
        features=features,
        penalties=penalties,
        fit=fit,
        start=start.name,
        held_out=record,
        move_gains=gains,
        start_objectives={begun.name: got.objective for begun, got in ranked},
    )


def held_out(
    problem: MixtureProblem,
    domain_given_class: Array,
    penalties: Iterable[Penalties],
    folds: Array,
    *,
    n_jobs: int | None = None,
    n_joint: int = 60,
) -> list[HeldOut]:
    """Out-of-fold likelihood under each of ``penalties``, from the same T."""
    grid = list(penalties)
    splits = [
        (np.flatnonzero(folds != fold), np.flatnonzero(folds == fold))
        for fold in range(int(folds.max()) + 1)
    ]

    def run(train: Array, test: Array, penalty: Penalties) -> Array:
        fit = climb(problem.take(train), domain_given_class, penalty, n_joint=n_joint)
        rest = problem.take(test)
        return rest.log_likelihood(fit.weights, fit.domain_given_class)

    jobs = [(train, test, penalty) for penalty in grid for train, test in splits]
    values = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(run)(*j) for j in jobs)
    results = []
    for index in range(len(grid)):
        each = np.empty(problem.n_rows)
        for (_, test), got in zip(splits, values[index * len(splits) :], strict=False):
            each[test] = got
        results.append(HeldOut(each, problem.row_weight.astype(float)))
    return results


# ---- features --------------------------------------------------------------------


def _choose_features(
    sample: TrainingRows,
    n_classes: int,
    options: Options,
    rng: np.random.Generator,
    record: dict[str, tuple[float, float]],
) -> tuple[FeatureMap, MixtureProblem, Any]:
    """Scale first, then expansion: the rung with the best held-out likelihood."""
    folds = fold_of_rows(sample.codes, options.n_folds, rng)
    seed = int(rng.integers(2**31))
    best: Any = None

    def consider(scale: str, expansion: str, compare: bool) -> None:
        nonlocal best
        features = _feature_map(sample, scale, expansion, seed)
        problem = sample.problem(features)
        ranked = _run_starts(problem, n_classes, options, np.random.default_rng(seed))
        score = None
        if compare:
            fit = ranked[0][1]
            score = held_out(
                problem,
                fit.domain_given_class,
                [options.first_penalties(problem.n_features)],
                folds,
                n_jobs=options.n_jobs,
            )[0]
            record[f"{scale} {expansion}"] = score.mean, score.standard_error()
        if best is None or (score is not None and score.mean > best[3].mean):
            best = features, problem, ranked, score

    scales = _scales(sample, options)
    if len(scales) > 1 and not options.search:
        scales = [_probe_scale(sample, n_classes, options, rng)]
    expansions = _expansions(sample, options)
    compare = len(scales) > 1 or len(expansions) > 1
    for scale in scales:
        consider(scale, expansions[0], compare)
    for expansion in expansions[1:]:
        consider(best[0].scale, expansion, compare)
    return best[:3]


def _scales(sample: TrainingRows, options: Options) -> list[str]:
    if options.scale != "auto":
        return [options.scale]
    n_columns = sample.X.shape[1]
    if n_columns == 1 or (not options.search and n_columns < MANY_COLUMNS):
        return ["column"]
    return ["column", "global"]


def _probe_scale(
    sample: TrainingRows, n_classes: int, options: Options, rng: np.random.Generator
) -> str:
    """Scale with the better held-out likelihood on a small sample, for a quick fit."""
    small = sample.sample(PROBE_ROWS, rng)
    quick = replace(options, scale="auto", expansion="linear", search=True, n_random=0)
    features, _, _ = _choose_features(
        small, n_classes, replace(quick, n_starts=1), rng, {}
    )
    return features.scale


def _expansions(sample: TrainingRows, options: Options) -> list[str]:
    if options.expansion != "auto":
        return [options.expansion]
    if not options.search or sparse.issparse(sample.X):
        return ["linear"]
    if _n_bumps(sample) is None:
        return ["linear"]
    return ["linear", "rbf"]


def _n_bumps(sample: TrainingRows) -> int | None:
    """As many bumps as the rows can carry (20 rows a column), or None."""
    for count in (150, 100, 60):
        if sample.n_rows >= 20 * (sample.X.shape[1] + count):
            return count
    return None


def _feature_map(
    sample: TrainingRows, scale: str, expansion: str, seed: int
) -> FeatureMap:
    features = FeatureMap(
        scale,
        expansion,
        n_components=_n_bumps(sample) or 60,
        discriminator=sample.discriminator,
        random_state=seed,
    )
    return features.fit(sample.X, sample.row_weight)


# ---- starts and moves ------------------------------------------------------------


def _run_starts(
    problem: MixtureProblem,
    n_classes: int,
    options: Options,
    rng: np.random.Generator,
) -> Any:
    starts = find_starts(
        problem,
        n_classes,
        kinds=("features", "discriminator") if options.search else ("features",),
        n_random=options.n_random if options.search else 0,
        rng=rng,
    )
    return best_starts(
        problem,
        starts,
        options.first_penalties(problem.n_features),
        n_keep=options.n_starts if options.search else 1,
        rng=rng,
        n_jobs=options.n_jobs,
    )


def _move(
    problem: MixtureProblem, ranked: Any, options: Options, rng: np.random.Generator
) -> tuple[Fit, list[float]]:
    """Moves from the best start, and from the second best when classes are many."""
    n_classes = len(ranked[0][1].weights)
    clusters = cluster_rows(problem.design, 6 * n_classes, problem.row_weight, rng)
    penalties = options.first_penalties(problem.n_features)
    tries = [
        improve_by_moves(problem, fit, penalties, clusters, n_jobs=options.n_jobs)
        for _, fit in ranked[: 2 if n_classes >= 15 else 1]
    ]
    return min(tries, key=lambda found: found[0].objective)


# ---- penalties -------------------------------------------------------------------


def _choose_penalties(
    problem: MixtureProblem,
    fit: Fit,
    options: Options,
    rng: np.random.Generator,
    record: dict[str, tuple[float, float]],
) -> Penalties:
    """Ridge at the held-out optimum; then the most confidence within one error."""
    folds = fold_of_rows(problem.codes, options.n_folds, rng)
    T = fit.domain_given_class

    def scores(grid: list[Penalties]) -> list[HeldOut]:
        found = held_out(problem, T, grid, folds, n_jobs=options.n_jobs)
        for penalty, score in zip(grid, found, strict=True):
            name = f"ridge {penalty.ridge:g} confidence {penalty.confidence:g}"
            record[name] = score.mean, score.standard_error()
        return found

    first = options.first_penalties(problem.n_features)
    factors = RIDGE_FACTORS if options.ridge is None else (1.0,)
    grid = [replace(first, ridge=factor * first.ridge) for factor in factors]
    by_ridge = scores(grid)
    chosen = max(range(len(grid)), key=lambda index: by_ridge[index].mean)
    if options.confidence is not None:
        return grid[chosen]
    path = [replace(grid[chosen], confidence=value) for value in CONFIDENCES]
    return _most_confident(path, scores(path))


def _most_confident(grid: list[Penalties], scores: list[HeldOut]) -> Penalties:
    """Largest confidence whose loss is within one paired error of the best."""
    best = max(scores, key=lambda score: score.mean)
    within = [
        penalty
        for penalty, score in zip(grid, scores, strict=True)
        if score.mean >= best.mean - best.standard_error(score)
    ]
    return max(within, key=lambda penalty: penalty.confidence)


def _polish(
    problem: MixtureProblem, fit: Fit, penalties: Penalties, options: Options
) -> Fit:
    solve = optimize if options.solver == "lbfgs" else optimize_by_em
    final = solve(
        problem,
        fit.weights,
        fit.domain_given_class,
        penalties,
        max_iter=options.max_iter,
        tol=options.tol,
    )
    final.history = fit.history + final.history
    return final
