"""What tells a class from the rest, and rows as points of a plane."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from shoal.validation._domains import encode_column
from shoal.validation._rows import is_sparse, stratified_sample

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class ProfileSettings:
    """How much is said of a class, and of how many rows and columns it is asked.

    Attributes
    ----------
    top : int
        Features or words that are named.
    batch_rows : int
        Rows in memory as numbers at a time.
    overlap_bins, overlap_rows : int
        Cells of one feature, and rows, by which two distributions are compared.
    largest_difference : float
        A difference of more spreads than this needs no exact number.
    least_level_rows, most_levels : int
        Levels of a category that fewer rows share are left out, as are those beyond
        the cap.
    pseudo_count : float
        Imaginary occurrences of each word in the class and in the rest.
    least_score : float
        Standard errors by which a word must be commoner in the class than elsewhere.
    most_exact_columns : int
        Directions of more columns are found by random projection.
    few_values : int
        A column with no more values than this draws the points of a plane in stripes.
    """

    top: int = 8
    batch_rows: int = 16_384
    overlap_bins: int = 24
    overlap_rows: int = 20_000
    largest_difference: float = 20.0
    least_level_rows: int = 5
    most_levels: int = 200
    pseudo_count: float = 0.5
    least_score: float = 2.0
    most_exact_columns: int = 1_000
    few_values: int = 10


SETTINGS = ProfileSettings()

# ---- features ------------------------------------------------------------------------


@dataclass(frozen=True)
class Contrast:
    """Features of every class against all other rows.

    Attributes
    ----------
    mean, rest : ndarray of shape (n_classes, n_features)
        Mean over the rows of the class, and over the others; rows count by p_d(y|x).
    difference : ndarray of shape (n_classes, n_features)
        ``mean - rest`` in standard deviations (the mean of both variances).
    """

    mean: Array
    rest: Array
    difference: Array


def feature_names_of(model: Any, X: Any, given: Sequence[Any] | None) -> list[str]:
    """Names of the columns of X: those given, those of fit, of the table, or numbers.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    given : sequence or None
    """
    n_features = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    names = given
    if names is None:
        names = getattr(model, "feature_names_in_", getattr(X, "columns", None))
    if names is None:
        return [f"x{index}" for index in range(n_features)]
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} entries, X has {n_features} columns"
        )
    return [str(name) for name in names]


def numeric_columns(X: Any, names: Sequence[str]) -> tuple[Any, list[str]]:
    """X as numbers: columns of words become one indicator per level.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    names : sequence of str

    Returns
    -------
    columns : ndarray or sparse array of shape (n_samples, n_columns)
    names : list of str
        ``"color = red"`` for an indicator.

    Examples
    --------
    >>> X = np.array([["red", 1]] * 6 + [["blue", 2]] * 6, dtype=object)
    >>> numeric_columns(X, ["color", "size"])[1]
    ['color = blue', 'color = red', 'size']
    """
    if is_sparse(X) or X.dtype.kind in "biuf":
        return X, list(names)
    parts, found = [], []
    for index, name in enumerate(names):
        column = X[:, index]
        try:
            parts.append(sparse.csr_array(column.astype(float)[:, None]))
            found.append(name)
        except (TypeError, ValueError):
            levels, labels = _indicators(column, name)
            parts.append(levels)
            found += labels
    return sparse.hstack(parts, format="csr"), found


def _indicators(column: Array, name: str) -> tuple[Any, list[str]]:
    codes, values = encode_column(column, name=name)
    count = np.bincount(codes, minlength=len(values))
    common = np.argsort(-count, kind="stable")[: SETTINGS.most_levels]
    kept = np.sort(common[count[common] >= min(SETTINGS.least_level_rows, count.max())])
    ones = sparse.csr_array(
        (np.ones(len(codes)), (np.arange(len(codes)), codes)),
        shape=(len(codes), len(values)),
    )
    return ones[:, kept], [f"{name} = {values[index]}" for index in kept]


def contrast_features(X: Any, proba: Array) -> Contrast:
    """Mean and spread of every feature, in each class and in the rest.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    proba : ndarray of shape (n_samples, n_classes)
        Weight of each row in each class.
    """
    n_rows, n_features = X.shape
    size = proba.sum(axis=0)[:, None]
    # Far from zero, the difference of two squares would lose all digits.
    centre = np.zeros(n_features) if is_sparse(X) else X.mean(axis=0)
    total = np.zeros((proba.shape[1], n_features))
    square = np.zeros_like(total)
    for batch in gen_batches(n_rows, SETTINGS.batch_rows):
        block, weight = X[batch], proba[batch].T
        if is_sparse(block):
            block = block.astype(float)
            squares = block.multiply(block)
        else:
            block = block - centre
            squares = block**2
        total += dense(weight @ block)
        square += dense(weight @ squares)
    mean, spread = _moments(total, square, size)
    rest, rest_spread = _moments(
        total.sum(axis=0) - total, square.sum(axis=0) - square, n_rows - size
    )
    pooled = np.sqrt((spread + rest_spread) / 2)
    pooled = np.maximum(pooled, 1e-9 * (1 + np.abs(mean) + np.abs(rest)))
    most = SETTINGS.largest_difference
    difference = np.clip((mean - rest) / pooled, -most, most)
    return Contrast(mean + centre, rest + centre, difference)


def dense(matrix: Any) -> Array:
    """A matrix without its gaps; a copy only where it has some."""
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)


def _moments(total: Array, square: Array, size: Array) -> tuple[Array, Array]:
    size = np.maximum(size, 1e-300)
    mean = total / size
    return mean, np.maximum(square / size - mean**2, 0)


def top_features(
    X: Any, proba: Array, names: Sequence[str], index: int, contrast: Contrast
) -> list[dict[str, Any]]:
    """The features that tell one class from the rest best, as records."""
    order = np.argsort(-np.abs(contrast.difference[index]), kind="stable")[
        : SETTINGS.top
    ]
    records = []
    for column in order:
        values = dense(X[:, [column]]).ravel()
        records.append(
            {
                "feature": names[column],
                "difference": float(contrast.difference[index, column]),
                "mean": float(contrast.mean[index, column]),
                "rest": float(contrast.rest[index, column]),
                "overlap": share_overlap(values, proba[:, index]),
            }
        )
    return records


def share_overlap(values: Array, weight: Array) -> float:
    """Share of the rows that a class and the rest have in common in one feature.

    1 when both have the same distribution, 0 when no value occurs in both.

    Parameters
    ----------
    values : ndarray of shape (n_samples,)
    weight : ndarray of shape (n_samples,)
        Probability that each row is of the class.

    Examples
    --------
    >>> share_overlap(np.array([1.0, 1.0, 2.0, 2.0]), np.array([1, 1, 0, 0.0]))
    0.0
    """
    step = -(-len(values) // SETTINGS.overlap_rows)
    values, weight = values[::step], weight[::step]
    levels = np.unique(values)
    if len(levels) > SETTINGS.overlap_bins:
        edges = np.linspace(0, 1, SETTINGS.overlap_bins + 1)
        levels = np.unique(np.quantile(values, edges)[:-1])
    cell = np.clip(np.searchsorted(levels, values, side="right") - 1, 0, None)
    inside = np.bincount(cell, weight, minlength=len(levels))
    outside = np.bincount(cell, 1 - weight, minlength=len(levels))
    shares = [part / max(part.sum(), 1e-300) for part in (inside, outside)]
    return float(min(np.minimum(*shares).sum(), 1.0))


# ---- words -------------------------------------------------------------------------


def contrast_words(model: Any, X: Any, proba: Array) -> Array:
    """Expected occurrences of each word in each class, of shape (n_classes, n_words).

    From the model's own q(word|y) where it has one: a document may mix classes. Else
    each row counts log(1 + x): a word that one row repeats a hundred times is one word
    of that row, not of its class.
    """
    counts = model._origin._word_counts()
    if counts is None:
        weights = X.astype(float)
        if is_sparse(weights):
            weights.data = np.log1p(weights.data)
        else:
            weights = np.log1p(weights)
        return dense(proba.T @ weights)
    return np.asarray(model._add_up(counts.T).T)  # of merged classes they add up


def top_words(counts: Array, words: Sequence[str], index: int) -> list[dict[str, Any]]:
    """The words that tell one class from the rest best, as records.

    Ranked as by class-based TF-IDF, with rarity asked of the other classes: the share
    of a word in the class, times the log of that share over its share elsewhere. Only
    words are named whose odds are higher in the class beyond chance, by the log of
    their ratio over its standard error (B. Monroe, M. Colaresi, K. Quinn (2008).
    Fightin' words. Political Analysis 16).

    Parameters
    ----------
    counts : ndarray of shape (n_classes, n_words)
    words : sequence of str
    index : int
        The class.

    Examples
    --------
    >>> counts = np.array([[30.0, 1.0, 60.0], [1.0, 30.0, 60.0]])
    >>> top_words(counts, ["fish", "bird", "the"], 0)[0]["word"]
    'fish'
    """
    inside = counts[index]
    outside = counts.sum(axis=0) - inside
    a, b = inside + SETTINGS.pseudo_count, outside + SETTINGS.pseudo_count
    odds = np.log(a / (a.sum() - a)) - np.log(b / (b.sum() - b))
    score = odds / np.sqrt(1 / a + 1 / b)
    share = inside / max(inside.sum(), 1e-300)
    rest = outside / max(outside.sum(), 1e-300)
    worth = a / a.sum() * np.log((a / a.sum()) / (b / b.sum()))
    worth[score <= SETTINGS.least_score] = -np.inf
    telling = np.argsort(-worth, kind="stable")[: SETTINGS.top]
    return [
        {"word": words[column], "share": float(share[column]),
         "rest": float(rest[column]), "score": float(score[column])}
        for column in telling
        if score[column] > SETTINGS.least_score
    ]  # fmt: skip


def nearest_class(counts: Array, index: int) -> int:
    """The class whose words are most like those of one, as cosines of their roots."""
    shares = np.sqrt(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300))
    likeness = shares @ shares[index]
    likeness[index] = -1.0
    return int(likeness.argmax())


# ---- points of a plane ---------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """Points in two dimensions.

    Attributes
    ----------
    points : ndarray of shape (n_points, 2)
    explained : ndarray of shape (2,)
        Share of the points' spread along each axis.
    corners : ndarray of shape (n_corners, 2) or None
    """

    points: Array
    explained: Array
    corners: Array | None = None


def sample_rows(codes: Array, max_rows: int, seed: int) -> Array:
    """Row numbers, ascending, spread as evenly over domains as these allow."""
    order = np.argsort(codes, kind="stable")
    rng = np.random.default_rng(seed)
    return np.sort(order[stratified_sample(codes[order], max_rows, rng)])


def plane_columns(X: Any) -> Array:
    """Mask of the columns that a plane is made of: those with many values.

    A category, or a number with few values, would draw the points in stripes. All
    columns where fewer than two have many values, or where X is sparse.
    """
    every = np.ones(X.shape[1], dtype=bool)
    if is_sparse(X):
        return every
    ordered = np.sort(np.asarray(X), axis=0)
    n_values = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
    many = np.asarray(n_values > SETTINGS.few_values)
    return many if many.sum() >= 2 else every


def feature_plane(X: Any, seed: int) -> Plane:
    """The first two principal directions of the columns, each of spread 1.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    seed : int
        For sparse and very wide rows, whose directions are found by random projection.
    """
    scaled = StandardScaler(with_mean=not is_sparse(X)).fit_transform(X)
    n_axes = min(2, *X.shape)
    if is_sparse(X) and X.shape[1] > n_axes:
        finder: Any = TruncatedSVD(n_axes, random_state=seed)
    else:
        scaled = dense(scaled)
        few = X.shape[1] <= SETTINGS.most_exact_columns
        solver = "covariance_eigh" if few else "randomized"
        finder = PCA(n_axes, svd_solver=solver, random_state=seed)
    points = finder.fit_transform(scaled)
    explained = finder.explained_variance_ratio_
    return _two_axes(points * _signs(points), np.nan_to_num(explained))


def domain_plane(domain_given_x: Array, domain_given_class: Array) -> Plane:
    """Points q(d|x) between their corners q(d|y), seen where the corners lie widest.

    Three corners lie in a plane, so that three classes are shown without loss.

    Parameters
    ----------
    domain_given_x : ndarray of shape (n_samples, n_domains)
    domain_given_class : ndarray of shape (n_classes, n_domains)
    """
    centre = domain_given_class.mean(axis=0)
    _, size, axes = np.linalg.svd(domain_given_class - centre, full_matrices=False)
    axes = axes[:2] * (size[:2, None] > 1e-12)
    corners = (domain_given_class - centre) @ axes.T
    sign = _signs(corners)
    spread = size**2 / max((size**2).sum(), 1e-300)
    return _two_axes(
        (domain_given_x - centre) @ axes.T * sign, spread[:2], corners * sign
    )


def _signs(points: Array) -> Array:
    """The sign of an axis is arbitrary: its farthest point lies on the right (top)."""
    farthest = points[np.abs(points).argmax(axis=0), np.arange(points.shape[1])]
    return np.where(farthest < 0, -1.0, 1.0)


def _two_axes(points: Array, explained: Array, corners: Array | None = None) -> Plane:
    """A second axis of zeros where there is one only."""
    missing = 2 - points.shape[1]
    points = np.pad(points, ((0, 0), (0, missing)))
    if corners is not None:
        corners = np.pad(corners, ((0, 0), (0, missing)))
    return Plane(points, np.pad(explained[:2], (0, missing)), corners)
