"""What new rows have changed: shares of then, and of now with their intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal._palette import MARKERS, class_color
from shoal.plots._axes import class_dots, cleaned, new_axes, with_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_update(found: Any, *, ax: Any = None) -> "Axes":
    """Class shares of the domains with new rows, before and after an update.

    Parameters
    ----------
    found : ModelUpdate
        Of :func:`shoal.update`.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One row per domain. Filled marks with intervals are the mix of all its rows,
        hollow ones that of the model before; a new domain has none.
    """
    names, domains = found.class_names, found.domains
    ax = new_axes(ax, (6.4, 1.2 + 0.5 * len(domains)))
    for index in range(len(names)):
        now = np.array([one.prevalence[index] for one in domains])
        height = class_dots(ax, index, names, now)
        color = class_color(index, len(names))
        low = [one.low[index] for one in domains]
        high = [one.high[index] for one in domains]
        ax.hlines(height, low, high, color=color, linewidth=2)
        known = [place for place, one in enumerate(domains) if one.before is not None]
        ax.plot(
            [domains[place].before[index] for place in known],
            height[known],
            linestyle="none",
            marker=MARKERS[index % len(MARKERS)],
            markerfacecolor="white",
            markeredgecolor=color,
            zorder=2.5,
        )
    labels = [f"{one.name} (new)" if one.is_new else str(one.name) for one in domains]
    ax.set_yticks(np.arange(len(domains)), labels)
    ax.set_ylim(len(domains) - 0.5, -0.5)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("share of the domain; hollow: before the update")
    return with_legend(cleaned(ax, grid="x"))
