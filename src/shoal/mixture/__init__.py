"""DomainMixture: the likelihood of the domains through k classes."""

from shoal.mixture._choose import choose_n_classes
from shoal.mixture._estimator import DomainMixture

__all__ = ["DomainMixture", "choose_n_classes"]
