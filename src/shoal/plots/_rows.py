"""Figures of rows and classes: as points of a plane, what tells them apart, and why."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from shoal._palette import MARKERS, class_color
from shoal.analysis._profile import (
    contrast_features,
    domain_plane,
    feature_names_of,
    feature_plane,
    numeric_columns,
    plane_columns,
    sample_rows,
)
from shoal.plots._axes import class_dots, cleaned, new_axes, with_legend
from shoal.validation._domains import encode_domains

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = np.ndarray[Any, Any]

TOP_FEATURES = 8
MAX_POINTS = 5_000


def plot_simplex(
    model: Any,
    X: Any,
    domains: Any = None,
    *,
    max_points: int = MAX_POINTS,
    random_state: int = 0,
    ax: Any = None,
) -> "Axes":
    """Rows between the corners of the classes, in the space of q(d|x).

    A row that only one class can produce lies in that class's corner. The plane is the
    one in which the corners q(d|y) lie widest apart; with three classes nothing is
    lost.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
        Of two classes or more; two lie on a line.
    X : array-like of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,), default=None
        Where rows come from: they are then coloured by their class in that domain, and
        drawn as evenly from all domains as these allow.
    max_points : int, default=5000
        Rows drawn at most.
    random_state : int, default=0
        Draws the rows where there are more.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One collection of points per class, then the corners.
    """
    rows, classes = _some_rows(model, X, domains, max_points, random_state)
    guess = model._class_given_x(rows) @ model.domain_given_class_
    plane = domain_plane(guess, model.domain_given_class_)
    ax = new_axes(ax, (5.5, 5.0))
    _scatter(ax, model, plane.points, classes)
    assert plane.corners is not None
    ax.scatter(*plane.corners.T, s=70, facecolors="none", edgecolors="black", zorder=3)
    _name_corners(ax, model.class_names_, plane.corners)
    ax.set_aspect("equal")
    ax.margins(0.15)
    ax.set_axis_off()
    return ax


def _name_corners(ax: Any, names: Sequence[Any], corners: Array) -> None:
    """Names outside the corners: above the upper ones, below the lower ones."""
    middle = corners.mean(axis=0)
    for name, corner in zip(names, corners, strict=True):
        above = corner[1] >= middle[1]
        ax.annotate(
            str(name),
            corner,
            xytext=(0, 9 if above else -9),
            textcoords="offset points",
            ha="center",
            va="bottom" if above else "top",
        )


def plot_map(
    model: Any,
    X: Any,
    domains: Any = None,
    *,
    max_points: int = MAX_POINTS,
    random_state: int = 0,
    ax: Any = None,
) -> "Axes":
    """Rows in the plane of the two main directions of their features, by class.

    Columns with few values (categories, years) would draw the points in stripes and
    are left out where there are two others or more. Distances are approximate, and
    shares must not be read from it.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,), default=None
        Where rows come from, as in :func:`plot_simplex`.
    max_points : int, default=5000
    random_state : int, default=0
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One collection of points per class.
    """
    names = feature_names_of(model, X, None)
    rows, classes = _some_rows(model, X, domains, max_points, random_state)
    numbers, _ = numeric_columns(model._origin._filled(rows), names)
    plane = feature_plane(numbers[:, plane_columns(numbers)], random_state)
    ax = new_axes(ax, (6.0, 4.2))
    _scatter(ax, model, plane.points, classes)
    for place, axis in enumerate((ax.xaxis, ax.yaxis)):
        axis.set_label_text(f"direction {place + 1} ({plane.explained[place]:.0%})")
        axis.set_ticks([])
    ax.spines[["top", "right"]].set_visible(False)
    return with_legend(ax)


def _some_rows(
    model: Any, X: Any, domains: Any, max_points: int, random_state: int
) -> tuple[Any, Array]:
    """Rows to draw, as evenly from all domains as these allow, and their classes."""
    check_is_fitted(model)
    rows = model._check_rows(X)
    codes = encode_domains(domains, model.domains_, n_samples=rows.shape[0])
    strata = np.zeros(rows.shape[0], dtype=int) if codes is None else np.array(codes)
    chosen = sample_rows(strata, max_points, random_state)
    own = None if codes is None else strata[chosen]
    return rows[chosen], model._posterior(rows[chosen], own, None).argmax(axis=1)


def _scatter(ax: Any, model: Any, points: Array, classes: Array) -> None:
    """Points with the colour and shape of their class."""
    for index, name in enumerate(model.class_names_):
        ax.scatter(
            *points[classes == index].T,
            s=14,
            alpha=0.6,
            linewidths=0,
            marker=MARKERS[index % len(MARKERS)],
            color=class_color(index, model.n_classes_),
            label=str(name),
        )


def plot_classes(
    model: Any,
    X: Any,
    domains: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    n_features: int = TOP_FEATURES,
    ax: Any = None,
) -> "Axes":
    """All classes side by side: where each lies in the most telling features.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    feature_names : sequence of str, default=None
        Those of fit when None.
    n_features : int, default=8
        Features drawn, the most telling of any class on top.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        One line per class: its mean in each feature less that of all rows, in standard
        deviations of all rows.
    """
    columns, names, proba = _profiled(model, X, domains, feature_names)
    found = contrast_features(columns, proba)
    order = np.argsort(-np.abs(found.difference).max(axis=0), kind="stable")
    order = order[:n_features]
    centre = proba.sum(axis=0) @ found.mean / len(proba)
    spread = StandardScaler(with_mean=False).fit(columns).scale_
    ax = new_axes(ax, (6.5, 1.2 + 0.13 * len(order) * (model.n_classes_ + 1)))
    for index in range(model.n_classes_):
        place = ((found.mean[index] - centre) / spread)[order]
        class_dots(ax, index, model.class_names_, place)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(np.arange(len(order)), [names[column] for column in order])
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set_xlabel("mean of the class less that of all rows (standard deviations)")
    return cleaned(with_legend(ax), grid="x")


def _profiled(
    model: Any, X: Any, domains: Any, feature_names: Sequence[Any] | None
) -> tuple[Any, list[str], Array]:
    """Rows as numbers, names of their columns, and the probability of each class."""
    check_is_fitted(model)
    rows = model._check_rows(X)
    proba = model._posterior(rows, model._encode_domains(domains, rows.shape[0]), None)
    names = feature_names_of(model, X, feature_names)
    return *numeric_columns(model._origin._filled(rows), names), proba


def plot_class_profile(
    model: Any,
    X: Any,
    domains: Any,
    class_: Any,
    *,
    feature_names: Sequence[Any] | None = None,
    n_features: int = TOP_FEATURES,
    ax: Any = None,
) -> "Axes":
    """What sets one class apart: its features against those of all other rows.

    Parameters
    ----------
    model : fitted LatentShiftEstimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    domains : array-like of shape (n_samples,)
        Where each row comes from.
    class_ : int or str
        A class by index, id such as ``"c0"``, or name.
    feature_names : sequence of str, default=None
        Those of fit when None.
    n_features : int, default=8
        The most telling features are drawn.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        Differences of means in standard deviations, the largest on top.
    """
    check_is_fitted(model)
    index = model._class_index(class_)
    columns, names, proba = _profiled(model, X, domains, feature_names)
    difference = contrast_features(columns, proba).difference[index]
    order = np.argsort(-np.abs(difference), kind="stable")[:n_features]
    ax = new_axes(ax, (5.5, 1.1 + 0.35 * len(order)))
    color = class_color(index, model.n_classes_)
    ax.barh(np.arange(len(order)), difference[order], color=color, height=0.65)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(np.arange(len(order)), [names[column] for column in order])
    ax.invert_yaxis()
    ax.set_xlabel("difference to all other rows (standard deviations)")
    ax.set_title(str(model.class_names_[index]), loc="left")
    return cleaned(ax, grid="x")


# ---- why a row is of its class: a bar for each part of the evidence ------------------


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


# ---- a tree of classes: which one splits into which ----------------------------------


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
