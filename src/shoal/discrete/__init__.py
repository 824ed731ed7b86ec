"""DiscreteMixture: finitely many inputs, and topics of documents."""

from shoal.discrete._estimator import DiscreteMixture

__all__ = ["DiscreteMixture"]
