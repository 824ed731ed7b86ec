"""Numbers that decide something where rows are read in parts, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ScaleSettings:
    """Sizes of what is held in memory, and when passes over all rows end.

    Attributes
    ----------
    batch_rows : int
        Rows in memory at a time, of each worker.
    part_rows : int
        Rows of a part: so few that little is lost when a worker dies, so many that a
        thousand million rows are a few thousand parts.
    few_rows : int
        Below, one process is done before others have begun.
    sample, adapt_sample : int
        Rows to learn or to diagnose from; rows that the mix of a new domain starts
        from, which passes over all rows then correct.
    most_domains : int
        A column with more values is no domain, and counting them would fill the memory.
    spare : float
        Of a domain, so many standard deviations more rows are looked at than are
        needed.
    passes, adapt_passes : int
        Most passes over all rows.
    still : float
        Passes end when one moves no share by more than this.
    worth_a_warning : float
        A last pass that moved a share by less is far below what sampling does to it.
    mixed : float
        Share of the equal mix that the first shares are mixed with: off the boundary, a
        class that the sample missed somewhere can be found there.
    shortest, longest : float
        Factors by which a share may change in one pass: what vanishes may do so fast,
        as it can come back; what grows is held back, as the expansion is not true so
        far away.
    """

    batch_rows: int = 65_536
    part_rows: int = 500_000
    few_rows: int = 2_000_000
    sample: int = 200_000
    adapt_sample: int = 100_000
    most_domains: int = 20_000
    spare: float = 6.0
    passes: int = 3
    adapt_passes: int = 5
    still: float = 1e-5
    worth_a_warning: float = 2e-3
    mixed: float = 0.01
    shortest: float = 0.02
    longest: float = 5.0


SETTINGS = ScaleSettings()
