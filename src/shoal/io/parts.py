"""Parts of a model that belong to scikit-learn, as skops files."""

import zipfile
from typing import Any

__all__ = ["TRUSTED", "dump_part", "load_part"]

#: What may occur in a part beside the estimators of scikit-learn themselves.
TRUSTED = [
    "shoal.stages.discretize.centers.KMeansDiscretizer",
    "shoal.stages.discriminate.early_stopping.EarlyStoppedMLP",
    "shoal.stages.discriminate.named.RadialBumps",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
]


def dump_part(part: Any) -> bytes:
    """A scikit-learn object as the bytes of a skops file."""
    import skops.io

    return skops.io.dumps(part, compression=zipfile.ZIP_DEFLATED)


def load_part(content: bytes) -> Any:
    """The object in a skops file; no type outside the allow-list is touched."""
    import skops.io

    return skops.io.loads(content, trusted=TRUSTED)
