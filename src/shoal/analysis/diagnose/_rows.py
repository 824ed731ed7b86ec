"""What is asked of an estimator: its rows, ready for every check."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD

from shoal.analysis._rank import soften
from shoal.analysis._refits import with_classes
from shoal.analysis._resample import match_by_rows
from shoal.analysis.diagnose._settings import EFFORT
from shoal.likelihood._features import (
    FeatureMap,
    TrainingRows,
    feature_map,
    list_expansions,
)
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._starts import cluster_rows
from shoal.probability import HeldOut, normalize_rows
from shoal.stages._words import list_words, thin_words
from shoal.validation import row_weights
from shoal.validation._rows import canonical_rows, fold_of_rows, is_sparse

Array = np.ndarray[Any, Any]

# ---- what an estimator says of its rows ----------------------------------------------


@dataclass(frozen=True)
class DiagnosedRows:
    """Rows that are judged, in canonical order, as the estimator sees them.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n, n_features)
        As the estimator takes them.
    rows : TrainingRows
        What ``features`` are made of: the columns that the fit has used.
    features : FeatureMap
        Of the refit by likelihood; the scaled columns themselves come first.
    posterior : ndarray of shape (n, n_classes)
        The estimator's p_d(y|x), of the classes of the fit.
    ridge : float
        Of the refit.
    cells : ndarray of shape (n,) or None
        A partition of the inputs that does not look at the domains; None to look for
        clusters.
    """

    X: Any
    rows: TrainingRows
    features: FeatureMap
    posterior: Array
    ridge: float = EFFORT.ridge
    cells: Array | None = None

    @cached_property
    def problem(self) -> MixtureProblem:
        """The likelihood of the domains of these rows."""
        return self.rows.problem(self.features)


@dataclass(frozen=True)
class OutOfFold:
    """Classes of rows by fits that have not seen them, named as in the fit.

    Attributes
    ----------
    class_given_x : ndarray of shape (n, n_classes)
        q(y|x).
    domain_given_class : ndarray of shape (n_folds, n_classes, n_domains)
        q(d|y) of the fit that each fold was kept from.
    class_weight : ndarray of shape (n_folds, n_classes)
        q(y) of these fits.
    domain_given_x : ndarray of shape (n, n_domains) or None
        q(d|x) of the estimator's own discriminator.
    """

    class_given_x: Array
    domain_given_class: Array
    class_weight: Array
    domain_given_x: Array | None = None

    def through_classes(self, estimator: Any, codes: Array, folds: Array) -> Array:
        """Probability of each row's own domain, through the classes of an estimator.

        Those of a merged class add up, and its q(d|y) is the mean of its parts'.
        """
        class_given_x = estimator._add_up(self.class_given_x)
        own = np.empty(len(codes))
        for fold, corners in enumerate(self.domain_given_class):
            joint = (self.class_weight[fold][:, None] * corners).T
            merged = normalize_rows(estimator._add_up(joint).T)
            test = folds == fold
            own[test] = (class_given_x[test] * merged.T[codes[test]]).sum(axis=1)
        return own


def sample_numbers(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> tuple[Array, TrainingRows]:
    """Numbers of the rows of a sample, and these with the columns the fit has used."""
    used = estimator._used_columns(X)
    plain = FeatureMap("column").fit(used, np.ones(X.shape[0])).transform(used)
    order = canonical_rows(plain, codes)
    # the sample is drawn from row numbers, to follow rows through both tables
    numbers = TrainingRows(
        order[:, None], codes[order], None, estimator.domain_weight_
    ).sample(max_rows, rng)
    taken = numbers.X[:, 0]
    return taken, replace(numbers, X=used[taken])


def sample_rows(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> tuple[Any, TrainingRows]:
    """A sample of validated rows, whole and with the columns that the fit has used."""
    taken, rows = sample_numbers(estimator, X, codes, max_rows, rng)
    return X[taken], rows


def rows_with_rbf(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> DiagnosedRows:
    """Numeric rows of any estimator: RBF features stand beside the columns."""
    X, rows = sample_rows(estimator, X, codes, max_rows, rng)
    richest = list_expansions(rows, "auto", EFFORT.n_centres)[-1]
    features = feature_map(rows, "column", richest, EFFORT.n_centres, draw_seed(rng))
    return DiagnosedRows(X, rows, features, estimator._posterior(X, rows.codes, None))


def rows_of_words(
    table: Array,
    n_classes: int,
    domain_weight: Array,
    max_rows: int,
    rng: np.random.Generator,
) -> DiagnosedRows:
    """Every occurrence of a word is a row; rare words share one cell.

    Parameters
    ----------
    table : ndarray of shape (n_domains, n_words)
        Counts, as whole numbers.
    n_classes : int
    domain_weight : ndarray of shape (n_domains,)
    max_rows : int
    rng : numpy Generator

    Returns
    -------
    DiagnosedRows
        ``X`` is the word of each row; the posterior is left to the estimator.
    """
    table = thin_words(table, max_rows, rng)
    codes, words = list_words(table)
    fewest = EFFORT.cells_per_class * n_classes
    most = min(
        max(len(words) // (EFFORT.rows_per_cell * len(table)), fewest),
        EFFORT.most_words,
    )
    cells = common_words(table.sum(axis=0), most)[words]
    indicators = np.eye(int(cells.max()) + 1)[cells]
    rows = TrainingRows(indicators, codes, None, domain_weight)
    features = FeatureMap("column").fit(indicators, rows.row_weight)
    none = np.empty((len(words), 0))
    return DiagnosedRows(words, rows, features, none, cells=cells)


def common_words(count: Array, most: int) -> Array:
    """Cell of each word: the commonest have their own, the rest share the last."""
    rank = np.empty(len(count), dtype=int)
    rank[np.argsort(-count, kind="stable")] = np.arange(len(count))
    solid = int((count >= EFFORT.least_words).sum())
    return np.minimum(rank, min(solid, most - 1))


def fit_out_of_fold(estimator: Any, rows: DiagnosedRows, folds: Array) -> OutOfFold:
    """Clones fitted to all folds but one, their classes matched by the rows shared."""
    codes, names, k = rows.rows.codes, estimator.domains_, estimator.n_classes_
    n_folds, n_domains = int(folds.max()) + 1, len(names)
    class_given_x = np.empty((len(codes), k))
    corners = np.zeros((n_folds, k, n_domains))
    weight = np.empty((n_folds, k))
    for fold, (train, test) in enumerate(splits_of(folds)):
        other = with_classes(estimator, k)
        other.fit(rows.X[train], domains=names[codes[train]])
        found = other.predict(rows.X[train], names[codes[train]])
        known = rows.posterior[train].argmax(axis=1)
        order = np.argsort(match_by_rows(known, found, k))
        class_given_x[test] = other._class_given_x(rows.X[test])[:, order]
        # a domain whose only rows are held out is unknown to the fit
        corners[fold][:, np.unique(codes[train])] = other.domain_given_class_[order]
        weight[fold] = other.class_weight_[order]
    return OutOfFold(class_given_x, corners, weight)


# ---- rows that are ready for every check ---------------------------------------------


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
    folds : ndarray of shape (n,)
    domain_weight : ndarray of shape (n_domains,)
        q(d).
    penalties : Penalties
        Of refits.
    moved : bool
        Whether these are rows less an offset of their domain, which the fit takes out.
    """

    problem: MixtureProblem
    cells: Array
    columns: Array
    folds: Array
    domain_weight: Array
    penalties: Penalties
    moved: bool = False

    @property
    def codes(self) -> Array:
        """Domain of each row."""
        return self.problem.codes

    @property
    def row_weight(self) -> Array:
        """Weight of each row, in double precision."""
        return self.problem.row_weight.astype(float)

    def splits(self) -> Iterator[tuple[Array, Array]]:
        """Numbers of the rows outside and inside of each fold."""
        return splits_of(self.folds)

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

    def gain(self, name: str, own: Array) -> HeldOut:
        """Gain of a guess that gives each row's own domain the probability ``own``.

        The guess is mixed with q(d) as if that had been one row per domain: a held-out
        row of a domain with few others must not cost minus infinity.
        """
        prior, problem = self.domain_weight[self.codes], self.problem
        softened = soften(
            np.maximum(own, 0), prior, problem.n_rows, imaginary=problem.n_domains
        )
        return HeldOut(np.log(softened / prior), self.row_weight, name)


