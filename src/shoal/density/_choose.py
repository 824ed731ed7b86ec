"""Choices on held-out rows: shape of the classes, drift, number of classes.

Shapes are judged by the likelihood of the domains, log q(d|x) through the classes, and
not by that of the rows: log p(x|d) also rewards a shape for following p(x) where no
class is. Drift and the number of classes are judged by log p(x|d), since the domains
cannot tell drift from a mix, nor more classes than there are domains.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from shoal.density._decisions import DECISIONS
from shoal.density._em import (
    Density,
    Fit,
    Prior,
    Rows,
    class_log_densities,
    expect,
    without_drift,
)
from shoal.density._gaussian import Pattern
from shoal.density._starts import Options, continue_from
from shoal.probability import TINY, domain_given_class

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Log-likelihoods of rows that a fit has not seen, one number for each row.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        log p(x|d).
    domains : ndarray of shape (n_rows,)
        log q(d|x) through the classes, domains weighted equally.
    weight : ndarray of shape (n_rows,)
        Of rows, adding up to 1.
    fair : ndarray of shape (n_rows,)
        The same with every domain counted alike, for ``domains``.
    """

    rows: Array
    domains: Array
    weight: Array
    fair: Array

    @property
    def mean(self) -> float:
        """Mean log p(x|d)."""
        return float(self.weight @ self.rows)

    @property
    def score(self) -> float:
        """Mean over domains of their mean log q(d|x)."""
        return float(self.fair @ self.domains)

    def gain(self, other: "HeldOut") -> tuple[float, float]:
        """Gain of log p(x|d) over another fit, and its standard error."""
        return mean_and_error(self.rows - other.rows, self.weight)


def mean_and_error(each: Array, weight: Array) -> tuple[float, float]:
    """Weighted mean and its standard error."""
    weight = weight / weight.sum()
    mean = float(weight @ each)
    return mean, float(np.sqrt(weight**2 @ (each - mean) ** 2))


def fold_of_rows(codes: Array, n_folds: int, rng: np.random.Generator) -> Array:
    """Fold of each row, those of a domain spread evenly over the folds."""
    shuffled = rng.permutation(len(codes))
    order = shuffled[np.argsort(codes[shuffled], kind="stable")]
    folds = np.empty(len(codes), dtype=np.intp)
    folds[order] = np.arange(len(codes)) % n_folds
    return folds


def take(rows: Rows, which: Array) -> Rows:
    """Some of the rows, given by a mask."""
    number = np.cumsum(which) - 1
    patterns = []
    for pattern in rows.patterns:
        kept = pattern.rows[which[pattern.rows]]
        if kept.size:
            patterns.append(Pattern(number[kept], pattern.seen))
    return replace(
        rows,
        X=rows.X[which],
        codes=rows.codes[which],
        weight=rows.weight[which],
        patterns=tuple(patterns),
    )


def held_out(
    rows: Rows, fit: Fit, prior: Prior, folds: Array, options: Options
) -> HeldOut:
    """Climb again without each fold, from where the fit has its other rows."""
    each = np.empty(len(rows.X))
    of_domains = np.empty(len(rows.X))
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        train = replace(
            fit, expected=type(fit.expected)(*(part[~test] for part in fit.expected))
        )
        density = continue_from(take(rows, ~test), train, prior, options).density
        left_out = take(rows, test)
        each[test] = expect(left_out, density).log_likelihood
        of_domains[test] = log_domain_given_x(left_out, density)
    size = np.bincount(rows.codes, weights=rows.weight, minlength=rows.n_domains)
    fair = rows.weight / np.maximum(size, TINY)[rows.codes]
    weight = rows.weight / rows.weight.sum()
    return HeldOut(each, of_domains, weight, fair / fair.sum())


def log_domain_given_x(rows: Rows, density: Density) -> Array:
    """log q(d|x) of each row's domain, through the classes, domains equally weighted.

    Rows are seen without the drift of their domain: what it says of the domain is not
    said through the classes.
    """
    X = without_drift(rows, density.drift)
    logs = class_log_densities(X, rows.patterns, density)
    logs += np.log(np.maximum(density.mix.mean(axis=0), TINY))
    class_given_x = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    corners = domain_given_class(density.mix)
    own = np.einsum("ny,ny->n", class_given_x, corners.T[rows.codes])
    return np.asarray(np.log(np.maximum(own, TINY)))
