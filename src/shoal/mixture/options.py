"""What a fit leaves open, and how hard to look for it."""

from dataclasses import dataclass

from shoal.mixture.objective import MixtureProblem, Penalties

__all__ = ["MANY_CLASSES", "RIDGE_FACTOR", "Options"]

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
