"""Figures of the benchmark, drawn from the same lines and records as its tables.

matplotlib is imported when a figure is drawn, not before.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal_bench.methods import METHODS
from shoal_bench.problems import DATASETS, prevalence_of
from shoal_bench.spec import Spec
from shoal_bench.tables import MEASURES, Line

Array = NDArray[Any]

NAMES = {"accuracy": "accuracy", "prevalence_error": "error of the prevalences"}
# Okabe and Ito's colours for what is compared most often; the others are grey.
COLOURS = {
    "ours_end_to_end": "#0072B2",
    "ours_frozen": "#56B4E9",
    "ddfa_best": "#CC79A7",
    "ddfa_si": "#D55E00",
    "ddfa_mlp": "#D55E00",
    "ddfa_spi": "#E69F00",
    "scan": "#009E73",
    "scan_prior": "#000000",
    "kmeans": "#F0E442",
    "naive": "#8C564B",
    "naive_pca": "#B58A7D",
    "naive_ica": "#D9BFB7",
}
OTHER = "#999999"
MARKERS = "osD^vPX*<>"


def draw_against_alpha(lines: Sequence[Line], path: Path) -> Path:
    """Accuracy against alpha: a row per data set, a panel per r, bars for the spread.

    The paper's own numbers are dashed, in the colour of their method.
    """
    sizes: dict[str, list[int]] = {}
    for line in lines:
        known = sizes.setdefault(line.cell[0], [])
        if line.cell[1] not in known:
            known.append(line.cell[1])
    styles = _styles(lines)
    width = max(map(len, sizes.values()))
    figure, panels = _panels(len(sizes), width)
    for row, (dataset, domains) in zip(panels, sizes.items(), strict=True):
        for panel in row[len(domains) :]:
            panel.set_axis_off()
        for panel, r in zip(row, domains, strict=False):
            part = [line for line in lines if line.cell[:2] == (dataset, r)]
            _draw_panel(panel, part, "accuracy", styles, _alpha)
            panel.set_title(f"{DATASETS[dataset].title}, {r} domains", fontsize=10)
            panel.set(xscale="log", xlabel="alpha", ylabel="accuracy")
            alphas = sorted({line.cell[2] for line in part})
            panel.set_xticks(alphas, [f"{alpha:g}" for alpha in alphas], minor=False)
            panel.minorticks_off()
    return _finish(figure, panels, path)


def draw_against_clusters(lines: Sequence[Line], path: Path) -> Path:
    """Both measures against the number of clusters m, a column per alpha (Appendix G).

    Methods without m are horizontal lines.
    """
    alphas = list(dict.fromkeys(line.cell[2] for line in lines))
    figure, panels = _panels(len(MEASURES), len(alphas))
    styles = _styles(lines)
    everywhere = sorted({m for line in lines if (m := _clusters(line)) is not None})
    for row, measure in zip(panels, MEASURES, strict=True):
        for panel, alpha in zip(row, alphas, strict=True):
            part = [line for line in lines if line.cell[2] == alpha]
            _draw_panel(panel, part, measure, styles, _clusters, everywhere)
            panel.set_title(f"alpha {alpha:g}", fontsize=10)
            panel.set(xlabel="clusters m", ylabel=NAMES[measure], xscale="log")
            panel.set_xticks(everywhere, [f"{m:g}" for m in everywhere])
            panel.minorticks_off()
    return _finish(figure, panels, path)


def draw_prevalence(records: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """True prevalences and, beside them, those that each record estimates.

    Parameters
    ----------
    records : sequence of records
        Of one problem (data set, r, alpha, wave), with prevalences.
    path : Path

    Returns
    -------
    Path
    """
    import matplotlib.pyplot as plt

    specs = [Spec.from_dict(record["spec"]) for record in records]
    tables = [("true", prevalence_of(specs[0]))]
    for spec, record in zip(specs, records, strict=True):
        error = record["metrics"]["prevalence_error"]
        settings = [f"{name}={value}" for name, value in spec.settings]
        title = ", ".join([METHODS[spec.method].title, *settings])
        tables.append((f"{title}\nerror {error:.4f}", matched_prevalence(record)))
    figure, panels = plt.subplots(
        1,
        len(tables),
        figsize=(3.2 * len(tables), 3.6),
        layout="constrained",
        squeeze=False,
    )
    top = max(float(table.max()) for _, table in tables)
    for panel, (title, table) in zip(panels[0], tables, strict=True):
        image = panel.imshow(table, vmin=0, vmax=top, cmap="Blues", aspect="auto")
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="class", ylabel="domain")
        panel.locator_params(integer=True)
    figure.colorbar(image, ax=panels[0], label="share of the domain's rows")
    return _save(figure, path)


def matched_prevalence(record: Mapping[str, Any]) -> Array:
    """A record's prevalences, columns in the order of the labels they are matched to.

    Classes that no test row was given to come last.
    """
    table = np.array(record["prevalence"])
    label_of = dict(map(tuple, record["matching"]))
    order = sorted(range(table.shape[1]), key=lambda c: (label_of.get(c, np.inf), c))
    return np.asarray(table[:, order])


# ---- parts -----------------------------------------------------------------------


def _alpha(line: Line) -> float | None:
    return line.cell[2]


def _clusters(line: Line) -> float | None:
    """Number of clusters m: as set, k for DDFA unless set, None for methods without."""
    settings = dict(line.settings)
    if "n_clusters" in settings:
        return float(settings["n_clusters"] or 0)
    return float(DATASETS[line.cell[0]].n_classes) if "ddfa" in line.method else None


def _draw_panel(
    panel: Any,
    lines: Sequence[Line],
    measure: str,
    styles: Mapping[str, Mapping[str, Any]],
    place: Any,
    everywhere: Sequence[float] = (),
) -> None:
    """One line of means with bars per method, and the paper's beside it."""
    for method, style in styles.items():
        mine = [line for line in lines if line.method == method]
        for source in ("here", "paper"):
            points = sorted(_points(mine, measure, place, everywhere, source))
            if not points:
                continue
            x, mean, sd = map(list, zip(*points, strict=True))
            label = METHODS[method].title
            if source == "paper":
                marker = "" if len(x) > 1 else "x"  # one point is no line
                dashed = {**style, "linestyle": "--", "alpha": 0.6, "marker": marker}
                panel.plot(x, mean, label=f"{label}, paper", **dashed)
            else:
                panel.errorbar(x, mean, yerr=sd, capsize=2, label=label, **style)
    panel.spines[["top", "right"]].set_visible(False)


