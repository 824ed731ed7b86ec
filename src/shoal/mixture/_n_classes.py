"""How many classes: the rule, and the choice inside ``fit``.

The rule itself is that of :func:`shoal.choose_n_classes`.
"""

import warnings

import numpy as np

from shoal.analysis._decide import Evidence, decide, default_folds, shows_signal
from shoal.exceptions import IdentifiabilityWarning
from shoal.likelihood._held_out import held_out
from shoal.likelihood._rows import TrainingRows
from shoal.mixture._curve import Point, baseline, make_curve, quiet_rank
from shoal.mixture._ladder import Options
from shoal.mixture._search import Solution
from shoal.validation._sampling import fold_of_rows

# Rows that are held out in turn to see whether there is anything to learn from.
SIGNAL_ROWS = 10_000


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
    return shows_signal(scores[0], evidence)
