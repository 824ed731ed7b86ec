"""The diagnosis: gather rows, compute every number, judge them."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from shoal._work import one_thread
from shoal.analysis._rank import supported_rank
from shoal.analysis._resample import check_all_domains
from shoal.analysis.diagnose._drift import find_drift
from shoal.analysis.diagnose._findings import judge, level_of_misfit
from shoal.analysis.diagnose._guess import (
    best_guess,
    find_repeats,
    naming_columns,
    null_gains,
    tree_guess,
)
from shoal.analysis.diagnose._refit import (
    Comparison,
    refit,
    restart,
    richer,
    simulate,
    weighted_agreement,
)
from shoal.analysis.diagnose._result import Diagnosis
from shoal.analysis.diagnose._rows import DiagnosisRows, OwnAnswers, draw_seed, gather
from shoal.analysis.diagnose._settings import EFFORT, THRESHOLDS
from shoal.exceptions import ShoalWarning
from shoal.probability import condition_number
from shoal.validation import check_whole
from shoal.validation._rows import stratified_sample

Array = np.ndarray[Any, Any]
Numbers = dict[str, Any]


def diagnose(
    estimator: Any,
    X: Any,
    domains: Any = None,
    *,
    n_permutations: int = 10,
    n_simulations: int = 12,
    n_restarts: int = 2,
    max_rows: int = 8_000,
    random_state: Any = None,
) -> Diagnosis:
    """Ask whether the classes of a fitted estimator should be trusted.

    Five questions, each answered with numbers on the rows that are passed in:

    1. *Do domains differ?* Held-out gain of guessing the domain over guessing q(d),
       against the same with shuffled domains.
    2. *Do k classes explain it?* How counts of (domain-blind) cells by domains depart
       from the model, against data simulated from it and refitted; and the share of a
       free guesser's gain that is kept when the guess has to pass through the classes.
    3. *Does each class look alike everywhere?* Distance between domains of a class's
       mean, rows weighted by p_d(y|x), against the same simulations; whether domains
       hold rows that fit no mix of the others', and whether one column of one domain
       is in another unit, on held-out rows.
    4. *Is the mix rich enough?* Assumptions A.1 to A.4: domains, conditioning and rank
       of the mixes, anchors, classes of one domain, starts that agree.
    5. *Is the table itself in order?* Thin domains, columns that name the domain, rows
       repeated across domains.

    Labels are never used.

    Parameters
    ----------
    estimator : fitted LatentShiftEstimator
    X : array-like of shape (n_samples, n_features)
        Best the rows of fit; all domains of fit must occur.
    domains : array-like of shape (n_samples,)
    n_permutations : int, default=10
        Shuffles of the domains.
    n_simulations : int, default=12
        Data sets drawn from the fitted model.
    n_restarts : int, default=2
        Climbs from other starts.
    max_rows : int, default=8000
        With more rows, a sample of this size spread evenly over the domains is judged;
        the result says so.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> from shoal.datasets import load_penguins
    >>> from shoal.mixture import DomainMixture
    >>> penguins = load_penguins()
    >>> model = DomainMixture(n_classes=3, search=False, random_state=0)
    >>> model.fit(penguins.X, penguins.domains)
    DomainMixture(n_classes=3, random_state=0, search=False)
    >>> diagnosis = model.diagnose(penguins.X, penguins.domains, random_state=0)
    >>> diagnosis.verdict
    'caution'
    >>> print(diagnosis["W139"].reason)
    Some classes occur in one domain: c1 only in Biscoe, c2 only in Dream.
    """
    check_is_fitted(estimator)
    check_whole(2, n_permutations=n_permutations, n_simulations=n_simulations)
    check_whole(0, n_restarts=n_restarts)
    check_whole(100, max_rows=max_rows)
    X = estimator._check_rows(X)
    codes = check_all_domains(estimator, X, domains)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    streams = np.random.default_rng(seed).spawn(7)
    sampling, shuffling, simulating, starting, looking, comparing, adding = streams
    with one_thread(), warnings.catch_warnings():
        # fit has said what there is to warn of; refits would repeat it
        warnings.simplefilter("ignore", ShoalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows, own = gather(estimator, X, codes, max_rows, sampling)
        n_rows = rows.problem.n_rows
        orders = [shuffling.permutation(n_rows) for _ in range(n_permutations)]
        draws = simulating.random((n_simulations, n_rows))
        fitted = refit(rows, estimator.domain_given_class_)
        departures = _departures(fitted, simulate(rows, fitted, draws))
        numbers = {
            **_sizes(estimator, X, codes, n_rows),
            **_gains(rows, own, orders, draw_seed(shuffling)),
            **departures,
            **_one_more(rows, departures, len(fitted.fit.weights) + 1, adding),
            **_witnesses(estimator),
            "choice": None,
            **_richness(estimator, rows, own, fitted, starting),
            **_restarts(rows, fitted, starting.spawn(n_restarts)),
            **_table(estimator, X, codes, looking),
            **_drift(estimator, X, codes, comparing),
        }
    return judge(numbers, estimator.domains_, list(estimator.class_names_))


def _sizes(estimator: Any, X: Any, codes: Array, n_used: int) -> Numbers:
    weight = estimator.domain_weight_
    reach = float(stats.norm.ppf((1 + EFFORT.level) / 2))
    sizes = np.bincount(codes, _bag_sizes(estimator, X), minlength=len(weight))
    return {
        "n_rows": int(sizes.sum()),
        "n_rows_used": n_used,
        "n_domains": len(weight),
        "n_classes": estimator.n_classes_,
        "looks": estimator._origin._sees_looks,
        "rows_per_domain": np.rint(sizes).astype(int),
        "rows_for_five_points": int(reach**2 / 4 / EFFORT.five_points**2),
        "equal_weights": bool(np.ptp(weight) < 1e-9),
    }


def _gains(
    rows: DiagnosisRows, own: OwnAnswers, orders: list[Array], seed: int
) -> Numbers:
    through, null = own.through, null_gains(rows, orders)
    # Trees and a discriminator are too slow to repeat; by chance they gain less still.
    # Whole numbers less an offset name their domain by fractions that trees see.
    guesses = [best_guess(rows)]
    guesses += [] if rows.moved else [tree_guess(rows, seed)]
    guesses += [] if own.free is None else [own.free]
    free = max(guesses, key=lambda guess: guess.mean)
    lost = free.mean - through.mean
    error = free.standard_error(through)
    return {
        "guesser": free.name,
        "gain": free.mean,
        "gain_error": free.standard_error(),
        "gain_null": null,
        "gain_through": through.mean,
        "gain_kept": through.mean / free.mean if free.mean > 0 else np.nan,
        "gain_lost_sure": lost / max(error, 1e-12),
    }


def _departures(fitted: Comparison, simulations: Iterator[Comparison]) -> Numbers:
    departure, shifts = fitted.departure, fitted.shifts
    simulated = [(other.departure, other.shifts) for other in simulations]
    misfit = _spread([other.misfit for other, _ in simulated])
    unexplained = _spread([other.unexplained for other, _ in simulated])
    overall = _spread([other.overall for _, other in simulated])
    null = np.array([other.by_class for _, other in simulated])
    by_class = shifts.by_class - null.mean(axis=0)
    largest = _spread((null - null.mean(axis=0)).max(axis=1))
    excess = departure.unexplained - unexplained["mean"]
    return {
        "misfit": departure.misfit,
        "misfit_null": misfit,
        "signal": departure.signal,
        "unexplained_null": unexplained["mean"],
        "unexplained": excess / departure.signal if departure.signal > 0 else np.nan,
        "shift": _root(shifts.overall - overall["mean"]),
        "shift_limit": max(
            THRESHOLDS.shift_caution,
            float(_root(THRESHOLDS.sure * overall["sd"])),
        ),
        "shift_sure": (shifts.overall - overall["mean"]) / max(overall["sd"], 1e-12),
        "class_shift": _root(by_class),
        "worst_class_shift": float(_root(by_class.max())),
        "worst_class_sure": (by_class.max() - largest["mean"])
        / max(largest["sd"], 1e-12),
        "class_domain_shift": _root(shifts.square),
        "worst_cells": _worst_cells(shifts.square, shifts.mass),
    }


def _one_more(
    rows: DiagnosisRows, departures: Numbers, count: int, rng: np.random.Generator
) -> Numbers:
    """What one class more explains; asked only where the classes leave something."""
    if level_of_misfit(departures) == "ok":
        return {"one_more": None}
    found = richer(rows, count, rng)
    excess = found.departure.unexplained - departures["unexplained_null"]
    mix = _means_by_domain(found.posterior, rows.codes, rows.problem.n_domains)
    share = found.fit.domain_given_class.max(axis=1)
    home = found.fit.domain_given_class.argmax(axis=1)
    fills = (share > THRESHOLDS.single_domain) & (
        mix[home, np.arange(count)] > THRESHOLDS.fills
    )
    return {
        "one_more": {
            "n_classes": count,
            "unexplained": excess / departures["signal"],
            "fills": np.unique(home[fills]),
        }
    }


def _witnesses(estimator: Any) -> Numbers:
    """How far looks and shift agree; None where one of them was heard alone."""
    route = getattr(estimator, "route_", None)
    k = estimator.n_classes_
    if route is None or route.reason == "alone" or len(route.agreement_by_class) != k:
        return {"witnesses": None}
    return {
        "witnesses": {
            "by": route.by,
            # who has nothing to say, takes drift for classes or is overruled beyond
            # doubt cannot contradict
            "heard": route.reason not in ("silent", "drift") and not route.overruled,
            "agreement": route.agreement,
            "by_class": route.agreement_by_class,
            "n_rows": len(route.other_labels),
        }
    }


def _richness(
    estimator: Any,
    rows: DiagnosisRows,
    own: OwnAnswers,
    fitted: Comparison,
    rng: np.random.Generator,
) -> Numbers:
    weighted = fitted.class_given_x * rows.row_weight[:, None]
    sure = np.where(fitted.class_given_x > EFFORT.surely, weighted, 0).sum(axis=0)
    T, mix = estimator.domain_given_class_, estimator.prevalence_
    rank = supported_rank(rows.cells, rows.codes, random_state=draw_seed(rng))
    singular = np.linalg.svd(mix, compute_uv=False)
    return {
        "condition": condition_number(mix),
        "smallest_singular_value": float(singular[-1]),
        "rank": rank.n_classes,
        "table_signal": _beyond(rank.singular_values.max(initial=0), rank.null),
        "anchor_share": sure / np.maximum(weighted.sum(axis=0), 1e-300),
        "class_weight": estimator.class_weight_.copy(),
        "largest_domain_share": T.max(axis=1),
        "largest_domain": T.argmax(axis=1),
        "share_at_home": mix[T.argmax(axis=1), np.arange(len(T))],
        "largest_class_share": mix.max(axis=1),
        "expected_accuracy": float(rows.row_weight @ fitted.posterior.max(axis=1)),
        "own_agreement": weighted_agreement(
            own.posterior, fitted.posterior, rows.row_weight
        ),
    }


def _restarts(
    rows: DiagnosisRows, fitted: Comparison, streams: list[np.random.Generator]
) -> Numbers:
    others = [restart(rows, fitted, stream) for stream in streams]
    return {
        "restart_excess": np.array([other.excess for other in others]),
        "restart_agreement": np.array([other.agreement for other in others]),
    }


def with_columns(diagnosis: Diagnosis, names: Sequence[str]) -> Diagnosis:
    """The same diagnosis of an array's columns, called by name instead of number."""
    numbers = dict(diagnosis.numbers)
    if [str(place) for place in range(len(names))] == numbers["columns"]:
        numbers["columns"] = [str(name) for name in names]
    accuracy = numbers["naming_columns"]
    if all(column.isdigit() and int(column) < len(names) for column in accuracy):
        numbers["naming_columns"] = {
            str(names[int(column)]): value for column, value in accuracy.items()
        }
    return judge(numbers, diagnosis.domains, diagnosis.class_names)


