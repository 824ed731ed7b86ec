"""Why mixes differ: covariates of domains against the shares of their classes."""

from shoal.analysis.compare._comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
