"""Partitions to begin with, and the best climb of several."""

import numbers
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import BisectingKMeans, KMeans
from sklearn.covariance import ledoit_wolf
from sklearn.exceptions import ConvergenceWarning

from shoal.density._columns import by_nearest, named
from shoal.density._em import DensityFit, Expected, Prior, blank, climb
from shoal.density._gaussian import KINDS, Density, Rows
from shoal.density._settings import DECISIONS
from shoal.validation import check_real, check_whole

Array = np.ndarray[Any, Any]


class DensityStart(NamedTuple):
    """A partition of the rows into components."""

    name: str
    labels: Array  # (n_rows,)


class DensityOptions(NamedTuple):
    """What the caller asked of every climb."""

    n_components: int = 1  # of a class
    tail: float | None = None  # None: chosen
    n_init: int = 20
    max_iter: int = 300
    tol: float = 1e-5


def read_options(estimator: Any) -> DensityOptions:
    """What the parameters of a DensityMixture ask for, checked."""
    given = estimator.get_params(deep=False)
    choices = {
        "covariance": ("auto", *KINDS),
        "drift": ("auto", True, False),
        "scale": ("column", "global"),
    }
    for name, allowed in choices.items():
        value = given[name]
        if not isinstance(value, (str, bool)) or value not in allowed:
            shown = ", ".join(map(str, allowed))
            raise ValueError(f"{name} must be one of {shown}, got {value!r}")
    whole = ("n_components", "n_init", "max_iter", "max_rows")
    check_whole(1, **{name: given[name] for name in whole})
    check_real(0, tol=given["tol"])
    if given["n_classes"] is not None:
        check_whole(2, n_classes=given["n_classes"])
    return DensityOptions(
        n_components=given["n_components"],
        tail=check_tail(given["tail"]),
        n_init=given["n_init"],
        max_iter=given["max_iter"],
        tol=given["tol"],
    )


def check_tail(tail: Any) -> float | None:
    """Degrees of freedom; None where they are to be chosen."""
    if isinstance(tail, str) and tail == "auto":
        return None
    number = isinstance(tail, numbers.Real) and not isinstance(tail, bool)
    if not number or not float(tail) > 0:
        raise ValueError(
            f"tail must be 'auto' or a number above 0, inf for Gaussians, got {tail!r}"
        )
    return float(tail)


def make_prior(rows: Rows, n_classes: int, seed: int) -> Prior:
    """Imaginary rows shaped like the rows of k-means clusters around their centres.

    The shape is that of all clusters together, shrunken (Ledoit and Wolf) until it can
    be inverted; it is the same for all starts, so that these can be compared.
    """
    labels = kmeans_labels(rows, n_classes, seed)
    given = np.eye(n_classes)[labels]
    centres = blank(rows, given, np.arange(n_classes), "diag", np.inf).means
    apart = rows.X - centres[labels]
    if rows.gaps is not None:  # what misses is not apart from anything
        apart[~rows.gaps.seen] = 0
    apart *= np.sqrt(rows.weight / rows.weight.mean())[:, None]
    shape = ledoit_wolf(apart, assume_centered=True)[0]
    shape[np.diag_indices_from(shape)] += DECISIONS.least_variance
    return Prior(shape, rows.X.shape[1] + DECISIONS.extra_shape_rows)


