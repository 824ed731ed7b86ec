"""Questions to ask of a fit: how many classes, how sure, and whether to trust it."""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.analysis._adapt import Adaptation
    from shoal.analysis._before import ModelUpdate
    from shoal.analysis._bootstrap import Intervals
    from shoal.analysis._choose import NClassesChoice
    from shoal.analysis._compare import MixComparison
    from shoal.analysis._difference import RunDifference
    from shoal.analysis._explain import RowExplanation
    from shoal.analysis._resample import mixture_proportions
    from shoal.analysis._tree import ClassSplit, ClassTree
    from shoal.analysis._trend import ChangePoint, MixTrend
    from shoal.analysis._unknown import UnknownShare
    from shoal.analysis.diagnose import Finding
    from shoal.analysis.diagnose._result import Diagnosis

__all__ = [
    "Adaptation",
    "ChangePoint",
    "ClassSplit",
    "ClassTree",
    "MixComparison",
    "ModelUpdate",
    "RunDifference",
    "MixTrend",
    "Diagnosis",
    "Finding",
    "Intervals",
    "NClassesChoice",
    "RowExplanation",
    "UnknownShare",
    "mixture_proportions",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "Adaptation": "shoal.analysis._adapt",
        "ChangePoint": "shoal.analysis._trend",
        "ClassSplit": "shoal.analysis._tree",
        "ClassTree": "shoal.analysis._tree",
        "MixComparison": "shoal.analysis._compare",
        "MixTrend": "shoal.analysis._trend",
        "Diagnosis": "shoal.analysis.diagnose._result",
        "Finding": "shoal.analysis.diagnose",
        "Intervals": "shoal.analysis._bootstrap",
        "NClassesChoice": "shoal.analysis._choose",
        "RowExplanation": "shoal.analysis._explain",
        "ModelUpdate": "shoal.analysis._before",
        "RunDifference": "shoal.analysis._difference",
        "UnknownShare": "shoal.analysis._unknown",
        "mixture_proportions": "shoal.analysis._resample",
    },
)
