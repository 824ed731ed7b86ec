"""Discriminate: models of q(d|x), the first stage (Algorithm 1).

Plain functions first: :func:`cross_fit_proba` judges every row by a model that has not
seen it, :func:`fit_calibration` calibrates held-out probabilities,
:func:`choose_discriminator` picks among classifiers by held-out loss. The estimators
:class:`Discriminator` and :class:`OracleDiscriminator` put them together.
"""

from shoal.stages.discriminate._calibrate import fit_calibration
from shoal.stages.discriminate._candidates import (
    OracleDiscriminator,
    choose_discriminator,
)
from shoal.stages.discriminate._crossfit import cross_fit_proba
from shoal.stages.discriminate._early_stopping import (
    EarlyStoppedBoosting,
    EarlyStoppedMLP,
)
from shoal.stages.discriminate._estimator import Discriminator
from shoal.stages.discriminate._named import named_discriminator

__all__ = [
    "Discriminator",
    "EarlyStoppedBoosting",
    "EarlyStoppedMLP",
    "OracleDiscriminator",
    "choose_discriminator",
    "cross_fit_proba",
    "fit_calibration",
    "named_discriminator",
]