def best_fit(
    rows: Rows,
    n_classes: int,
    kind: str,
    prior: Prior,
    options: DensityOptions,
    rng: np.random.Generator,
    known: Sequence[DensityStart] = (),
) -> tuple[str, DensityFit]:
    """The start whose climb ends highest, and where it ends.

    All starts, and those already ``known``, climb a little; the best of them further,
    and the best of these to the end.
    """
    first, further = (
        options._replace(max_iter=n_iter, tol=DECISIONS.quick_tol)
        for n_iter in DECISIONS.quick_iter
    )
    tried = [
        (start.name, climb_from(rows, start.labels, n_classes, kind, prior, first))
        for start in [*known, *list_starts(rows, n_classes, options, rng)]
    ]
    n_further = max(DECISIONS.n_finalists, len(tried) // DECISIONS.one_of)
    for keep, climb_on in ((n_further, further), (DECISIONS.n_finalists, options)):
        tried.sort(key=lambda one: -one[1].objective)
        tried = [
            (name, continue_from(rows, fit, prior, climb_on))
            for name, fit in tried[:keep]
        ]
    return max(tried, key=lambda one: one[1].objective)


def climb_from(
    rows: Rows,
    labels: Array,
    n_classes: int,
    kind: str,
    prior: Prior,
    options: DensityOptions,
) -> DensityFit:
    """EM from a partition into components, those of a class side by side."""
    owner = np.repeat(np.arange(n_classes), options.n_components)
    labels = named(labels, rows, n_classes, options.n_components)
    given = np.eye(len(owner))[labels]
    tail = DECISIONS.first_tail if options.tail is None else options.tail
    density = blank(rows, given, owner, kind, tail)
    first = Expected(given, np.ones_like(given), np.zeros(len(given)))
    return _climb(rows, first, density, prior, options)


def continue_from(
    rows: Rows, fit: DensityFit, prior: Prior, options: DensityOptions
) -> DensityFit:
    """More of the same climb."""
    return _climb(rows, fit.expected, fit.density, prior, options)


def _climb(
    rows: Rows, first: Expected, density: Density, prior: Prior, options: DensityOptions
) -> DensityFit:
    return climb(
        rows,
        first,
        density,
        prior,
        max_iter=options.max_iter,
        tol=options.tol,
        choose_tail=options.tail is None,
    )


def list_starts(
    rows: Rows, n_classes: int, options: DensityOptions, rng: np.random.Generator
) -> Iterator[DensityStart]:
    """Partitions by splitting, by k-means and around random rows, in turn.

    Where classes have several components, each part is split further.
    """
    nearest = by_nearest(rows, n_classes)
    if nearest is not None:
        labels = _split_parts(rows, nearest, options.n_components, 0)
        yield DensityStart("known", labels)
    for number in range(options.n_init):
        seed = int(rng.integers(2**31 - 1))
        if number == 0:
            start = DensityStart("split", _split(rows, n_classes, seed))
        elif number % 2:
            start = DensityStart("k-means", kmeans_labels(rows, n_classes, seed))
        else:
            start = DensityStart("random", _around_random_rows(rows, n_classes, seed))
        labels = _split_parts(rows, start.labels, options.n_components, seed)
        yield start._replace(labels=labels)


def kmeans_labels(rows: Rows, count: int, seed: int) -> Array:
    """Cluster of each row by k-means, from one start."""
    return _cluster(KMeans(count, n_init=1, random_state=seed), rows.X, rows.weight)


def _split(rows: Rows, count: int, seed: int) -> Array:
    """The widest cluster is cut in two until there are enough."""
    return _cluster(BisectingKMeans(count, random_state=seed), rows.X, rows.weight)


def _split_parts(rows: Rows, labels: Array, n_components: int, seed: int) -> Array:
    """Each part as several components, side by side."""
    result = labels * n_components
    if n_components == 1:
        return result
    for part in np.unique(labels):
        own = np.flatnonzero(labels == part)
        count = min(n_components, len(own))
        kmeans = KMeans(count, n_init=1, random_state=seed)
        result[own] += _cluster(kmeans, rows.X[own], rows.weight[own])
    return np.asarray(result)


def _cluster(kmeans: Any, X: Array, weight: Array) -> Array:
    with warnings.catch_warnings():
        # fewer distinct rows than clusters: some stay empty, and shapes have a prior
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(kmeans.fit(X, sample_weight=weight).labels_)


def _around_random_rows(rows: Rows, count: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    centres = rows.X[rng.choice(len(rows.X), count, replace=False)]
    squares = (centres**2).sum(axis=1) - 2 * rows.X @ centres.T
    return np.asarray(squares.argmin(axis=1))
