"""Mixes in the order of time: smoothed as far as held-out rows ask, changes named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal.analysis._resample import mixture_proportions
from shoal.analysis._walk import (
    NUMBERS,
    ChangeSearch,
    Strengths,
    TimedRows,
    find_changes,
    intervals,
    judge_strengths,
    least_p,
    smooth,
)
from shoal.exceptions import InputError
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]

LARGEST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class ChangePoint:
    """Two times next to each other between which the mix changes.

    Attributes
    ----------
    last, first : number or date
        Last time before the change, and first time after it.
    p_value : float
        By shuffled times between the changes around it.
    before, after : ndarray of shape (n_classes,)
        Mixes of all times back to the change before, and on to the next one.
    """

    last: Any
    first: Any
    p_value: float
    before: Array
    after: Array

    @property
    def moved(self) -> int:
        """The class whose share changes most."""
        return int(np.argmax(np.abs(self.after - self.before)))


@dataclass(frozen=True, eq=False)
class MixTrend:
    """The mix of classes in the order of time.

    Attributes
    ----------
    times : ndarray of shape (n_times,)
        Numbers or dates, ascending.
    prevalence, low, high : ndarray of shape (n_times, n_classes)
        Smoothed shares and their intervals.
    unsmoothed : ndarray of shape (n_times, n_classes)
        Every time by itself.
    n_rows : ndarray of shape (n_times,)
    strength : float
        How much neighbours count: one over the variance of a step of the logits over a
        usual gap. 0: not at all; infinite: one mix for all.
    strengths : Strengths or None
        What was ``tried``, and the ``held_out`` likelihood of each; None where the
        strength was given or there is but one time.
    changes : list of ChangePoint
    p_value : float
        Of the likeliest change of the whole series: large where nothing changes, NaN
        where times are too few.
    least_p : float
        No p-value of so many times is smaller.
    level, alarm : float
        Coverage of the intervals, and rate of false alarms of the changes.
    class_names : list of str
    """

    times: Array
    prevalence: Array
    low: Array
    high: Array
    unsmoothed: Array
    n_rows: Array
    strength: float
    strengths: Strengths | None = field(repr=False)
    changes: list[ChangePoint]
    p_value: float
    least_p: float
    level: float
    alarm: float
    class_names: list[str]

    @property
    def too_few(self) -> bool:
        """Whether no shuffle of so few times could call a change surprising."""
        return self.least_p > self.alarm

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per time and class, in their order."""
        return [
            {
                "time": _plain(time),
                "class_id": f"c{y}",
                "class_name": str(name),
                "estimate": float(self.prevalence[t, y]),
                "low": float(self.low[t, y]),
                "high": float(self.high[t, y]),
                "level": self.level,
                "unsmoothed": float(self.unsmoothed[t, y]),
                "n_rows": int(self.n_rows[t]),
            }
            for t, time in enumerate(self.times)
            for y, name in enumerate(self.class_names)
        ]

    def to_pandas(self) -> Any:
        """Tidy table with one row per time and class."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON takes it: None for what is infinite or not known."""
        tried = self.strengths
        return {
            "times": [_plain(time) for time in self.times],
            "classes": list(map(str, self.class_names)),
            "shares": self.to_records(),
            "strength": _finite(self.strength),
            "strengths": []
            if tried is None
            else [
                {"strength": _finite(strength), "held_out": float(score)}
                for strength, score in zip(tried.tried, tried.held_out, strict=True)
            ],
            "changes": [
                {
                    "last": _plain(one.last),
                    "first": _plain(one.first),
                    "p_value": one.p_value,
                    "before": one.before.tolist(),
                    "after": one.after.tolist(),
                    "moved": one.moved,
                }
                for one in self.changes
            ],
            "p_value": _finite(self.p_value),
            "least_p": self.least_p,
            "level": self.level,
            "alarm": self.alarm,
        }

    def plot(self, *, ax: Any = None) -> Any:
        """The figure of :func:`shoal.plots.plot_trend`."""
        from importlib import import_module

        return import_module("shoal.plots").plot_trend(self, ax=ax)


