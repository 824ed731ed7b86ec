"""Rows drawn again within domains, classes matched, proportions and intervals."""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm

from shoal.probability import TINY, match_rows, normalize_rows
from shoal.stages._words import sum_by_domain
from shoal.stages.factorize import factorize
from shoal.validation._rows import copies_of

Array = np.ndarray[Any, Any]

# ---- Rows drawn again within domains, with the weights that fit gave them ------------


class Resample(NamedTuple):
    """One refit, its classes matched to those of the fit."""

    prevalence: Array  # (n_domains, n_classes)
    classes: Array  # (n_samples,), of the rows that were passed in


Refit = Callable[[np.random.Generator], Resample]


def check_all_domains(estimator: Any, X: Any, domains: Any) -> Array:
    """Number of the domain of each row; raise unless all domains of fit occur."""
    codes = estimator._encode_domains(domains, X.shape[0])
    missing = np.bincount(codes, minlength=len(estimator.domains_)) == 0
    if missing.any():
        name = estimator.domains_[int(np.argmax(missing))]
        raise ValueError(
            f"domains has no rows of {name!r}, which fit has seen; pass rows of every "
            "domain, best the rows of fit"
        )
    return np.asarray(codes)


def count_units(codes: Array, weight: Array | None, n_domains: int) -> Array:
    """Number of rows behind each domain, as whole numbers.

    A whole weight is that many rows; of other weights, rows count as many as equal
    weights would need to be as precise (Kish's effective sample size).
    """
    if weight is None:
        return np.bincount(codes, minlength=n_domains)
    copies = copies_of(weight)
    if copies is not None:
        return np.bincount(codes, copies, minlength=n_domains).astype(np.int64)
    total = np.bincount(codes, weight, minlength=n_domains)
    square = np.bincount(codes, weight**2, minlength=n_domains)
    return np.maximum(total**2 / square, 1).astype(np.int64)


def count_bags(bags: Any, codes: Array, n_domains: int) -> Array:
    """Number of bags of each domain that hold any word."""
    filled = np.ravel(bags.sum(axis=1)) > 0
    return np.bincount(codes[filled], minlength=n_domains)


def count_words_or_bags(bags: Any, codes: Array, n_domains: int) -> Array:
    """Number of draws behind each domain: its bags, or the words of its only one.

    Words of one bag come together, so that a hundred of them in one of many bags say
    no more of the mix than the bag does.
    """
    n_bags = count_bags(bags, codes, n_domains)
    size = np.ravel(bags.sum(axis=1))
    n_words = np.bincount(codes, size, minlength=n_domains)
    return np.where(n_bags > 1, n_bags, n_words).astype(np.int64)


def draw_rows(
    codes: Array, generator: np.random.Generator, weight: Array | None = None
) -> Array:
    """Weight of each row when every domain draws as many rows as it has.

    A row of whole weight is that many rows to draw from. Otherwise rows of positive
    weight are drawn, and a row counts its weight as often as it is drawn.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    copies = copies_of(weight)
    units = (weight > 0).astype(np.intp) if copies is None else copies
    count = np.empty(len(codes), dtype=np.int64)
    by_domain = np.argsort(codes, kind="stable")
    for rows in np.split(by_domain, np.cumsum(np.bincount(codes))[:-1]):
        last = np.cumsum(units[rows])
        drawn = generator.integers(last[-1], size=last[-1])
        drawn = np.searchsorted(last, drawn, side="right")
        count[rows] = np.bincount(drawn, minlength=len(rows))
    return count if copies is not None else count * weight


# ---- Which class of one fit is which of another, from the rows they share ------------


def match_by_rows(reference: Array, classes: Array, n_classes: int) -> Array:
    """Give each class of ``classes`` the index of its counterpart in ``reference``.

    Classes are paired one to one so that the rows they share, as cosines, are most:
    small classes count as much as large ones. Unlike a comparison of their
    prevalences, this also tells classes apart that shift alike.

    Parameters
    ----------
    reference, classes : ndarray of shape (n_samples,)
        Class of the same rows in two fits, 0..n_classes-1.
    n_classes : int

    Returns
    -------
    ndarray of shape (n_classes,)
        ``renamed`` with ``renamed[classes]`` closest to ``reference``.

    Examples
    --------
    >>> match_by_rows(np.array([0, 0, 1, 2]), np.array([1, 1, 2, 0]), 3)
    array([2, 0, 1])
    """
    flat = np.bincount(classes * n_classes + reference, minlength=n_classes**2)
    shared = flat.reshape(n_classes, n_classes).astype(float)
    size = np.sqrt(np.outer(shared.sum(axis=1), shared.sum(axis=0)))
    cosine = np.divide(shared, size, out=np.zeros_like(shared), where=size > 0)
    return np.asarray(linear_sum_assignment(-cosine)[1])


# ---- the mix of some rows, and how sure it is ----------------------------------------

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
    if not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    return float(STRETCH * norm.ppf((1 + level) / 2))


# ---- one resample of a fitted estimator ----------------------------------------------

# What a word that a resample misses by chance keeps of its share.
TRACE = 1e-6


class Resampler(NamedTuple):
    """The rows' classes under the fit, and refits that classify by the same rule."""

    classes: Array  # (n_samples,)
    refit: Refit


