"""Cells without a value: what a softmax sees in their place.

Densities integrate such a cell out. A softmax needs a number: what the other cells of
the row let expect, by a density, or the mean of the column, which says nothing: the
cell is masked. Held-out rows tell which. That a value misses is evidence of nothing.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shoal.density import DensityMixture
from shoal.likelihood._features import FeatureMap, TrainingRows, limit_weight
from shoal.likelihood._settings import SETTINGS
from shoal.mixture._n_classes import judge_features
from shoal.mixture._options import SearchOptions, beats, read_options
from shoal.mixture._route import Heard, hear_quietly
from shoal.validation import resolve_domain_weight
from shoal.validation._known import Given
from shoal.validation._rows import canonical_rows, fold_of_rows, is_sparse

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Filling:
    """What stands in cells without a value.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Of the values that are there; stands in a cell that is masked.
    n_missing : ndarray of shape (n_features,)
        Cells of the rows of fit without a value.
    looks : DensityMixture or None
        Says what is expected in a cell from the others of its row; None to mask.
    held_out : dict of str to (float, float)
        Held-out log-likelihood of the domains under "expected" and "mask", and its
        standard error; empty where nothing was compared.
    """

    mean: Array
    n_missing: Array
    looks: DensityMixture | None = None
    held_out: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def how(self) -> str:
        """Either "expected" or "mask"."""
        return "mask" if self.looks is None else "expected"

    def fill(self, X: Array) -> Array:
        """Rows of which every cell has a value."""
        if not np.isnan(
            X.sum(dtype=float)
        ):  # one pass without a mask, when all is there
            return X
        if self.looks is None:
            return np.where(np.isnan(X), self.mean.astype(X.dtype), X)
        return np.asarray(self.looks._filled(X), dtype=X.dtype)


def mask(X: Array) -> Filling:
    """Means of the columns, 0 where no value is known."""
    missing = np.isnan(X)
    known = np.maximum((~missing).sum(axis=0), 1)
    total = np.where(missing, 0, X).sum(axis=0, dtype=float)
    return Filling(total / known, missing.sum(axis=0))


def settle_gaps(
    model: Any,
    X: Any,
    names: Array,
    codes: Array,
    sample_weight: Any = None,
    given: Given | None = None,
) -> tuple[Filling | None, Heard | None]:
    """What a DomainMixture puts in gaps of X, which is validated; None if sparse.

    Masks without a search. Else a density of as many classes says what is expected: the
    twin of the fit, which is returned too. Where the number of classes is open, a
    density need not find them to fill gaps.
    """
    if is_sparse(X):
        return None, None
    masked = mask(X)
    if not masked.n_missing.any() or not model.search or model.by == "looks":
        return masked, None
    weight = fair_weight(model.domain_weight, names, codes, sample_weight)
    shares = dict(zip(names.tolist(), weight, strict=True))
    rows = X, names[codes], sample_weight
    if model.n_classes is None:
        few = min(SETTINGS.filling_classes, len(X))
        looks, twin = hear_quietly(model, few, shares, *rows).looks, None
    else:
        twin = hear_quietly(model, model.n_classes, shares, *rows, given)
        looks = twin.looks
    return choose_filling(masked, looks, X, codes, read_options(model)), twin


def fair_weight(
    domain_weight: Any, names: Array, codes: Array, sample_weight: Any
) -> Array:
    """q(d), with a limit to what a row of a very small domain counts unasked."""
    mass = np.bincount(codes, weights=sample_weight, minlength=len(names))
    weight = resolve_domain_weight(domain_weight, names, mass)
    limited = isinstance(domain_weight, str)
    return limit_weight(weight, mass) if limited else weight


def choose_filling(
    masked: Filling,
    looks: DensityMixture,
    X: Array,
    codes: Array,
    options: SearchOptions,
) -> Filling:
    """What is expected by ``looks``, unless masks are better beyond doubt.

    Both are seen by quick fits with linear features, on the same rows and folds.
    """
    plain = masked.fill(X)
    order = canonical_rows(
        FeatureMap().fit(plain, np.ones(len(X))).scaled(plain), codes
    )
    rng, scores = np.random.default_rng(0), {}
    numbers = TrainingRows(order[:, None], codes[order], None, looks.domain_weight_)
    some = numbers.sample(SETTINGS.curve_feature_rows, rng)
    folds = fold_of_rows(some.codes, SETTINGS.curve_feature_folds, rng)
    expected = replace(masked, looks=looks._lean())
    for one in (expected, masked):
        rows = replace(some, X=one.fill(X[some.X[:, 0]]))
        features = FeatureMap().fit(rows.X, rows.row_weight)
        given = rows, features, looks.n_classes_, options, folds
        scores[one.how] = judge_features(*given, seed=0)
    held_out = {how: (one.mean, one.standard_error()) for how, one in scores.items()}
    best = masked if beats(scores["mask"], scores["expected"]) else expected
    return replace(best, held_out=held_out)
