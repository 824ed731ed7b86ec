"""Guessing the domain of held-out rows: what any guess can gain, and what is chance.

A guess is judged by its *gain*: the mean over domains of log q(d|x) - log q(d) on rows
it was not fitted to, in nats. Guessing q(d) itself gains 0.
"""

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.ensemble import ExtraTreesClassifier

from shoal._rank import soften
from shoal.likelihood._held_out import HeldOut
from shoal.likelihood._problem import MixtureProblem, Penalties, optimize

Array = np.ndarray[Any, Any]

# From strong to weak; the path ends where the held-out likelihood stops growing.
RIDGES = (0.1, 0.01, 1e-3, 1e-4)
LOGIT_ITERATIONS = 40
# With more domains, weights (or leaves) for each of them cost more than they tell.
MAX_LOGIT_DOMAINS = 60
MAX_TREE_DOMAINS = 200
# The spread of a domain is pulled to that of all by as many rows as this, per column.
POOLED_ROWS = 2.0
N_TREES = 50
LEAST_LEAF = 10


def gain_of(
    name: str, own: Array, problem: MixtureProblem, domain_weight: Array
) -> HeldOut:
    """Gain of a guess that gives each row's own domain the probability ``own``.

    The guess is mixed with q(d) as if that had been one row per domain: a held-out
    row of a domain with few others must not cost minus infinity.
    """
    prior = domain_weight[problem.codes]
    softened = soften(
        np.maximum(own, 0), prior, problem.n_rows, imaginary=problem.n_domains
    )
    return HeldOut(np.log(softened / prior), problem.row_weight.astype(float), name)


def best_guess(
    problem: MixtureProblem,
    cells: Array,
    columns: Array,
    folds: Array,
    domain_weight: Array,
) -> HeldOut:
    """The best of three quick guessers, each out of fold.

    A logit sees directions, a table of cells by domains sees any shape coarsely, and a
    normal density for each domain sees means and spreads.
    """
    guesses = [
        table_guess(problem, cells, folds, domain_weight),
        normal_guess(problem, columns, folds, domain_weight),
    ]
    if problem.n_domains <= MAX_LOGIT_DOMAINS:
        guesses.append(logit_guess(problem, folds, domain_weight))
    return max(guesses, key=lambda gain: gain.mean)


def null_gains(
    problem: MixtureProblem,
    cells: Array,
    columns: Array,
    folds: Array,
    domain_weight: Array,
    orders: list[Array],
) -> Array:
    """Gain of the same guesser when rows are dealt to the domains at random.

    Each of ``orders`` is a permutation of the rows.
    """
    gains = []
    for order in orders:
        shuffled = MixtureProblem(
            problem.design[order],
            problem.codes,
            problem.row_weight,
            problem.n_domains,
        )
        best = best_guess(shuffled, cells[order], columns[order], folds, domain_weight)
        gains.append(best.mean)
    return np.array(gains)


def logit_guess(problem: MixtureProblem, folds: Array, domain_weight: Array) -> HeldOut:
    """Multinomial logit, its ridge the best of a path; every row out of fold.

    A logit is the mixture with one class for each domain.
    """
    identity = np.eye(problem.n_domains)
    splits = [np.flatnonzero(folds == fold) for fold in range(int(folds.max()) + 1)]
    rest = [np.flatnonzero(folds != fold) for fold in range(len(splits))]
    train = [problem.take(rows) for rows in rest]
    test = [problem.take(rows) for rows in splits]
    weights = [np.zeros((problem.n_domains, problem.n_features + 1)) for _ in splits]
    best: HeldOut | None = None
    for ridge in RIDGES:
        own = np.empty(problem.n_rows)
        for fold, rows in enumerate(splits):
            weights[fold] = optimize(
                train[fold],
                weights[fold],
                identity,
                Penalties(ridge=ridge),
                max_iter=LOGIT_ITERATIONS,
                frozen=True,
                tol=1e-5,
            ).weights
            own[rows] = np.exp(test[fold].log_likelihood(weights[fold], identity))
        gain = gain_of("logit", own, problem, domain_weight)
        if best is not None and gain.mean <= best.mean:
            break
        best = gain
    assert best is not None
    return best


