"""A tree of classes: which one splits into which."""

from typing import TYPE_CHECKING, Any

from shoal._palette import class_color
from shoal.plots._axes import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_tree(tree: Any, *, ax: Any = None) -> "Axes":
    """Classes as lines that split from left to right, as thick as they have rows.

    Parameters
    ----------
    tree : ClassTree
        Of :func:`shoal.class_tree`.
    ax : matplotlib Axes, default=None
        A new one when None.

    Returns
    -------
    matplotlib Axes
        One level per number of classes, with the share of the rows that a free fit
        with as many classes would class alike.
    """
    k = tree.n_classes
    ax = new_axes(ax, (3.0 + 1.1 * k, 1.2 + 0.55 * k))
    height = dict(zip(leaves(tree), range(k), strict=True))
    top = tree.splits[0]
    _draw(ax, tree, height, top.whole, 1, sum(top.rows))
    for name, place in zip(tree.class_names, range(k), strict=True):
        ax.text(k + 0.08, height[place], str(name), va="center")
    for split in tree.splits:
        ax.text(split.n_classes, -0.75, f"{split.n_classes}\n{split.agreement:.0%}",
                ha="center", va="bottom", fontsize="small", color="0.35")  # fmt: skip
    ax.text(1, -0.75, "classes\nfree fit agrees", ha="left", va="bottom",
            fontsize="small", color="0.35")  # fmt: skip
    ax.set_xlim(0.9, k + 0.9)
    ax.set_ylim(k - 0.5, -1.3)
    ax.axis("off")
    return ax


def leaves(tree: Any) -> list[int]:
    """Classes in an order in which no lines cross."""
    order = [tree.splits[0].whole]
    for split in tree.splits:
        place = order.index(split.whole)
        order[place : place + 1] = split.parts
    return [one for (one,) in order]


def _draw(
    ax: Any, tree: Any, height: dict[int, int], members: Any, start: int, rows: int
) -> float:
    """A class from where it begins, and all that it splits into; its height."""
    middle = sum(height[one] for one in members) / len(members)
    split = next((one for one in tree.splits if one.whole == members), None)
    end = tree.n_classes if split is None else split.n_classes - 1
    width = 1.0 + 11.0 * rows / tree.n_rows
    color = class_color(members[0], tree.n_classes) if len(members) == 1 else "0.6"
    ax.plot([start, max(end, start)], [middle, middle], color=color, linewidth=width,
            solid_capstyle="butt")  # fmt: skip
    if split is None:
        return middle
    for part, size in zip(split.parts, split.rows, strict=True):
        own = _draw(ax, tree, height, part, split.n_classes, size)
        thin = 1.0 + 11.0 * size / tree.n_rows
        branch = class_color(part[0], tree.n_classes) if len(part) == 1 else "0.6"
        ax.plot([end, split.n_classes], [middle, own], color=branch, linewidth=thin,
                alpha=0.55, solid_capstyle="butt")  # fmt: skip
    if split.columns:
        name, by = split.columns[0]
        box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}
        ax.text(split.n_classes - 0.5, middle, f"{name} {by:+.1f}", ha="center",
                va="center", fontsize="x-small", bbox=box)  # fmt: skip
    return middle
