"""Do the assumptions hold up here? Five questions, numbers, one verdict."""

from shoal.analysis.diagnose._procedure import diagnose, with_columns
from shoal.analysis.diagnose._result import Diagnosis, Finding

__all__ = ["Diagnosis", "Finding", "diagnose", "with_columns"]