def table_guess(
    problem: MixtureProblem, cells: Array, folds: Array, domain_weight: Array
) -> HeldOut:
    """q(d|cell) counted on the other folds, with q(d) as one row per domain."""
    n_cells, n_domains = int(cells.max()) + 1, problem.n_domains
    own = np.empty(problem.n_rows)
    # a row counts as much as its domain wants, one on average
    weight = problem.row_weight.astype(float) * problem.n_rows
    flat = cells.astype(np.int64) * n_domains + problem.codes
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        counts = np.bincount(
            flat[~test], weight[~test], minlength=n_cells * n_domains
        ).reshape(n_cells, n_domains)
        counts += n_domains * domain_weight
        share = counts / counts.sum(axis=1, keepdims=True)
        own[test] = share[cells[test], problem.codes[test]]
    return gain_of("table of cells", own, problem, domain_weight)


def normal_guess(
    problem: MixtureProblem, columns: Array, folds: Array, domain_weight: Array
) -> HeldOut:
    """Bayes' rule with one normal density per domain, fitted to the other folds."""
    own = np.empty(problem.n_rows)
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        codes, rows = problem.codes[~test], columns[~test]
        log_joint = np.empty((int(test.sum()), problem.n_domains))
        pooled = np.cov(rows, rowvar=False, ddof=0).reshape(2 * columns.shape[1:])
        pooled += 1e-6 * np.eye(len(pooled)) * max(np.trace(pooled) / len(pooled), 1e-9)
        for domain in range(problem.n_domains):
            mine = rows[codes == domain]
            density = _normal_density(mine, rows.mean(axis=0), pooled, columns[test])
            log_joint[:, domain] = density + np.log(domain_weight[domain])
        log_joint -= logsumexp(log_joint, axis=1, keepdims=True)
        own[test] = np.exp(log_joint)[np.arange(len(log_joint)), problem.codes[test]]
    return gain_of("normal densities", own, problem, domain_weight)


def _normal_density(rows: Array, centre: Array, pooled: Array, points: Array) -> Array:
    """Log density at ``points``, up to a constant, of the normal fitted to ``rows``.

    Mean and spread are pulled towards those of all rows.
    """
    prior = POOLED_ROWS * len(pooled)
    mean = (rows.sum(axis=0) + centre) / (len(rows) + 1)
    centred = rows - mean
    spread = (centred.T @ centred + prior * pooled) / (len(rows) + prior)
    factor = np.linalg.cholesky(spread)
    scaled = solve_triangular(factor, (points - mean).T, lower=True)
    return np.asarray(-0.5 * (scaled**2).sum(axis=0) - np.log(np.diag(factor)).sum())


def tree_guess(
    problem: MixtureProblem,
    columns: Array,
    folds: Array,
    domain_weight: Array,
    seed: int,
) -> HeldOut:
    """Extremely randomized trees: slower, and blind to no shape."""
    if problem.n_domains > MAX_TREE_DOMAINS:
        prior = domain_weight[problem.codes]
        return gain_of("nothing", prior, problem, domain_weight)
    own = np.zeros(problem.n_rows)
    weight = problem.row_weight.astype(float) * problem.n_rows
    trees = ExtraTreesClassifier(
        N_TREES, min_samples_leaf=LEAST_LEAF, max_features=None, random_state=seed
    )
    for fold in range(int(folds.max()) + 1):
        train, test = folds != fold, np.flatnonzero(folds == fold)
        trees.fit(columns[train], problem.codes[train], sample_weight=weight[train])
        proba = trees.predict_proba(columns[test])
        # a domain with one row may be missing from a fold
        place = np.searchsorted(trees.classes_, problem.codes[test])
        place = np.minimum(place, len(trees.classes_) - 1)
        known = trees.classes_[place] == problem.codes[test]
        own[test] = np.where(known, proba[np.arange(len(test)), place], 0)
    return gain_of("trees", own, problem, domain_weight)
