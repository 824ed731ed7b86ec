"""Data larger than memory, on one machine or on a Ray cluster.

A data set is an ordered list of parts of bounded size. Every stage is a pure function
from a part to a small result, and results are folded in the order of the parts: where
and in which order they were computed, and whether a worker died meanwhile, changes
nothing. Finished results are kept, so that a second call goes on where one was ended.

Names are loaded on first use; ``import shoal.scale`` needs neither pyarrow nor ray.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.scale._asking import adapt, diagnose
    from shoal.scale._fitting import fit
    from shoal.scale._predicting import predict
    from shoal.scale._sampling import draw

__all__ = ["adapt", "diagnose", "draw", "fit", "predict"]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "adapt": "shoal.scale._asking",
        "diagnose": "shoal.scale._asking",
        "draw": "shoal.scale._sampling",
        "fit": "shoal.scale._fitting",
        "predict": "shoal.scale._predicting",
    },
)
