"""Figures for notebooks and papers; each takes ``ax`` and returns it.

A fitted estimator has them as methods too: ``model.plot_prevalence()``. Matplotlib is
imported when a figure is drawn, so that importing this module costs nothing.
"""

from shoal.plots._comparison import plot_comparison
from shoal.plots._explanation import plot_explanation
from shoal.plots._results import plot_choice, plot_diagnosis, plot_prevalence
from shoal.plots._rows import plot_class_profile, plot_classes, plot_map, plot_simplex
from shoal.plots._tree import plot_tree
from shoal.plots._trend import plot_trend
from shoal.plots._update import plot_update

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
