"""How much neighbours count, by the likelihood of held-out rows; and intervals."""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import helmert
from scipy.special import expit, logit

from shoal.analysis._draws import stretched_quantile
from shoal.analysis.trend._settings import NUMBERS
from shoal.analysis.trend._walk import (
    TimedRows,
    covariance,
    information,
    likelihood,
    smooth,
)

Array = np.ndarray[Any, Any]


class Strengths(NamedTuple):
    """What was tried, from one mix for all to every time nearly by itself."""

    tried: Array  # (n_tried,)
    held_out: Array  # (n_tried,), mean log-likelihood of held-out rows, in nats

    @property
    def best(self) -> float:
        """The strength that predicts best; of several, the strongest."""
        return float(self.tried[int(np.argmax(self.held_out))])


def judge_strengths(rows: TimedRows, rng: np.random.Generator) -> Strengths:
    """Every strength by rows that took no part in smoothing."""
    tried = np.array([np.inf, *(step**-2.0 for step in NUMBERS.steps)])
    fold = _folds(rows, rng)
    each = np.zeros((len(tried), len(fold)))
    for held in range(int(fold.max()) + 1):
        out = fold == held
        mixes = None
        for index, strength in enumerate(tried):
            mixes = smooth(rows, 1.0 - out, strength, mixes)
            each[index, out] = np.log(likelihood(rows, mixes))[out]
    return Strengths(tried, each.mean(axis=1))


def _folds(rows: TimedRows, rng: np.random.Generator) -> Array:
    """Part of each row: the rows of every time are dealt out evenly."""
    n_rows = len(rows.place)
    key = np.lexsort([rng.random(n_rows), rows.place])
    place = np.empty(n_rows, dtype=np.intp)
    place[key] = np.arange(n_rows)
    return np.asarray(place % min(NUMBERS.folds, n_rows))


def intervals(
    rows: TimedRows, mixes: Array, strength: float, parts: Array, level: float
) -> tuple[Array, Array]:
    """Around every share: what rows and neighbours leave open, as a walk would have it.

    ``parts`` says which classes of the fit make up each class, (n_fitted, n_classes).
    """
    weight = np.ones(len(rows.place))
    n_fitted = mixes.shape[1]
    added = n_fitted / (2 * len(weight) + n_fitted)  # half a row for each class
    kept = (1 - added) * mixes + added / n_fitted
    blocks = information(rows, weight, kept)
    if np.isinf(strength):
        summed = covariance(blocks.sum(axis=0)[None], np.empty(0))
        spread = np.repeat(summed, rows.n_times, axis=0)
    else:
        spread = covariance(blocks, strength / rows.gap)
    shares = kept @ parts
    inside = kept[:, :, None] * parts / shares[:, None, :]
    outside = kept[:, :, None] * (1 - parts) / (1 - shares)[:, None, :]
    slope = np.einsum("mk,tky->tmy", helmert(n_fitted), inside - outside)
    error = np.sqrt(np.einsum("tmy,tmn,tny->ty", slope, spread, slope))
    reach = stretched_quantile(level) * error
    low, high = expit(logit(shares) - reach), expit(logit(shares) + reach)
    found = mixes @ parts
    return np.minimum(low, found), np.maximum(high, found)