def trend(
    model: Any,
    X: Any,
    domains: Any = None,
    *,
    order: Any = None,
    strength: float | None = None,
    level: float = 0.9,
    alarm: float = 0.05,
    n_permutations: int = NUMBERS.permutations,
    random_state: Any = None,
) -> MixTrend:
    """How the mix of the classes of a fit moves in time.

    Parameters
    ----------
    model : fitted estimator
        Its classes are taken as they are; of rows, not of bags of words.
    X : array-like of shape (n_samples, n_features)
        Best the rows of fit.
    domains : array-like of shape (n_samples,), default=None
        Where each row comes from; not needed where ``order`` has a time per row.
    order : array-like of shape (n_samples,), mapping or None, default=None
        When each row is from, as a number or a date; or the time of each domain; or
        None where the domains are numbers or dates themselves. Rows of the same time
        share a mix, whatever their domain.
    strength : float, default=None
        How much neighbours count; chosen by the likelihood of held-out rows when None.
        0 smooths nothing, infinity gives all times one mix.
    level : float, default=0.9
        Nominal coverage of each interval.
    alarm : float, default=0.05
        Rate at which a series without any change gets one.
    n_permutations : int, default=999
        Shuffles behind the p-values.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    MixTrend

    Notes
    -----
    Logits of the mix take a normal step from one time to the next, with a variance in
    proportion to the gap. A change is a split of the times into before and after that
    explains more than the best split of shuffled times does: times, not rows, are the
    replicates, so that times that merely scatter have no change. A steady drift has:
    where it is cut is then of no meaning.

    References
    ----------
    C. F. Ansley, R. Kohn (1985). Estimation, filtering, and smoothing in state space
    models. Annals of Statistics 13. D. Freedman, D. Lane (1983). A nonstochastic
    interpretation of reported significance levels. Journal of Business and Economic
    Statistics 1.

    Examples
    --------
    >>> import shoal
    >>> from shoal.datasets import make_latent_shift
    >>> X, years, _ = make_latent_shift(
    ...     1200, n_classes=2, n_domains=6, separation=3.0, random_state=0)
    >>> model = shoal.DomainMixture(2, search=False, random_state=0).fit(X, years)
    >>> found = shoal.trend(model, X, years, random_state=0)
    >>> found.prevalence.shape, found.times.tolist()
    ((6, 2), [0, 1, 2, 3, 4, 5])
    """
    check_is_fitted(model)
    _check_numbers(strength, level, alarm)
    check_whole(1, n_permutations=n_permutations)
    if model._origin._counts_words:
        raise refused(
            "the rows of this model are bags of words, each with a mix of its own",
            "compare its domains with shoal.compare",
        )
    X = model._check_rows(X)
    times, places, gap = times_of(order, domains, X.shape[0])
    rows = _in_order(model._origin, X, places, gap)
    seed = check_random_state(random_state).randint(LARGEST)
    rng = np.random.default_rng(seed)
    asked = strength is None and rows.n_times > 1
    strengths = judge_strengths(rows, rng) if asked else None
    if strength is None:
        strength = 0.0 if strengths is None else strengths.best
    weight = np.ones(X.shape[0])
    fitted = smooth(rows, weight, strength)
    parts = model._add_up(np.eye(fitted.shape[1]))
    low, high = intervals(rows, fitted, strength, parts, level)
    how = ChangeSearch(alarm, n_permutations, model._add_up, rng)
    splits, p_value = find_changes(rows, how)
    return MixTrend(
        times=times,
        prevalence=model._add_up(fitted),
        low=low,
        high=high,
        unsmoothed=model._add_up(smooth(rows, weight, 0.0)),
        n_rows=np.bincount(places),
        strength=float(strength),
        strengths=strengths,
        changes=_named(model, rows, splits, times),
        p_value=p_value,
        least_p=least_p(rows.n_times, n_permutations),
        level=float(level),
        alarm=float(alarm),
        class_names=list(model.class_names_),
    )


