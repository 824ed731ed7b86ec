"""What figures share: axes, marks of classes, a quiet frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal._palette import MARKERS, class_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, Any]


def new_axes(ax: Any, size: tuple[float, float]) -> "Axes":
    """The axes given, or new ones of a size in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def class_dots(ax: Any, index: int, names: Sequence[Any], places: Array) -> Array:
    """A mark per row of the figure for one class; the height at which each stands."""
    n_classes = len(names)
    height = np.arange(len(places)) + (index - (n_classes - 1) / 2) * 0.6 / n_classes
    ax.plot(
        places,
        height,
        linestyle="none",
        marker=MARKERS[index % len(MARKERS)],
        color=class_color(index, n_classes),
        markeredgecolor="black",
        markeredgewidth=0.5,
        zorder=3,
        label=str(names[index]),
    )
    return np.asarray(height)


def with_legend(ax: Any) -> "Axes":
    """The same with the names of the classes beside it."""
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def cleaned(ax: Any, *, grid: str) -> "Axes":
    """No box, no ticks, a faint grid where values are read off."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax
