"""How well discovered classes agree with true labels.

Discovered classes are numbered, true labels are named, and which is which is found by
matching. Outside ``shoal_bench`` this is the only package that reads labels.
"""

from shoal.metrics._agreement import (
    adjusted_rand,
    majority_accuracy,
    match_classes,
    matched_accuracy,
    normalized_mutual_information,
)
from shoal.metrics._prevalence import (
    ByDomain,
    by_domain,
    calibration_error,
    prevalence_error,
    true_prevalence,
)

__all__ = [
    "ByDomain",
    "adjusted_rand",
    "by_domain",
    "calibration_error",
    "majority_accuracy",
    "match_classes",
    "matched_accuracy",
    "normalized_mutual_information",
    "prevalence_error",
    "true_prevalence",
]