def _check_numbers(strength: Any, level: float, alarm: float) -> None:
    for name, value in (("level", level), ("alarm", alarm)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    if strength is not None and not strength >= 0:
        raise ValueError(
            f"strength must be a number from 0, or None to choose it, got {strength!r}"
        )


def _in_order(fitted: Any, X: Any, places: Array, gap: Array) -> TimedRows:
    """Rows by time, and within a time by what they say, in whatever order they come.

    Nor does it matter what number a class has.
    """
    given = np.asarray(fitted._class_given_x(X), dtype=float)
    prior = fitted.class_weight_
    ratio = np.divide(given, prior, out=np.zeros_like(given), where=prior > 0)
    ratio /= ratio.max(axis=1, keepdims=True)
    keys = np.round(np.sort(ratio, axis=1), 9).T
    order = np.lexsort([*keys, places])
    return TimedRows(ratio[order], places[order], gap)


def _named(
    model: Any, rows: TimedRows, splits: list[Any], times: Array
) -> list[ChangePoint]:
    """Changes with the mixes of the stretches between them."""
    ends = [0, *(split.time for split in splits), rows.n_times]
    pairs = zip(ends[:-1], ends[1:], strict=True)
    stretches = [rows.take(first, last).ratio for first, last in pairs]
    mixes = [model._add_up(mixture_proportions(ratio)) for ratio in stretches]
    return [
        ChangePoint(
            last=times[split.time - 1],
            first=times[split.time],
            p_value=split.p_value,
            before=mixes[index],
            after=mixes[index + 1],
        )
        for index, split in enumerate(splits)
    ]


def _plain(time: Any) -> Any:
    """A time as JSON takes it."""
    return str(time) if np.asarray(time).dtype.kind == "M" else time.item()


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


# ---- when rows are from --------------------------------------------------------------


def refused(text: str, hint: str) -> InputError:
    """The error of an order that is none."""
    return InputError("E175", text, hint)


def times_of(order: Any, domains: Any, n_rows: int) -> tuple[Array, Array, Array]:
    """The times in their order, the number of that of each row, and the gaps.

    Gaps are in units of the median one.
    """
    values, places = np.unique(_as_numbers(_each(order, domains, n_rows)),
                               return_inverse=True)  # fmt: skip
    if len(values) > NUMBERS.most_times:
        raise refused(
            f"order has {len(values)} different times, more than {NUMBERS.most_times}",
            "round them, for example days to months",
        )
    plain = values.astype("datetime64[D]") if values.dtype.kind == "M" else values
    gap = np.diff(plain.astype(float))
    return values, places.ravel(), gap / (np.median(gap) if len(gap) else 1.0)


def _each(order: Any, domains: Any, n_rows: int) -> Array:
    """Of every row, whatever was given."""
    if order is None or isinstance(order, Mapping):
        if domains is None:
            raise refused(
                "neither domains nor the time of each row were given",
                "pass domains, or order with one time per row",
            )
        values = np.broadcast_to(np.asarray(domains), n_rows)
        if order is None:
            return values
        lacking = [one for one in dict.fromkeys(values.tolist()) if one not in order]
        if lacking:
            raise refused(
                f"order has no time for the domain {lacking[0]!r}",
                "give one for each domain",
            )
        values = np.array([order[one] for one in values.tolist()])
    else:
        values = np.asarray(order)
    if values.shape != (n_rows,):
        raise refused(
            f"order has shape {values.shape}, X has {n_rows} rows",
            "pass one time per row, or a mapping from domain to time",
        )
    return values


def _as_numbers(values: Array) -> Array:
    """Numbers or dates: text is read as the one or, failing that, the other."""
    found = values
    if values.dtype.kind not in "biufM":
        try:
            found = _read([str(one).strip() for one in values.tolist()])
        except ValueError:
            odd = next(one for one in values.tolist() if not _is_time(one))
            raise refused(
                f"order must be numbers or dates such as 2016-03, got {odd!r}",
                "choose another column, or give each domain a number",
            ) from None
    elif values.dtype.kind in "bf" and (values == np.round(values)).all():
        found = values.astype(np.int64)
    gaps = np.isnat(found) if found.dtype.kind == "M" else ~np.isfinite(found)
    if gaps.any():
        raise refused(
            f"order has no value for row {int(np.argmax(gaps)) + 1}",
            "fill it in, or leave the row out",
        )
    return found


def _read(texts: list[str]) -> Array:
    try:
        numbers = np.array(texts, dtype=float)
    except ValueError:
        return np.array(texts, dtype="datetime64[s]").astype("datetime64[D]")
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return numbers.astype(np.int64) if whole else numbers


def _is_time(value: Any) -> bool:
    try:
        _read([str(value).strip()])
    except ValueError:
        return False
    return True
