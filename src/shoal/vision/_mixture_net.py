"""The mixture as a network: backbone, linear softmax, the table q(d|y), and back."""

import copy
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn
from torch.nn import functional

from shoal.analysis._unknown import fit_familiar
from shoal.likelihood._features import FeatureMap
from shoal.likelihood._problem import Fit, MixtureProblem, optimize
from shoal.likelihood._starts import optimize_from
from shoal.mixture import DomainMixture
from shoal.probability import canonical_order, class_posterior, normalize_rows
from shoal.validation import row_weights
from shoal.vision._nets import Backbone
from shoal.vision._settings import SETTINGS

# ---- A mixture on features as the last layer of a network, and back again ------------

Array = np.ndarray[Any, Any]


def project_features(
    units: Array, n_components: int | None = 128
) -> tuple[Array, PCA | None]:
    """Principal components of features of unit length, and the fitted PCA (or None)."""
    wanted = min(n_components or np.inf, *units.shape)
    if wanted == units.shape[1]:
        return units, None
    solver = "covariance_eigh" if len(units) > units.shape[1] else "full"
    projection = PCA(int(wanted), svd_solver=solver).fit(units)
    return project(units, projection), projection


def project(units: Array, projection: PCA | None) -> Array:
    """What the mixture sees of features of unit length."""
    if projection is None:
        return units
    return np.asarray(projection.transform(units), dtype=np.float32)


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
    first = optimize_from(problem, mixture.domain_given_class_, penalties)
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
    own = other._posterior(features, codes, None)
    other.labels_ = own.argmax(axis=1)
    scaled, seed = other.features_.scaled(features), int(rng.integers(2**31 - 1))
    other.novelty_ = fit_familiar(scaled, class_given_x[:, order], own, codes, seed)
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


# ---- the network ---------------------------------------------------------------------


class MixtureNet(nn.Module):
    """q(y|x) by a backbone and a linear softmax, and q(d|y) as a table.

    Parameters
    ----------
    backbone : Module
        With ``features(x)`` of shape (n, n_features).
    linear : Linear
        The softmax on features of unit length.
    domain_given_class : ndarray of shape (k, r)
    freeze_statistics : bool, default=True
        Keep batch normalization (and dropout) in evaluation mode when training.
    """

    centre: Tensor
    spread: Tensor

    def __init__(
        self,
        backbone: Backbone,
        linear: Linear,
        domain_given_class: Array,
        *,
        freeze_statistics: bool = True,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.freeze_statistics = freeze_statistics
        self.register_buffer("centre", _tensor(linear.centre))
        self.register_buffer("spread", _tensor(linear.spread))
        self.weight = nn.Parameter(_tensor(linear.weights[:, :-1]))
        self.intercept = nn.Parameter(_tensor(linear.weights[:, -1]))
        table = np.maximum(domain_given_class, SETTINGS.least_probability)
        self.domain_logits = nn.Parameter(_tensor(np.log(table)))

    @property
    def log_T(self) -> Tensor:  # noqa: N802
        """Logarithm of q(d|y), of shape (k, r)."""
        return functional.log_softmax(self.domain_logits, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of q(y|x) for normalized images (n, 3, h, w)."""
        features = self.backbone.features(x)
        # bf16 has three digits: too few for the logits of many classes
        with torch.autocast(x.device.type, enabled=False):
            unit = functional.normalize(features.float(), dim=1)
            scaled = (unit - self.centre) / self.spread
            return functional.linear(scaled, self.weight, self.intercept)

    def train(self, mode: bool = True) -> "MixtureNet":
        """Training mode; frozen statistics stay frozen."""
        super().train(mode)
        if self.freeze_statistics:
            self.backbone.eval()
        return self

    def solution(self) -> tuple[Linear, Array]:
        """The softmax, and q(d|y) of shape (k, r)."""
        columns = torch.cat([self.weight, self.intercept[:, None]], dim=1)
        linear = Linear(_array(columns), _array(self.centre), float(self.spread))
        return linear, _array(torch.exp(self.log_T))


def _array(values: Tensor) -> Array:
    return values.detach().double().cpu().numpy()


def _tensor(values: Any) -> Tensor:
    return torch.as_tensor(np.asarray(values), dtype=torch.float32)
