"""What a fitted DensityMixture says of rows, and its refits."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from shoal.analysis._choose import Evidence, rank_clusters, smooth
from shoal.analysis._rank import RankResult, supported_rank
from shoal.analysis._refits import Trials
from shoal.analysis._resample import Resample, Resampler, draw_rows, match_by_rows
from shoal.analysis._unknown import (
    Strangers,
    draw_classes,
    learn_strangers,
    sampled_rows,
)
from shoal.analysis.diagnose._rows import DiagnosedRows, OutOfFold
from shoal.base import LatentShiftEstimator
from shoal.base._known import KnownClasses, folds_of_known, remember
from shoal.base._shown import UsualRow, usual_row
from shoal.density._choose import best_shape, fit_without, moving, search_sample
from shoal.density._columns import Columns
from shoal.density._em import DensityFit, Prior, expect
from shoal.density._gaussian import Density, Rows, nearest_squares, nearest_without
from shoal.density._settings import DECISIONS
from shoal.density._starts import (
    DensityOptions,
    best_fit,
    continue_from,
    kmeans_labels,
    make_prior,
    read_options,
)
from shoal.likelihood._known import sample_rows
from shoal.probability import HeldOut
from shoal.validation import check_X_domains, row_weights
from shoal.validation._known import Knowledge
from shoal.validation._rows import fold_of_rows

Array = np.ndarray[Any, Any]


class FittedDensity(LatentShiftEstimator):
    """Columns and a density, fitted."""

    columns_: Columns
    density_: Density
    novelty_quantiles_: Array

    _grows = True

    def _novelty(self, X: Any) -> Array:
        """Squared distance to the nearest component, as a mean over seen columns."""
        return nearest_squares(*self.columns_.read(X), self.density_)

    def _novelty_quantiles(self) -> Array:
        return np.asarray(self.novelty_quantiles_)

    def _strangers(self) -> Strangers | None:
        return vars(self).get("strangers_")

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        return self._class_logs(X, codes)

    def _without_drift(self, X: Any, codes: Array) -> tuple[Any, Any]:
        drift = self.density_.drift
        if drift is None:
            return self, X
        still = with_density(self, replace(self.density_, drift=None))
        return still, X - self.columns_.restore(drift)[codes]

    def _usual_row(self) -> UsualRow:
        """Nothing at all: gaps are integrated out, or count as the mean."""
        varying = self.columns_.varying
        return usual_row(varying, np.full(int(varying.sum()), np.nan))

    def _class_logs(self, X: Any, codes: Array | None = None) -> Array:
        raise NotImplementedError


# ---- rows of a class that it does not know -------------------------------------------


def strangers_to(
    model: Any, X: Array, codes: Array, rng: np.random.Generator
) -> Strangers:
    """How strange rows of an unknown class would be to a fitted DensityMixture.

    Learned from a sample; without a class means without its components.
    """
    some = sampled_rows(X.shape[0], rng)
    X, codes = X[some], codes[some]
    Z, gaps = model.columns_.read(X)
    without = nearest_without(Z, gaps, model.density_)
    classes = draw_classes(model._posterior(X, codes, None), rng)
    given = model._class_given_x(X)
    return learn_strangers(model._novelty(X), without, given, classes, codes)


# ---- a fit once more: resampled, out of fold, with other classes ---------------------


def _begin_again(model: Any, rows: Rows) -> tuple[DensityFit, Prior, DensityOptions]:
    """The fit as a start on the same or other rows, with a short climb ahead."""
    density = model.density_
    prior = make_prior(rows, model.n_classes_, 0)
    if density.drift is not None:
        prior = moving(prior)
    options = DensityOptions(
        model.n_components, model.tail_, max_iter=sum(DECISIONS.quick_iter)
    )
    return DensityFit(density, expect(rows, density), 0.0, [], True), prior, options


def resampler(model: Any, X: Array, codes: Array, weight: Array | None) -> Resampler:
    """EM on rows drawn again, from the fit: a climb from its classes stays with them.

    Draws are of row numbers in canonical order: that of the rows given does not matter.
    """
    order = model.columns_.order(X, codes)
    weight = None if weight is None else weight[order]
    rows = model.columns_.rows(X[order], codes[order], weight, len(model.domains_))
    rows = replace(rows, known=model._known_of(X[order], codes[order]))
    start, prior, options = _begin_again(model, rows)

    def refit(generator: np.random.Generator) -> Resample:
        drawn = draw_rows(rows.codes, generator, weight).astype(float)
        with threadpool_limits(1):
            again = replace(rows, weight=drawn)
            found = continue_from(again, start, prior, options)
        classes = np.empty(len(order), dtype=np.intp)
        classes[order] = classes_of(found)
        return Resample(found.density.mix, classes)

    return Resampler(model._most_probable(X, codes), refit)


def classes_of(fit: DensityFit) -> Array:
    """Most probable class of each row in its domain."""
    member = np.eye(fit.density.mix.shape[1])[fit.density.owner]
    return np.asarray((fit.expected.component_given_x @ member).argmax(axis=1))


def climb_out_of_fold(model: Any, given: DiagnosedRows, folds: Array) -> OutOfFold:
    """The climb repeated without each fold, from the fitted densities."""
    codes, n_folds = given.rows.codes, int(folds.max()) + 1
    rows = model.columns_.rows(given.X, codes, None, len(model.domains_))
    rows = replace(rows, known=model._known_of(given.X, codes))
    start, prior, options = _begin_again(model, rows)
    shape = n_folds, *model.domain_given_class_.shape
    corners, weight = np.empty(shape), np.empty(shape[:2])
    class_given_x = np.empty((len(codes), model.n_classes_))
    for fold in range(n_folds):
        test = folds == fold
        other = with_density(model, fit_without(rows, start, prior, test, options))
        class_given_x[test] = other._class_given_x(given.X[test])
        corners[fold], weight[fold] = other.domain_given_class_, other.class_weight_
    return OutOfFold(class_given_x, corners, weight)


def judge_known(model: Any, X: Array, codes: Array, known: Knowledge) -> KnownClasses:
    """What was known, and how far climbs agree that are not told of it."""
    order, rng = model.columns_.order(X, codes), np.random.default_rng(0)
    most = DECISIONS.search_rows
    numbers = order[sample_rows(codes[order], known.take(order), most, rng)]
    rows = model.columns_.rows(X[numbers], codes[numbers], None, len(model.domains_))
    folds = folds_of_known(known, DECISIONS.known_folds)
    own, told = folds[numbers], known.take(numbers)
    posterior = np.full((len(folds), model.n_classes_), 1 / model.n_classes_)
    member = np.eye(model.n_classes_)[model.density_.owner]
    for fold in range(int(own.max()) + 1):
        hidden = own == fold
        part = replace(rows, known=told.without(hidden))
        start, prior, options = _begin_again(model, part)
        density = start.density
        common = density.mix[part.codes][:, density.owner] * density.share
        start.expected.component_given_x[hidden] = common[hidden]
        found = continue_from(part, start, prior, options).expected.component_given_x
        posterior[numbers[hidden]] = found[hidden] @ member
    return remember(known, X, codes, posterior[known.rows], folds)


def with_density(model: Any, density: Density) -> Any:
    """A copy of a fitted model with another density of the same classes."""
    other = copy.copy(model)
    other.density_ = density
    other._store(density.mix, model.domains_, model.domain_weight_)
    return other


# ---- other numbers of classes --------------------------------------------------------


def evidence_on_a_sample(model: Any, X: Any, domains: Any, trials: Trials) -> Evidence:
    """Held-out likelihood of the domains for each number of classes, and stability."""
    X, codes, names = check_X_domains(model, X, domains, allow_nan=True)
    rng, options = trials.rng, read_options(model)
    with threadpool_limits(1):
        rows, share = model._training_rows(X, codes, names, None, rng)
        kinds, rows = model._kinds(rows), search_sample(rows, rng)
        rank = _rank_of_clusters(rows, rng)
        folds = fold_of_rows(rows.codes, trials.n_folds or DECISIONS.n_folds, rng)
        seeds = rng.integers(2**31 - 1, size=trials.n_resamples)
        scores: dict[int, HeldOut] = {}
        stability: dict[int, float] = {}
        candidates = trials.candidates(rank.n_classes, len(names))
        for some in trials.order.groups(candidates, rank.n_classes):
            for count in some:
                found = best_shape(rows, count, kinds, folds, options, rng)
                held_out = found.judged[found.fit.density.kind].domains
                scores[count] = smooth(held_out, len(names))
                again = seeds[: 0 if trials.order.late() else None]
                stability[count] = _stability(rows, found.fit, found.prior, again)
    weight = row_weights(rows.codes, share)
    return Evidence(
        {count: scores[count] for count in sorted(scores)},
        {count: stability[count] for count in sorted(stability)},
        rank,
        HeldOut(np.log(share)[rows.codes], weight),
        len(names),
    )


def _stability(rows: Rows, fit: DensityFit, prior: Prior, seeds: Array) -> float:
    """Mean share of rows that keep their class when rows are drawn again."""
    n_classes, kind = fit.density.mix.shape[1], fit.density.kind
    n_components = len(fit.density.owner) // n_classes
    options = DensityOptions(
        n_components, fit.density.tail, n_init=DECISIONS.few_starts
    )
    classes, kept = classes_of(fit), []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        again = replace(rows, weight=draw_rows(rows.codes, rng).astype(float))
        found = classes_of(best_fit(again, n_classes, kind, prior, options, rng)[1])
        same = match_by_rows(classes, found, n_classes)[found] == classes
        kept.append(float(rows.weight @ same / rows.weight.sum()))
    return float(np.mean(kept)) if kept else float("nan")


def _rank_of_clusters(rows: Rows, rng: np.random.Generator) -> RankResult:
    seed = int(rng.integers(2**31 - 1))
    n_clusters = rank_clusters(len(rows.X), rows.n_domains)
    labels = kmeans_labels(rows, n_clusters, seed)
    return supported_rank(labels, rows.codes, random_state=seed)
