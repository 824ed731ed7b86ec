"""The forest of a comparison: what each covariate does to the odds of each class."""

from typing import Any

import numpy as np

from shoal._palette import MARKERS, class_color
from shoal.plots._axes import cleaned

Array = np.ndarray[Any, Any]


def plot_comparison(comparison: Any, *, ax: Any = None, figure: Any = None) -> Array:
    """Effects on the odds of each class, with intervals: one panel per effect.

    Parameters
    ----------
    comparison : MixComparison
        Of :func:`shoal.compare`.
    ax : sequence of matplotlib Axes, default=None
        One for each effect; new ones when None.
    figure : matplotlib Figure, default=None
        Where to make the new ones; a figure of pyplot when None.

    Returns
    -------
    ndarray of matplotlib Axes
        One for each effect, classes from top to bottom. Filled marks have a false
        discovery rate of at most 1 - level; the dashed line is no effect.
    """
    names, effects = comparison.class_names, comparison.effects
    new = ax is None
    panels = _panels(figure, len(effects), len(names)) if new else np.atleast_1d(ax)
    if len(panels) != len(effects):
        raise ValueError(
            f"ax must hold one axes for each of {len(effects)} effects, "
            f"got {len(panels)}"
        )
    for place, (axes, effect) in enumerate(zip(panels, effects, strict=True)):
        axes.axvline(1, color="0.5", linestyle="--", linewidth=1)
        for index in range(len(names)):
            _draw_one(axes, comparison, place, index)
        axes.set_xscale("log")
        axes.set_title(effect, loc="left", fontsize="small")
        axes.set_xlabel("odds, times")
        axes.set_yticks(np.arange(len(names)), [str(name) for name in names])
        axes.set_ylim(len(names) - 0.5, -0.5)
        _mark_odds(axes)
        cleaned(axes, grid="x")
    return panels


def _panels(figure: Any, n_effects: int, n_classes: int) -> Array:
    """New axes: up to three beside each other, classes named at the left."""
    across = min(n_effects, 3)
    down = -(-n_effects // across)
    if figure is None:
        import matplotlib.pyplot as plt

        figure = plt.figure(layout="constrained")
    figure.set_size_inches(1.6 + 2.9 * across, down * (1.1 + 0.26 * n_classes))
    axes = figure.subplots(down, across, sharey=True, squeeze=False)
    panels = axes.ravel()
    for empty in panels[n_effects:]:
        empty.set_axis_off()
    return np.asarray(panels[:n_effects])


def _draw_one(axes: Any, comparison: Any, effect: int, index: int) -> None:
    """The mark of one class and its interval, in odds."""
    n_classes = len(comparison.class_names)
    color = class_color(index, n_classes)
    low, middle, high = (
        np.exp(table[effect, index])
        for table in (comparison.low, comparison.estimate, comparison.high)
    )
    axes.hlines(index, low, high, color=color, linewidth=2)
    sure = comparison.q_value[effect, index] <= 1 - comparison.level
    axes.plot(
        middle,
        index,
        marker=MARKERS[index % len(MARKERS)],
        color=color,
        markerfacecolor=color if sure else "white",
        markeredgecolor="black" if sure else color,
        markersize=7,
    )


def _mark_odds(axes: Any) -> None:
    """A few ticks that people can read: half, twice; none of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axes.get_xlim()
    wide = high / low > 4
    if wide:
        axes.xaxis.set_major_locator(LogLocator(base=2 if high / low < 200 else 10))
    else:
        axes.set_xscale("linear")  # so near to 1 both scales are one
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda odds, _: f"{odds:.4g}"))
