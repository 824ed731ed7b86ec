"""What a fit of DomainMixture has fixed, and what it compares."""

from dataclasses import dataclass

from shoal.likelihood._features import FeatureMap
from shoal.likelihood._problem import MixtureProblem, Penalties
from shoal.likelihood._rows import TrainingRows
from shoal.likelihood._settings import SETTINGS


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
    solver: str = "lbfgs"
    n_random: int = 1
    n_folds: int = 3
    n_jobs: int | None = None
    max_search_rows: int = 40_000
    max_iter: int = 400
    tol: float = 1e-7

    @property
    def search_rows(self) -> int:
        """Rows for the search; one optimization can afford more."""
        return self.max_search_rows * (1 if self.search else SETTINGS.quick_times_rows)

    def first_penalties(self, problem: MixtureProblem, n_classes: int) -> Penalties:
        """Penalties to start with: what is given, and the rule for the rest."""
        few = SETTINGS.ridge_times_rows / problem.n_rows
        ridge = max(SETTINGS.ridge_per_variance, few) * problem.total_variance
        cells = n_classes * problem.n_domains
        dirichlet = min(
            SETTINGS.first_dirichlet * cells / problem.n_rows,
            SETTINGS.most_first_dirichlet,
        )
        if self.dirichlet is not None:
            dirichlet = self.dirichlet * cells / problem.n_rows
        return Penalties(
            ridge if self.ridge is None else self.ridge,
            SETTINGS.first_confidence if self.confidence is None else self.confidence,
            dirichlet=dirichlet,
            volume=self.volume,
        )


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
