"""Data larger than memory, on one machine or on a Ray cluster.

A data set is an ordered list of parts of bounded size. Every stage is a pure function
from a part to a small result, and results are folded in the order of the parts: where
and in which order they were computed, and whether a worker died meanwhile, changes
nothing. Finished results are kept, so that a second call goes on where one was ended.

Names are loaded on first use; ``import shoal.scale`` needs neither pyarrow nor ray.
"""

from typing import TYPE_CHECKING

from shoal.lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.scale.adapting import adapt
    from shoal.scale.diagnosing import diagnose
    from shoal.scale.fitting import fit
    from shoal.scale.predicting import predict
    from shoal.scale.sampling import draw

__all__ = ["adapt", "diagnose", "draw", "fit", "predict"]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "adapt": "shoal.scale.adapting",
        "diagnose": "shoal.scale.diagnosing",
        "draw": "shoal.scale.sampling",
        "fit": "shoal.scale.fitting",
        "predict": "shoal.scale.predicting",
    },
)
