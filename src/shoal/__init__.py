"""Discover classes in unlabeled data from several domains.

Only the mix of classes differs between domains; things that shift together group
together. See :class:`shoal.DomainMixture`, :class:`shoal.DDFA` and
:class:`shoal.DiscreteMixture`.

Public names are loaded on first use, so that ``shoal --help`` need not wait for
scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.analysis.choose import choose_n_classes
    from shoal.ddfa import DDFA
    from shoal.discrete import DiscreteMixture
    from shoal.io.models import load, save
    from shoal.mixture import DomainMixture

__version__ = "0.1.0"

__all__ = [
    "DDFA",
    "DiscreteMixture",
    "DomainMixture",
    "__version__",
    "choose_n_classes",
    "load",
    "save",
]

_HOMES = {
    "DDFA": "shoal.ddfa",
    "DiscreteMixture": "shoal.discrete",
    "DomainMixture": "shoal.mixture",
    "choose_n_classes": "shoal.analysis.choose",
    "load": "shoal.io.models",
    "save": "shoal.io.models",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'shoal' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
