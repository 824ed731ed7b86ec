"""How well discovered classes agree with true labels.

Discovered classes are numbered, true labels are named, and which is which is found by
matching. Outside ``shoal.benchmark`` this is the only package that reads labels.
"""

from shoal.metrics.agreement import (
    adjusted_rand,
    majority_accuracy,
    matched_accuracy,
    normalized_mutual_information,
)
from shoal.metrics.calibration import calibration_error
from shoal.metrics.domains import ByDomain, by_domain
from shoal.metrics.matching import match_classes
from shoal.metrics.prevalence import prevalence_error, true_prevalence

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
