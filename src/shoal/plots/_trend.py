"""The mix of classes in the order of time, with the points where it changes."""

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal._palette import class_color
from shoal.plots._axes import cleaned, new_axes, with_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trend(trend: Any, *, ax: Any = None) -> "Axes":
    """Smoothed shares as lines with their intervals, every time by itself as dots.

    Parameters
    ----------
    trend : MixTrend
        Of :func:`shoal.trend`.
    ax : matplotlib Axes, default=None
        A new one when None.

    Returns
    -------
    matplotlib Axes
        One line per class; the larger a dot, the more rows. Dashed lines are changes.
    """
    ax = new_axes(ax, (7.5, 3.6))
    names = trend.class_names
    sizes = 6 + 44 * trend.n_rows / trend.n_rows.max()
    for index, name in enumerate(names):
        color = class_color(index, len(names))
        ax.fill_between(
            trend.times, 100 * trend.low[:, index], 100 * trend.high[:, index],
            color=color, alpha=0.18, linewidth=0,
        )  # fmt: skip
        ax.plot(trend.times, 100 * trend.prevalence[:, index], color=color,
                linewidth=2, label=str(name))  # fmt: skip
        ax.scatter(trend.times, 100 * trend.unsmoothed[:, index], s=sizes,
                   color=color, alpha=0.55, linewidths=0)  # fmt: skip
    for change in trend.changes:
        middle = change.last + (change.first - change.last) / 2
        ax.axvline(middle, color="0.35", linestyle="--", linewidth=1)
    ax.set_ylim(-2, 102)
    ax.set_ylabel("share of the rows (%)")
    if np.asarray(trend.times).dtype.kind in "iu":
        ax.xaxis.get_major_locator().set_params(integer=True)
    return cleaned(with_legend(ax), grid="y")