def with_choice(diagnosis: Diagnosis, choice: Any) -> Diagnosis:
    """The same diagnosis beside the choice of the number of classes, if there was one.

    Both ask how many classes a table of cells supports; what is told is one answer.
    """
    if choice is None:
        return diagnosis
    told = {"n_classes": choice.n_classes, "sentence": choice.sentence}
    numbers = {**diagnosis.numbers, "rank": choice.rank, "choice": told}
    return judge(numbers, diagnosis.domains, diagnosis.class_names)


def _table(estimator: Any, X: Any, codes: Array, rng: np.random.Generator) -> Numbers:
    """Checks that make sense where a row is one thing with columns."""
    result: Numbers = {
        "naming_columns": {},
        "repeated_rows": None,
        "repeated_excess": None,
    }
    origin = estimator._origin
    if origin._counts_words:
        return result
    order = np.argsort(codes, kind="stable")
    sample = order[stratified_sample(codes[order], EFFORT.table_rows, rng)]
    accuracy = naming_columns(X[sample], codes[sample], rng)
    names = getattr(estimator, "feature_names_in_", range(X.shape[1]))
    result["naming_columns"] = {str(names[i]): accuracy[i] for i in accuracy}
    # words repeat by nature, and a sparse row is no block of bytes
    if isinstance(X, np.ndarray) and origin._word_counts() is None:
        repeats = find_repeats(X, codes)
        result["repeated_rows"] = repeats.n_rows
        result["repeated_excess"] = repeats.excess
    return result


