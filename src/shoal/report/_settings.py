"""How much a report shows, and from where on it says something: each with a reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportSettings:
    """Amounts that fit a page which people read, and limits of what is said.

    Attributes
    ----------
    domains_drawn : int
        Pictures show the domains that differ most; the tables have all of them.
    table_rows : int
        Domains that a table has where all of them would make the page too large.
    homes, homes_of_exemplars : int
        Domains that the card of a class lists, and that it has example rows of.
    exemplars, borderline, candidates : int
        Example rows of each class and domain, rows that another class nearly won, and
        the surest rows from among which the examples nearest to the centre are taken.
    least_probable : float
        Less probable rows are no examples of a class.
    sure, unsure : float
        Probabilities from which on, and below which, a row counts as such.
    probability_bins : int
        Bars of the histogram of how sure the rows of a class are.
    least_columns_to_mark, marks : int
        Fewer columns are drawn one by one, and in no heat map; columns of it that each
        class brings.
    columns, words : int
        Columns of an example row that are shown, the most telling first; words of a
        bag of them.
    reasons : int
        Parts of the evidence for a borderline row.
    cell_letters, snippet_letters, parameter_letters : int
        Longer cells, texts and settings are cut.
    text_rows : int
        Rows looked at to find the column that holds the text.
    pixels, quality : int
        Side of a thumbnail, and quality of its WebP.
    map_rows, map_steps : int
        Points of a map, and steps of the grid that they are drawn on: no eye sees more.
    looks, look_domains, look_bins, look_rows : int
        Features whose spread is drawn, domains it can be looked at in, steps of a
        curve, and rows that these are counted over.
    differences : int
        Pairs of domains that are listed.
    least_difference : float
        Smaller differences of shares are no news, however sure.
    labels : int
        Columns of the confusion table.
    rows_to_compare : int
        A class with fewer rows in a domain cannot be said to look like anything there.
    half_width : float
        The page says how many rows would bring every share to within this.
    """

    domains_drawn: int = 50
    table_rows: int = 1_000
    homes: int = 12
    homes_of_exemplars: int = 6
    exemplars: int = 4
    borderline: int = 6
    candidates: int = 2_000
    least_probable: float = 0.5
    sure: float = 0.95
    unsure: float = 0.8
    probability_bins: int = 10
    least_columns_to_mark: int = 30
    marks: int = 5
    columns: int = 8
    reasons: int = 4
    words: int = 8
    cell_letters: int = 60
    snippet_letters: int = 240
    parameter_letters: int = 80
    text_rows: int = 50
    pixels: int = 96
    quality: int = 80
    map_rows: int = 5_000
    map_steps: int = 1_000
    looks: int = 8
    look_domains: int = 6
    look_bins: int = 24
    look_rows: int = 20_000
    differences: int = 20
    least_difference: float = 0.01
    labels: int = 30
    rows_to_compare: int = 5
    half_width: float = 0.05


SETTINGS = ReportSettings()
