"""Questions to ask of a fit: how many classes, how sure, and whether to trust it."""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal._unknown import UnknownShare
    from shoal.analysis._adapt import Adaptation
    from shoal.analysis._bootstrap import Intervals
    from shoal.analysis._choose import NClassesChoice
    from shoal.analysis._draws import mixture_proportions
    from shoal.analysis._explain import RowExplanation
    from shoal.analysis.compare import MixComparison
    from shoal.analysis.diagnose import Diagnosis, Finding
    from shoal.analysis.tree import ClassSplit, ClassTree
    from shoal.analysis.trend import ChangePoint, MixTrend
    from shoal.analysis.update import ModelUpdate, RunDifference

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
        "ChangePoint": "shoal.analysis.trend",
        "ClassSplit": "shoal.analysis.tree",
        "ClassTree": "shoal.analysis.tree",
        "MixComparison": "shoal.analysis.compare",
        "MixTrend": "shoal.analysis.trend",
        "Diagnosis": "shoal.analysis.diagnose",
        "Finding": "shoal.analysis.diagnose",
        "Intervals": "shoal.analysis._bootstrap",
        "NClassesChoice": "shoal.analysis._choose",
        "RowExplanation": "shoal.analysis._explain",
        "ModelUpdate": "shoal.analysis.update",
        "RunDifference": "shoal.analysis.update",
        "UnknownShare": "shoal._unknown",
        "mixture_proportions": "shoal.analysis._draws",
    },
)
