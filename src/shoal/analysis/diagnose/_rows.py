"""What is asked of an estimator and of its table: rows, ready for every check."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD

from shoal._words import list_words, single_word_bags, sum_by_domain, thin_words
from shoal.analysis.diagnose._guess import gain_of
from shoal.base._merged import original
from shoal.ddfa import DDFA
from shoal.discrete import DiscreteMixture
from shoal.likelihood._features import FeatureMap
from shoal.likelihood._held_out import HeldOut, held_out
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._rows import TrainingRows, feature_map, list_expansions
from shoal.likelihood._starts import cluster_rows
from shoal.mixture._estimator import DomainMixture
from shoal.stages.discriminate import Discriminator
from shoal.stages.discriminate._candidates import is_given
from shoal.validation import encode_column, is_sparse, row_weights
from shoal.validation._rows import canonical_rows
from shoal.validation._sampling import fold_of_rows

# ---- table ---------------------------------------------------------------------------

Array = np.ndarray[Any, Any]

# Rows that vote for a row's domain.
N_NEAREST = 5
# Wider tables are asked about the columns whose means differ most between domains.
MOST_LEAK_COLUMNS = 200


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
    steps = np.delete(np.arange(-N_NEAREST, N_NEAREST + 1), N_NEAREST)
    around = np.arange(n_rows)[:, None] + steps
    inside = (around >= 0) & (around < n_rows)
    around = np.clip(around, 0, n_rows - 1)
    distance = np.where(inside, np.abs(values[around] - values[:, None]), np.inf)
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :N_NEAREST]
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
    if n_columns <= MOST_LEAK_COLUMNS:
        return np.arange(n_columns)
    sizes = np.bincount(codes)
    member = sparse.csr_array((1 / sizes[codes], (codes, np.arange(len(codes)))))
    means = member @ X
    means = np.asarray(means.toarray() if is_sparse(means) else means)
    square = X.multiply(X) if is_sparse(X) else X**2
    spread = np.asarray(square.mean(axis=0)).ravel() - means.mean(axis=0) ** 2
    between = means.var(axis=0) / np.maximum(spread, 1e-12)
    return np.sort(np.argsort(-between, kind="stable")[:MOST_LEAK_COLUMNS])


def _column(X: Any, index: int) -> Array:
    """One column as numbers; words become their rank."""
    if is_sparse(X):
        return np.asarray(X[:, [index]].toarray()).ravel()
    values = X[:, index]
    if values.dtype.kind in "biuf":
        return np.asarray(values)
    return encode_column(values, name=f"X, column {index},")[0]


# ---- What is asked of an estimator: its rows, ready for every check ------------------

N_FOLDS = 3
N_JOINT = 150  # iterations of an out-of-fold climb
CELLS_PER_CLASS = 4
LEAST_CELLS = 12
MAX_WORDS = 200
LEAST_WORDS = 5  # rarer words share a cell
# "Alike" is judged on this many columns; more are replaced by principal directions.
MAX_COLUMNS = 20
# The refit's own penalties: enough to end the climb, too little to bend it.
REFIT_RIDGE = 1e-4
REFIT_DIRICHLET = 0.1  # imaginary rows for each class and domain
BUMPS = (60,)


@dataclass(frozen=True)
class DiagnosisRows:
    """Rows in canonical order with everything the checks need.

    Attributes
    ----------
    problem : MixtureProblem
        Features, domain and weight of each row, sorted by domain.
    cells : ndarray of shape (n,)
        A partition of the inputs that does not look at the domains.
    columns : ndarray of shape (n, at most 20)
        What "looks alike" is judged on, scaled.
    domain_weight : ndarray of shape (n_domains,)
        q(d).
    penalties : Penalties
        Of refits.
    folds : ndarray of shape (n,)
    through : HeldOut
        Held-out gain of guessing domains through the estimator's own classes.
    free : HeldOut or None
        Held-out gain of the estimator's own discriminator.
    classes : ndarray of shape (n, n_classes)
        The estimator's p_d(y|x).
    """

    problem: MixtureProblem
    cells: Array
    columns: Array
    domain_weight: Array
    penalties: Penalties
    folds: Array
    through: HeldOut
    free: HeldOut | None
    classes: Array

    def with_domains(self, order: Array, codes: Array) -> "DiagnosisRows":
        """The same rows in another order, with other domains."""
        problem = MixtureProblem(
            self.problem.design[order],
            codes,
            row_weights(codes, self.domain_weight),
            self.problem.n_domains,
        )
        return replace(
            self,
            problem=problem,
            cells=self.cells[order],
            columns=self.columns[order],
        )


def gather(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> DiagnosisRows:
    """Rows of a fitted estimator; X is validated, ``rng`` draws the sample."""
    if isinstance(original(estimator), DiscreteMixture):
        return _word_rows(estimator, X, codes, max_rows, rng)
    varying = getattr(estimator, "varying_", None)
    inside = X if varying is None or varying.all() else X[:, varying]
    plain = FeatureMap("column").fit(inside, np.ones(X.shape[0])).transform(inside)
    order = canonical_rows(plain, codes)
    # the sample is drawn from row numbers, to follow rows through both tables
    numbers = TrainingRows(
        order[:, None], codes[order], None, estimator.domain_weight_
    ).sample(max_rows, rng)
    taken = numbers.X[:, 0]
    rows = replace(numbers, X=inside[taken])
    if isinstance(estimator, DomainMixture):
        return _mixture_rows(estimator, X[taken], rows, rng)
    return _table_rows(estimator, X[taken], rows, rng)


def _mixture_rows(
    estimator: DomainMixture, X: Any, rows: TrainingRows, rng: np.random.Generator
) -> DiagnosisRows:
    """Features and penalties as fitted; the climb is repeated out of fold."""
    problem = rows.problem(estimator.features_)
    folds = fold_of_rows(rows.codes, N_FOLDS, rng)
    start, penalties = estimator.domain_given_class_, estimator.penalties_
    climbs = held_out(problem, start, [penalties], folds, n_joint=N_JOINT)
    log_own = climbs[0].each
    through = gain_of("classes", np.exp(log_own), problem, rows.domain_weight)
    ridge = min(penalties.ridge, REFIT_RIDGE)
    return _finish(estimator, X, rows, problem, folds, through, None, ridge, rng)


def _table_rows(
    estimator: Any, X: Any, rows: TrainingRows, rng: np.random.Generator
) -> DiagnosisRows:
    """Any other estimator of numeric rows: bumps stand beside the columns."""
    richest = list_expansions(rows, "auto", BUMPS)[-1]
    features = feature_map(rows, "column", richest, BUMPS, _seed(rng))
    problem = rows.problem(features)
    folds = fold_of_rows(rows.codes, N_FOLDS, rng)
    own = np.arange(rows.n_rows), rows.codes
    free = None
    if isinstance(estimator, DDFA):
        guess = _out_of_fold(estimator.discriminator_, rows, _seed(rng))
        free = gain_of("discriminator", guess[own], problem, rows.domain_weight)
        class_given_x = estimator.adjuster_.predict_proba(guess)
    else:
        class_given_x = estimator._class_given_x(X)
    domain_given_x = class_given_x @ estimator.domain_given_class_
    through = gain_of("classes", domain_given_x[own], problem, rows.domain_weight)
    return _finish(estimator, X, rows, problem, folds, through, free, REFIT_RIDGE, rng)


def _out_of_fold(discriminator: Any, rows: TrainingRows, seed: int) -> Array:
    """q(d|x) of the fitted kind of discriminator, refitted out of fold."""
    model = getattr(discriminator, "estimator_", discriminator)
    if is_given(model):
        return np.asarray(discriminator.predict_proba(rows.X))
    shares = dict(enumerate(rows.domain_weight))
    again = Discriminator(
        clone(model), cross_fit=N_FOLDS, domain_weight=shares, random_state=seed
    )
    return np.asarray(again.fit(rows.X, rows.codes).domain_given_x_)


def _finish(
    estimator: Any,
    X: Any,
    rows: TrainingRows,
    problem: MixtureProblem,
    folds: Array,
    through: HeldOut,
    free: HeldOut | None,
    ridge: float,
    rng: np.random.Generator,
) -> DiagnosisRows:
    # every expansion starts with the scaled columns themselves, or is components
    plain = problem.design[:, : rows.X.shape[1]]
    n_cells = min(
        max(CELLS_PER_CLASS * estimator.n_classes_, LEAST_CELLS),
        rows.n_rows // (4 * rows.n_domains),
    )
    n_cells = max(n_cells, estimator.n_classes_ + 1)
    cells = cluster_rows(plain, n_cells, problem.row_weight, rng)
    return DiagnosisRows(
        problem=problem,
        cells=cells,
        columns=_few_columns(plain, _seed(rng)),
        domain_weight=rows.domain_weight,
        penalties=_refit_penalties(ridge, problem, estimator.n_classes_),
        folds=folds,
        through=through,
        free=free,
        classes=estimator._posterior(X, rows.codes, None),
    )


def _few_columns(plain: Any, seed: int) -> Array:
    """The scaled columns, or their main directions when there are many."""
    if not is_sparse(plain) and plain.shape[1] <= MAX_COLUMNS:
        return np.asarray(plain, dtype=float)
    few = min(MAX_COLUMNS, plain.shape[1] - 1)
    reduced = TruncatedSVD(few, random_state=seed).fit_transform(plain)
    return np.asarray(reduced, dtype=float)


def _refit_penalties(ridge: float, problem: MixtureProblem, k: int) -> Penalties:
    imaginary = REFIT_DIRICHLET * k * problem.n_domains / problem.n_rows
    return Penalties(ridge=ridge, confidence=0.0, dirichlet=imaginary)


# ---- words -----------------------------------------------------------------------


def _word_rows(
    estimator: Any,
    X: Any,
    codes: Array,
    max_rows: int,
    rng: np.random.Generator,
) -> DiagnosisRows:
    """Every occurrence of a word is a row; rare words share one cell."""
    fitted = original(estimator)
    n_domains, n_words = len(fitted.domains_), len(fitted.vocabulary_)
    bags = fitted._read_bags(X, warn=False)
    table = sum_by_domain(bags, codes, n_domains)[:, :n_words].astype(np.int64)
    table = thin_words(table, max_rows, rng)
    domain, words = list_words(table)
    k, weight = estimator.n_classes_, estimator.domain_weight_
    most = min(max(len(words) // (4 * n_domains), CELLS_PER_CLASS * k), MAX_WORDS)
    cells = _common_words(table.sum(axis=0), most)[words]
    indicators = np.eye(int(cells.max()) + 1)[cells]
    rows = TrainingRows(indicators, domain, None, weight)
    features = FeatureMap("column").fit(indicators, rows.row_weight)
    problem = rows.problem(features)
    folds = fold_of_rows(domain, N_FOLDS, rng)
    classes = fitted._bayes(
        single_word_bags(words, n_words), fitted.prevalence_[domain]
    )
    if fitted is estimator:
        own = _own_through_words(fitted, table, words, domain, folds, rng)
    else:  # refitted classes have no names by which to merge them
        classes = classes @ estimator._sum
        each_word = single_word_bags(np.arange(n_words), n_words)
        class_given_word = fitted._bayes(each_word, fitted.class_weight_)
        merged = class_given_word @ estimator._sum
        own = (merged @ estimator.domain_given_class_)[words, domain]
    return DiagnosisRows(
        problem=problem,
        cells=cells,
        columns=problem.design[:, :MAX_COLUMNS],
        domain_weight=weight,
        penalties=_refit_penalties(REFIT_RIDGE, problem, k),
        folds=folds,
        through=gain_of("classes", own, problem, weight),
        free=None,
        classes=classes,
    )


def _common_words(count: Array, most: int) -> Array:
    """Cell of each word: the commonest have their own, the rest share the last."""
    rank = np.empty(len(count), dtype=int)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    solid = int((count >= LEAST_WORDS).sum())
    return np.minimum(rank, min(solid, most - 1))


def _own_through_words(
    estimator: DiscreteMixture,
    table: Array,
    words: Array,
    codes: Array,
    folds: Array,
    rng: np.random.Generator,
) -> Array:
    """q(d|word) of each row's domain, factorized without the row's fold."""
    n_words = table.shape[1]
    own = np.empty(len(words))
    for fold in range(N_FOLDS):
        test = folds == fold
        held = np.zeros_like(table)
        np.add.at(held, (codes[test], words[test]), 1)
        other = clone(estimator).set_params(
            n_classes=estimator.n_classes_, check_identifiable=False
        )
        seed = np.random.RandomState(_seed(rng))
        other._factorize(table - held, estimator.domains_, seed)
        each_word = single_word_bags(np.arange(n_words), n_words)
        class_given_word = other._bayes(each_word, other.class_weight_)
        domain_given_word = class_given_word @ other.domain_given_class_
        own[test] = domain_given_word[words[test], codes[test]]
    return own


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))
