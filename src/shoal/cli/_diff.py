"""``shoal diff``: what differs between two runs."""

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import _runs
from shoal.cli._current import classes_of, current_records, read_assignments
from shoal.cli._messages import CommandError, write_json
from shoal.cli._options import (
    CsvResults,
    Speech,
    with_groups,
    working,
)
from shoal.cli._output import Output, running
from shoal.cli._tables import percent, shortened_table

#: Shares, everything, and the rows that moved.
FILES = ("diff.csv", "diff.json", "moved.csv")

First = Annotated[Path, typer.Argument(metavar="RUN1", help="The earlier run.")]
Second = Annotated[Path, typer.Argument(metavar="RUN2", help="The later run.")]


@dataclass(frozen=True, kw_only=True)
class Differing:
    """How sure changes have to be."""

    level: float = working(0.9, "Coverage of the intervals.", min=0.01, max=0.999)


@with_groups
def diff(
    first: First, second: Second, how: Differing, results: CsvResults, speech: Speech
) -> None:
    """What differs between two runs: classes, their shares, rows that moved, columns.

    Classes are matched by the rows that both runs have classed, by row_id and domain.
    Shares of matched classes are compared with intervals. With --out, writes diff.csv
    (shares), diff.json (everything) and moved.csv (rows in another class).
    """
    from shoal.analysis._difference import compare_sides

    with running("diff", speech, results) as output:
        _runs.refuse_results(results, FILES)
        with output.stages({"read": "reading both runs", "diff": "comparing"}):
            output.begin("read")
            runs = [read_run(run) for run in (first, second)]
            rows = joined_rows(*runs)
            sides = [
                side_of(run, rows[f"class_{number}"].to_numpy())
                for number, run in enumerate(runs, start=1)
            ]
            output.begin("diff")
            found = compare_sides(*sides, level=how.level)
        output.found(found.to_dict())
        moved = named_rows(rows[found.moved], runs)
        write = partial(write_diff, found, moved, output.plain_csv)
        _runs.keep(output, results, FILES, write)
        show(output, found)


@dataclass(frozen=True)
class Run:
    """A run, its model, and the number of the class of each of its rows."""

    path: Path
    model: Any
    rows: Any


def read_run(path: Path) -> Run:
    """A run with its rows; E135 where it has none, or those of another model."""
    folder, model = _runs.settled(path), _runs.load_settled(path)
    table = read_assignments(folder)
    classes = None if table is None else classes_of(table, model)
    if classes is None:
        text = f'"{path}" has no assignments of its model'
        hint = "give folders that `shoal fit` or `shoal update` wrote"
        raise CommandError("E135", text, hint)
    keys = {name: table[name].astype(str) for name in ("row_id", "domain")}
    rows = table[[]].assign(**keys, **{"class": classes})
    # of rows with one name, the first of both runs are the same
    rows["copy"] = rows.groupby(["row_id", "domain"]).cumcount()
    return Run(path, model, rows)


def joined_rows(first: Run, second: Run) -> Any:
    """Rows that both runs have classed; E135 where there is none."""
    rows = first.rows.merge(
        second.rows, on=["row_id", "domain", "copy"], suffixes=("_1", "_2")
    )
    if rows.empty:
        text = f'"{first.path}" and "{second.path}" have no row in common'
        hint = "rows are known by row_id and domain: fit both with --id"
        raise CommandError("E135", text, hint)
    return rows.drop(columns="copy")


def side_of(run: Run, labels: Any) -> Any:
    """What a run says of some rows, and its shares with how sure they are."""
    import numpy as np

    from shoal.analysis._difference import Side

    model = run.model
    shape = model.prevalence_.shape
    records = current_records(run.path, model)
    variance, n_rows = np.full(shape, np.nan), np.zeros(shape[0])
    for number, record in enumerate(records):
        d, y = divmod(number, shape[1])
        variance[d, y] = variance_of(record)
        n_rows[d] = float(record["n_rows"] or 0)
    features = (getattr(model, "schema_", None) or {}).get("features") or []
    columns = [str(one["name"]) for one in features]
    return Side(
        labels=labels,
        class_names=[str(one) for one in model.class_names_],
        domains=[str(one) for one in model.domains_.tolist()],
        prevalence=model.prevalence_,
        variance=variance,
        n_rows=n_rows,
        columns=columns or [str(one) for one in range(model.n_features_in_)],
    )


def variance_of(record: dict[str, Any]) -> float:
    """Variance behind an interval; NaN where there is none.

    An interval ends at 0 and 1, so that its longer side tells.
    """
    from shoal.analysis._resample import stretched_quantile

    try:
        low, high, level = (float(record[key]) for key in ("lo", "hi", "level"))
    except (TypeError, ValueError):
        return math.nan
    estimate = float(record["estimate"])
    reach = max(high - estimate, estimate - low)
    return (reach / stretched_quantile(level)) ** 2


def named_rows(rows: Any, runs: list[Run]) -> Any:
    """Rows with the names of their classes in both runs."""
    names = [run.model.class_names_ for run in runs]
    return rows.assign(
        before=[str(names[0][y]) for y in rows["class_1"]],
        after=[str(names[1][y]) for y in rows["class_2"]],
    )


def write_diff(found: Any, moved: Any, plain: bool, place: Path) -> None:
    """Write shares, everything, and the rows that moved."""
    heads = ["row_id", "domain", "before", "after"]
    _runs.write_csv(place / FILES[0], found.to_records(), plain=plain)
    write_json(place / FILES[1], found.to_dict())
    records = moved[heads].to_dict("records") or [dict.fromkeys(heads, "")]
    _runs.write_csv(place / FILES[2], records, plain=plain)


def show(output: Output, found: Any) -> None:
    """Classes of both, shares that changed, and the rest in sentences."""
    rows = [
        [one.before or "-", one.after or "-", percent(one.alike)] for one in found.pairs
    ]
    table = shortened_table("Classes", ["before", "after", "rows in common"], rows)
    output.show(table, *(found.findings or ["Nothing differs."]))
    output.show_files()
