"""Discover classes in unlabeled data from several domains.

Only the mix of classes differs between domains; things that shift together group
together. See :class:`shoal.DomainMixture`, :class:`shoal.DensityMixture`,
:class:`shoal.DDFA`, :class:`shoal.DiscreteMixture` and :class:`shoal.CountMixture`.

Public names are loaded on first use, so that ``shoal --help`` need not wait for
scikit-learn.
"""

from typing import TYPE_CHECKING

from shoal._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from shoal.analysis._compare import compare
    from shoal.analysis._difference import diff
    from shoal.analysis._tree import class_tree
    from shoal.analysis._trend import trend
    from shoal.analysis._update import update
    from shoal.counts import CountMixture
    from shoal.ddfa import DDFA
    from shoal.density import DensityMixture
    from shoal.discrete import DiscreteMixture
    from shoal.io.model._models import load, save
    from shoal.mixture import DomainMixture, choose_n_classes

__version__ = "0.1.0"

__all__ = [
    "CountMixture",
    "DDFA",
    "DensityMixture",
    "DiscreteMixture",
    "DomainMixture",
    "__version__",
    "choose_n_classes",
    "class_tree",
    "compare",
    "diff",
    "load",
    "save",
    "update",
    "trend",
]

__getattr__, __dir__ = _lazy_names(
    __name__,
    {
        "CountMixture": "shoal.counts",
        "DDFA": "shoal.ddfa",
        "DensityMixture": "shoal.density",
        "DiscreteMixture": "shoal.discrete",
        "DomainMixture": "shoal.mixture",
        "choose_n_classes": "shoal.mixture",
        "class_tree": "shoal.analysis._tree",
        "compare": "shoal.analysis._compare",
        "diff": "shoal.analysis._difference",
        "load": "shoal.io.model._models",
        "save": "shoal.io.model._models",
        "update": "shoal.analysis._update",
        "trend": "shoal.analysis._trend",
    },
)
