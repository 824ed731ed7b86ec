"""The tables as Markdown, laid out as the paper's: alphas side by side."""

from collections.abc import Iterable, Mapping, Sequence

from shoal_bench.methods import METHODS
from shoal_bench.problems import DATASETS
from shoal_bench.spec import Cell
from shoal_bench.tables import MEASURES, Best, Line, best_of, commands, winners_of

NAMES = {"accuracy": "accuracy", "prevalence_error": "error of the prevalences"}
DIGITS = {"accuracy": 3, "prevalence_error": 4}  # the paper prints 3 of both
NOT_RUN = "not run"
CAPTION = """\
Mean ± standard deviation over waves (number of waves); *paper*: the number published
for this method on this problem; *difference*: ours less the paper's, except where that
is doubtful (†). Accuracy is on test rows after matching classes to labels, the error of
the prevalences is their mean absolute difference. Bold: the best of the cell, the
paper's numbers included; methods in italics read labels and do not compete."""


def markdown(lines: Sequence[Line], grid: str, store: str = "DIR") -> str:
    """Tables of a grid, and the commands for what is not run yet.

    Parameters
    ----------
    lines : sequence of Line
        From :func:`shoal_bench.tables.summarize`.
    grid, store : str
        Its name and the folder of its records, for the commands.

    Returns
    -------
    str
    """
    parts = [
        CAPTION,
        *_headline(lines),
    ]
    for dataset, r in dict.fromkeys((line.cell[0], line.cell[1]) for line in lines):
        part = [line for line in lines if line.cell[:2] == (dataset, r)]
        parts += [f"### {DATASETS[dataset].title}, {r} domains", *_block(part)]
    parts += [*_costs(lines), *_not_run(lines, grid, store)]
    return "\n\n".join(parts) + "\n"


# ---- the headline ----------------------------------------------------------------


def _headline(lines: Sequence[Line]) -> list[str]:
    """Ours beside the best that the paper published with any method, cell by cell."""
    tables = {
        measure: (
            best_of(lines, measure, published=True),
            best_of(lines, measure, ours=True),
        )
        for measure in MEASURES
    }
    cells = [cell for cell, _ in tables["accuracy"][0].items()]
    if not cells:
        return []
    head = ["data", "r", "alpha"]
    for name in NAMES.values():
        head += [f"{name}: best published", "ours, best", "difference"]
    rows = []
    for dataset, r, alpha in cells:
        row = [DATASETS[dataset].title, str(r), f"{alpha:g}"]
        for measure, (published, ours) in tables.items():
            cell = (dataset, r, alpha)
            row += _compare(measure, published.get(cell), ours.get(cell))
        rows.append(row)
    return ["### Best published and ours", _tally(tables), _table(head, rows)]


def _compare(measure: str, published: Best | None, ours: Best | None) -> list[str]:
    if published is None:
        return ["", NOT_RUN if ours is None else f"{ours.value:.3f}", ""]
    text = f"{published.value:.3f} {published.title}"
    if ours is None:
        return [text, NOT_RUN, ""]
    wins = MEASURES[measure] * (ours.value - published.value) > 0
    value = f"{ours.value:.{DIGITS[measure]}f}"
    mine = f"**{value}**" if wins else value
    return [
        text,
        f"{mine} {ours.title}",
        f"{ours.value - published.value:+.{DIGITS[measure]}f}",
    ]


def _tally(
    tables: Mapping[str, tuple[Mapping[Cell, Best], Mapping[Cell, Best]]],
) -> str:
    sentences = []
    for measure, (published, ours) in tables.items():
        both = [cell for cell in published if cell in ours]
        won = [
            cell
            for cell in both
            if MEASURES[measure] * (ours[cell].value - published[cell].value) > 0
        ]
        sentences.append(
            f"{NAMES[measure]}: ours is better in {len(won)} of {len(both)} cells run"
        )
    return "; ".join(sentences).capitalize() + "."


# ---- one problem -----------------------------------------------------------------


def _block(lines: Sequence[Line]) -> list[str]:
    """Both measures of one data set and r: a row per method, alphas side by side."""
    return [
        f"{name.capitalize()}:\n\n{_measure_table(lines, measure)}"
        for measure, name in NAMES.items()
    ]


