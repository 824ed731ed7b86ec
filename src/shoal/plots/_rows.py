"""Figures of rows: as points of a plane, and what tells their classes apart."""

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
from shoal.validation import encode_domains

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
