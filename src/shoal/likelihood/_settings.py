"""Numbers that decide how the mixture is computed, optimized and searched for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MixtureSettings:
    """Each with its reason. Sizes were set for speed (``benchmarks/mixture.py``).

    What a search compares, and how far it goes, was set on the development problems
    (the tabular panel, ``results/tabular/panel.md``); within a fit, held-out likelihood
    alone decides.
    """

    # ---- evaluation ----

    # Rows worked at once: what they need stays in a core's own cache.
    block_rows: int = 2_048
    # Domains with fewer rows share a block; q(d|y) is then gathered row by row.
    small_domain: int = 256
    # Columns whose variance is computed at once, so that squares stay small.
    variance_columns: int = 16
    # q(d|y) is kept inside the open simplex: a zero could never come back.
    floor: float = 1e-10
    # L-BFGS iterations on the weights within one round of EM.
    em_inner: int = 5

    # ---- features ----

    # Rows expanded at once.
    feature_rows: int = 8_192
    # A value this many robust spreads from the median is an accident of recording: it
    # is pulled in, so that one wild cell cannot flatten its column.
    wild: float = 30.0
    # Numbers of RBF centres to try; each is one more column to be learned.
    n_centres: tuple[int, ...] = (150, 100, 60)

    # ---- rows ----

    # A row counts at most this many times as much as the mean row. Were three rows of
    # a tiny domain a tenth of the likelihood, one class would be spent on them alone.
    most_weight: float = 3.0

    # ---- starts ----

    # Entries of a start below this share could hardly recover under L-BFGS in log T.
    start_floor: float = 0.01
    # Rows that centres of clusters come from, and that all starts are ranked on.
    clustering_rows: int = 10_000
    screening_rows: int = 8_000
    # Clusters with less than this share of the mean cluster's mass are mostly noise.
    solid: float = 0.3
    # EM on a table of clusters by domains, first with q(d|y) held still.
    table_iterations: int = 200
    table_frozen: int = 20
    # Clusters a class that anchors are looked for in, coarse and fine, and their least
    # numbers: of many classes, 3 a class were better than 1 or 8 a class.
    clusters_per_class: tuple[int, int] = (3, 6)
    least_clusters: tuple[int, int] = (20, 40)
    # Finer clusters hold so many rows of a domain on average, at least; the coarse ones
    # of many classes so many rows in all: EM on the table averages over the cells.
    rows_per_cell: int = 2
    rows_per_cluster: int = 8
    # Classes by looks: shapes, smallest variance and iterations of Gaussian mixtures.
    # Both shapes won somewhere; full ones are slow where wide.
    look_covariances: tuple[str, ...] = ("diag", "tied")
    look_floor: float = 1e-3
    look_iterations: int = 50

    # ---- penalties: where a search begins, and how far it goes ----

    # The spread of the logits grows with that of the features, so the ridge that
    # holds it does too: so much per column of unit variance.
    ridge_per_variance: float = 1e-5
    # Small tables need more, or one overconfident row decides: so much over the number
    # of rows, at least.
    ridge_times_rows: float = 0.1
    # A search goes up and down from there by this factor while that gains, so many
    # steps at most. More ridge must gain a standard error: it holds q(y|x) off the
    # corners, and classes melt into each other before the likelihood shows it.
    weight_factor: float = 3.0
    most_steps: int = 5
    # A little confidence breaks near-ties of the likelihood in favour of classes that
    # can be told apart: one class cut in two costs nothing else.
    first_confidence: float = 0.03
    confidences: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3)
    # Pseudo-counts in every class and domain: one row, in all at most this share of the
    # rows. Under fewer, climbs end in classes that fit a few rows of small domains;
    # more, and rare classes are smoothed away.
    first_dirichlet: float = 1.0
    most_first_dirichlet: float = 0.05

    # ---- features ----

    # From this many columns on, even one optimization asks which scale they want; a
    # small sample tells.
    many_columns: int = 30
    probe_rows: int = 4_000
    # Columns whose spreads differ by less than this factor need no choice of scale.
    alike: float = 1.5
    # Standard errors by which richer features must win: two optimizations differ by
    # chance as well. And nats that are not worth more columns, however small the error.
    doubt: float = 2.0
    least_gain: float = 1e-3

    # ---- the race of starts ----

    # One optimization can afford so many times the rows of a search.
    quick_times_rows: int = 3
    # Starts from anchors that go into the race, best objectives first; all those from
    # looks do. How many stay in it once penalties are chosen, and how many anchors are
    # asked again, beside the winner, with richer features.
    anchors_raced: int = 3
    second_race: int = 4
    anchors_again: int = 2
    # Iterations of the sample from the winner, and from what each fold found.
    solve_joint: int = 60

    # ---- the number of classes: a curve at a fraction of the cost of a fit ----

    curve_rows: int = 6_000
    rank_rows: int = 20_000
    curve_feature_rows: int = 4_000
    curve_feature_folds: int = 3
    curve_clusters_per_class: int = 6
    curve_centres: tuple[int, ...] = (60,)
    # Iterations with q(d|y) held still, then of both; of both in a fold; and in a
    # fold that only compares features.
    curve_frozen: int = 20
    curve_joint: int = 30
    curve_held_out: int = 60
    curve_features: int = 20
    # Permutations of the domains that clusters are compared with, to see whether there
    # is anything to learn from.
    signal_null: int = 100

    # ---- after the search ----

    # A final optimization that gains more than this over its last iterations goes on.
    unfinished: float = 1e-3
    last_iterations: int = 20
    # A class rarer than this everywhere holds no rows to speak of.
    collapsed: float = 1e-3
    # A block's numbers fit in a core's own cache; an expanded design matrix of all
    # rows never exists.
    predict_rows: int = 4_096
    # Familiarity of new rows needs no more rows than these.
    novelty_rows: int = 5_000

    # ---- resamples and refits of a fitted model ----

    # A warm start is near its optimum: few iterations, and a tolerance as in fit.
    refit_joint: int = 60
    refit_frozen: int = 20
    refit_tol: float = 1e-7
    # Resamples that are asked for a solution of their own, and the share of rows in
    # the same class below which it is another one.
    n_probes: int = 8
    same: float = 0.95
    # Iterations out of fold, which start with weights of zero.
    out_of_fold_joint: int = 150


SETTINGS = MixtureSettings()