def _measure_table(lines: Sequence[Line], measure: str) -> str:
    alphas = list(dict.fromkeys(line.cell[2] for line in lines))
    with_paper = any(line.printed(measure) is not None for line in lines)
    head = ["method"]
    for alpha in alphas:
        head += [f"alpha {alpha:g}"] + (["paper", "difference"] if with_paper else [])
    best = winners_of(lines, measure)
    by_title: dict[str, dict[float, Line]] = {}
    for line in sorted(lines, key=lambda line: line.labelled):
        by_title.setdefault(line.title, {})[line.cell[2]] = line
    rows = []
    for title, found in by_title.items():
        labelled = next(iter(found.values())).labelled
        row = [f"*{title}*" if labelled else title]
        for alpha in alphas:
            row += _entries(found.get(alpha), measure, best, with_paper)
        rows.append(row)
    return _table(head, rows + _shares(lines, alphas, measure, with_paper))


def _entries(
    line: Line | None, measure: str, best: Mapping[Cell, Best], with_paper: bool
) -> list[str]:
    if line is None:
        return ["", "", ""] if with_paper else [""]
    text = ""
    if measure in line.values:
        text = line.values[measure].text(DIGITS[measure])
    if not line.waves:
        text = NOT_RUN
    winner = best.get(line.cell)
    if winner is not None and text and winner.title == line.title:
        text = f"**{text}**"
    if not with_paper:
        return [text]
    printed, difference = line.printed(measure), line.difference(measure)
    number = "" if printed is None else f"{printed:.3f}"
    if line.doubtful(measure):
        number += " †"
    if winner is not None and number and winner.title == f"{line.title} (paper)":
        number = f"**{number}**"
    shown = "" if difference is None else f"{difference:+.{DIGITS[measure]}f}"
    return [text, number, shown]


def _shares(
    lines: Sequence[Line], alphas: Iterable[float], measure: str, with_paper: bool
) -> list[list[str]]:
    """How much of the supervised accuracy our best method reaches, on common waves."""
    if measure != "accuracy":
        return []
    best = best_of(lines, measure, ours=True)
    ours = {
        line.cell: line
        for line in lines
        if line.cell in best and line.title == best[line.cell].title
    }
    rows = []
    for method in ("oracle", "reference"):
        ceilings = {line.cell: line for line in lines if line.method == method}
        row = [f"*ours, best, as a share of: {METHODS[method].title}*"]
        for alpha in alphas:
            cell = (*lines[0].cell[:2], alpha)
            share = _share(ours.get(cell), ceilings.get(cell))
            row += [share, "", ""] if with_paper else [share]
        if any(row[1:]):
            rows.append(row)
    return rows


def _share(ours: Line | None, ceiling: Line | None) -> str:
    if ours is None or ceiling is None:
        return ""
    waves = set(ours.accuracy) & set(ceiling.accuracy)
    if not waves:
        return ""
    reached, possible = (
        sum(line.accuracy[wave] for wave in waves) for line in (ours, ceiling)
    )
    return f"{reached / possible:.1%}"


# ---- costs, and what is missing --------------------------------------------------


def _costs(lines: Sequence[Line]) -> list[str]:
    groups: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.waves:
            groups.setdefault((line.cell[0], line.title), []).append(line)
    rows = [
        [
            DATASETS[dataset].title,
            title,
            str(sum(len(line.waves) for line in group)),
            f"{sum((line.seconds or 0) * len(line.waves) for line in group):.0f}",
            f"{max(line.seconds or 0 for line in group):.1f}",
            "; ".join(sorted({line.device for line in group})),
        ]
        for (dataset, title), group in groups.items()
    ]
    head = ["data", "method", "runs", "seconds", "slowest cell, mean", "device"]
    return ["### What it cost", _table(head, rows)] if rows else []


def _not_run(lines: Sequence[Line], grid: str, store: str) -> list[str]:
    missing = commands(lines, grid, store)
    if not missing:
        return []
    text = "\n".join(f"    {command}" for command in missing)
    return ["### Not run", f"Cells without a number are filled by:\n\n{text}"]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
