"""Classes by how rows look and how they shift: densities with a mix per domain."""

from shoal.density._estimator import DensityMixture
from shoal.density._evidence import ShiftEvidence, shift_and_drift

__all__ = ["DensityMixture", "ShiftEvidence", "shift_and_drift"]
