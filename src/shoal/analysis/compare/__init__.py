"""Why mixes differ: covariates of domains against the shares of their classes."""

from shoal.analysis.compare._comparison import MixComparison, compare

__all__ = ["MixComparison", "compare"]
