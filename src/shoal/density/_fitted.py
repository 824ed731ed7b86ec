"""What a fitted DensityMixture says of single rows: how strange they are, and why."""

from typing import Any

import numpy as np

from shoal._unknown import Strangers
from shoal.base import LatentShiftEstimator
from shoal.base._explained import UsualRow, usual_row
from shoal.density._columns import Columns
from shoal.density._gaussian import Density, nearest_squares

Array = np.ndarray[Any, Any]


class FittedDensity(LatentShiftEstimator):
    """Columns and a density, fitted."""

    columns_: Columns
    density_: Density
    novelty_quantiles_: Array

    _grows = True

    def _novelty(self, X: Any) -> Array:
        """Squared distance to the nearest component, as a mean over seen columns."""
        return nearest_squares(*self.columns_.read(X), self.density_)

    def _novelty_quantiles(self) -> Array:
        return np.asarray(self.novelty_quantiles_)

    def _strangers(self) -> Strangers | None:
        return vars(self).get("strangers_")

    def _log_evidence(self, X: Any, codes: Array | None) -> Array:
        return self._class_logs(X, codes)

    def _usual_row(self) -> UsualRow:
        """Nothing at all: gaps are integrated out, or count as the mean."""
        varying = self.columns_.varying
        return usual_row(varying, np.full(int(varying.sum()), np.nan))

    def _class_logs(self, X: Any, codes: Array | None = None) -> Array:
        raise NotImplementedError
