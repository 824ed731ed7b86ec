"""Why a row is of its class: a bar for each part of the evidence."""

from typing import TYPE_CHECKING, Any

import numpy as np

from shoal._palette import class_color
from shoal.plots._axes import cleaned, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_explanation(
    explanation: Any, *, n_classes: int | None = None, most: int = 10, ax: Any = None
) -> "Axes":
    """Evidence for one row in nats, part by part, and what it adds up to.

    Parameters
    ----------
    explanation : RowExplanation
        Of ``model.explain``.
    n_classes : int, default=None
        Of the model, for the colours of its classes; as many as the two need if None.
    most : int, default=10
        Columns with a bar of their own, the weightiest; the rest is one bar.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        Bars to the right speak for the class, bars to the left for the other.
    """
    records = explanation.to_records()
    first = len(records) - np.count_nonzero(explanation.evidence)
    shown, rest = records[: first + most], records[first + most :]
    names = [_label(one) for one in shown]
    nats = [one["nats"] for one in shown]
    if rest:
        names.append(f"{len(rest)} more columns")
        nats.append(sum(one["nats"] for one in rest))
    names.append("all together")
    nats.append(explanation.log_odds)
    count = n_classes or max(*explanation.classes, 1) + 1
    colors = [class_color(one, count) for one in explanation.classes]
    ax = new_axes(ax, (6.4, 0.9 + 0.32 * len(names)))
    height = np.arange(len(names))
    bars = [colors[0] if one >= 0 else colors[1] for one in nats]
    ax.barh(height, nats, color=bars, height=0.7)
    ax.axvline(0, color="0.3", linewidth=1)
    ax.axhline(len(names) - 1.5, color="0.7", linewidth=0.8)
    ax.bar_label(ax.containers[0], labels=[f"{one:+.2f}" for one in nats], padding=3)
    ax.margins(x=0.15)
    ax.set_yticks(height, names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(
        f"nats for {explanation.class_name} (right) against "
        f"{explanation.other_name} (left)"
    )
    return cleaned(ax, grid="x")


def _label(part: dict[str, Any]) -> str:
    """The part, and what stands in it."""
    value = part["value"]
    if value is None:
        return str(part["part"])
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{part['part']} = {shown}"
