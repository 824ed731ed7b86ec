"""``shoal bench``: the paper's experiments, run, resumed and compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.extend import (
    CommandError,
    Force,
    Output,
    Speech,
    filled_folder,
    refuse_existing,
    running,
    speaking,
    with_groups,
    working,
)
from shoal_bench.running import RunOptions, run

choosing = partial(typer.Option, rich_help_panel="Which runs")
Specs = Sequence[Any]

TABLES = ("bench.md", "bench.csv")
#: Methods in one figure of prevalences, the best first.
DRAWN_METHODS = 4


class Action(StrEnum):
    """What to do with a grid."""

    list = "list"
    run = "run"
    table = "table"
    plot = "plot"


Grid = Annotated[
    str | None,
    typer.Argument(metavar="GRID", help="A name from `shoal bench list`."),
]
Folder = Annotated[
    Path, working("--store", metavar="DIR", help="Folder that collects the results.")
]


@dataclass(frozen=True, kw_only=True)
class GridPart:
    """Part of a grid; what is not given means all of it."""

    dataset: Annotated[
        list[str] | None, choosing("--dataset", help="Only these data sets.")
    ] = None
    domains: Annotated[
        list[int] | None, choosing("--domains", help="Only these numbers of domains.")
    ] = None
    alpha: Annotated[
        list[float] | None, choosing("--alpha", help="Only these concentrations.")
    ] = None
    wave: Annotated[
        list[int] | None, choosing("--wave", help="Only these repetitions, from 0.")
    ] = None
    method: Annotated[
        list[str] | None, choosing("--method", help="Only these methods.")
    ] = None


@with_groups
def bench(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    choice: GridPart,
    how: RunOptions,
    speech: Speech,
    grid: Grid = None,
    store: Folder = Path("shoal-bench"),
    out: Annotated[
        Path | None,
        speaking("--out", metavar="DIR", help="Folder for tables or figures."),
    ] = None,
    force: Force = False,
) -> None:
    """Run the paper's experiments and ours, and compare them.

    list: the grids and how much of them is done. run: make the runs of a grid that
    have no result yet; it may be stopped and started again at any time, and by several
    processes at once. table: means over waves beside the paper's numbers, with --out
    as Markdown and CSV. plot: figures, in the folder "figures" of the store unless
    --out is given.
    """
    with running("bench", speech) as output:
        if action is Action.list and grid is None:
            list_grids(output, store)
            return
        specs = choose(grid, choice)
        if action is Action.list:
            list_runs(output, specs, store)
        elif action is Action.run:
            run(output, specs, store, how)
        elif action is Action.table:
            tabulate(output, str(grid), specs, store, out, force)
        else:
            plot(output, str(grid), specs, store, out or store / "figures", force)


#: The command and its example, as the command line takes them (an entry point).
COMMAND = (bench, "shoal bench list")


def choose(grid: str | None, choice: GridPart) -> Specs:
    """Specs of a grid, or E002 with the names that there are."""
    from shoal_bench.grids import GRIDS, select

    if grid is None or grid not in GRIDS:
        text = "which grid?" if grid is None else f'no grid is called "{grid}"'
        raise CommandError("E002", text, f"one of: {', '.join(GRIDS)}")
    try:
        return select(
            GRIDS[grid].specs(),
            datasets=choice.dataset or (),
            n_domains=choice.domains or (),
            alphas=choice.alpha or (),
            waves=choice.wave or (),
            methods=choice.method or (),
        )
    except ValueError as error:
        hint = f"`shoal bench list {grid}` shows what there is"
        raise CommandError("E002", str(error), hint) from error


# ---- list ------------------------------------------------------------------------


def list_grids(output: Output, folder: Path) -> None:
    """Every grid, its size, and how much of it the store has."""
    from shoal_bench.grids import GRIDS
    from shoal_bench.store import Store

    done = Store(folder).records()
    rows = []
    for name, grid in GRIDS.items():
        names = [spec.name for spec in grid.specs()]
        found = sum(name in done for name in names)
        rows.append(
            {"grid": name, "runs": len(names), "done": found, "what": grid.title}
        )
    output.data = {"store": str(folder), "grids": rows}
    output.show(table_of(f'Grids, and what "{folder}" has of them', rows))


def list_runs(output: Output, specs: Specs, folder: Path) -> None:
    """The methods of a grid: runs, done, failed, and whether they can run here."""
    from shoal_bench.methods import METHODS, absent
    from shoal_bench.store import Store

    store = Store(folder)
    done, failed = store.records(), store.failures()
    rows = []
    for method in dict.fromkeys(spec.method for spec in specs):
        names = [spec.name for spec in specs if spec.method == method]
        missing = absent(method)
        rows.append(
            {
                "method": method,
                "title": METHODS[method].title,
                "fits on": METHODS[method].view,
                "runs": len(names),
                "done": sum(name in done for name in names),
                "failed": sum(name in failed for name in names),
                "needs": "" if missing is None else missing.hint,
            }
        )
    runs = [{"name": spec.name, "done": spec.name in done} | spec.to_dict()
            for spec in specs]  # fmt: skip
    output.data = {"store": str(folder), "methods": rows, "runs": runs}
    output.show(table_of(f"{len(specs)} runs", rows))


def table_of(title: str, rows: Sequence[dict[str, Any]]) -> Any:
    """Records as a table: numbers to the right."""
    from rich.table import Table

    table = Table(title=title)
    for name, value in rows[0].items():
        table.add_column(name, justify="right" if isinstance(value, int) else "left")
    for row in rows:
        table.add_row(*map(str, row.values()))
    return table


# ---- table and plot --------------------------------------------------------------


def tabulate(
    output: Output,
    grid: str,
    specs: Specs,
    folder: Path,
    out: Path | None,
    force: bool,
) -> None:
    """Means over waves beside the paper's numbers."""
    from shoal_bench.markdown import markdown
    from shoal_bench.store import Store
    from shoal_bench.tables import commands, csv_text, flat_rows, summarize

    if out is not None:
        refuse_existing(out, TABLES, force=force)
    lines = summarize(specs, Store(folder).records())
    text = markdown(lines, grid, str(folder))
    missing = commands(lines, grid, str(folder))
    output.data = {"rows": flat_rows(lines), "not_run": missing}
    output.show(text)
    if out is not None:
        with filled_folder(out) as place:
            for name, content in zip(TABLES, (text, csv_text(lines)), strict=True):
                (place / name).write_text(content, encoding="utf-8", newline="")
        output.files = [out / name for name in TABLES]


