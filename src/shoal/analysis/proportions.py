"""Class proportions of rows whose q(y|x) is known, and intervals around proportions."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

__all__ = ["mixture_proportions", "prevalence_interval"]

Array = np.ndarray[Any, Any]

TINY = 1e-300
LONGEST = 1e6  # times the last EM step
# Normal quantiles are stretched by this: a resample keeps the basin and the penalties
# of the fit, so that its spread is a little too small. Set on generated problems
# (benchmarks/tabular/coverage.py), where 90% intervals then cover about 90%.
STRETCH = 1.064


def mixture_proportions(
    ratio: Array,
    weight: Array | None = None,
    *,
    start: Array | None = None,
    tol: float = 1e-9,
    max_iter: int = 2000,
) -> Array:
    """Maximum-likelihood class mix of rows with known p(x|y), by accelerated EM.

    Maximizes the concave sum over rows of w log sum_y q_y ratio_y over class mixes q.
    One EM step, q <- mean of normalize(ratio q), can be slow where classes overlap;
    three of them give an extrapolation (SQUAREM), kept where the likelihood rises.

    Parameters
    ----------
    ratio : ndarray of shape (n_samples, n_classes)
        p(x|y) up to a factor per row: q(y|x) / q(y).
    weight : ndarray of shape (n_samples,) or (n_problems, n_samples), default=None
        Weight of each row; several rows of weights are several problems, solved
        together. Equal when None.
    start : ndarray of shape (n_classes,), default=None
        Positive first guess; the equal mix when None.
    tol : float, default=1e-9
        Stop when one EM step moves no share by more.
    max_iter : int, default=2000
        Largest number of extrapolations.

    Returns
    -------
    ndarray of shape (n_classes,) or (n_problems, n_classes)

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker (2002). Adjusting the outputs of a
    classifier to new a priori probabilities. Neural Computation 14. R. Varadhan,
    C. Roland (2008). Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm. Scandinavian Journal of Statistics 35.

    Examples
    --------
    >>> ratio = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> mixture_proportions(ratio)
    array([0.75, 0.25])
    """
    ratio = np.asarray(ratio, dtype=float)
    n_rows, n_classes = ratio.shape
    single = weight is None or np.ndim(weight) == 1
    weight = np.ones(n_rows) if weight is None else np.asarray(weight, dtype=float)
    weight = np.atleast_2d(weight) / weight.sum(axis=-1, keepdims=True)
    first = np.full(n_classes, 1 / n_classes) if start is None else start
    shares = np.tile(np.asarray(first, dtype=float), (len(weight), 1))
    active = np.arange(len(weight))
    for _ in range(max_iter):
        shares[active], moved = _extrapolate(shares[active], ratio, weight[active])
        active = active[moved > tol]
        if not active.size:
            break
    return shares[0] if single else shares


def _em_step(shares: Array, ratio: Array, weight: Array) -> tuple[Array, Array]:
    """Next mix of each problem, and the log-likelihood of the present one."""
    density = np.maximum(shares @ ratio.T, TINY)
    value = (weight * np.log(density)).sum(axis=1)
    step = shares * ((weight / density) @ ratio)
    return step / step.sum(axis=1, keepdims=True), value


def _extrapolate(shares: Array, ratio: Array, weight: Array) -> tuple[Array, Array]:
    """Two EM steps, a leap along their trend, one more step; and how far it moved."""
    first, value = _em_step(shares, ratio, weight)
    second, _ = _em_step(first, ratio, weight)
    step, bend = first - shares, second - 2 * first + shares
    straight = np.maximum(np.linalg.norm(bend, axis=1), TINY)
    length = np.clip(np.linalg.norm(step, axis=1) / straight, 1, LONGEST)[:, None]
    leap = shares + 2 * length * step + length**2 * bend
    # A share that leaps to zero could never come back.
    leap = np.maximum(leap, 0.1 * second)
    leap /= leap.sum(axis=1, keepdims=True)
    after, leap_value = _em_step(leap, ratio, weight)
    worse = leap_value < value
    after[worse] = second[worse]
    return after, np.abs(step).max(axis=1)


def prevalence_interval(
    prevalence: ArrayLike, variance: ArrayLike, n_rows: ArrayLike, level: float
) -> tuple[Array, Array]:
    """Interval around class shares, honest at 0 and 1 too.

    Centred at (n p + 1) / (n + 2), with the larger of the resampling variance and the
    binomial variance at that centre: a share estimated as 0 in every resample is still
    only known to within about 1 / n.

    Parameters
    ----------
    prevalence : array-like
        Estimated shares p.
    variance : array-like, same shape
        Their variance over resamples.
    n_rows : array-like
        Number of rows n behind each share; broadcasts.
    level : float
        Nominal coverage.

    Returns
    -------
    low, high : ndarray
        Within [0, 1]; the estimate lies between them.
    """
    estimate = np.asarray(prevalence, dtype=float)
    centre, spread = shrunken(estimate, variance, n_rows)
    reach = stretched_quantile(level) * np.sqrt(spread)
    low = np.clip(np.minimum(centre - reach, estimate), 0, 1)
    high = np.clip(np.maximum(centre + reach, estimate), 0, 1)
    return low, high


def shrunken(
    prevalence: Array, variance: ArrayLike, n_rows: ArrayLike
) -> tuple[Array, Array]:
    """Centre and variance behind :func:`prevalence_interval`."""
    rows = np.asarray(n_rows, dtype=float)
    centre = (rows * prevalence + 1) / (rows + 2)
    return centre, np.maximum(variance, centre * (1 - centre) / rows)


def stretched_quantile(level: float) -> float:
    """Half-width of an interval in standard deviations."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(STRETCH * norm.ppf((1 + level) / 2))
