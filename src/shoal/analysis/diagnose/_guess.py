"""Columns that name the domain, repeated rows, and guesses of held-out domains."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.ensemble import ExtraTreesClassifier

from shoal.analysis.diagnose._rows import DiagnosisRows
from shoal.analysis.diagnose._settings import EFFORT
from shoal.likelihood._problem import Penalties, optimize
from shoal.probability import HeldOut
from shoal.validation._domains import encode_column
from shoal.validation._rows import is_sparse

# ---- columns that name the domain, and repeated rows ---------------------------------

Array = np.ndarray[Any, Any]

# So many times the copies that coarse values lead to expect are still chance.
COPIES_BY_CHANCE = 2


@dataclass(frozen=True)
class Repeats:
    """Rows whose exact copy occurs in another domain.

    Attributes
    ----------
    n_rows : int
        Rows with a copy in another domain.
    excess : float
        Pairs of copies across domains, over what pairs within domains lead to expect
        if values coincide by chance; infinite when no domain holds copies of its own.
    """

    n_rows: int
    excess: float


def naming_columns(X: Any, codes: Array, rng: np.random.Generator) -> dict[int, float]:
    """Share of rows (domains equal) whose domain each column alone names, by index.

    At most 200 columns are tried.
    """
    tie_break = rng.random(len(codes))
    return {
        int(index): column_accuracy(_column(X, index), codes, tie_break)
        for index in _promising(X, codes)
    }


def column_accuracy(values: Array, codes: Array, tie_break: Array) -> float:
    """Share of rows whose domain their five nearest rows in this column vote for.

    A vote counts one over the size of its domain; equal values are neighbours in an
    order that ``tie_break`` draws.
    """
    n_rows, n_domains = len(codes), int(codes.max()) + 1
    sizes = np.bincount(codes, minlength=n_domains)
    order = np.lexsort([tie_break, values])
    codes, values = codes[order], np.asarray(values, dtype=float)[order]
    reach = EFFORT.n_nearest
    steps = np.delete(np.arange(-reach, reach + 1), reach)
    around = np.arange(n_rows)[:, None] + steps
    inside = (around >= 0) & (around < n_rows)
    around = np.clip(around, 0, n_rows - 1)
    distance = np.where(inside, np.abs(values[around] - values[:, None]), np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :reach]
    voters = codes[np.take_along_axis(around, nearest, axis=1)]
    valid = np.take_along_axis(inside, nearest, axis=1)
    same = (voters[:, :, None] == voters[:, None, :]) & valid[:, None, :]
    votes = same.sum(axis=2) / sizes[voters]
    winner = np.take_along_axis(voters, votes.argmax(axis=1)[:, None], axis=1)
    right = winner[:, 0] == codes
    recall = np.bincount(codes, right, minlength=n_domains)
    return float((recall[sizes > 0] / sizes[sizes > 0]).mean())


def find_repeats(X: Any, codes: Array) -> Repeats:
    """Count copies across domains, and weigh them against copies within domains."""
    if is_sparse(X):
        X = X.toarray()
    rows = np.ascontiguousarray(X + 0.0)  # so that -0 and 0 have the same bytes
    kind = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    _, group = np.unique(rows.view(kind).ravel(), return_inverse=True)
    n_domains = int(codes.max()) + 1
    pairs, count = np.unique(group * n_domains + codes, return_counts=True)
    n_groups = int(group.max()) + 1
    in_group = np.bincount(pairs // n_domains, count, minlength=n_groups)
    n_hosts = np.bincount(pairs // n_domains, minlength=n_groups)
    within = float((count * (count - 1)).sum())
    across = float((in_group**2).sum() - (count.astype(float) ** 2).sum())
    sizes = np.bincount(codes).astype(float)
    chance = (sizes.sum() ** 2 - (sizes**2).sum()) / max((sizes * (sizes - 1)).sum(), 1)
    expected = within * chance
    excess = across / expected if expected > 0 else (np.inf if across else 0.0)
    return Repeats(int(in_group[n_hosts > 1].sum()), float(excess))


def _promising(X: Any, codes: Array) -> Array:
    """All columns, or those whose domain means lie furthest apart."""
    n_columns = X.shape[1]
    if n_columns <= EFFORT.most_leak_columns:
        return np.arange(n_columns)
    sizes = np.bincount(codes)
    member = sparse.csr_array((1 / sizes[codes], (codes, np.arange(len(codes)))))
    means = member @ X
    means = np.asarray(means.toarray() if is_sparse(means) else means)
    square = X.multiply(X) if is_sparse(X) else X**2
    spread = np.asarray(square.mean(axis=0)).ravel() - means.mean(axis=0) ** 2
    between = means.var(axis=0) / np.maximum(spread, 1e-12)
    return np.sort(np.argsort(-between, kind="stable")[: EFFORT.most_leak_columns])


def _column(X: Any, index: int) -> Array:
    """One column as numbers; words become their rank."""
    if is_sparse(X):
        return np.asarray(X[:, [index]].toarray()).ravel()
    values = X[:, index]
    if values.dtype.kind in "biuf":
        return np.asarray(values)
    return encode_column(values, name=f"X, column {index},")[0]


# ---- guessing the domain of held-out rows --------------------------------------------


def best_guess(rows: DiagnosisRows) -> HeldOut:
    """The best of three quick guessers, each out of fold.

    A logit sees directions, a table of cells by domains sees any shape coarsely, and a
    normal density for each domain sees means and spreads.
    """
    guesses = [table_guess(rows)]
    if rows.problem.n_domains <= EFFORT.most_normal_domains:
        guesses.append(normal_guess(rows))
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
