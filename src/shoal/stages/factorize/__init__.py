"""Factorize: from the clusters' shares per domain to prevalences and classes.

    cluster_given_domain = class_given_domain @ cluster_given_class

:func:`factorize` and :class:`Factorizer` offer maximum likelihood from anchors
(``em``), anchors alone (``spa``, ``snpa``), minimum volume (``volume``) and NMF as
published (``nmf``). :func:`minimum_volume_polytope` works on points f(x) instead of
clusters (Appendix F).
"""

from shoal.stages.factorize._anchors import (
    successive_nonnegative_projection,
    successive_projection,
)
from shoal.stages.factorize._estimator import Factorization, Factorizer, factorize
from shoal.stages.factorize._polytope import minimum_volume_polytope

__all__ = [
    "Factorization",
    "Factorizer",
    "factorize",
    "minimum_volume_polytope",
    "successive_nonnegative_projection",
    "successive_projection",
]
