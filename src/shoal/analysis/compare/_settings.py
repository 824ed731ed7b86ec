"""Numbers behind a comparison of mixes."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ComparisonNumbers:
    """What decides; see the comments for why."""

    # Half a row is added to a class and to all others before odds are taken: the
    # logarithm of a count of zero is then finite, and least biased (Haldane, Anscombe).
    added: float = 0.5
    # Shuffles of the residuals: p-values in steps of 1/2000.
    permutations: int = 1999
    # More distinct values of a column of text are names of rows, not a category.
    most_levels: int = 20
    # Where fewer than one over this many arrangements differ, shuffles say nothing.
    useful_p: float = 0.05
    # A column that the others leave less of than this share of it is one of them.
    collinear: float = 1e-8
    # What a statistic may fall short of the one seen, relative to it, and be as large.
    same_statistic: float = 1e-9


NUMBERS = ComparisonNumbers()