def _points(
    lines: Iterable[Line],
    measure: str,
    place: Any,
    everywhere: Sequence[float],
    source: str,
) -> list[tuple[float, float, float]]:
    points = []
    for line in lines:
        spread, published = line.values.get(measure), line.published(measure)
        x = place(line)
        if source == "here" and spread is not None:
            value, sd = spread.mean, spread.sd or 0.0
        elif source == "paper" and published is not None:
            value, sd = published, 0.0
        else:
            continue
        points += [(at, value, sd) for at in (everywhere if x is None else [x])]
    return points


def _styles(lines: Iterable[Line]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line of each method: the same in every figure.

    Methods that read labels, floors and ceilings, are dotted in black.
    """
    present = {line.method for line in lines}
    return {
        method: {
            "color": "black" if entry.labelled else COLOURS.get(method, OTHER),
            "linestyle": ":" if entry.labelled else "-",
            "marker": MARKERS[number % len(MARKERS)],
            "markersize": 4,
        }
        for number, (method, entry) in enumerate(METHODS.items())
        if method in present
    }


def _panels(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(
        n_rows,
        n_columns,
        figsize=(3.2 * n_columns, 2.9 * n_rows + 0.6),
        layout="constrained",
        squeeze=False,
        sharey="row",
    )


def _finish(figure: Any, panels: Any, path: Path) -> Path:
    """One legend for all panels, below them."""
    found: dict[str, Any] = {}
    for panel in panels.ravel():
        handles, labels = panel.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    if found:
        figure.legend(
            found.values(),
            found.keys(),
            loc="outside lower center",
            ncols=min(4, max(1, round(1.2 * panels.shape[1]))),
            fontsize=8,
        )
    return _save(figure, path)


def _save(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, metadata=_no_date(path))
    plt.close(figure)
    return path


def _no_date(path: Path) -> dict[str, None]:
    """The same figure twice is the same file."""
    return {"Software": None} if path.suffix == ".png" else {"Date": None}
