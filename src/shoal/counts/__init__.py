"""Classes of texts and cells: rows that count words or genes."""

from shoal.counts._estimator import CountMixture

__all__ = ["CountMixture"]