def plot(
    output: Output, grid: str, specs: Specs, folder: Path, out: Path, force: bool
) -> None:
    """Accuracy against alpha (or m), and true beside estimated prevalences."""
    import matplotlib

    from shoal_bench import figures
    from shoal_bench.store import Store
    from shoal_bench.tables import summarize

    matplotlib.use("Agg")
    records = Store(folder).records()
    lines = summarize(specs, records)
    if not any(line.waves for line in lines):
        raise CommandError(
            "E101",
            f"{folder} has no record of {grid}",
            f"run `shoal bench run {grid} --store {folder}` first",
        )
    clusters = any("n_clusters" in dict(line.settings) for line in lines)
    first = "clusters.png" if clusters else "alpha.png"
    chosen = {f"prevalence-{name}.png": found
              for name, found in problems_to_draw(specs, records).items()}  # fmt: skip
    refuse_existing(out, [first, *chosen], force=force)
    with filled_folder(out) as place:
        draw = figures.draw_against_clusters if clusters else figures.draw_against_alpha
        draw(lines, place / first)
        for name, found in chosen.items():
            figures.draw_prevalence(found, place / name)
    output.files = [out / name for name in (first, *chosen)]
    output.data = {"grid": grid, "runs": sum(len(line.waves) for line in lines)}
    output.show("Written: " + ", ".join(map(str, output.files)))


def problems_to_draw(
    specs: Specs, records: dict[str, dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """For each data set the problem with the most records, and the best of those."""
    from shoal_bench.methods import METHODS

    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for spec in specs:
        record = records.get(spec.name)
        if record is None or METHODS[spec.method].labelled:
            continue
        if record["metrics"]["prevalence_error"] is not None:
            problem = f"r{spec.n_domains}-alpha{spec.alpha:g}-wave{spec.wave}"
            found.setdefault((spec.dataset, problem), []).append(record)
    largest: dict[str, str] = {}
    for dataset, problem in found:
        known = largest.setdefault(dataset, problem)
        if len(found[dataset, problem]) > len(found[dataset, known]):
            largest[dataset] = problem
    return {
        f"{dataset}-{problem}": sorted(
            found[dataset, problem], key=lambda one: one["metrics"]["prevalence_error"]
        )[:DRAWN_METHODS]
        for dataset, problem in largest.items()
    }
