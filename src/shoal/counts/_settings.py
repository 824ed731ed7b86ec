"""Numbers that decide how counts become classes, each with its reason."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class CountSettings:
    """What components and bags decide by; see the comments for why."""

    # ---- components
    # Principal directions that the mixture works on, of texts and of cells: six
    # newsgroups in 8 and 12 domains gave .88, .89 and .90 with 10, 20 and 30, and poor
    # solutions came up more often from 30 on (development data).
    components: int = 20
    # Of them so many times as much, for further starts: what one number of directions
    # misses another finds, and held-out bags say which.
    further: tuple[float, ...] = (0.5, 0.75, 1.5)
    # Rows that must hold a column that is to tell rows apart.
    least_rows: int = 3
    # Most variable columns that principal components are made of (genes; all words).
    variable: int = 2_000
    # Rows turned into dense numbers at a time.
    block_rows: int = 4_096

    # ---- bags
    # Imaginary occurrences of each word in each class: a word that a class has not
    # shown yet must not rule it out.
    pseudo_count: float = 0.1
    # What a word may weigh, by the weighting of components; held-out rows choose. Cells
    # drawn with little bursting need counts (.95, logarithms .4 to .5), real blood
    # cells logarithms (.93, counts .78 to .92; development data).
    words: Mapping[str, tuple[str, ...]] = field(
        default_factory=lambda: {
            "tfidf": ("logarithms",),
            "log": ("counts", "logarithms"),
        }
    )
    # Imaginary rows of each class in each domain, for the same reason.
    pseudo_rows: float = 0.1
    # Rounds of EM, and the largest change of a probability that still counts.
    rounds: int = 60
    change: float = 1e-3
    # Rounds of a refit that starts at the fit.
    refit_rounds: int = 8
    # Words of a bag come together: so much of the evidence of one counts. The share is
    # taken under which classes tell the domains of held-out rows best.
    shares: tuple[float, ...] = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02)
    folds: int = 5
    # Standard errors by which bags may tell domains worse than components did, and
    # than the best ones where their words are likelier: six newsgroups with seeds 0
    # and 2 had starts of .82 and .91, .84 and .71 that told domains alike, and likelier
    # words named the better one both times (development data).
    doubt: float = 1.0


SETTINGS = CountSettings()
