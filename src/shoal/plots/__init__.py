"""Figures for notebooks and papers; each takes ``ax`` and returns it.

A fitted estimator has them as methods too: ``model.plot_prevalence()``. Matplotlib is
imported when a figure is drawn, so that importing this module costs nothing.
"""

from shoal.plots._results import (
    plot_choice,
    plot_comparison,
    plot_diagnosis,
    plot_prevalence,
    plot_trend,
    plot_update,
)
from shoal.plots._rows import (
    plot_class_profile,
    plot_classes,
    plot_explanation,
    plot_map,
    plot_simplex,
    plot_tree,
)

__all__ = [
    "plot_choice",
    "plot_class_profile",
    "plot_classes",
    "plot_comparison",
    "plot_diagnosis",
    "plot_explanation",
    "plot_map",
    "plot_prevalence",
    "plot_simplex",
    "plot_tree",
    "plot_trend",
    "plot_update",
]
