"""DomainMixture: the likelihood of the domains through k classes."""

from shoal.mixture.estimator import DomainMixture

__all__ = ["DomainMixture"]
