"""What a fit leaves open, and the ladder of scales and expansions to choose from."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.likelihood._features import LINEAR, SCALES, FeatureMap
from shoal.likelihood._held_out import HeldOut, held_out
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties
from shoal.likelihood._rows import N_CENTRES, TrainingRows, feature_map, list_expansions
from shoal.likelihood._starts import Start, best_starts, find_starts
from shoal.validation._sampling import fold_of_rows

# ---- What a fit leaves open, and how hard to look for it -----------------------------

# The spread of the logits grows with that of the features, so the ridge that holds it
# does too: so much per column of unit variance. A search goes up and down from there
# by RIDGE_FACTOR.
RIDGE_PER_VARIANCE = 1e-5
RIDGE_FACTOR = 3.0
# A little confidence breaks near-ties of the likelihood in favour of classes that can
# be told apart: one class cut in two costs nothing else.
FIRST_CONFIDENCE = 0.03
# Part of a row in every class and domain: no prevalence is ever quite zero.
FIRST_DIRICHLET = 0.1
# From this many classes on, a single start is too much of a lottery.
MANY_CLASSES = 15
# Clusters take so many times the rows of a search: they cost little, and anchors
# sharpen with the rows behind them.
TABLE_TIMES_ROWS = 3


@dataclass(frozen=True)
class Options:
    """What is fixed ("auto" is chosen) and how hard to look."""

    search: bool = True
    scale: str = "auto"
    expansion: str = "auto"
    ridge: float | None = None  # None: chosen
    confidence: float | None = None  # None: chosen
    dirichlet: float | None = None  # imaginary rows a class and domain; None: chosen
    volume: float = 0.0
    moves: bool = True
    solver: str = "lbfgs"
    n_random: int = 1
    n_starts: int = 3
    n_folds: int = 3
    max_search_rows: int = 20_000
    max_iter: int = 400
    tol: float = 1e-7
    n_jobs: int | None = None

    @property
    def search_rows(self) -> int:
        """Rows for the search; a single climb can afford as many as the tables."""
        return self.max_search_rows if self.search else self.table_rows

    @property
    def table_rows(self) -> int:
        """Rows in which anchors are looked for."""
        return self.max_search_rows * TABLE_TIMES_ROWS

    def first_penalties(self, problem: MixtureProblem, n_classes: int) -> Penalties:
        """Penalties to start with: what is given, and the rule for the rest."""
        ridge = RIDGE_PER_VARIANCE * problem.total_variance
        cells = n_classes * problem.n_domains
        rows = FIRST_DIRICHLET if self.dirichlet is None else self.dirichlet
        return Penalties(
            ridge if self.ridge is None else self.ridge,
            FIRST_CONFIDENCE if self.confidence is None else self.confidence,
            dirichlet=rows * cells / problem.n_rows,
            volume=self.volume,
        )


# ---- Which features the softmax sees: a ladder of scales and expansions --------------

Array = np.ndarray[Any, Any]
Record = dict[str, tuple[float, float]]  # setting -> held-out mean, standard error

# From this many columns on, a small sample tells which scale they want.
MANY_COLUMNS = 30
PROBE_ROWS = 4_000
# Columns whose spreads differ by less than this need no choice of scale.
ALIKE = 1.5
# Standard errors by which a further rung must win: two climbs differ by chance as well.
DOUBT = 2.0
# Nats that are not worth further columns, however small the standard error.
LEAST_GAIN = 1e-3


@dataclass(frozen=True)
class Rung:
    """Features, the climbs made with them (best first) and their held-out score."""

    features: FeatureMap
    problem: MixtureProblem
    starts: list[Start]
    ranked: list[tuple[Start, Fit]]
    score: HeldOut | None


def choose_rung(
    rows: TrainingRows,
    sample: TrainingRows,
    n_classes: int,
    options: Options,
    rng: np.random.Generator,
    record: Record,
    n_rows: int,
) -> Rung:
    """Scale first, then expansion: the rung with the best held-out likelihood.

    Anchors are looked for in ``rows``, everything else is done with the ``sample``;
    both are of a table of ``n_rows``.
    """
    ladder = _Ladder(rows, sample, n_classes, options, rng, record)
    scales = list_scales(sample, options)
    expansions = list_expansions(sample, options.expansion, n_rows=n_rows)
    if options.expansion == "auto" and not options.search:
        expansions = [name for name in expansions if name in LINEAR]
    if len(scales) > 1 and sample.X.shape[1] >= MANY_COLUMNS:
        simplest = ["components" if "components" in expansions else "linear"]
        scales = [_probe_scale(sample, n_classes, options, simplest, rng)]
    return ladder.choose(scales, expansions)


class _Ladder:
    """Rungs climbed on the same sample, with the same folds and seed."""

    def __init__(
        self,
        rows: TrainingRows,
        sample: TrainingRows,
        n_classes: int,
        options: Options,
        rng: np.random.Generator,
        record: Record,
    ) -> None:
        self.rows = rows
        self.sample = sample
        self.n_classes = n_classes
        self.options = options
        self.record = record
        self.folds = fold_of_rows(sample.codes, options.n_folds, rng)
        self.seed = int(rng.integers(2**31))

    def choose(self, scales: list[str], expansions: list[str]) -> Rung:
        """Best of the scales, simplest expansion, then best of its expansions."""
        alone = len(scales) == len(expansions) == 1
        best = self._climb(scales[0], expansions[0], judged=not alone)
        for scale in scales[1:]:
            best = _better(best, self._climb(scale, expansions[0]))
        # clusters of the simplest features serve the others
        known = [start for start in best.starts if start.name.startswith("features")]
        for expansion in expansions[1:]:
            other = self._climb(best.features.scale, expansion, known)
            best = _better(best, other)
        return best

    def _climb(
        self,
        scale: str,
        expansion: str,
        known: list[Start] | None = None,
        judged: bool = True,
    ) -> Rung:
        features = feature_map(self.sample, scale, expansion, N_CENTRES, self.seed)
        problem = self.sample.problem(features)
        rng = np.random.default_rng(self.seed)
        starts = known or self._find_starts(features, problem, rng)
        ranked = _optimize_starts(problem, starts, self.options, rng)
        score = None
        if judged:
            score = _judge(problem, ranked[0][1], self.options, self.folds)
            self.record[f"{scale} {expansion}"] = score.mean, score.standard_error()
        return Rung(features, problem, starts, ranked, score)

    def _find_starts(
        self, features: FeatureMap, problem: MixtureProblem, rng: np.random.Generator
    ) -> list[Start]:
        """Anchors among clusters of all rows; the discriminator sees the sample."""
        whole = problem if self.rows is self.sample else self.rows.problem(features)
        if not self.options.search:
            return find_starts(whole, self.n_classes, kinds=("features",), rng=rng)
        starts = find_starts(
            whole,
            self.n_classes,
            kinds=("features",) * (2 if self.n_classes >= MANY_CLASSES else 1),
            rng=rng,
        )
        return starts + find_starts(
            problem,
            self.n_classes,
            kinds=("discriminator",),
            n_random=self.options.n_random,
            rng=rng,
        )


def _better(simple: Rung, other: Rung) -> Rung:
    """The other rung only if its likelihood is better beyond doubt."""
    assert simple.score is not None
    assert other.score is not None
    return other if beats(other.score, simple.score) else simple


def beats(score: HeldOut, simple: HeldOut) -> bool:
    """Whether a likelihood is better than that of simpler features, beyond doubt."""
    doubt = DOUBT * score.standard_error(simple)
    return score.mean - simple.mean > doubt + LEAST_GAIN


def _optimize_starts(
    problem: MixtureProblem,
    starts: list[Start],
    options: Options,
    rng: np.random.Generator,
) -> list[tuple[Start, Fit]]:
    return best_starts(
        problem,
        starts,
        options.first_penalties(problem, len(starts[0].domain_given_class)),
        n_keep=options.n_starts if options.search else 1,
        rng=rng,
        n_jobs=options.n_jobs,
    )


def _judge(
    problem: MixtureProblem, fit: Fit, options: Options, folds: Array
) -> HeldOut:
    """Held-out likelihood of a rung at its first ridge or a much larger one."""
    T = fit.domain_given_class
    first = options.first_penalties(problem, len(T))
    grid = [first]
    if options.ridge is None:
        grid.append(replace(first, ridge=first.ridge * RIDGE_FACTOR**2))
    scores = held_out(problem, T, grid, folds, n_jobs=options.n_jobs)
    return max(scores, key=lambda score: score.mean)


# ---- the rungs -------------------------------------------------------------------


def list_scales(sample: TrainingRows, options: Options) -> list[str]:
    """Scales to compare, the usual one first."""
    if options.scale != "auto":
        return [options.scale]
    n_columns = sample.X.shape[1]
    if not options.search and n_columns < MANY_COLUMNS:
        return ["column"]
    spread = FeatureMap("column").fit(sample.X, sample.row_weight).spread_
    if spread.max() < ALIKE * spread.min():
        return ["column"]
    return ["column", "global"]


def _probe_scale(
    sample: TrainingRows,
    n_classes: int,
    options: Options,
    simplest: list[str],
    rng: np.random.Generator,
) -> str:
    """Scale with the better held-out likelihood on a small sample."""
    small = sample.sample(PROBE_ROWS, rng)
    quick = replace(options, search=True, n_random=0, n_starts=1)
    ladder = _Ladder(small, small, n_classes, quick, rng, {})
    return ladder.choose(list(SCALES), simplest).features.scale
