"""Numbers of a diagnosis: where one becomes a finding, and how hard it looks.

Thresholds were set on generated problems: ``benchmarks/tabular/diagnose.py`` repeats
the calibration and ``results/tabular/diagnose.json`` holds its record. Those of
instruments, of two witnesses and of one class more were set on the development problems
of ``benchmarks/tabular/verdicts.py``.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Thresholds:
    """Where a number becomes a finding."""

    # gain over that of shuffled domains, in standard deviations of the latter
    signal: float = 3.0
    # counts of cells show that domains differ from so many deviations above the largest
    # of shuffled ones on; fewer rows a column may be why no guesser confirms it
    table_signal: float = 3.0
    rows_per_column: float = 40.0
    # departures from the model count from this many standard deviations of the null on
    sure: float = 4.0
    # share of the domain signal that the classes leave unexplained
    unexplained_caution: float = 0.03
    unexplained_fail: float = 0.25
    # a class more that leaves over this share of that does not help
    one_more: float = 0.7
    # share of a free guesser's gain that is kept; the difference in standard errors
    kept_caution: float = 0.9
    kept_fail: float = 0.75
    kept_sure: float = 3.0
    # shift of a class between domains, in its standard deviations
    shift_caution: float = 0.08
    shift_fail: float = 0.25
    class_shift_caution: float = 0.15
    # a domain stands apart from this many standard errors on; shares of such domains.
    # Of sound tables, where classes may live in one domain only, the largest was .71
    apart_sure: float = 3.0
    # with fewer domains, classes of their own may set most of them apart (penguins: 2
    # of 3 islands); a unit must then be sure
    apart_domains: int = 5
    apart_caution: float = 0.6
    apart_fail: float = 0.75
    # another unit of one column: evidence in nats, about 1 of 20 sound tables reaches
    # as much; of many rows, a density that is a little off gains some in each
    unit_nats: float = 15.0
    unit_nats_a_row: float = 0.1
    # spreads of the column that it moves the rows by: less is the shape of a narrow
    # piece, which gains much in nats though nothing else is measured
    unit_least: float = 0.1
    # from so much evidence and so many spreads on, rows end in other classes; not where
    # a class of the domain's own gains more by so many standard errors
    unit_nats_fail: float = 60.0
    unit_large: float = 1.0
    unit_doubt: float = 2.0
    # standard errors beyond such a class, from which on there is no doubt
    unit_sure: float = 4.0
    condition: float = 50.0
    # classes that the table of cells supports, as a share of those fitted: cells are
    # coarse, so a few classes too few are no sign
    rank: float = 0.67
    # share of a class's mass at q(y|x) > .95 (of the median class)
    anchor: float = 0.02
    # share of a class's rows in one domain
    single_domain: float = 0.95
    # share of a domain's rows from which on a class that no other has is the domain
    fills: float = 0.8
    # share of a domain's rows in one class that makes the domain pure; share of pure
    # domains from which on classes are groups of domains
    pure: float = 0.95
    pure_domains: float = 0.75
    # share of rows to which looks and shift give the same class
    witnesses_caution: float = 0.85
    witnesses_fail: float = 0.7
    # share of all rows (domains weighted) in the rarest class
    empty: float = 0.001
    # another start is as good within this many nats, better from this many on; or, if
    # that is more, within (from) this gain in log-likelihood of all rows together
    near: float = 0.003
    better: float = 0.005
    near_total: float = 5.0
    better_total: float = 20.0
    # share of rows on which starts, and the estimator and its refit, should agree
    agreement: float = 0.95
    own_agreement: float = 0.9
    thin: float = 30.0
    leak: float = 0.95
    repeats: float = 0.01


@dataclass(frozen=True)
class Effort:
    """How many rows, cells and iterations a diagnosis spends; set for seconds."""

    # Folds of every held-out gain.
    n_folds: int = 3
    # The table itself is looked at in this many rows: neighbours must be near ones.
    table_rows: int = 20_000
    # Cells that do not look at domains: enough to show shapes, each with some rows.
    cells_per_class: int = 4
    least_cells: int = 12
    rows_per_cell: int = 4
    # Words with a cell of their own; those rarer than the second number share one.
    most_words: int = 200
    least_words: int = 5
    # Centres of RBF features, for estimators without features of their own.
    n_centres: tuple[int, ...] = (60,)
    # "Alike" is judged on this many columns; more become principal directions.
    most_columns: int = 20
    # The refit's penalties: enough to end the climb, too little to bend it. The second
    # counts imaginary rows for each class and domain.
    ridge: float = 1e-4
    dirichlet: float = 0.1
    # Iterations with q(d|y) held still, then of both, from nothing but q(d|y); of a
    # simulation, which starts at its own truth; and after a restart's own climb.
    n_frozen: int = 30
    n_joint: int = 200
    n_warm: int = 40
    n_polish: int = 100
    # Of the logit that guesses domains: ridges from strong to weak, and iterations.
    ridges: tuple[float, ...] = (0.1, 0.01, 1e-3, 1e-4)
    n_logit: int = 40
    # With more domains, a density, weights or leaves for each cost more than they tell.
    most_normal_domains: int = 300
    most_logit_domains: int = 60
    most_tree_domains: int = 200
    n_trees: int = 50
    least_leaf: int = 10
    # A domain's spread is pulled to that of all by as many rows as this, per column.
    pooled_rows: float = 2.0
    # Entries of rows by domains that exist at once.
    most_entries: int = 2_000_000
    # Cells that should hold less variance, or classes fewer rows, say nothing.
    least_variance: float = 0.5
    least_rows: float = 8.0
    # Rows that vote for a row's domain by one column; wider tables are asked about
    # the columns whose means differ most between domains.
    n_nearest: int = 5
    most_leak_columns: int = 200
    # A row belongs almost surely to a class; cells of class and domain that are told.
    surely: float = 0.95
    n_worst: int = 10
    # The interval by which the rows that a domain needs are measured, and its reach.
    level: float = 0.9
    five_points: float = 0.05


@dataclass(frozen=True)
class DriftEffort:
    """How domains are held against the others; set for about a second."""

    # Fewer domains than this do not say which of them is the odd one.
    least_domains: int = 3
    # Rows that are looked at in all, and of a domain before anything is said of it.
    most_rows: int = 4_000
    least_rows: int = 20
    # Wider tables are left alone: full covariances need rows, and with diagonal ones
    # instruments were seen in sound tables of 30 further columns.
    most_columns: int = 12
    # A column with fewer values is a kind, not a measurement; one with more gaps in a
    # domain says nothing there.
    least_values: int = 8
    most_gaps: float = 0.2
    # Spread of a column whose quartiles coincide, in standard deviations.
    least_spread: float = 0.2
    # Numbers of pieces that are tried, upwards, and rows for each number of a mean.
    pieces: tuple[int, ...] = (2, 3, 4, 6, 8, 12, 16)
    rows_per_number: int = 5
    # Domains are left out one by one, or of many in so many groups.
    groups: int = 8
    # Least variance of a piece, in spreads: narrower ones are rounding.
    least_variance: float = 0.01
    # The piece for what fits nowhere: its reach in spreads, and its share.
    broad: float = 5.0
    nowhere: float = 0.01
    # Rows of a prior: for the others' mix, and against a move.
    prior_rows: float = 2.0
    # A piece of a domain's own starts at this share of its rows, explained least.
    least_explained: float = 0.25
    # Folds within a domain, and iterations: of a fit, a mix, a new piece, a move.
    n_folds: int = 2
    n_fit: int = 60
    n_mix: int = 20
    n_new: int = 15
    n_move: int = 15
    # Instruments that are kept, and from how many standard errors of their gain on.
    n_told: int = 10
    told_from: float = 2.0


THRESHOLDS = Thresholds()
EFFORT = Effort()
DRIFT = DriftEffort()
