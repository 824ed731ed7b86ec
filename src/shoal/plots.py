"""Figures for notebooks and papers; each takes ``ax`` and returns it.

Matplotlib is imported when a figure is drawn, so that importing this module costs
nothing.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal._palette import MARKERS, class_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_class_profile",
    "plot_diagnosis",
    "plot_n_classes",
    "plot_prevalence",
    "plot_simplex",
]

Array = np.ndarray[Any, Any]

TOP_FEATURES = 8
MAX_POINTS = 5_000
STATUS = {
    "ok": ("o", "#009E73", "no sign"),
    "caution": ("^", "#E69F00", "caution"),
    "fail": ("s", "#D55E00", "problem"),
}


def plot_prevalence(result: Any, *, ax: Any = None) -> "Axes":
    """Class shares of every domain: a dot, and intervals where there are any.

    Parameters
    ----------
    result : Intervals or fitted LatentShiftEstimator
        Of ``model.bootstrap(X, domains)``, with its interval and the middle half of its
        resamples; or the model itself, without.
    ax : matplotlib Axes, default=None
        A new one when None.

    Returns
    -------
    matplotlib Axes
        One line per class; from top to bottom the domains in the order of ``domains_``.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from shoal import DomainMixture
    >>> from shoal.datasets import load_penguins
    >>> from shoal.plots import plot_prevalence
    >>> penguins = load_penguins()
    >>> model = DomainMixture(3, search=False, random_state=0)
    >>> model = model.fit(penguins.X, penguins.domains)
    >>> plot_prevalence(model).get_xlabel()
    'share of the rows of the domain (%)'
    """
    intervals = result if hasattr(result, "draws") else None
    if intervals is None:
        check_is_fitted(result)
    share = np.asarray(result.prevalence if intervals else result.prevalence_)
    domains = result.domains if intervals else result.domains_
    names = result.class_names if intervals else result.class_names_
    n_domains, n_classes = share.shape
    ax = _axes(ax, (6.0, 1.2 + 0.22 * n_domains * (n_classes + 1)))
    for index, name in enumerate(names):
        height = np.arange(n_domains) + (index - (n_classes - 1) / 2) * 0.6 / n_classes
        color = class_color(index, n_classes)
        if intervals:
            _whiskers(ax, intervals, index, height, color)
        ax.plot(
            100 * share[:, index],
            height,
            linestyle="none",
            marker=MARKERS[index % len(MARKERS)],
            color=color,
            markeredgecolor="black",
            markeredgewidth=0.5,
            label=str(name),
        )
    ax.set_yticks(np.arange(n_domains), [str(name) for name in domains])
    ax.set_ylim(n_domains - 0.5, -0.5)
    ax.set_xlim(-2, 102)
    ax.set_xlabel("share of the rows of the domain (%)")
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return _clean(ax, grid="x")


def _whiskers(ax: Any, intervals: Any, index: int, height: Array, color: str) -> None:
    """The interval as a thin line, the middle half of the resamples as a thick one."""
    for (low, high), width, alpha in (
        ((intervals.low, intervals.high), 1.2, 1.0),
        (intervals.middle_half(), 5.0, 0.45),
    ):
        left, right = 100 * low[:, index], 100 * high[:, index]
        ax.hlines(height, left, right, color=color, linewidth=width, alpha=alpha)


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
    from shoal.analysis._profile import domain_plane, sample_rows
    from shoal.validation import encode_domains

    check_is_fitted(model)
    rows = model._check_rows(X)
    codes = encode_domains(domains, model.domains_, n_samples=rows.shape[0])
    strata = np.zeros(rows.shape[0], dtype=int) if codes is None else np.array(codes)
    chosen = sample_rows(strata, max_points, random_state)
    own = None if codes is None else strata[chosen]
    classes = model._posterior(rows[chosen], own, None).argmax(axis=1)
    guess = model._class_given_x(rows[chosen]) @ model.domain_given_class_
    plane = domain_plane(guess, model.domain_given_class_)
    ax = _axes(ax, (5.5, 5.0))
    n_classes = model.n_classes_
    for index, name in enumerate(model.class_names_):
        ax.scatter(
            *plane.points[classes == index].T,
            s=14,
            alpha=0.6,
            linewidths=0,
            marker=MARKERS[index % len(MARKERS)],
            color=class_color(index, n_classes),
            label=str(name),
        )
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
    from shoal.analysis._profile import (
        contrast_features,
        feature_names_of,
        numeric_columns,
    )

    check_is_fitted(model)
    index = model._class_index(class_)
    rows = model._check_rows(X)
    proba = model._posterior(rows, model._encode_domains(domains, rows.shape[0]), None)
    columns, names = numeric_columns(rows, feature_names_of(model, X, feature_names))
    difference = contrast_features(columns, proba).difference[index]
    order = np.argsort(-np.abs(difference), kind="stable")[:n_features]
    ax = _axes(ax, (5.5, 1.1 + 0.35 * len(order)))
    color = class_color(index, model.n_classes_)
    ax.barh(np.arange(len(order)), difference[order], color=color, height=0.65)
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(np.arange(len(order)), [names[column] for column in order])
    ax.invert_yaxis()
    ax.set_xlabel("difference to all other rows (standard deviations)")
    ax.set_title(str(model.class_names_[index]), loc="left")
    return _clean(ax, grid="x")


def plot_n_classes(choice: Any, *, ax: Any = None) -> "Axes":
    """Held-out likelihood of the domains over the number of classes.

    Parameters
    ----------
    choice : NClassesChoice
        Of :func:`shoal.choose_n_classes`.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
        The curve with two standard errors of the difference to the best; hollow points
        have more classes than domains; a larger one is the choice.
    """
    ax = _axes(ax, (5.5, 3.4))
    counts, values = choice.candidates, choice.held_out
    ax.errorbar(counts, values, yerr=2 * choice.difference_error, color="#0072B2",
                linewidth=1.2, capsize=3)  # fmt: skip
    faces = np.where(choice.identifiable, "#0072B2", "white")
    sizes = np.where(counts == (choice.n_classes or 0), 110, 40)
    ax.scatter(counts, values, s=sizes, c=faces, edgecolors="#0072B2", zorder=3)
    if choice.n_classes is not None:
        place = int(np.flatnonzero(counts == choice.n_classes)[0])
        ax.annotate("chosen", (counts[place], values[place]), xytext=(8, -14),
                    textcoords="offset points")  # fmt: skip
    ax.axhline(choice.baseline, color="0.5", linestyle="--", linewidth=1)
    ax.annotate("knowing nothing", (1, choice.baseline), xytext=(-2, 3), color="0.35",
                xycoords=("axes fraction", "data"), textcoords="offset points",
                ha="right", fontsize="small")  # fmt: skip
    ax.set_xticks(counts)
    ax.set_xlabel("number of classes")
    ax.set_ylabel("held-out log-likelihood (nats)")
    return _clean(ax, grid="y")


def plot_diagnosis(diagnosis: Any, *, kind: str = "checks", ax: Any = None) -> "Axes":
    """Findings of a diagnosis, or how alike each class looks in every domain.

    Parameters
    ----------
    diagnosis : Diagnosis
        Of ``model.diagnose(X, domains)``.
    kind : {"checks", "alike"}, default="checks"
        ``"checks"``: one mark per finding, its shape and place say the status.
        ``"alike"``: a table of classes by domains, shaded by how far a class lies from
        its mean there, in standard deviations beyond chance.
    ax : matplotlib Axes, default=None

    Returns
    -------
    matplotlib Axes
    """
    if kind not in ("checks", "alike"):
        raise ValueError(f"kind must be 'checks' or 'alike', got {kind!r}")
    draw = _draw_checks if kind == "checks" else _draw_shifts
    ax = draw(diagnosis, ax)
    ax.set_title(f"verdict: {diagnosis.verdict}", loc="left")
    return ax


def _draw_checks(diagnosis: Any, ax: Any) -> "Axes":
    findings = diagnosis.findings
    ax = _axes(ax, (6.5, 0.9 + 0.28 * len(findings)))
    columns = list(STATUS)
    for place, finding in enumerate(findings):
        marker, color, _ = STATUS[finding.status]
        ax.plot(
            columns.index(finding.status),
            place,
            marker=marker,
            color=color,
            markersize=9,
            markeredgecolor="black",
            markeredgewidth=0.5,
        )
    asked = [""] + [finding.question for finding in findings]
    labels = [
        finding.code
        if finding.question == before
        else f"{finding.question}  {finding.code}"
        for before, finding in zip(asked, findings, strict=False)
    ]
    ax.set_yticks(np.arange(len(findings)), labels)
    ax.invert_yaxis()
    ax.set_xticks(range(len(columns)), [STATUS[status][2] for status in columns])
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.xaxis.tick_top()
    return _clean(ax, grid="y")


def _draw_shifts(diagnosis: Any, ax: Any) -> "Axes":
    shift = np.asarray(diagnosis.numbers["class_domain_shift"], dtype=float).T
    n_domains, n_classes = shift.shape
    ax = _axes(ax, (1.8 + 0.8 * n_classes, 1.2 + 0.35 * n_domains))
    top = max(1.0, float(np.nanmax(shift, initial=0.0)))
    ax.imshow(shift, cmap="Oranges", vmin=0, vmax=top, aspect="auto")
    for domain, index in np.ndindex(shift.shape):
        value = shift[domain, index]
        text = "–" if np.isnan(value) else f"{value:.1f}"
        color = "white" if value > 0.6 * top else "black"
        ax.text(index, domain, text, ha="center", va="center", color=color)
    ax.set_xticks(np.arange(n_classes), [str(name) for name in diagnosis.class_names])
    ax.set_yticks(np.arange(n_domains), [str(name) for name in diagnosis.domains])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


# ---- small helpers -----------------------------------------------------------------


def _axes(ax: Any, size: tuple[float, float]) -> "Axes":
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def _clean(ax: Any, *, grid: str) -> "Axes":
    """No box, no ticks, a faint grid where values are read off."""
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(length=0)
    ax.grid(axis=grid, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    return ax
