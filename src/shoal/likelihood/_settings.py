"""Numbers that decide how the mixture is computed, optimized and searched for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MixtureSettings:
    """Each with its reason. Sizes were set for speed (``benchmarks/mixture.py``).

    What a search compares, and how far it goes, was set on the development problems
    (the tabular panel, ``results/tabular/panel.md``); within a fit, held-out likelihood
    alone decides.
    """

    # ---- shift or looks ----

    # Rows and folds on which the two are judged.
    route_rows: int = 10_000
    route_folds: int = 3
    # Standard errors by which shift must beat guessing to have a say.
    route_doubt: float = 2.0
    # Errors by which one must tell domains better for the other to be overruled: what
    # it says otherwise is then no doubt. Set where a column without shift (the sex of
    # penguins, a coin, noise) parts rows by looks: 3.9 to 5.1 there, below 3.1 in the
    # development problems where the one that speaks was wrong.
    route_overruled: float = 3.5
    # Mean rows of a domain below which shift is heard alone: a mix and a drift for
    # each of thousands of small domains cost five times the fit and know little.
    route_rows_per_domain: int = 8

    # Classes of the density that says what is expected in gaps, while their number is
    # open: to fill a gap it needs a shape, not the classes.
    filling_classes: int = 5

    # ---- evaluation ----

    # Rows worked at once: what they need stays in a core's own cache.
    block_rows: int = 2_048
    # Domains with fewer rows share a block; q(d|y) is then gathered row by row. Six
    # blocks of 300 rows take twice the time of one.
    small_domain: int = 1_024
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
    # Iterations that teach a softmax to tell the parts of a partition; with q(d|y) held
    # still after that, where otherwise a climb begins with weights of zero.
    partition_iterations: int = 15
    known_frozen: int = 8

    # ---- what is known of classes ----

    # A softmax of known rows alone: scikit-learn's default ridge, one over the rows.
    known_ridge: float = 1.0
    known_iterations: int = 100
    # One known row speaks against a class by this at most, when classes get their
    # names: it may be at odds with all others.
    least_known: float = 1e-2
    # Logarithm of the factor by which known shares change q(d|y) at most.
    most_tilt: float = 30.0
    # Newton's steps towards them, and how close is close enough.
    newton_steps: int = 20
    newton_close: float = 1e-10
    # Folds of the known rows that are left out to see how far the rest agrees, and
    # paired standard errors by which shift or looks must tell them better.
    known_folds: int = 5
    known_doubt: float = 2.0

    # ---- penalties: where a search begins, and how far it goes ----

    # The spread of the logits grows with that of the features, so the ridge that
    # holds it does too: so much per column of unit variance.
    ridge_per_variance: float = 1e-5
    # A single optimization also judges features under so many times that ridge.
    much_ridge: float = 9.0
    # A little confidence breaks near-ties of the likelihood in favour of classes that
    # can be told apart: one class cut in two costs nothing else. A search goes up from
    # there, never without: held-out rows of a small table cannot tell none from little
    # (seen on a development table, phoneme with seed 0, whose labels were known then).
    first_confidence: float = 0.03
    confidences: tuple[float, ...] = (0.03, 0.1, 0.3)
    # Pseudo-counts in every class and domain, part of a row: no prevalence is ever
    # quite zero.
    first_dirichlet: float = 0.1

    # ---- features ----

    # From this many columns on, a small sample tells which scale they want.
    many_columns: int = 30
    probe_rows: int = 4_000
    # Columns whose spreads differ by less than this factor need no choice of scale.
    alike: float = 1.5
    # Standard errors by which richer features must win: two optimizations differ by
    # chance as well. And nats that are not worth more columns, however small the error.
    doubt: float = 2.0
    least_gain: float = 1e-3

    # ---- a search: the race of starts (results/tabular/search.json) ----

    # One optimization can afford so many times the rows of a search.
    quick_times_rows: int = 3
    # Starts are compared under penalties that suit small tables: so much ridge over the
    # number of rows, and so many rows in every class and domain, in all at most this
    # share of the rows. Under the weak ones of a single optimization, climbs from the
    # same start end in other optima in every fold, and neither objective nor held-out
    # rows tell which is good (pendigits: rank correlation of the objective with unseen
    # rows .5, and .6 to .8 with five times the ridge).
    race_ridge_times_rows: float = 2.0
    race_dirichlet: float = 1.0
    race_most_dirichlet: float = 0.1
    # Clusters for anchors, coarse and fine, if each has so many rows of a domain; three
    # clusters a class of so many rows in any case: 50 classes of Tiny-ImageNet were
    # found better in 150 clusters than in 62 or 400.
    race_clusters: tuple[int, int] = (4, 8)
    race_rows_per_cell: int = 2
    race_least_clusters: int = 3
    race_rows_per_cluster: int = 8
    # The same in the subspace that a first climb has found.
    clusters_again: int = 4
    # K-means at k begins with so many clusters a class, merged.
    fine_clusters: int = 3
    # Of a mixture of Gaussians that is only a start.
    look_iterations: int = 30
    look_tol: float = 1e-4
    # Rows that are compared on, at most, or so many a domain: more cost time and change
    # no choice; the last fit has all rows.
    race_rows: int = 8_000
    race_rows_per_domain: int = 100
    # Iterations of the first, short climbs; how many starts go on, with the features of
    # the single optimization and with others.
    screen_frozen: int = 20
    screen_joint: int = 30
    n_raced: int = 6
    n_screened_again: int = 3
    n_raced_again: int = 2
    race_joint: int = 40
    # Ridge and pseudo-counts go up and down by this factor while held-out rows gain.
    weight_factor: float = 3.0
    most_steps: int = 5
    step_joint: int = 30
    # Solutions of single folds that are climbed on with all rows of the race: the
    # objective under the penalties chosen tells the best of these.
    n_finalists: int = 6
    final_joint: int = 60
    # A class with less than this part of the mean class's rows is as good as empty.
    nearly_empty: float = 0.1
    # Rounds in which empty classes take a half of others.
    most_splits: int = 6
    # Rows that a class must have to be cut in two.
    least_split: int = 10

    # ---- the number of classes: a curve at a fraction of the cost of a fit ----

    curve_rows: int = 6_000
    rank_rows: int = 20_000
    curve_feature_rows: int = 4_000
    curve_feature_folds: int = 3
    curve_clusters_per_class: int = 6
    curve_centres: tuple[int, ...] = (60,)
    # Iterations with q(d|y) held still, then of both, and as many again for so many of
    # the best; and in a fold that only compares features.
    curve_frozen: int = 20
    curve_joint: int = 30
    curve_raced: int = 2
    curve_features: int = 20
    # Starts of each density that says what looks want.
    curve_looks: int = 2
    # Part of what shift tells that they must tell to be heard: drawn tables .6 and
    # more, but wine; four classes in two clouds each .4 (set on development tables).
    curve_part: float = 0.5
    # More classes are tried until so many in a row gain nothing: the curve may pause.
    curve_patience: int = 3
    # Rows that are held out in turn to see whether there is anything to learn from,
    # and permutations of the domains that clusters are compared with.
    signal_rows: int = 10_000
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
    # Of more rows a sample is resampled, where nothing is in doubt: 200 refits of
    # 200,000 rows took ten times as long as the fit.
    refit_rows: int = 12_000
    # Of fewer rows than these a domain gives all it has.
    refit_least: int = 50
    refit_frozen: int = 20
    refit_tol: float = 1e-7
    # Resamples that are asked for a solution of their own, and the share of rows in
    # the same class below which it is another one.
    n_probes: int = 8
    same: float = 0.95
    # Iterations out of fold, which start with weights of zero.
    out_of_fold_joint: int = 150


SETTINGS = MixtureSettings()
