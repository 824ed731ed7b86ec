"""Shift or looks: which of the two tells the classes, judged on held-out rows.

Two models of the same classes are heard: q(d|x) = q(y|x) q(d|y), which knows rows by
where they come from, and p_d(x) = sum_y p_d(y) p(x|y), which knows how they look. Both
say where held-out rows come from, so that both are judged alike, unless domains change
the looks of a class: then that likelihood rewards whoever takes drift for classes.
"""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from shoal.analysis._rank import soften
from shoal.analysis._resample import match_by_rows
from shoal.analysis.diagnose._rows import DiagnosedRows
from shoal.base._known import compare_known
from shoal.density import DensityMixture
from shoal.density._choose import fit_without, log_domain_given_x, one_shape, take
from shoal.density._columns import reduce_columns, standard_columns
from shoal.density._gaussian import Rows
from shoal.density._starts import DensityOptions
from shoal.likelihood._features import TrainingRows
from shoal.likelihood._settings import SETTINGS
from shoal.mixture._fitted import FittedMixture
from shoal.mixture._starts import SHAPES
from shoal.probability import HeldOut, normalize_rows
from shoal.validation._known import Given
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]

REASONS = {
    "drift": "domains change how rows of a class look, and shift would take that for "
    "classes",
    "silent": "the mixes of the domains tell nothing that held-out rows confirm",
    "better": "it says better where held-out rows come from",
    "known": "it tells known rows better that are left out",
}


@dataclass(frozen=True, eq=False)
class Route:
    """What told the classes apart, and what the other would have said.

    Attributes
    ----------
    by : {"shift", "looks"}
        What spoke.
    reason : {"drift", "silent", "better", "known", "alone"}
        Why; "drift" and "silent" speak for looks, "alone" was not judged.
    gain : dict of str to (float, float)
        Nats a held-out row by which "shift" and "looks" guess domains better than
        chance, and their standard errors. Empty where one was heard alone.
    agreement : float
        Share of rows that both give the same class, else NaN.
    agreement_by_class : ndarray of shape (n_classes,)
        The same among the rows of each class.
    other_labels : ndarray of shape (n_samples,)
        Class of each training row by the one that did not speak, with the nearest
        classes matched.
    apart : ndarray of shape (n_domains, n_classes) or None
        Shares of these classes among the rows of each domain, less those of the classes
        by the one that spoke; None where one was heard alone.
    """

    by: str
    reason: str
    gain: dict[str, tuple[float, float]]
    agreement: float
    agreement_by_class: Array
    other_labels: Array
    apart: Array | None = None

    @property
    def chosen(self) -> bool:
        """Whether both were heard, and neither had nothing to say."""
        return self.reason == "better"

    @property
    def overruled(self) -> bool:
        """Whether the one that speaks tells domains better beyond any doubt."""
        if not self.chosen:
            return False
        other = "looks" if self.by == "shift" else "shift"
        (own, error), (less, other_error) = self.gain[self.by], self.gain[other]
        doubt = SETTINGS.route_overruled * np.hypot(error, other_error)
        return bool(own - less > doubt)

    def against(self, labels: Array, n_classes: int) -> "Route":
        """The same with the classes of the other compared to ``labels``.

        Shares by domain (``apart``) are those of other classes, and go.
        """
        if self.reason == "alone":
            return self
        other_labels = match_by_rows(labels, self.other_labels, n_classes)[
            self.other_labels
        ]
        same = other_labels == labels
        sizes = np.bincount(labels, minlength=n_classes)
        shared = np.bincount(labels[same], minlength=n_classes)
        by_class = np.full(n_classes, np.nan)
        np.divide(shared, sizes, out=by_class, where=sizes > 0)
        return replace(
            self,
            agreement=float(same.mean()),
            agreement_by_class=by_class,
            other_labels=other_labels,
            apart=None,
        )

    def lean(self) -> "Route":
        """The same without a class for each row of fit."""
        return replace(self, other_labels=self.other_labels[:0])

    def __str__(self) -> str:
        if self.reason == "alone":
            return f"Classes by {self.by}, heard alone."
        other = "shift" if self.by == "looks" else "looks"
        return (
            f"Classes by {self.by}: {REASONS[self.reason]}. Classes by {other} agree "
            f"on {self.agreement:.0%} of rows."
        )


def only_route(by: str, n_classes: int) -> Route:
    """The route of a fit that heard one side only."""
    nothing = np.full(n_classes, np.nan)
    return Route(by, "alone", {}, float("nan"), nothing, np.empty(0, dtype=np.intp))


