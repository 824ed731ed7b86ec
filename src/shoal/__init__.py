"""Discover classes in unlabeled data from several domains.

Only the mix of classes differs between domains; things that shift together group
together. See :class:`shoal.DomainMixture`, :class:`shoal.DDFA` and
:class:`shoal.DiscreteMixture`.
"""

from shoal.ddfa import DDFA
from shoal.discrete import DiscreteMixture
from shoal.mixture import DomainMixture

__version__ = "0.1.0"

__all__ = ["DDFA", "DiscreteMixture", "DomainMixture", "__version__"]