@dataclass(frozen=True)
class OwnAnswers:
    """What an estimator itself says of the rows.

    Attributes
    ----------
    posterior : ndarray of shape (n, n_classes)
        Its p_d(y|x).
    through : HeldOut
        Held-out gain of guessing domains through its classes.
    free : HeldOut or None
        Held-out gain of its own discriminator.
    """

    posterior: Array
    through: HeldOut
    free: HeldOut | None


def gather(
    estimator: Any, X: Any, codes: Array, max_rows: int, rng: np.random.Generator
) -> tuple[DiagnosisRows, OwnAnswers]:
    """Rows of a fitted estimator, and its answers; X is validated.

    Where classes were merged, the fit below is asked, and what it says adds up. Where
    it takes an offset of each domain out, its classes are judged on what is left.
    """
    k = estimator.n_classes_
    origin, still = estimator._origin._without_drift(X, codes)
    found = origin._diagnosed_rows(still, codes, max_rows, rng)
    problem = found.problem
    folds = fold_of_rows(problem.codes, EFFORT.n_folds, rng)
    guess = origin._out_of_fold(found, folds, rng)
    if found.cells is None:
        # every expansion starts with the scaled columns themselves, or is components
        plain = problem.design[:, : found.rows.X.shape[1]]
        cells = _find_cells(plain, problem, k, rng)
        columns = _few_columns(plain, draw_seed(rng))
    else:
        cells, columns = found.cells, problem.design[:, : EFFORT.most_columns]
    imaginary = EFFORT.dirichlet * k * problem.n_domains / problem.n_rows
    penalties = Penalties(ridge=found.ridge, confidence=0.0, dirichlet=imaginary)
    weight = estimator.domain_weight_
    moved = still is not X
    rows = DiagnosisRows(problem, cells, columns, folds, weight, penalties, moved)
    through = guess.through_classes(estimator, rows.codes, folds)
    free = None
    if guess.domain_given_x is not None:
        own = guess.domain_given_x[np.arange(problem.n_rows), rows.codes]
        free = rows.gain("discriminator", own)
    posterior = estimator._add_up(found.posterior)
    return rows, OwnAnswers(posterior, rows.gain("classes", through), free)


def _find_cells(
    plain: Any, problem: MixtureProblem, n_classes: int, rng: np.random.Generator
) -> Array:
    most = problem.n_rows // (EFFORT.rows_per_cell * problem.n_domains)
    n_cells = min(max(EFFORT.cells_per_class * n_classes, EFFORT.least_cells), most)
    return cluster_rows(plain, max(n_cells, n_classes + 1), problem.row_weight, rng)


def _few_columns(plain: Any, seed: int) -> Array:
    """The scaled columns, or their main directions when there are many."""
    if not is_sparse(plain) and plain.shape[1] <= EFFORT.most_columns:
        return np.asarray(plain, dtype=float)
    few = min(EFFORT.most_columns, plain.shape[1] - 1)
    reduced = TruncatedSVD(few, random_state=seed).fit_transform(plain)
    return np.asarray(reduced, dtype=float)


def splits_of(folds: Array) -> Iterator[tuple[Array, Array]]:
    """Numbers of the rows outside and inside of each fold."""
    for fold in range(int(folds.max()) + 1):
        yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def draw_seed(rng: np.random.Generator) -> int:
    """A seed for one step."""
    return int(rng.integers(2**31 - 1))
