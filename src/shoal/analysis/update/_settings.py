"""Numbers behind an update."""

from dataclasses import dataclass


@dataclass(frozen=True)
class UpdateNumbers:
    """What decides; see the comments for why."""

    # A new class changes everything that is said later, and what is only probably there
    # can wait for more rows: the share of rows outside of all classes must be above
    # zero at this level, for all questions of one update together.
    sure: float = 0.99
    # Rows outside of all classes have to come together in one class: with fewer than
    # this, nobody could say what it looks like.
    least_rows: int = 20
    # Classes are still those that they were if so many rows of each stay in them.
    kept: float = 0.8
    # The new class is in the new rows: among those of the fit it is rarer by this.
    rarer: float = 3.0
    # A drift of the mix or of looks is said if chance would say it once in so many
    # updates, whatever the number of classes, columns and domains.
    doubt: float = 0.05
    # And if it is worth a word: standard deviations of the column.
    least_offset: float = 0.1
    # Two classes of two fits are one if they share so much: rows of both over the
    # geometric mean of their sizes.
    same_class: float = 0.5


NUMBERS = UpdateNumbers()
