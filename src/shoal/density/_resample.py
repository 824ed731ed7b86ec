"""Resamples of a fitted DensityMixture: EM on rows drawn again, from the fit."""

from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from shoal.analysis._draws import Refit, Resample, draw_rows
from shoal.density._decisions import DECISIONS
from shoal.density._em import Fit, expect
from shoal.density._starts import Options, continue_from, make_prior

Array = np.ndarray[Any, Any]


def warm_refit(model: Any, X: Array, codes: Array, weight: Array | None) -> Refit:
    """From a random generator to a resample of a fitted DensityMixture.

    Classes need no matching: a climb from the fitted ones stays with them.
    """
    density = model.density_
    # Draws are of row numbers: the order of the rows given must not matter.
    order = model.columns_.order(X, codes)
    weight = None if weight is None else weight[order]
    rows = model.columns_.rows(X[order], codes[order], weight, len(density.mix))
    prior = make_prior(rows, model.n_classes_, 0)
    if density.drift is not None:
        prior = replace(prior, drift_rows=DECISIONS.drift_rows)
    options = Options(model.n_components, model.tail_, max_iter=DECISIONS.quick_iter)
    start = Fit(density, expect(rows, density), 0.0, [], True)
    member = np.eye(model.n_classes_)[density.owner]

    def refit(generator: np.random.Generator) -> Resample:
        drawn = draw_rows(rows.codes, generator, weight).astype(float)
        with threadpool_limits(1):
            again = replace(rows, weight=drawn)
            found = continue_from(again, start, prior, options)
        classes = np.empty(len(order), dtype=np.intp)
        given = found.expected.component_given_x @ member
        classes[order] = given.argmax(axis=1)
        return Resample(found.density.mix, classes)

    return refit
