"""Figures of results: prevalences, choices, findings, comparisons, times, updates."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal._palette import MARKERS, class_color
from shoal.plots._axes import class_dots, cleaned, new_axes, with_legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Array = np.ndarray[Any, Any]

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
    ax = new_axes(ax, (6.0, 1.2 + 0.22 * n_domains * (n_classes + 1)))
    for index in range(n_classes):
        height = class_dots(ax, index, names, 100 * share[:, index])
        if intervals:
            color = class_color(index, n_classes)
            _whiskers(ax, intervals, index, height, color)
    ax.set_yticks(np.arange(n_domains), [str(name) for name in domains])
    ax.set_ylim(n_domains - 0.5, -0.5)
    ax.set_xlim(-2, 102)
    ax.set_xlabel("share of the rows of the domain (%)")
    return cleaned(with_legend(ax), grid="x")


def _whiskers(ax: Any, intervals: Any, index: int, height: Array, color: str) -> None:
    """The interval as a thin line, the middle half of the resamples as a thick one."""
    for (low, high), width, alpha in (
        ((intervals.low, intervals.high), 1.2, 1.0),
        (intervals.middle_half(), 5.0, 0.45),
    ):
        left, right = 100 * low[:, index], 100 * high[:, index]
        ax.hlines(height, left, right, color=color, linewidth=width, alpha=alpha)


def plot_choice(choice: Any, *, ax: Any = None) -> "Axes":
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
    ax = new_axes(ax, (5.5, 3.4))
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
    return cleaned(ax, grid="y")


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
    ax = new_axes(ax, (6.5, 0.9 + 0.28 * len(findings)))
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
    return cleaned(ax, grid="y")


def _draw_shifts(diagnosis: Any, ax: Any) -> "Axes":
    shift = np.asarray(diagnosis.numbers["class_domain_shift"], dtype=float).T
    n_domains, n_classes = shift.shape
    ax = new_axes(ax, (1.8 + 0.8 * n_classes, 1.2 + 0.35 * n_domains))
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


# ---- the mix of classes in the order of time -----------------------------------------


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


# ---- what new rows have changed: shares of then, and of now --------------------------


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


# ---- the forest of a comparison: what each covariate does to each class --------------


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