def choose_route(
    shift: Any, looks: DensityMixture, X: Array, codes: Array, rng: np.random.Generator
) -> Route:
    """Which of two fits of the same rows speaks; X is validated.

    Parameters
    ----------
    shift : fitted DomainMixture, by shift
    looks : fitted DensityMixture
        With as many classes.
    X : ndarray of shape (n_samples, n_features)
    codes : ndarray of shape (n_samples,)
    rng : numpy Generator

    Returns
    -------
    Route
    """
    rows = shift._diagnosed_rows(X, codes, SETTINGS.route_rows, rng)
    folds = fold_of_rows(rows.rows.codes, SETTINGS.route_folds, rng)
    judged = {
        "shift": held_out_gain(shift, rows, folds, rng),
        "looks": held_out_gain(looks, rows, folds, rng),
    }
    by, reason = decide_route(
        judged["shift"], judged["looks"], looks.drift_ is not None
    )
    if shift.known_ is not None:
        by, reason = by_known(shift, looks) or (by, reason)
    spoke, other = (shift, looks) if by == "shift" else (looks, shift)
    gain = {name: (one.mean, one.standard_error()) for name, one in judged.items()}
    nothing = np.full(spoke.n_classes_, np.nan)
    route = Route(by, reason, gain, float("nan"), nothing, other.labels_)
    route = route.against(spoke.labels_, spoke.n_classes_)
    moved = _shares(route.other_labels, codes, spoke)
    return replace(route, apart=moved - _shares(spoke.labels_, codes, spoke))


def _shares(classes: Array, codes: Array, model: Any) -> Array:
    """Shares of classes among the rows of each domain."""
    shape = model.prevalence_.shape
    counts = np.bincount(codes * shape[1] + classes, minlength=np.prod(shape))
    return normalize_rows(counts.reshape(shape).astype(float))


def decide_route(shift: HeldOut, looks: HeldOut, drift: bool) -> tuple[str, str]:
    """The rule, from held-out gains over guessing the domain: what speaks, and why."""
    if drift:
        return "looks", "drift"
    if shift.mean <= SETTINGS.route_doubt * shift.standard_error():
        return "looks", "silent"
    return ("looks" if looks.mean > shift.mean else "shift"), "better"


def by_known(shift: Any, looks: DensityMixture) -> tuple[str, str] | None:
    """What tells known rows better beyond doubt, if either does."""
    assert looks.known_ is not None
    gain = compare_known(looks.known_, shift.known_)
    if not len(gain.each) or abs(gain.mean) <= (
        SETTINGS.known_doubt * gain.standard_error()
    ):
        return None
    return ("looks" if gain.mean > 0 else "shift"), "known"


def held_out_gain(
    model: Any, rows: DiagnosedRows, folds: Array, rng: np.random.Generator
) -> HeldOut:
    """Log q(d|x) over log q(d) of rows, by refits of a model without their fold."""
    codes, weight = rows.rows.codes, model.domain_weight_
    guess = model._out_of_fold(rows, folds, rng)
    own = guess.through_classes(model, codes, folds)
    prior = weight[codes]
    own = soften(np.maximum(own, 0), prior, len(codes), imaginary=len(weight))
    return HeldOut(np.log(own / prior), np.asarray(rows.rows.row_weight, dtype=float))


def looks_scale(model: Any) -> str:
    """How the twin of a DomainMixture scales columns."""
    return "global" if model.scale == "global" else "column"


def fit_looks(
    model: Any,
    n_classes: int | None,
    domain_weight: Any,
    X: Array,
    domains: Any,
    sample_weight: Any,
    given: Given | None = None,
) -> DensityMixture:
    """The twin of a DomainMixture."""
    looks = DensityMixture(
        n_classes,
        scale=looks_scale(model),
        domain_weight=domain_weight,
        random_state=model.random_state,
    )
    told = {} if given is None else given._asdict()
    return looks.fit(X, domains, sample_weight=sample_weight, **told)


@dataclass(frozen=True, eq=False)
class QuickLooks:
    """What looks say of a number of classes, at little cost.

    Attributes
    ----------
    rows : Rows
    fold_of_row : ndarray of shape (n_rows,)
    domain_weight : ndarray of shape (n_domains,)
    row_weight : ndarray of shape (n_rows,)
    seed : int
    """

    rows: Rows
    fold_of_row: Array
    domain_weight: Array
    row_weight: Array
    seed: int

    @classmethod
    def of(cls, rows: TrainingRows, fold_of_row: Array, seed: int) -> "QuickLooks":
        """Columns of these rows as a density sees them."""
        all_columns = np.ones(rows.X.shape[1], dtype=bool)
        columns = standard_columns(rows.X, all_columns, rows.sample_weight)
        columns = reduce_columns(columns, rows.X, seed)
        seen = columns.rows(rows.X, rows.codes, rows.sample_weight, rows.n_domains)
        return cls(seen, fold_of_row, rows.domain_weight, rows.row_weight, seed)

    def log_likelihood(self, n_classes: int) -> Array:
        """Log q(d|x) of each row, through classes of the shape that tells it best."""
        shapes = [self._with_shape(n_classes, kind) for kind in SHAPES]
        return max(shapes, key=lambda each: float(self.row_weight @ each))

    def _with_shape(self, n_classes: int, kind: str) -> Array:
        """The same by densities that have climbed without the fold of the row."""
        options = DensityOptions(n_init=SETTINGS.curve_looks)
        rng = np.random.default_rng(self.seed)
        found = one_shape(self.rows, n_classes, kind, options, rng)
        each = np.empty(len(self.rows.X))
        for fold in range(int(self.fold_of_row.max()) + 1):
            test = self.fold_of_row == fold
            density = fit_without(self.rows, found.fit, found.prior, test, options)
            held_out = take(self.rows, test)
            each[test] = log_domain_given_x(held_out, density, self.domain_weight)
        return each


