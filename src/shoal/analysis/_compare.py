"""Why mixes differ: what covariates of domains say about the share of each class."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as t_distribution
from sklearn.utils import check_random_state

from shoal.analysis._formula import NUMBERS, make_design, parse_formula, refused
from shoal.analysis._regression import (
    LogOdds,
    Regression,
    false_discovery_rate,
    log_odds_of_counts,
    log_odds_of_draws,
    n_arrangements,
    shuffled_rows,
)
from shoal.validation import check_whole

Array = np.ndarray[Any, Any]

LARGEST = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class MixComparison:
    """What covariates say about the share of each class.

    Tables have one row per effect and one column per class.

    Attributes
    ----------
    effects : list of str
        A number (``"age"``) or a level against the reference (``"drug: yes vs no"``).
    terms : list of str
        The covariate behind each effect.
    class_names : list of str
    estimate, low, high : ndarray of shape (n_effects, n_classes)
        Change of the log odds of the class against all others, per unit of a number
        or from the reference to the level, and its interval.
    p_value : ndarray of shape (n_effects, n_classes)
        By shuffled residuals, within pairs where there are any.
    q_value : ndarray of shape (n_effects, n_classes)
        The same as false discovery rate among the classes of one effect.
    p_model : ndarray of shape (n_effects, n_classes)
        By the distribution of the moderated statistic: what is left to go by where
        domains are too few to be shuffled.
    joint : dict of str to ndarray of shape (n_classes,)
        p-value of a whole covariate, for those with several effects.
    between : ndarray of shape (n_classes,)
        Standard deviation of the log odds between domains, beyond covariates and noise.
    noise : ndarray of shape (n_classes,)
        That of the noise of the estimates, in the mean.
    least_p : ndarray of shape (n_effects,)
        One over the number of arrangements of these domains that differ, and at least
        one over the number of shuffles: no p-value says more, however small it is.
    level : float
    formula : str
    n_domains : int
    n_permutations : int
    """

    effects: list[str]
    terms: list[str]
    class_names: list[str]
    estimate: Array
    low: Array
    high: Array
    p_value: Array
    q_value: Array
    p_model: Array
    joint: dict[str, Array]
    between: Array
    noise: Array
    least_p: Array
    level: float
    formula: str
    n_domains: int
    n_permutations: int

    @property
    def too_few(self) -> list[str]:
        """Effects that no shuffle of so few domains could call surprising."""
        few = self.least_p > NUMBERS.useful_p
        return [name for name, is_few in zip(self.effects, few, strict=True) if is_few]

    def to_records(self) -> list[dict[str, Any]]:
        """One dict per effect and class, in their order."""
        return [
            {
                "effect": effect,
                "class_id": f"c{y}",
                "class_name": str(name),
                "log_odds": float(self.estimate[e, y]),
                "low": float(self.low[e, y]),
                "high": float(self.high[e, y]),
                "odds_ratio": float(np.exp(self.estimate[e, y])),
                "level": self.level,
                "p_value": float(self.p_value[e, y]),
                "q_value": float(self.q_value[e, y]),
                "p_model": float(self.p_model[e, y]),
            }
            for e, effect in enumerate(self.effects)
            for y, name in enumerate(self.class_names)
        ]

    def to_pandas(self) -> Any:
        """Tidy table with one row per effect and class."""
        import pandas as pd

        return pd.DataFrame(self.to_records())

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON takes it."""
        return {
            "formula": self.formula,
            "n_domains": self.n_domains,
            "n_permutations": self.n_permutations,
            "level": self.level,
            "effects": self.to_records(),
            "joint": {
                term: dict(zip(self.class_names, map(float, values), strict=True))
                for term, values in self.joint.items()
            },
            "between": dict(
                zip(self.class_names, map(float, self.between), strict=True)
            ),
            "noise": dict(zip(self.class_names, map(float, self.noise), strict=True)),
            "least_p": dict(zip(self.effects, map(float, self.least_p), strict=True)),
        }


