"""From rows to one solution: features, starts, moves and penalties.

Everything is chosen by the likelihood of the domains on held-out rows; labels do not
exist here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.likelihood._features import FeatureMap
from shoal.likelihood._held_out import HeldOut, held_out
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    optimize_by_em,
)
from shoal.likelihood._rows import TrainingRows
from shoal.likelihood._starts import cluster_rows, improve_by_moves
from shoal.mixture._ladder import (
    MANY_CLASSES,
    RIDGE_FACTOR,
    Options,
    Record,
    Rung,
    choose_rung,
)
from shoal.probability import normalize_rows
from shoal.validation._sampling import fold_of_rows

Array = np.ndarray[Any, Any]

CONFIDENCES = (0.0, 0.03, 0.1, 0.3)
DIRICHLETS = (1.0, 10.0, 30.0)  # multiples of the first value
# Steps of RIDGE_FACTOR that the ridge may go to either side of its first value.
STEPS = range(-3, 4)


@dataclass
class Solution:
    """What the search found and the record of how."""

    class_given_domain: Array  # mean posterior of each domain's rows
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
) -> Solution:
    """Search on a stated sample of the rows, then fit all of them from there."""
    sample = rows.sample(options.search_rows, rng)
    tables = rows.sample(options.table_rows, rng) if options.search else sample
    record: Record = {}
    rung = choose_rung(tables, sample, n_classes, options, rng, record, rows.n_rows)
    start, fit = rung.ranked[0]
    gains: list[float] = []
    if options.moves and options.search:
        fit, gains = _move(rung, options, rng)
    penalties = options.first_penalties(rung.problem, n_classes)
    if options.search:
        penalties = _choose_penalties(rung.problem, fit, options, rng, record)
    whole = rung.problem if sample is rows else rows.problem(rung.features)
    if sample is not rows:
        share = sample.n_rows / rows.n_rows
        penalties = _beside_all_rows(penalties, share, options)
    fit = _polish(whole, fit, penalties, options)
    T = fit.domain_given_class
    return Solution(
        class_given_domain=normalize_rows(
            whole.value_and_gradient(fit.weights, T, penalties)[2].T
        ),
        features=rung.features,
        penalties=penalties,
        fit=fit,
        start=start.name,
        held_out=record,
        move_gains=gains,
        start_objectives={begun.name: got.objective for begun, got in rung.ranked},
    )


def _move(
    rung: Rung, options: Options, rng: np.random.Generator
) -> tuple[Fit, list[float]]:
    """Moves from the best start, and from the second best when classes are many."""
    problem = rung.problem
    n_classes = len(rung.ranked[0][1].weights)
    clusters = cluster_rows(problem.design, 6 * n_classes, problem.row_weight, rng)
    penalties = options.first_penalties(problem, n_classes)
    tries = [
        improve_by_moves(problem, fit, penalties, clusters, n_jobs=options.n_jobs)
        for _, fit in rung.ranked[: 2 if n_classes >= MANY_CLASSES else 1]
    ]
    return min(tries, key=lambda found: found[0].objective)


# ---- penalties -------------------------------------------------------------------


def _choose_penalties(
    problem: MixtureProblem,
    fit: Fit,
    options: Options,
    rng: np.random.Generator,
    record: Record,
) -> Penalties:
    """Imaginary rows, then ridge, then confidence, each given those before.

    Ridge goes as low and confidence as high as one standard error allows: a ridge
    holds q(y|x) off the corners, and confidence picks the solution that has anchors.
    """
    folds = fold_of_rows(problem.codes, options.n_folds, rng)
    known: dict[Penalties, HeldOut] = {}

    def scores(wanted: list[Penalties]) -> list[HeldOut]:
        new = [penalty for penalty in wanted if penalty not in known]
        T = fit.domain_given_class
        for penalty, score in zip(
            new, held_out(problem, T, new, folds, n_jobs=options.n_jobs), strict=True
        ):
            name = (
                f"ridge {penalty.ridge:.3g} confidence {penalty.confidence:g} "
                f"dirichlet {penalty.dirichlet:.3g}"
            )
            known[penalty] = score
            record[name] = score.mean, score.standard_error()
        return [known[penalty] for penalty in wanted]

    chosen = options.first_penalties(problem, len(fit.weights))
    if options.dirichlet is None:
        path = [replace(chosen, dirichlet=chosen.dirichlet * f) for f in DIRICHLETS]
        tried = _follow_path(path, 0, scores)
        chosen = max(tried, key=lambda penalty: tried[penalty].mean)
    if options.ridge is None:
        path = [replace(chosen, ridge=chosen.ridge * RIDGE_FACTOR**s) for s in STEPS]
        tried = _follow_path(path, STEPS.index(0), scores)
        chosen = min(_within_one_error(tried), key=lambda penalty: penalty.ridge)
    if options.confidence is None:
        path = [replace(chosen, confidence=value) for value in CONFIDENCES]
        tried = dict(zip(path, scores(path), strict=True))
        chosen = _within_one_error(tried)[-1]
    return chosen


def _follow_path(
    path: list[Penalties],
    first: int,
    scores: Callable[[list[Penalties]], list[HeldOut]],
) -> dict[Penalties, HeldOut]:
    """Scores along a path, from its first value on while the likelihood gains."""
    tried: dict[Penalties, HeldOut] = {}
    best = first
    while True:
        around = path[max(best - 1, 0) : best + 2]
        new = [penalty for penalty in around if penalty not in tried]
        if not new:
            return tried
        tried.update(zip(new, scores(new), strict=True))
        best = path.index(max(tried, key=lambda penalty: tried[penalty].mean))


def _within_one_error(tried: dict[Penalties, HeldOut]) -> list[Penalties]:
    """Those whose likelihood is within one paired standard error of the best."""
    best = max(tried.values(), key=lambda score: score.mean)
    return [
        penalty
        for penalty, score in tried.items()
        if score.mean >= best.mean - best.standard_error(score)
    ]


def _beside_all_rows(penalties: Penalties, share: float, options: Options) -> Penalties:
    """Penalties of a sample that is this share of the rows, for all of them.

    A penalty is worth so many rows, and weighs less beside more of them. What was
    chosen was judged by fits to all folds of the sample but one.
    """
    judged = share * (1 - 1 / options.n_folds) if options.search else share
    dirichlet = penalties.dirichlet * (judged if options.dirichlet is None else share)
    ridge = penalties.ridge
    if options.search and options.ridge is None:
        ridge *= judged
    return replace(penalties, ridge=ridge, dirichlet=dirichlet)


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
