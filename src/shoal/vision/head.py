"""A mixture on features as the last layer of a network, and back again."""

import copy
from typing import Any, NamedTuple

import numpy as np

from shoal.mixture import DomainMixture
from shoal.mixture.features import FeatureMap
from shoal.mixture.objective import MixtureProblem
from shoal.mixture.optimizer import Fit, optimize
from shoal.mixture.starts import climb
from shoal.novelty import fit_novelty
from shoal.probability import canonical_order, class_posterior, normalize_rows
from shoal.validation import row_weights

__all__ = ["Linear", "as_linear", "refit_part", "tuned_mixture"]

Array = np.ndarray[Any, Any]


class Linear(NamedTuple):
    """Logits as ``weights @ [(feature - centre) / spread, 1]``."""

    weights: Array  # (k, n_features + 1)
    centre: Array  # (n_features,)
    spread: float


def as_linear(mixture: DomainMixture, weights: Array, projection: Any) -> Linear:
    """One linear map from features of unit length to the logits of a mixture.

    Parameters
    ----------
    mixture : fitted DomainMixture
        With ``expansion="linear"``; only its scaling is read.
    weights : ndarray of shape (k, n_columns + 1)
        Softmax weights on the scaled columns.
    projection : fitted PCA or None
        What stood between the features and the mixture.
    """
    scaling, varying = mixture.features_, mixture.varying_
    if scaling.expansion != "linear":
        raise ValueError(
            "only a linear mixture can become a layer, got expansion="
            f"{scaling.expansion!r}: pass DomainMixture(expansion='linear') or "
            "fine_tuning=None"
        )
    slope = np.zeros((len(weights), len(varying)))
    slope[:, varying] = weights[:, :-1] / scaling.spread_
    centre = np.zeros(len(varying))
    centre[varying] = scaling.centre_
    intercept = weights[:, -1]
    if projection is not None:
        intercept = intercept - slope @ centre
        slope = slope @ projection.components_
        centre = projection.mean_
    spread = float(np.mean(scaling.spread_))
    return Linear(np.column_stack([slope * spread, intercept]), centre, spread)


def refit_part(
    mixture: DomainMixture, features: Array, codes: Array, rows: Array
) -> Fit:
    """The same basin fitted to some rows only, so that the others can judge it.

    The climb begins at the q(d|y) of all rows, with softmax weights of zero: that keeps
    the basin without leaking what the weights know of the other rows.
    """
    order = rows[np.argsort(codes[rows], kind="stable")]
    design = mixture.features_.transform(features[order][:, mixture.varying_])
    weight = row_weights(codes[order], mixture.domain_weight_)
    problem = MixtureProblem(design, codes[order], weight, len(mixture.domains_))
    penalties = mixture.penalties_
    first = climb(problem, mixture.domain_given_class_, penalties)
    return optimize(
        problem,
        first.weights,
        first.domain_given_class,
        penalties,
        max_iter=mixture.max_iter,
        tol=mixture.tol,
    )


def tuned_mixture(
    mixture: DomainMixture,
    linear: Linear,
    domain_given_class: Array,
    features: Array,
    codes: Array,
    rng: np.random.Generator,
) -> DomainMixture:
    """A copy of a mixture with other features, softmax and q(d|y).

    Parameters
    ----------
    mixture : fitted DomainMixture
        Its penalties and domains stay.
    linear : Linear
    domain_given_class : ndarray of shape (k, r)
    features : ndarray of shape (n, n_features)
        Of all training rows.
    codes : ndarray of shape (n,)
    rng : Generator
        Draws the rows that say what is familiar.
    """
    other = copy.copy(mixture)
    n_features = features.shape[1]
    other.n_features_in_ = n_features
    other.varying_ = np.ones(n_features, dtype=bool)
    other.features_ = _scaling(linear, features.dtype)
    other.weights_ = linear.weights
    other.n_classes_ = len(linear.weights)
    class_given_x = other._class_given_x(features)
    posterior = class_posterior(class_given_x, domain_given_class, codes)
    mass = np.zeros((len(mixture.domains_), len(linear.weights)))
    np.add.at(mass, codes, posterior)
    prevalence = normalize_rows(mass)
    order = canonical_order(prevalence)
    other.weights_ = linear.weights[order]
    other._store(prevalence[:, order], mixture.domains_, mixture.domain_weight_)
    other.labels_ = other._posterior(features, codes, None).argmax(axis=1)
    seed = int(rng.integers(2**31 - 1))
    other.novelty_ = fit_novelty(other.features_.scaled(features), random_state=seed)
    return other


def _scaling(linear: Linear, dtype: Any) -> FeatureMap:
    """The scaling of a layer; nothing is pulled in, as the layer does not either."""
    scaling = FeatureMap("global", "linear")
    scaling.dtype_, scaling.dense_ = np.dtype(dtype), True
    scaling.centre_ = np.asarray(linear.centre, dtype=float)
    scaling.spread_ = np.full(len(scaling.centre_), linear.spread)
    scaling.low_ = np.full(len(scaling.centre_), -np.inf)
    scaling.high_ = -scaling.low_
    return scaling