def compare(
    found: Any,
    table: Any,
    formula: str,
    *,
    on: str | None = None,
    level: float = 0.9,
    n_permutations: int = NUMBERS.permutations,
    random_state: Any = None,
) -> MixComparison:
    """Ask why mixes differ: domains are the replicates, their covariates the reasons.

    Parameters
    ----------
    found : Intervals or DataFrame of counts
        Of ``model.bootstrap(X, domains)``, whose resamples carry along how unsure the
        classes are; or how many rows of each class (column) each domain (row) has,
        where classes are known.
    table : DataFrame
        Covariates, one row per domain; more domains than were found may stand in it.
    formula : str
        Such as ``"~ treatment + age"``, or ``"~ treatment | patient"`` for pairs. Text
        is a category, compared with its first level in the order of the alphabet;
        ``C(treatment, control)`` names another.
    on : str, default=None
        Column of ``table`` with the domains; its index when None.
    level : float, default=0.9
        Nominal coverage of each interval.
    n_permutations : int, default=1999
        Shuffles behind the p-values.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    MixComparison

    Notes
    -----
    Shares add to one: where one class becomes more, others must become less. Each
    class is held against all others together, so that a rise of one large class shows
    as a fall of the rest.

    References
    ----------
    D. Freedman, D. Lane (1983). A nonstochastic interpretation of reported
    significance levels. Journal of Business and Economic Statistics 1. R. C. Paule, J.
    Mandel (1982). Consensus values and weighting factors. Journal of Research of the
    National Bureau of Standards 87. G. K. Smyth (2004). Linear models and empirical
    Bayes methods. Statistical Applications in Genetics and Molecular Biology 3.

    Examples
    --------
    >>> import pandas as pd
    >>> import shoal
    >>> counts = pd.DataFrame(
    ...     {"a": [10, 12, 9, 30, 28, 33], "b": [90, 88, 91, 70, 72, 67]})
    >>> drug = pd.DataFrame({"drug": ["no"] * 3 + ["yes"] * 3})
    >>> result = shoal.compare(counts, drug, "~ drug", random_state=0)
    >>> result.effects, bool(result.low[0, 0] > 0)
    (['drug: yes vs no'], True)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    check_whole(1, n_permutations=n_permutations)
    parsed = parse_formula(formula)
    domains, names, odds = _read_found(found)
    design = make_design(parsed, _aligned(table, on, domains), domains)
    regression = Regression(design, odds)
    seed = check_random_state(random_state).randint(LARGEST)
    shuffles = shuffled_rows(design.blocks, n_permutations, np.random.default_rng(seed))
    estimate, error = regression.coefficients()
    total = regression.freedoms + regression.prior.freedoms
    reach = t_distribution.ppf((1 + level) / 2, total) * error
    tested = [regression.test([e], shuffles) for e in range(len(design.effects))]
    p_value = np.array([one[1] for one in tested])
    terms = [one.term for one in design.effects]
    return MixComparison(
        effects=[one.name for one in design.effects],
        terms=terms,
        class_names=names,
        estimate=estimate,
        low=estimate - reach,
        high=estimate + reach,
        p_value=p_value,
        q_value=false_discovery_rate(p_value),
        p_model=np.array([one[2] for one in tested]),
        joint=_joint(regression, terms, shuffles),
        between=np.sqrt(regression.between),
        noise=np.sqrt(odds.noise.mean(axis=0)),
        least_p=_least_p(design, n_permutations),
        level=float(level),
        formula=formula,
        n_domains=len(domains),
        n_permutations=n_permutations,
    )


def _joint(
    regression: Regression, terms: Sequence[str], shuffles: Array
) -> dict[str, Array]:
    several = [term for term in dict.fromkeys(terms) if list(terms).count(term) > 1]
    places = {
        term: [i for i, one in enumerate(terms) if one == term] for term in several
    }
    return {term: regression.test(own, shuffles)[1] for term, own in places.items()}


def _least_p(design: Any, n_permutations: int) -> Array:
    ways = [n_arrangements(one.column, design.blocks) for one in design.effects]
    return np.maximum(1 / np.array(ways), 1 / (n_permutations + 1))


# ---- what is compared ----------------------------------------------------------------


def _read_found(found: Any) -> tuple[list[str], list[str], LogOdds]:
    """Domains, classes and log odds, of intervals or of a table of counts."""
    if hasattr(found, "draws"):
        odds = log_odds_of_draws(found.prevalence, found.draws, found.n_rows)
        return [str(one) for one in found.domains], list(found.class_names), odds
    if not hasattr(found, "columns") or not hasattr(found, "index"):
        raise TypeError(
            "found must be the intervals of model.bootstrap or a DataFrame of counts, "
            f"got {type(found).__name__}"
        )
    names = [str(one) for one in found.columns]
    try:
        counts = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        counts = np.array([[np.nan]])
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise refused("counts must be numbers from 0", "pass columns of counts alone")
    if len(names) < 2:
        raise refused(f"counts have {len(names)} class", "pass one column per class")
    empty = (counts.sum(axis=0) == 0) | (counts.sum(axis=0) == counts.sum())
    if empty.any():
        name = names[int(np.argmax(empty))]
        raise refused(
            f'class "{name}" has no row, or all of them', "leave its column out"
        )
    if (counts.sum(axis=1) == 0).any():
        place = found.index[int(np.argmax(counts.sum(axis=1) == 0))]
        raise refused(f'domain "{place}" has no row of any class', "leave it out")
    return [str(one) for one in found.index], names, log_odds_of_counts(counts)


def _aligned(table: Any, on: str | None, domains: list[str]) -> dict[str, Array]:
    """Columns of the table, in the order of the domains."""
    if not hasattr(table, "columns"):
        raise TypeError(f"table must be a DataFrame, got {type(table).__name__}")
    if on is not None and on not in table.columns:
        known = ", ".join(map(str, table.columns))
        raise refused(f'the table of domains has no column "{on}"', f"it has {known}")
    keys = [str(one) for one in (table.index if on is None else table[on])]
    twice = [one for one in dict.fromkeys(keys) if keys.count(one) > 1]
    if twice:
        text = f'the table of domains has "{twice[0]}" {keys.count(twice[0])} times'
        raise refused(text, "it needs one row per domain")
    place = {key: index for index, key in enumerate(keys)}
    absent = [one for one in domains if one not in place]
    if absent:
        more = f" and {len(absent) - 1} more" * (len(absent) > 1)
        text = f'the table of domains has no row for "{absent[0]}"{more}'
        raise refused(text, f'it has "{keys[0]}"' if keys else "it is empty")
    rows = [place[one] for one in domains]
    return {str(name): np.asarray(table[name])[rows] for name in table.columns}
