"""Is the table itself in order: columns that name the domain, rows that repeat."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from shoal.analysis.diagnose._settings import EFFORT
from shoal.validation import encode_column, is_sparse

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
