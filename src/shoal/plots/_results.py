"""Figures of results: prevalences, the choice of k, the findings of a diagnosis."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from shoal._palette import class_color
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
