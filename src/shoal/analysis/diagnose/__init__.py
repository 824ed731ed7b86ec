"""Do the assumptions hold up here? Five questions, numbers, one verdict.

A further check is a function from a :class:`Case` to a :class:`Finding` or None that is
appended to ``CHECKS``.
"""

from shoal.analysis.diagnose._findings import CHECKS, judge
from shoal.analysis.diagnose._procedure import diagnose
from shoal.analysis.diagnose._result import Case, Finding
from shoal.analysis.diagnose._settings import THRESHOLDS

__all__ = [
    "CHECKS",
    "THRESHOLDS",
    "Case",
    "Finding",
    "diagnose",
    "judge",
]
