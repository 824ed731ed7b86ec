"""The numbers that decide something in this package, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Decisions:
    """Set on the development tables (``results/tabular/density.json``).

    Attributes
    ----------
    mix_rows : float
        Imaginary rows, mixed like all domains together, that each domain has beside
        its own: enough to keep a class of a small domain off zero.
    extra_shape_rows : float
        Imaginary rows of the prior's shape in each class, beyond one for each column:
        with fewer, a class of a few rows would shrink to a point.
    drift_rows : float
        Imaginary rows without drift in each domain.
    least_variance : float
        Share of a column's variance that no class may go below: repeated rows would
        make a density infinite.
    first_tail : float
        Degrees of freedom that climbs begin with. Heavy tails forgive a bad start.
    tails : tuple of float
        Degrees of freedom to choose from; the last is the Gaussian. Below 5, one class
        swallows the rows of its neighbours (hawks and SDSS, with one covariance).
    tail_every : int
        Iterations between two looks at the tail: it moves slowly.
    quick_iter, quick_tol : (int, int), float
        Of the first climb of all starts, and of the second, of the best of them.
    one_of : int
        One of so many starts goes on to the second climb.
    few_starts : int
        Where many fits are compared, for one of them.
    n_finalists : int
        Starts that are climbed to the end: after the quick climb the order of the
        first few may still change.
    n_folds : int
        Of held-out comparisons; three suffice where a row is worth its nats.
    sure : float
        Standard errors by which drift must win, which costs accuracy if it is not
        there.
    drift_classes : int
        Classes, for each that is wanted, of the density that drift must beat: classes
        in two pieces seem to drift by .13 nats a row.
    strong_drift : float
        Share of the shift's nats above which drift decides on the shape of classes:
        between .5 and 1 the choice on the development tables hardly changes.
    close : float
        Standard errors within which the domains do not tell two fits apart: the other
        shape, or fewer classes, are as good.
    most_columns : int
        Wider tables are seen through that many principal components: covariances
        cost the cube, and small ones say nothing.
    rows_per_component : int
        Rows that a principal component must have.
    most_patterns : int
        Patterns of missing values beyond which only "diag" is tried: each needs a
        matrix of its own.
    most_classes : int
        Largest number of classes that is tried unasked.
    patience : int
        Numbers of classes in a row without a gain after which no more are tried: the
        likelihood of the domains may pause for one or two.
    search_rows : int
        Starts climb, and choices are made, on a sample of this size; the last climb
        uses all rows.
    known_folds : int
        Folds of the known rows that are left out to see how far the rest agrees.
    collapsed : float
        A class with a smaller share holds almost no rows.
    block_rows : int
        Rows whose densities are computed together, for memory.
    """

    mix_rows: float = 5.0
    extra_shape_rows: float = 2.0
    drift_rows: float = 10.0
    least_variance: float = 1e-6
    first_tail: float = 10.0
    tails: tuple[float, ...] = (5.0, 10.0, 25.0, float("inf"))
    tail_every: int = 5
    quick_iter: tuple[int, int] = (10, 20)
    quick_tol: float = 1e-3
    one_of: int = 3
    few_starts: int = 6
    n_finalists: int = 2
    n_folds: int = 3
    sure: float = 2.0
    drift_classes: int = 2
    strong_drift: float = 0.75
    close: float = 1.0
    most_columns: int = 50
    rows_per_component: int = 10
    most_patterns: int = 400
    most_classes: int = 15
    patience: int = 3
    search_rows: int = 10_000
    known_folds: int = 5
    collapsed: float = 1e-3
    block_rows: int = 16_384


DECISIONS = Decisions()
