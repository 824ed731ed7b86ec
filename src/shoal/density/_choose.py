"""Choices on held-out rows: shape of the classes, drift, number of classes.

Shapes and the number of classes are judged by the likelihood of the domains, log q(d|x)
through the classes. The likelihood of the rows, log p(x|d), also rewards following p(x)
where no class is: no class of a real table is Gaussian, so that more classes and freer
shapes always win it. It decides where the domains cannot, and on drift, which they
would take for a mix.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from shoal.density._columns import blind, own_class
from shoal.density._em import DensityFit, Expected, Prior, expect, maximize
from shoal.density._gaussian import (
    Density,
    Rows,
    class_log_densities,
    find_gaps,
    without_drift,
)
from shoal.density._settings import DECISIONS
from shoal.density._starts import (
    DensityOptions,
    DensityStart,
    best_fit,
    climb_from,
    continue_from,
    list_starts,
    make_prior,
)
from shoal.likelihood._known import sample_rows
from shoal.probability import TINY, HeldOut, domain_given_class
from shoal.validation import row_weights
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


class Judged(NamedTuple):
    """Log-likelihoods of rows that a fit has not seen."""

    rows: HeldOut  # log p(x|d), rows counted alike
    domains: HeldOut  # log q(d|x) through the classes, domains counted alike


@dataclass(frozen=True, eq=False)
class Chosen:
    """What was chosen, and what it was chosen from.

    Attributes
    ----------
    fit : Fit
        On all rows.
    prior : Prior
    start : str
    judged : dict of str to Judged
        By setting: a covariance, or a covariance with drift.
    """

    fit: DensityFit
    prior: Prior
    start: str
    judged: dict[str, Judged] = field(default_factory=dict)


# ---- held-out rows ---------------------------------------------------------------


def take(rows: Rows, which: Array) -> Rows:
    """Some of the rows, given by a mask."""
    gaps = None if rows.gaps is None else find_gaps(rows.gaps.seen[which])
    return replace(
        rows,
        X=rows.X[which],
        codes=rows.codes[which],
        weight=rows.weight[which],
        gaps=gaps,
        known=None if rows.known is None else rows.known.take(which),
    )


def judge(
    rows: Rows, fit: DensityFit, prior: Prior, folds: Array, options: DensityOptions
) -> Judged:
    """Climb again without each fold, from what the fit says of the other rows."""
    of_rows, of_domains = np.empty(len(rows.X)), np.empty(len(rows.X))
    for fold in range(int(folds.max()) + 1):
        test = folds == fold
        density = fit_without(rows, fit, prior, test, options)
        left_out = take(rows, test)
        of_rows[test] = expect(left_out, density).log_likelihood
        of_domains[test] = log_domain_given_x(left_out, density)
    present, codes = np.unique(rows.codes, return_inverse=True)
    fair = row_weights(codes, np.full(len(present), 1 / len(present)), rows.weight)
    weight = rows.weight / rows.weight.sum()
    return Judged(HeldOut(of_rows, weight), HeldOut(of_domains, fair))


def fit_without(
    rows: Rows, fit: DensityFit, prior: Prior, test: Array, options: DensityOptions
) -> Density:
    """A climb without some rows, given by a mask, from what the fit says of others."""
    others = Expected(*(part[~test] for part in fit.expected))
    start = replace(fit, expected=others)
    return continue_from(take(rows, ~test), start, prior, options).density


def log_domain_given_x(
    rows: Rows, density: Density, domain_weight: Array | None = None
) -> Array:
    """Log q(d|x) of each row's domain, through the classes; equal q(d) when None.

    What drift says of the domain is not said through the classes, and left out.
    """
    X = without_drift(rows, density.drift)
    logs = class_log_densities(X, rows.gaps, density)
    share = np.average(density.mix, axis=0, weights=domain_weight)
    logs += np.log(np.maximum(share, TINY))
    class_given_x = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    corners = domain_given_class(density.mix, domain_weight)
    own = own_class(rows, class_given_x, corners)
    return np.asarray(np.log(np.maximum(own, TINY)))


def gain(judged: HeldOut, other: HeldOut) -> tuple[float, float]:
    """Mean gain over another fit, and its standard error."""
    return judged.mean - other.mean, judged.standard_error(other)


def search_sample(rows: Rows, rng: np.random.Generator) -> Rows:
    """Rows on which choices are made; ``rows`` are sorted by domain."""
    if len(rows.X) <= DECISIONS.search_rows:
        return rows
    which = np.zeros(len(rows.X), dtype=bool)
    which[sample_rows(rows.codes, rows.known, DECISIONS.search_rows, rng)] = True
    return take(rows, which)


# ---- the choices -----------------------------------------------------------------


def find_solution(
    rows: Rows,
    n_classes: int,
    kinds: Sequence[str],
    drift: bool | str,
    options: DensityOptions,
    rng: np.random.Generator,
) -> Chosen:
    """Best start of every shape, the best shape, drift if it pays; then all rows."""
    some = search_sample(rows, rng)
    folds = fold_of_rows(some.codes, DECISIONS.n_folds, rng)
    if drift == "auto":
        shapes = fit_shapes(some, n_classes, kinds, folds, options, rng)
        found, drift = weigh_drift(some, n_classes, shapes, folds, options, rng)
    elif len(kinds) > 1:
        found = best_shape(some, n_classes, kinds, folds, options, rng)
    else:
        found = one_shape(some, n_classes, kinds[0], options, rng)
    prior = moving(found.prior) if drift else found.prior
    if some is rows and prior.drift_rows == found.prior.drift_rows:
        return found
    start = replace(found.fit, expected=expect(rows, found.fit.density))
    return replace(found, fit=continue_from(rows, start, prior, options), prior=prior)


def weigh_drift(
    rows: Rows,
    n_classes: int,
    shapes: dict[str, Chosen],
    folds: Array,
    options: DensityOptions,
    rng: np.random.Generator,
) -> tuple[Chosen, bool]:
    """The shape of the classes, and whether domains drift beyond doubt.

    A class that is no Gaussian, or is in several pieces, seems to drift when the mix of
    its pieces moves. So drift must pay in the shape that predicts held-out rows best,
    and predict them better than more classes do.

    Where drift says more of the rows than the mixes do, domains are no judges of
    shapes: what tells domains best is what follows their drift. One covariance for all
    classes can follow it least. Nor are they judges of starts: see follow_drift.
    """
    best = shapes[best_kind(shapes)]
    rigid = shapes.get("tied", best)
    for shape in (likeliest(shapes), rigid):
        if not drift_pays(rows, shape, folds, options):
            return best, False
    kind = rigid.fit.density.kind
    still, moved = rigid.judged[kind].rows, rigid.judged[f"{kind}, drift"].rows
    quick = options._replace(n_init=min(options.n_init, DECISIONS.few_starts))
    count = min(DECISIONS.drift_classes * n_classes, len(rows.X) // 2)
    more = one_shape(rows, count, kind, quick, rng)
    more_still = judge(rows, more.fit, more.prior, folds, quick).rows
    more_moved = judge(rows, more.fit, moving(more.prior), folds, quick).rows
    better, error = gain(_best(moved, more_moved), _best(still, more_still))
    if better <= DECISIONS.sure * error:
        return best, False
    one_mix = replace(rigid.prior, mix_rows=np.inf)
    mixed = judge(rows, rigid.fit, one_mix, folds, options).rows
    drift, shift = gain(moved, still)[0], gain(still, mixed)[0]
    shaped = best if drift <= DECISIONS.strong_drift * shift else rigid
    return follow_drift(rows, n_classes, shaped, folds, options, rng), True


def likeliest(shapes: dict[str, Chosen]) -> Chosen:
    """The shape under which held-out rows are likeliest."""
    kind = max(shapes, key=lambda kind: shapes[kind].judged[kind].rows.mean)
    return shapes[kind]


def drift_pays(
    rows: Rows, shape: Chosen, folds: Array, options: DensityOptions
) -> bool:
    """Whether drift predicts held-out rows beyond doubt, in classes of one shape."""
    kind = shape.fit.density.kind
    name = f"{kind}, drift"
    if name not in shape.judged:
        prior = moving(shape.prior)
        shape.judged[name] = judge(rows, shape.fit, prior, folds, options)
    better, error = gain(shape.judged[name].rows, shape.judged[kind].rows)
    return better > DECISIONS.sure * error


def _best(*judged: HeldOut) -> HeldOut:
    return max(judged, key=lambda one: one.mean)


def follow_drift(
    rows: Rows,
    n_classes: int,
    found: Chosen,
    folds: Array,
    options: DensityOptions,
    rng: np.random.Generator,
) -> Chosen:
    """The classes that tell rows best inside of domains, of several climbs with drift.

    Rows are likeliest, and domains told best, where classes follow the drift: cells
    before and after a drug, say. What varies inside of domains does not know of it.
    """
    kind, prior = found.fit.density.kind, moving(found.prior)
    climbs = [(found.start, continue_from(rows, found.fit, prior, options))]
    for labels in centred_starts(rows, n_classes, options, rng):
        fit = climb_from(rows, labels, n_classes, kind, prior, options)
        climbs.append(("centred", fit))
    start, fit = max(climbs, key=lambda one: inside_domains(rows, one[1], prior, folds))
    return replace(found, fit=fit, prior=prior, start=start)


def centred_starts(
    rows: Rows, n_classes: int, options: DensityOptions, rng: np.random.Generator
) -> list[Array]:
    """Partitions of the rows without the mean of their domain.

    Domains that lie far apart become classes where drift is not known; without their
    means, rows know the classes, but for the mixes.
    """
    seen = np.ones(rows.X.shape) if rows.gaps is None else rows.gaps.seen
    heavy = rows.weight[:, None] * seen
    mass, sums = np.zeros((2, rows.n_domains, rows.X.shape[1]))
    np.add.at(mass, rows.codes, heavy)
    np.add.at(sums, rows.codes, heavy * rows.X)
    means = sums / np.maximum(mass, TINY)
    centred = replace(rows, X=(rows.X - means[rows.codes]) * seen)
    few = options._replace(n_init=min(options.n_init, DECISIONS.few_starts))
    return [start.labels for start in list_starts(centred, n_classes, few, rng)]


def inside_domains(rows: Rows, fit: DensityFit, prior: Prior, folds: Array) -> float:
    """Mean log p(x|d) of held-out rows, if each class may move in each domain."""
    still = replace(fit.density, drift=None)
    alike = replace(rows, X=without_drift(rows, fit.density.drift))
    fixed = replace(prior, drift_rows=np.inf)
    given, result = fit.expected.component_given_x, 0.0
    for fold in range(int(folds.max()) + 1):
        train = folds != fold
        moves = class_moves(alike, still, given * train[:, None], prior.drift_rows)
        mean_move = np.einsum("nc,ncp->np", given, moves[rows.codes])
        unmoved = take(replace(alike, X=alike.X - mean_move), train)
        known = Expected(*(part[train] for part in fit.expected))
        density = maximize(unmoved, known, still, fixed)
        for domain, move in enumerate(moves):
            own = take(alike, ~train & (rows.codes == domain))
            here = replace(density, means=density.means + move)
            result += float(own.weight @ expect(own, here).log_likelihood)
    return result / float(rows.weight.sum())


def class_moves(rows: Rows, density: Density, given: Array, n_still: float) -> Array:
    """How far each component lies from its mean in each domain, (r, c, p).

    Shrunken by ``n_still`` imaginary rows that do not move.
    """
    seen = np.ones(rows.X.shape) if rows.gaps is None else rows.gaps.seen
    moves = np.zeros((rows.n_domains, *density.means.shape))
    for domain, move in enumerate(moves):
        here = rows.codes == domain
        mass = (given[here] * rows.weight[here, None]).T
        count = mass @ seen[here]
        gap = mass @ (rows.X[here] * seen[here]) - count * density.means
        move[:] = gap / (count + n_still)
    return moves


def moving(prior: Prior) -> Prior:
    """The prior that lets domains drift."""
    return replace(prior, drift_rows=DECISIONS.drift_rows)


def one_shape(
    rows: Rows,
    n_classes: int,
    kind: str,
    options: DensityOptions,
    rng: np.random.Generator,
) -> Chosen:
    """Best start of one shape, without a judgement."""
    prior = make_prior(rows, n_classes, int(rng.integers(2**31 - 1)))
    start, fit = best_fit(rows, n_classes, kind, prior, options, rng)
    return Chosen(fit, prior, start)


def best_shape(
    rows: Rows,
    n_classes: int,
    kinds: Sequence[str],
    folds: Array,
    options: DensityOptions,
    rng: np.random.Generator,
) -> Chosen:
    """Best start of every shape, and the best of these on held-out rows.

    What one shape has found is a start for the next.
    """
    shapes = fit_shapes(rows, n_classes, kinds, folds, options, rng)
    return shapes[best_kind(shapes)]


def fit_shapes(
    rows: Rows,
    n_classes: int,
    kinds: Sequence[str],
    folds: Array,
    options: DensityOptions,
    rng: np.random.Generator,
) -> dict[str, Chosen]:
    """Best start of every shape, judged; all know the judgements of all."""
    prior = make_prior(rows, n_classes, int(rng.integers(2**31 - 1)))
    judged: dict[str, Judged] = {}
    shapes: dict[str, Chosen] = {}
    for kind in kinds:
        known = [
            DensityStart(other, one.fit.expected.component_given_x.argmax(axis=1))
            for other, one in shapes.items()
        ]
        start, fit = best_fit(rows, n_classes, kind, prior, options, rng, known)
        judged[kind] = judge(rows, fit, prior, folds, options)
        shapes[kind] = Chosen(fit, prior, start, judged)
    return shapes


def best_kind(shapes: dict[str, Chosen]) -> str:
    """The simplest of the shapes that tell the domains as well as any."""
    judged = {kind: one.judged[kind].domains for kind, one in shapes.items()}
    top = max(judged.values(), key=lambda one: one.mean)
    for kind, one in judged.items():  # simplest first
        behind, error = gain(top, one)
        if behind <= DECISIONS.close * error:
            return kind
    raise AssertionError("the best is not behind itself")


def pick_n_classes(
    rows: Rows, kind: str, options: DensityOptions, rng: np.random.Generator
) -> tuple[int, dict[int, HeldOut]]:
    """The fewest classes that explain the domains of held-out rows as well as any.

    Numbers are tried upwards, to the number of domains, until some in a row gain
    nothing. Where none gains anything over guessing the domain, looks alone decide, by
    log p(x|d).

    Returns
    -------
    n_classes : int
    curve : dict of int to HeldOut
        What the choice was made by.
    """
    some = blind(search_sample(rows, rng))
    folds = fold_of_rows(some.codes, DECISIONS.n_folds, rng)
    options = options._replace(n_init=min(options.n_init, DECISIONS.few_starts))
    known: dict[int, Judged] = {}

    def judge_count(count: int) -> Judged:
        if count not in known:
            found = one_shape(some, count, kind, options, rng)
            known[count] = judge(some, found.fit, found.prior, folds, options)
        return known[count]

    most = min(DECISIONS.most_classes, len(some.X) // 2)
    curve = _curve(lambda k: judge_count(k).domains, min(most, rows.n_domains))
    if _fewest(curve) > 1:
        return _fewest(curve), curve
    curve = _curve(lambda k: judge_count(k).rows, most)
    return max(_fewest(curve), 2), curve


def _curve(judged: Callable[[int], HeldOut], most: int) -> dict[int, HeldOut]:
    """Numbers of classes from 1 up, until patience ends."""
    curve: dict[int, HeldOut] = {}
    for count in range(1, max(most, 2) + 1):
        curve[count] = judged(count)
        best = max(curve, key=lambda k: curve[k].mean)
        if count - best > DECISIONS.patience:
            break
    return curve


def _fewest(curve: dict[int, HeldOut]) -> int:
    """The smallest number that is not worse than the best beyond doubt."""
    best = curve[max(curve, key=lambda count: curve[count].mean)]
    for count in sorted(curve):
        behind, error = gain(best, curve[count])
        if behind <= DECISIONS.close * error:
            return count
    raise AssertionError("the best is not behind itself")
