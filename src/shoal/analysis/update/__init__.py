"""A model that lives on: new rows and domains join, and what has changed is said."""

from shoal.analysis.update._difference import RunDifference, diff
from shoal.analysis.update._result import DomainUpdate, ModelUpdate
from shoal.analysis.update._update import update

__all__ = ["DomainUpdate", "ModelUpdate", "RunDifference", "diff", "update"]
