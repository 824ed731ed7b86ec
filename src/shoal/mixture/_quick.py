"""A single optimization: linear features, fixed penalties, the likeliest anchors."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.likelihood._features import LINEAR, SCALES, FeatureMap
from shoal.likelihood._known_starts import known_starts
from shoal.likelihood._problem import Fit, MixtureProblem, Penalties
from shoal.likelihood._rows import TrainingRows, feature_map, list_expansions
from shoal.likelihood._settings import SETTINGS
from shoal.likelihood._starts import Start, anchor_starts, best_start, held_out
from shoal.mixture._options import (
    Found,
    SearchOptions,
    beats,
    list_scales,
    polish,
)
from shoal.probability import HeldOut
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Rung:
    """Features, the best fit made with them, and their held-out score."""

    features: FeatureMap
    problem: MixtureProblem
    starts: list[Start]
    start: Start
    fit: Fit
    penalties: Penalties
    score: HeldOut | None


class Quick:
    """What ``search=False`` fits; a search begins with it, and must do better.

    Attributes
    ----------
    sample : TrainingRows
        The rows that are fitted before all rows are.
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
        self.options = replace(options, search=False)
        self.rng = rng
        self.sample = rows.sample(options.quick_rows, rng)
        self.folds = fold_of_rows(self.sample.codes, options.n_folds, rng)
        self.seed = int(rng.integers(2**31))
        self.record: dict[str, tuple[float, float]] = {}

    def climb(self) -> Rung:
        """The better scale of many columns, components of wide tables, one climb."""
        options, sample = self.options, self.sample
        scales = list_scales(sample, options)
        # whether rows are few for the columns is asked of the whole table
        expansions = list_expansions(sample, options.expansion, n_rows=self.rows.n_rows)
        if options.expansion == "auto":
            expansions = [name for name in expansions if name in LINEAR]
        if len(scales) > 1:
            scales = [self._probe_scale(expansions[0])]
        return self.best_rung(scales, expansions)

    def best_rung(self, scales: list[str], expansions: list[str]) -> Rung:
        """Best of the scales, simplest expansion, then best of its expansions."""
        alone = len(scales) == len(expansions) == 1
        best = self._make_rung(scales[0], expansions[0], judged=not alone)
        for scale in scales[1:]:
            best = _better(best, self._make_rung(scale, expansions[0]))
        known = best.starts  # clusters of the simplest features serve the others
        for expansion in expansions[1:]:
            other = self._make_rung(best.features.scale, expansion, known)
            best = _better(best, other)
        return best

    def finish(
        self, rung: Rung, start: str | None = None, fit: Fit | None = None
    ) -> Found:
        """The fit of all rows, from the climb or from another solution of a sample.

        A penalty worth so many rows weighs less beside more.
        """
        problem, penalties = rung.problem, rung.penalties
        if self.sample is not self.rows:
            problem = self.rows.problem(rung.features)
            share = self.sample.n_rows / self.rows.n_rows
            penalties = replace(penalties, dirichlet=penalties.dirichlet * share)
        return polish(
            problem,
            rung.features,
            start or rung.start.name,
            fit or rung.fit,
            penalties,
            self.options,
        )

    def _make_rung(
        self,
        scale: str,
        expansion: str,
        known: list[Start] | None = None,
        judged: bool = True,
    ) -> Rung:
        """Features, the likeliest anchors with them, the climb and its score."""
        options, rng = self.options, np.random.default_rng(self.seed)
        features = feature_map(
            self.sample, scale, expansion, SETTINGS.n_centres, self.seed
        )
        problem = self.sample.problem(features)
        first = options.first_penalties(problem, self.n_classes)
        starts = known or [
            *known_starts(problem, self.n_classes),
            *anchor_starts(problem, self.n_classes, rng),
        ]
        start, fit = best_start(problem, starts, first, rng, options.n_jobs)
        score = self._judge(problem, fit, first) if judged else None
        if score is not None:
            self.record[f"{scale} {expansion}"] = score.mean, score.standard_error()
        return Rung(features, problem, starts, start, fit, first, score)

    def _judge(self, problem: MixtureProblem, fit: Fit, first: Penalties) -> HeldOut:
        """Held-out likelihood of a rung at its first ridge or a much larger one."""
        grid = [first]
        if self.options.ridge is None:
            grid.append(replace(first, ridge=first.ridge * SETTINGS.much_ridge))
        scores = held_out(
            problem,
            fit.domain_given_class,
            grid,
            self.folds,
            n_jobs=self.options.n_jobs,
        )
        return max(scores, key=lambda score: score.mean)

    def _probe_scale(self, simplest: str) -> str:
        """Scale with the better held-out likelihood on a small sample."""
        small = self.sample.sample(SETTINGS.probe_rows, self.rng)
        probe = Quick(small, self.n_classes, self.options, self.rng)
        return probe.best_rung(list(SCALES), [simplest]).features.scale


def _better(simple: Rung, other: Rung) -> Rung:
    """The other rung only if its likelihood is better beyond doubt."""
    assert simple.score is not None
    assert other.score is not None
    return other if beats(other.score, simple.score) else simple