def _drift(estimator: Any, X: Any, codes: Array, rng: np.random.Generator) -> Numbers:
    """Every domain held against the others; None where rows are not measurements."""
    origin, columns = estimator._origin, range(X.shape[1])
    words = origin._counts_words or origin._word_counts() is not None
    numeric = isinstance(X, np.ndarray) and X.dtype.kind in "biuf"
    asked, left = numeric and not words, origin._without_drift(X, codes)[1]
    return {
        "columns": [str(c) for c in getattr(estimator, "feature_names_in_", columns)],
        "drift": find_drift(X, codes, rng) if asked else None,
        "drift_fitted": left is not X,
        # of what is left where a fit takes drift out
        "drift_left": find_drift(left, codes, rng) if asked and left is not X else None,
    }


# ---- small helpers -----------------------------------------------------------------


def _bag_sizes(estimator: Any, X: Any) -> Array | None:
    """Words per row of counts; None where every row counts once."""
    if not estimator._origin._counts_words:
        return None
    return np.ravel(X.sum(axis=1)).astype(float)


def _beyond(value: float, null: Array) -> float:
    """By how many standard deviations of chance a value is above what chance gives."""
    return float((value - null.max()) / max(null.std(ddof=1), 1e-12))


def _means_by_domain(table: Array, codes: Array, n_domains: int) -> Array:
    """Mean row of every domain."""
    member = np.eye(n_domains)[:, codes]
    return np.asarray(member @ table / np.maximum(member.sum(axis=1), 1)[:, None])


def _spread(values: Any) -> dict[str, float]:
    values = np.asarray(values, dtype=float)
    return {"mean": float(values.mean()), "sd": float(values.std(ddof=1))}


def _root(square: Any) -> Any:
    """Square root of an excess over noise, 0 where there is none."""
    return np.sqrt(np.maximum(square, 0))


def _worst_cells(square: Array, mass: Array) -> list[tuple[int, int, float]]:
    """Class, domain and shift of the entries that weigh most."""
    weight = np.nan_to_num(square) * mass
    worst = np.argsort(-weight, axis=None, kind="stable")[: EFFORT.n_worst]
    cells = zip(*np.unravel_index(worst, square.shape), strict=True)
    return [
        (int(y), int(d), float(_root(np.nan_to_num(square[y, d])))) for y, d in cells
    ]
