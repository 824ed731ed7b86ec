"""Numbers behind a trend."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrendNumbers:
    """What decides; see the comments for why."""

    # Standard deviations of a step of the logits over a usual gap that are tried. Below
    # the first a century hardly moves; beyond the last neighbours say nothing.
    steps: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.8, 3.2)
    # Parts of the rows of every time; each is held out once.
    folds: int = 5
    # Shuffles of the times: p-values in steps of 1/1000.
    permutations: int = 999
    # More times cost minutes, and are days that should be months.
    most_times: int = 1000
    # Newton steps end when one more would gain less than this share of a nat a row.
    gain: float = 1e-10
    newton: int = 200
    # One step moves no logit by more: far from the optimum the curvature misleads.
    longest: float = 4.0
    # A class that no row speaks for has a logit all the same.
    least_share: float = 1e-9
    # Keeps the curvature of such a class above zero.
    ridge: float = 1e-9
    # Directions in which responsibilities vary less, relative to the most, are noise.
    flat: float = 1e-9
    # What a statistic may fall short of the one seen, relative to it, and be as large.
    same_statistic: float = 1e-9


NUMBERS = TrendNumbers()
