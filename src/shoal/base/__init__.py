"""What every estimator shares: everything after the fit, merges, and its repr."""

from shoal.base._estimator import LatentShiftEstimator, class_ids

__all__ = ["LatentShiftEstimator", "class_ids"]
