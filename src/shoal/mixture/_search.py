"""From rows to one solution: features, starts, moves, penalties and a last polish.

Everything is chosen by the likelihood of the domains on held-out rows; labels do not
exist here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.likelihood._features import LINEAR, SCALES, FeatureMap
from shoal.likelihood._problem import (
    Fit,
    MixtureProblem,
    Penalties,
    optimize,
    optimize_by_em,
)
from shoal.likelihood._rows import TrainingRows, feature_map, list_expansions
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import (
    Start,
    best_starts,
    cluster_rows,
    find_starts,
    held_out,
    improve_by_moves,
)
from shoal.probability import HeldOut, normalize_rows
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SearchOptions:
    """What is fixed ("auto" is chosen) and how hard to look."""

    search: bool = True
    scale: str = "auto"
    expansion: str = "auto"
    ridge: float | None = None  # None: chosen
    confidence: float | None = None  # None: chosen
    dirichlet: float | None = None  # pseudo-counts a class and domain; None: chosen
    volume: float = 0.0
    moves: bool = True
    solver: str = "lbfgs"
    n_random: int = 1
    n_starts: int = 3
    n_folds: int = 3
    n_jobs: int | None = None
    max_search_rows: int = 20_000
    max_iter: int = 400
    tol: float = 1e-7

    @property
    def search_rows(self) -> int:
        """Rows for the search; one optimization can afford as many as the tables."""
        return self.max_search_rows if self.search else self.table_rows

    @property
    def table_rows(self) -> int:
        """Rows in which anchors are looked for."""
        return self.max_search_rows * SETTINGS.table_times_rows

    def first_penalties(self, problem: MixtureProblem, n_classes: int) -> Penalties:
        """Penalties to start with: what is given, and the rule for the rest."""
        ridge = SETTINGS.ridge_per_variance * problem.total_variance
        cells = n_classes * problem.n_domains
        rows = SETTINGS.first_dirichlet if self.dirichlet is None else self.dirichlet
        return Penalties(
            ridge if self.ridge is None else self.ridge,
            SETTINGS.first_confidence if self.confidence is None else self.confidence,
            dirichlet=rows * cells / problem.n_rows,
            volume=self.volume,
        )


@dataclass(frozen=True)
class Rung:
    """Features, the fits made with them (best first) and their held-out score."""

    features: FeatureMap
    problem: MixtureProblem
    starts: list[Start]
    ranked: list[tuple[Start, Fit]]
    score: HeldOut | None


class Search:
    """One search, step by step: on a sample of the rows, then polished on all.

    Attributes
    ----------
    sample : TrainingRows
        What features, starts and penalties are compared on.
    tables : TrainingRows
        What anchors are looked for in.
    record : dict of str to (float, float)
        Held-out mean and standard error of every setting compared.
    """

    def __init__(
        self,
        rows: TrainingRows,
        n_classes: int,
        options: SearchOptions,
        rng: np.random.Generator,
    ) -> None:
        self.rows, self.n_classes = rows, n_classes
        self.options, self.rng = options, rng
        self.sample = self.tables = rows.sample(options.search_rows, rng)
        if options.search:
            self.tables = rows.sample(options.table_rows, rng)
        self.folds = fold_of_rows(self.sample.codes, options.n_folds, rng)
        self.seed = int(rng.integers(2**31))
        self.record: dict[str, tuple[float, float]] = {}

    # ---- features, each with its own starts -----------------------------------------

    def choose_features(self) -> Rung:
        """Scale first, then expansion: the rung with the best held-out likelihood."""
        options, sample = self.options, self.sample
        scales = list_scales(sample, options)
        # whether rows are few for the columns is asked of the whole table
        expansions = list_expansions(sample, options.expansion, n_rows=self.rows.n_rows)
        if options.expansion == "auto" and not options.search:
            expansions = [name for name in expansions if name in LINEAR]
        if len(scales) > 1 and sample.X.shape[1] >= SETTINGS.many_columns:
            wide = "components" in expansions
            scales = [self._probe_scale("components" if wide else "linear")]
        return self._best_rung(scales, expansions)

    def _best_rung(self, scales: list[str], expansions: list[str]) -> Rung:
        """Best of the scales, simplest expansion, then best of its expansions."""
        alone = len(scales) == len(expansions) == 1
        best = self._make_rung(scales[0], expansions[0], judged=not alone)
        for scale in scales[1:]:
            best = _better(best, self._make_rung(scale, expansions[0]))
        # clusters of the simplest features serve the others
        known = [start for start in best.starts if start.name.startswith("features")]
        for expansion in expansions[1:]:
            other = self._make_rung(best.features.scale, expansion, known)
            best = _better(best, other)
        return best

    def _make_rung(
        self,
        scale: str,
        expansion: str,
        known: list[Start] | None = None,
        judged: bool = True,
    ) -> Rung:
        """Features, starts for them, the best fits from these, and their score."""
        options, rng = self.options, np.random.default_rng(self.seed)
        features = feature_map(
            self.sample, scale, expansion, SETTINGS.n_centres, self.seed
        )
        problem = self.sample.problem(features)
        starts = known or self._find_starts(features, problem, rng)
        ranked = best_starts(
            problem,
            starts,
            options.first_penalties(problem, self.n_classes),
            n_keep=options.n_starts if options.search else 1,
            rng=rng,
            n_jobs=options.n_jobs,
        )
        score = None
        if judged:
            score = self._judge(problem, ranked[0][1])
            self.record[f"{scale} {expansion}"] = score.mean, score.standard_error()
        return Rung(features, problem, starts, ranked, score)

    def _find_starts(
        self, features: FeatureMap, problem: MixtureProblem, rng: np.random.Generator
    ) -> list[Start]:
        """Anchors among clusters of all rows; the discriminator sees the sample.

        It has one output a domain, and is left out where these are very many.
        """
        n_classes = self.n_classes
        same = self.tables is self.sample
        whole = problem if same else self.tables.problem(features)
        twice = self.options.search and n_classes >= SETTINGS.many_classes
        kinds = ("features",) * (2 if twice else 1)
        starts = find_starts(whole, n_classes, kinds=kinds, rng=rng)
        if self.options.search:
            many = problem.n_domains > SETTINGS.logit_domains
            starts += find_starts(
                problem,
                n_classes,
                kinds=() if many else ("discriminator",),
                n_random=self.options.n_random,
                rng=rng,
            )
        return starts

    def _judge(self, problem: MixtureProblem, fit: Fit) -> HeldOut:
        """Held-out likelihood of a rung at its first ridge or a much larger one."""
        first = self.options.first_penalties(problem, self.n_classes)
        grid = [first]
        if self.options.ridge is None:
            grid.append(replace(first, ridge=first.ridge * SETTINGS.ridge_factor**2))
        scores = self._held_out(problem, fit, grid, self.folds)
        return max(scores, key=lambda score: score.mean)

    def _probe_scale(self, simplest: str) -> str:
        """Scale with the better held-out likelihood on a small sample."""
        small = self.sample.sample(SETTINGS.probe_rows, self.rng)
        quick = replace(
            self.options,
            search=True,
            n_random=0,
            n_starts=1,
            max_search_rows=SETTINGS.probe_rows,
        )
        probe = Search(small, self.n_classes, quick, self.rng)
        return probe._best_rung(list(SCALES), [simplest]).features.scale

    # ---- moves ----------------------------------------------------------------------

    def move(self, rung: Rung) -> tuple[Fit, list[float]]:
        """Out of a poor optimum: the best fit after moves, and what each gained.

        From the best start, and from the second best when classes are many.
        """
        if not (self.options.moves and self.options.search):
            return rung.ranked[0][1], []
        problem = rung.problem
        n_clusters = SETTINGS.move_clusters_per_class * self.n_classes
        clusters = cluster_rows(
            problem.design, n_clusters, problem.row_weight, self.rng
        )
        penalties = self.options.first_penalties(problem, self.n_classes)
        n_tries = 2 if self.n_classes >= SETTINGS.many_classes else 1
        tries = [
            improve_by_moves(
                problem, fit, penalties, clusters, n_jobs=self.options.n_jobs
            )
            for _, fit in rung.ranked[:n_tries]
        ]
        return min(tries, key=lambda found: found[0].objective)

    # ---- penalties ------------------------------------------------------------------

    def choose_penalties(self, problem: MixtureProblem, fit: Fit) -> Penalties:
        """Pseudo-counts, then ridge, then confidence, each given those before.

        Ridge goes as low and confidence as high as one standard error allows: a ridge
        holds q(y|x) off the corners, and confidence picks the solution that has
        anchors.
        """
        options = self.options
        chosen = options.first_penalties(problem, self.n_classes)
        if not options.search:
            return chosen
        scores = self._scorer(problem, fit)
        if options.dirichlet is None:
            factors = SETTINGS.dirichlet_factors
            path = [replace(chosen, dirichlet=chosen.dirichlet * f) for f in factors]
            tried = follow_path(path, 0, scores)
            chosen = max(tried, key=lambda penalty: tried[penalty].mean)
        if options.ridge is None:
            steps, factor = SETTINGS.ridge_steps, SETTINGS.ridge_factor
            path = [replace(chosen, ridge=chosen.ridge * factor**s) for s in steps]
            tried = follow_path(path, steps.index(0), scores)
            chosen = min(within_one_error(tried), key=lambda penalty: penalty.ridge)
        if options.confidence is None:
            path = [replace(chosen, confidence=value) for value in SETTINGS.confidences]
            tried = dict(zip(path, scores(path), strict=True))
            chosen = within_one_error(tried)[-1]
        return chosen

    def _scorer(
        self, problem: MixtureProblem, fit: Fit
    ) -> Callable[[list[Penalties]], list[HeldOut]]:
        """A function from penalties to held-out scores, which computes each once."""
        folds = fold_of_rows(problem.codes, self.options.n_folds, self.rng)
        known: dict[Penalties, HeldOut] = {}

        def scores(wanted: list[Penalties]) -> list[HeldOut]:
            new = [penalty for penalty in wanted if penalty not in known]
            found = self._held_out(problem, fit, new, folds)
            for penalty, score in zip(new, found, strict=True):
                known[penalty] = score
                self.record[str(penalty)] = score.mean, score.standard_error()
            return [known[penalty] for penalty in wanted]

        return scores

    def _held_out(
        self, problem: MixtureProblem, fit: Fit, grid: list[Penalties], folds: Array
    ) -> list[HeldOut]:
        T, n_jobs = fit.domain_given_class, self.options.n_jobs
        return held_out(problem, T, grid, folds, n_jobs=n_jobs)

    # ---- all rows -------------------------------------------------------------------

    def polish(
        self, rung: Rung, fit: Fit, penalties: Penalties
    ) -> tuple[Fit, Penalties, Array]:
        """Fit all rows from the solution of the sample.

        Returns
        -------
        fit : Fit
        penalties : Penalties
            What those chosen on the sample are worth beside all rows.
        class_given_domain : ndarray of shape (n_domains, n_classes)
            Mean posterior of each domain's rows.
        """
        problem = rung.problem
        if self.sample is not self.rows:
            problem = self.rows.problem(rung.features)
            penalties = self._beside_all_rows(penalties)
        solve = optimize if self.options.solver == "lbfgs" else optimize_by_em
        final = solve(
            problem,
            fit.weights,
            fit.domain_given_class,
            penalties,
            max_iter=self.options.max_iter,
            tol=self.options.tol,
        )
        final.history = fit.history + final.history
        T = final.domain_given_class
        mass = problem.value_and_gradient(final.weights, T, penalties)[2]
        return final, penalties, normalize_rows(mass.T)

    def _beside_all_rows(self, penalties: Penalties) -> Penalties:
        """Penalties of the sample for all rows.

        A penalty is worth so many rows, and weighs less beside more of them. What was
        chosen was judged by fits to all folds of the sample but one.
        """
        options = self.options
        share = self.sample.n_rows / self.rows.n_rows
        judged = share * (1 - 1 / options.n_folds) if options.search else share
        dirichlet = judged if options.dirichlet is None else share
        ridge = judged if options.search and options.ridge is None else 1
        return replace(
            penalties,
            ridge=penalties.ridge * ridge,
            dirichlet=penalties.dirichlet * dirichlet,
        )


# ---- what is compared, and how -------------------------------------------------------


def list_scales(sample: TrainingRows, options: SearchOptions) -> list[str]:
    """Scales to compare, the usual one first."""
    if options.scale != "auto":
        return [options.scale]
    n_columns = sample.X.shape[1]
    if not options.search and n_columns < SETTINGS.many_columns:
        return ["column"]
    spread = FeatureMap("column").fit(sample.X, sample.row_weight).spread_
    if spread.max() < SETTINGS.alike * spread.min():
        return ["column"]
    return ["column", "global"]


def beats(score: HeldOut, simple: HeldOut) -> bool:
    """Whether a likelihood is better than that of simpler features, beyond doubt."""
    doubt = SETTINGS.doubt * score.standard_error(simple)
    return score.mean - simple.mean > doubt + SETTINGS.least_gain


def _better(simple: Rung, other: Rung) -> Rung:
    """The other rung only if its likelihood is better beyond doubt."""
    assert simple.score is not None
    assert other.score is not None
    return other if beats(other.score, simple.score) else simple


def follow_path(
    path: list[Penalties],
    first: int,
    scores: Callable[[list[Penalties]], list[HeldOut]],
) -> dict[Penalties, HeldOut]:
    """Scores along a path, from its first value on while the likelihood gains."""
    tried: dict[Penalties, HeldOut] = {}
    best = first
    while True:
        around = path[max(best - 1, 0) : best + 2]
        new = [penalty for penalty in around if penalty not in tried]
        if not new:
            return tried
        tried.update(zip(new, scores(new), strict=True))
        best = path.index(max(tried, key=lambda penalty: tried[penalty].mean))


def within_one_error(tried: dict[Penalties, HeldOut]) -> list[Penalties]:
    """Those whose likelihood is within one paired standard error of the best."""
    best = max(tried.values(), key=lambda score: score.mean)
    return [
        penalty
        for penalty, score in tried.items()
        if score.mean >= best.mean - best.standard_error(score)
    ]
