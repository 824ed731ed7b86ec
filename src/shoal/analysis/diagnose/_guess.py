"""Guessing the domain of held-out rows: what any guess can gain, and what is chance.

A guess is judged by its *gain*: the mean over domains of log q(d|x) - log q(d) on rows
it was not fitted to, in nats. Guessing q(d) itself gains 0.
"""

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.ensemble import ExtraTreesClassifier

from shoal.analysis.diagnose._rows import DiagnosisRows
from shoal.analysis.diagnose._settings import EFFORT
from shoal.likelihood._held_out import HeldOut
from shoal.likelihood._problem import Penalties, optimize

Array = np.ndarray[Any, Any]


def best_guess(rows: DiagnosisRows) -> HeldOut:
    """The best of three quick guessers, each out of fold.

    A logit sees directions, a table of cells by domains sees any shape coarsely, and a
    normal density for each domain sees means and spreads.
    """
    guesses = [table_guess(rows), normal_guess(rows)]
    if rows.problem.n_domains <= EFFORT.most_logit_domains:
        guesses.append(logit_guess(rows))
    return max(guesses, key=lambda gain: gain.mean)


def null_gains(rows: DiagnosisRows, orders: list[Array]) -> Array:
    """Gain of the same guesser when rows are dealt to the domains at random.

    Each of ``orders`` is a permutation of the rows.
    """
    dealt = (rows.with_domains(order, rows.codes) for order in orders)
    return np.array([best_guess(other).mean for other in dealt])


def logit_guess(rows: DiagnosisRows) -> HeldOut:
    """Multinomial logit, its ridge the best of a path; every row out of fold.

    A logit is the mixture with one class for each domain.
    """
    problem, identity = rows.problem, np.eye(rows.problem.n_domains)
    splits = list(rows.splits())
    train = [problem.take(outside) for outside, _ in splits]
    test = [problem.take(inside) for _, inside in splits]
    weights = [np.zeros((problem.n_domains, problem.n_features + 1)) for _ in splits]
    best: HeldOut | None = None
    for ridge in EFFORT.ridges:  # ends where the held-out likelihood stops growing
        own = np.empty(problem.n_rows)
        for fold, (_, inside) in enumerate(splits):
            weights[fold] = optimize(
                train[fold],
                weights[fold],
                identity,
                Penalties(ridge=ridge),
                max_iter=EFFORT.n_logit,
                frozen=True,
                tol=1e-5,
            ).weights
            own[inside] = np.exp(test[fold].log_likelihood(weights[fold], identity))
        gain = rows.gain("logit", own)
        if best is not None and gain.mean <= best.mean:
            break
        best = gain
    assert best is not None
    return best


def table_guess(rows: DiagnosisRows) -> HeldOut:
    """q(d|cell) counted on the other folds, with q(d) as one row per domain."""
    cells, codes, n_domains = rows.cells, rows.codes, rows.problem.n_domains
    shape = int(cells.max()) + 1, n_domains
    own = np.empty(len(codes))
    # a row counts as much as its domain wants, one on average
    weight = rows.row_weight * len(codes)
    flat = cells.astype(np.int64) * n_domains + codes
    for train, test in rows.splits():
        counts = np.bincount(flat[train], weight[train], minlength=np.prod(shape))
        counts = counts.reshape(shape) + n_domains * rows.domain_weight
        share = counts / counts.sum(axis=1, keepdims=True)
        own[test] = share[cells[test], codes[test]]
    return rows.gain("table of cells", own)


def normal_guess(rows: DiagnosisRows) -> HeldOut:
    """Bayes' rule with one normal density per domain, fitted to the other folds."""
    columns, n_domains = rows.columns, rows.problem.n_domains
    own = np.empty(len(columns))
    for train, test in rows.splits():
        codes, seen = rows.codes[train], columns[train]
        log_joint = np.empty((len(test), n_domains))
        pooled = np.cov(seen, rowvar=False, ddof=0).reshape(2 * columns.shape[1:])
        pooled += 1e-6 * np.eye(len(pooled)) * max(np.trace(pooled) / len(pooled), 1e-9)
        for domain in range(n_domains):
            mine = seen[codes == domain]
            density = _normal_density(mine, seen.mean(axis=0), pooled, columns[test])
            log_joint[:, domain] = density + np.log(rows.domain_weight[domain])
        log_joint -= logsumexp(log_joint, axis=1, keepdims=True)
        own[test] = np.exp(log_joint)[np.arange(len(test)), rows.codes[test]]
    return rows.gain("normal densities", own)


def _normal_density(rows: Array, centre: Array, pooled: Array, points: Array) -> Array:
    """Log density at ``points``, up to a constant, of the normal fitted to ``rows``.

    Mean and spread are pulled towards those of all rows.
    """
    prior = EFFORT.pooled_rows * len(pooled)
    mean = (rows.sum(axis=0) + centre) / (len(rows) + 1)
    centred = rows - mean
    spread = (centred.T @ centred + prior * pooled) / (len(rows) + prior)
    factor = np.linalg.cholesky(spread)
    scaled = solve_triangular(factor, (points - mean).T, lower=True)
    return np.asarray(-0.5 * (scaled**2).sum(axis=0) - np.log(np.diag(factor)).sum())


def tree_guess(rows: DiagnosisRows, seed: int) -> HeldOut:
    """Extremely randomized trees: slower, and blind to no shape."""
    if rows.problem.n_domains > EFFORT.most_tree_domains:
        return rows.gain("nothing", rows.domain_weight[rows.codes])
    codes, columns = rows.codes, rows.columns
    own = np.zeros(len(codes))
    weight = rows.row_weight * len(codes)
    trees = ExtraTreesClassifier(
        EFFORT.n_trees,
        min_samples_leaf=EFFORT.least_leaf,
        max_features=None,
        random_state=seed,
    )
    for train, test in rows.splits():
        trees.fit(columns[train], codes[train], sample_weight=weight[train])
        proba = trees.predict_proba(columns[test])
        # a domain with one row may be missing from a fold
        place = np.searchsorted(trees.classes_, codes[test])
        place = np.minimum(place, len(trees.classes_) - 1)
        known = trees.classes_[place] == codes[test]
        own[test] = np.where(known, proba[np.arange(len(test)), place], 0)
    return rows.gain("trees", own)
