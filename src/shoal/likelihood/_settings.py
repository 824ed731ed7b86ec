"""Numbers that decide how the likelihood is computed and optimized, with reasons."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LikelihoodSettings:
    """Sizes were set for speed (``benchmarks/mixture.py``), the rest for robustness."""

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
    # The discriminator whose clusters give starts: folds, ridge and iterations.
    logit_folds: int = 3
    logit_ridge: float = 1e-4
    logit_iterations: int = 60

    # ---- moves ----

    most_moves: int = 6
    # Drop of the objective below which a move is not worth another round.
    least_drop: float = 2e-4
    # Pairs to merge, and clusters to re-seed from, that a round tries.
    pairs_tried: int = 2
    seeds_tried: int = 2


LIKELIHOOD = LikelihoodSettings()
