"""Where work runs: in this process, in others on this machine, or on a Ray cluster."""

from shoal.engine._interface import ENGINES, iterate_runs, map_runs
from shoal.engine._local import Failure, Numbered, Outcome

__all__ = ["ENGINES", "Failure", "Numbered", "Outcome", "iterate_runs", "map_runs"]