class Heard(NamedTuple):
    """The twin of a fit by shift, and what it warns of if it speaks."""

    looks: DensityMixture
    warned: list[warnings.WarningMessage]


def hear_quietly(*args: Any) -> Heard:
    """As :func:`fit_looks`, its warnings kept."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        return Heard(fit_looks(*args), warned)


class HearsLooks(FittedMixture):
    """A fitted DomainMixture that lets its twin speak, where that has been chosen.

    The twin is then what was fitted, as the fit below merged classes is: it is what all
    hooks are asked of.
    """

    looks_: DensityMixture | None
    route_: Route

    @property
    def _origin(self) -> Any:
        looks = vars(self).get("looks_")
        return self if looks is None else looks

    def _in_doubt(self, X: Any, codes: Array) -> list[Array]:
        """By the one that did not speak, and by looks with two Gaussians a class."""
        route = self.route_
        if route.apart is None or route.by == "shift" and route.overruled:
            return []
        doubts = [] if route.overruled else [route.apart]
        k, own = self.n_classes_, self._most_probable(X, codes)
        scale = looks_scale(self)
        two = DensityMixture(k, n_components=2, scale=scale, random_state=0)
        two.fit(X, domains=codes)
        classes = match_by_rows(own, two.labels_, k)[two.labels_]
        return [*doubts, _shares(classes, codes, self) - _shares(own, codes, self)]

    def _weigh(
        self,
        X: Array,
        codes: Array,
        sample_weight: Any,
        given: Given | None,
        rng: np.random.Generator,
        twin: Heard | None,
    ) -> None:
        """Let looks speak where they should."""
        if twin is None:  # no gaps that it had to fill
            weight = dict(zip(self.domains_.tolist(), self.domain_weight_, strict=True))
            rows = X, self.domains_[codes], sample_weight, given
            twin = hear_quietly(self, self.n_classes_, weight, *rows)
        self.route_ = choose_route(self, twin.looks, X, codes, rng)
        if self.route_.by == "looks":
            self._listen_to(twin.looks)
            for one in twin.warned:
                warnings.warn(one.message, stacklevel=5)

    def _listen_to(self, looks: DensityMixture) -> None:
        """Let the twin speak."""
        self.looks_ = looks
        self._store(looks.prevalence_, looks.domains_, looks.domain_weight_)
        self.labels_, self.known_ = looks.labels_, looks.known_
        self.class_names_ = list(looks.class_names_)

    def _class_given_x(self, X: Any) -> Array:
        if self._origin is self:
            return super()._class_given_x(X)
        return np.asarray(self._origin._class_given_x(X))

    def _posterior_blocks(
        self, X: Any, codes: Array | None, prevalence: Array | None
    ) -> Any:
        if self._origin is self:
            return super()._posterior_blocks(X, codes, prevalence)
        return self._origin._posterior_blocks(X, codes, prevalence)

    def _told_apart(self) -> str:
        if self.route_.reason != "alone":
            return self._with_known(str(self.route_))
        if self._origin is not self:
            return str(self._origin._told_apart())
        return self._with_known(super()._told_apart())

    def _with_domain(self, domains: Array, prevalence: Array) -> Any:
        extended = super()._with_domain(domains, prevalence)
        if self._origin is not self:
            extended.looks_ = self._origin._with_domain(domains, prevalence)
        apart = self.route_.apart
        if apart is not None:  # the other has said nothing of the new domain
            apart = np.pad(apart, ((0, len(domains) - len(apart)), (0, 0)))
            extended.route_ = replace(self.route_, apart=apart)
        return extended

    def _lean(self) -> Self:
        lean = super()._lean()
        if self._origin is not self:
            lean.looks_ = self._origin._lean()
        lean.route_ = self.route_.lean()
        return lean

    def _fitted_arrays(self) -> list[Array]:
        if self._origin is self:
            return super()._fitted_arrays()
        return self._origin._fitted_arrays()
