"""How many classes: the rule, and the choice inside ``fit``.

Two witnesses are heard. The likelihood of the domains on held-out rows, through k
classes, falls again when k is too large, but a climb that misses its best solution can
tilt it by a class. The rank of a cluster-by-domain table needs no climb, but misses
classes that overlap or hardly shift. Where they agree, the choice is clear.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from shoal._rank import RankResult
from shoal.exceptions import IdentifiabilityWarning
from shoal.mixture._curve import Point, baseline, default_folds, make_curve, quiet_rank
from shoal.mixture._held_out import HeldOut, held_out
from shoal.mixture._ladder import Options
from shoal.mixture._rows import TrainingRows, fold_of_rows
from shoal.mixture._search import Solution
from shoal.validation import is_whole

# Without candidates, numbers of classes up to this one are tried at least.
MOST_CLASSES = 8
# Standard errors of the paired difference to the best held-out likelihood: a number of
# classes within NEAR is as good as the best; within CLOSE the rank may still decide.
NEAR = 1.0
CLOSE = 2.0
# As good as the best over more numbers of classes than this: no clear choice.
WIDE = 3
# Nats that are not worth a class, however small the standard error.
TIE = 1e-3
# Nats below which a gain is rounding: where rows repeat, standard errors vanish.
LEAST_GAIN = 1e-4
# Rows that are held out in turn to see whether there is anything to learn from.
SIGNAL_ROWS = 10_000


@dataclass(frozen=True)
class Evidence:
    """All that a choice of the number of classes rests on."""

    scores: dict[int, HeldOut]  # by number of classes, ascending
    stability: dict[int, float]
    rank: RankResult
    baseline: HeldOut
    n_domains: int


def pick_n_classes(
    rows: TrainingRows,
    rng: np.random.Generator,
    *,
    options: Options | None = None,
    n_jobs: int | None = None,
) -> int:
    """Choose the number of classes inside ``fit``, by the same rule at less cost.

    Numbers around the rank are tried first, and further ones only while the best is at
    the edge. Without a clear choice the fewest of the near-best are taken; where
    domains do not differ, 2, with an IdentifiabilityWarning.

    Parameters
    ----------
    rows : TrainingRows
    rng : numpy Generator
    options : Options, default=None
        Features and penalties that the caller has fixed.
    n_jobs : int, default=None

    Returns
    -------
    int
        Between 2 and the number of domains.
    """
    options = Options() if options is None else options
    rank = quiet_rank(rows, options, rng)
    most = rows.n_domains
    low, high = max(2, rank.n_classes - 1), min(most, rank.n_classes + 2)
    curve = make_curve(rows, rank.n_classes, high, options, rng, n_jobs=n_jobs)
    points: dict[int, Point] = {}
    curve.extend(points, range(low, high + 1))
    while True:
        best = max(points, key=lambda count: points[count].held_out.mean)
        if best == high < most:
            high = min(high + 2, most)
        elif best == low > 2:
            low -= 1
        else:
            break
        curve.extend(points, range(low, high + 1))
    scores = {count: points[count].held_out for count in sorted(points)}
    evidence = Evidence(scores, {}, rank, baseline(curve.problem), most)
    choice = decide(evidence)
    if not choice.signal:
        warnings.warn(
            f"{choice.sentence}; using 2", IdentifiabilityWarning, stacklevel=4
        )
    return choice.fallback


def has_signal(rows: TrainingRows, solution: Solution, options: Options) -> bool:
    """Whether domains differ beyond chance.

    Clusters are asked first; rows are held out only where these do not see it.
    """
    rng = np.random.default_rng(0)  # its own, so that the fit does not depend on it
    rank = quiet_rank(rows, options, rng, n_null=100)
    if rank.singular_values.max(initial=0) > rank.null.max():
        return True
    sample = rows.sample(SIGNAL_ROWS, rng)
    problem = sample.problem(solution.features)
    folds = fold_of_rows(sample.codes, default_folds(sample.n_rows), rng)
    start, penalties = solution.fit.domain_given_class, [solution.penalties]
    scores = held_out(problem, start, penalties, folds)
    evidence = Evidence({}, {}, rank, baseline(problem), rows.n_domains)
    return _has_signal(scores[0], evidence)


class Decision(NamedTuple):
    """What the evidence says: a choice, and what to take without a clear one."""

    n_classes: int | None
    sentence: str
    fallback: int
    signal: bool


def decide(evidence: Evidence) -> Decision:
    """Weigh the held-out likelihood and the rank; see shoal.choose_n_classes."""
    n_domains, rank = evidence.n_domains, evidence.rank.n_classes
    scores = {k: s for k, s in evidence.scores.items() if k <= n_domains}
    if not scores:
        few = f"no candidate is identifiable: there are only {n_domains} domains"
        return Decision(None, f"No clear number of classes: {few}", 2, True)
    best = max(scores, key=lambda count: scores[count].mean)
    if not _has_signal(scores[best], evidence):
        none = "domains do not differ beyond chance, so there is nothing to learn from"
        return Decision(None, f"No clear number of classes: {none}", 2, False)
    near = _within(NEAR, scores, best)
    if rank in _within(CLOSE, scores, best):
        return Decision(rank, _agreement(rank, best, n_domains), rank, True)
    if best == max(scores) < n_domains:
        return Decision(
            None,
            f"No clear number of classes: held-out likelihood still rises at {best}, "
            f"the largest tried; try up to {n_domains}",
            best,
            True,
        )
    if max(near) - min(near) >= WIDE:
        return Decision(
            None,
            f"No clear number of classes: {min(near)} to {max(near)} predict held-out "
            f"rows about equally well, and the cluster-by-domain table supports {rank}",
            min(near),
            True,
        )
    chosen = min(near, key=lambda count: (abs(count - rank), count))
    return Decision(
        chosen,
        f"{chosen} classes: best on held-out rows within one standard error (best: "
        f"{best}); the cluster-by-domain table alone supports {rank}",
        chosen,
        True,
    )


def _agreement(chosen: int, best: int, n_domains: int) -> str:
    sentence = f"{chosen} classes: "
    if chosen == best:
        sentence += (
            "best on held-out rows, and supported by the cluster-by-domain table"
        )
    else:
        sentence += (
            "supported by the cluster-by-domain table, and within two standard errors "
            f"of the best on held-out rows ({best})"
        )
    if chosen == n_domains:
        sentence += f"; more could not be told apart with {n_domains} domains"
    return sentence


def _within(errors: float, scores: dict[int, HeldOut], best: int) -> list[int]:
    """Numbers of classes at most this many standard errors behind the best."""
    top = scores[best]
    return [
        count
        for count, score in scores.items()
        if top.mean - score.mean <= TIE + errors * top.standard_error(score)
    ]


def _has_signal(best: HeldOut, evidence: Evidence) -> bool:
    """Whether classes predict held-out domains better than chance does."""
    gain = best.mean - evidence.baseline.mean
    rank = evidence.rank
    visible = rank.singular_values.max(initial=0) > rank.null.max()
    doubt = NEAR if visible else CLOSE
    return bool(gain > LEAST_GAIN + doubt * best.standard_error(evidence.baseline))


def check_candidates(n_classes: Any, rank: int, n_domains: int) -> list[int]:
    """Candidates in ascending order; by default from 2 to beyond the rank."""
    if n_classes is None:
        return list(range(2, min(n_domains, max(MOST_CLASSES, rank + 3)) + 1))
    candidates = [n_classes] if is_whole(n_classes) else list(n_classes)
    wrong = [count for count in candidates if not is_whole(count) or count < 2]
    if wrong or not candidates:
        got = repr(wrong[0]) if wrong else "none"
        raise ValueError(f"n_classes must be whole numbers from 2, got {got}")
    return sorted({int(count) for count in candidates})