def table_resampler(
    estimator: Any, bags: Any, codes: Array, weight: Array | None = None
) -> Resampler:
    """Both factors of a table of words (clusters) by domains, counts drawn again.

    Words of one bag come together, so where a domain has several bags, whole bags are
    drawn; where it is a single bag, its words are.

    The class of a bag is the likeliest of its words, given its domain: for DDFA that
    is the class of the row's cluster, not of its own q(d|x), which a resample would
    have to adjust row by row.
    """
    fitted = estimator.factorization_
    n_words = fitted.cluster_given_class.shape[1]
    bags = bags[:, :n_words]  # words that fit has not seen have no factor
    n_domains = len(estimator.domains_)
    counts = sum_by_domain(bags, codes, n_domains, weight)
    size = counts.sum(axis=1).round().astype(int)
    if weight is not None:
        size = count_units(codes, weight, n_domains)
    share = normalize_rows(counts)
    several = count_bags(bags, codes, n_domains) > 1
    several &= bool(bags.sum(axis=1).max() > 1)
    options = _factorizer_options(estimator)

    def draw(generator: np.random.Generator) -> Array:
        words = generator.multinomial(size, share)
        if not several.any():
            return words
        count = draw_rows(codes, generator, weight)
        whole = sum_by_domain(bags, codes, n_domains, count)
        return np.where(several[:, None], whole, words)

    def classify(word_given_class: Array, prevalence: Array) -> Array:
        log_words = np.log(np.maximum(word_given_class, TINY))
        log_prior = np.log(np.maximum(prevalence, TINY))
        return np.asarray((bags @ log_words.T + log_prior[codes]).argmax(axis=1))

    def refit(generator: np.random.Generator) -> Resample:
        # A word that is missed by chance leaves a trace, and keeps its column.
        drawn = draw(generator) + TRACE * share
        found = factorize(
            normalize_rows(drawn),
            estimator.n_classes_,
            method=fitted.method,
            domain_weight=estimator.domain_weight_,
            allow_fewer=True,
            check_identifiable=False,
            random_state=int(generator.integers(np.iinfo(np.int32).max)),
            **options,
        )
        same = match_rows(fitted.cluster_given_class, found.cluster_given_class)
        prevalence = found.class_given_domain[:, same]
        return Resample(
            prevalence, classify(found.cluster_given_class[same], prevalence)
        )

    classes = classify(fitted.cluster_given_class, estimator.prevalence_)
    return Resampler(classes, refit)


def proportions_resampler(
    estimator: Any, X: Any, codes: Array, weight: Array | None = None
) -> Resampler:
    """Prevalences alone, with q(y|x) kept: for estimators without a cheaper half."""
    class_given_x = np.asarray(estimator._class_given_x(X), dtype=float)
    ratio = class_given_x / np.maximum(estimator.class_weight_, TINY)
    rows_of = [np.flatnonzero(codes == code) for code in range(codes.max() + 1)]

    def refit(generator: np.random.Generator) -> Resample:
        count = draw_rows(codes, generator, weight)
        prevalence = np.array(
            [mixture_proportions(ratio[r], count[r], tol=1e-5) for r in rows_of]
        )
        return Resample(prevalence, (ratio * prevalence[codes]).argmax(axis=1))

    classes = estimator._posterior(X, codes, None).argmax(axis=1)
    return Resampler(classes, refit)


def _factorizer_options(estimator: Any) -> dict[str, Any]:
    """Options of the factorizer that fit was given, if they are for its method."""
    given = estimator.factorizer
    if isinstance(given, str) or given.method != estimator.factorization_.method:
        return {}
    return dict(given.options or {})
