"""What rows of a class that a DensityMixture does not know would look like to it."""

from typing import Any

import numpy as np

from shoal._unknown import Strangers, draw_classes, learn_strangers, sampled_rows
from shoal.density._gaussian import nearest_without

Array = np.ndarray[Any, Any]


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
